// Package cli has what the commands of godwit share: streams, the terminal, consent, exit
// codes, common flags, output formats, and the connection to a cluster.
//
// Data goes to stdout, in one of the formats of package report. Progress, warnings,
// questions and errors go to stderr. A command that changes a cluster asks first on a
// terminal, and refuses without a terminal unless the user gives --yes. Every refusal and
// error is one line: the object, the cause, and what to do next.
//
// The commands of each domain are a package of their own, crd and revision, which import
// this package and not each other. Package root builds the tree of commands. Packages rbac,
// manager, lint and explain have the other commands.
//
// Read app.go and exit.go, then flag.go and output.go. The files console.go, draw.go and
// warning.go write to stderr. The files consent.go and commandline.go ask, and print commands
// to paste. The files connection.go, permission.go and problem.go connect to the cluster and
// explain its errors. Files use those that come later in this order.
package cli
