// Package cli is what the commands of godwit share: streams, the terminal, consent, exit
// codes, common flags, output formats, and the connection to a cluster.
//
// Data goes to stdout, in one of the formats of package report; progress, warnings,
// questions and errors go to stderr. A command that would change a cluster asks first on
// a terminal, and refuses elsewhere unless it is given --yes. Every refusal and error is
// one line: the object, the cause, and what to do next.
//
// Each domain has its commands in a package of its own, crd and revision, which import
// this package and not each other. Package root puts the tree of commands together; rbac,
// manager, lint and explain are commands beside the domains.
//
// Read app.go and exit.go, then flag.go and output.go; console.go, draw.go and warning.go
// own stderr; consent.go and commandline.go ask, and print commands to paste;
// connection.go, permission.go and problem.go talk to the cluster and explain what it
// answers. Files use those that come later in this order.
package cli
