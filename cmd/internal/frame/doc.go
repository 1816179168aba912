// Package frame has what the commands of godwit share: streams, the terminal, consent, exit
// codes, common flags, output formats, and the connection to a cluster.
//
// Data goes to stdout, in one of the formats of package render. Progress, warnings,
// questions and errors go to stderr. A command that changes a cluster asks first on a
// terminal, and refuses without a terminal unless the user gives --yes. Every refusal and
// error is one line: the object, the cause, and what to do next.
//
// The commands of each domain are a package of their own, crd and revision, which import
// this package and not each other. Package root builds the tree of commands. Packages rbac,
// manager, agent, lint and explain have the other commands.
//
// # Reading order
//
// buildinfo.go has the version. console.go, draw.go and warning.go write to stderr. exit.go has the
// exit codes, and app.go is one invocation of the program, whose log is in log.go. commandline.go prints commands to paste,
// consent.go asks, and suggest.go corrects typos. problem.go is an error with its remedy. flag.go and
// output.go have the common flags, finish.go ends a command that failed. purpose.go says what a connection is for, connection.go is the
// connection and finds missing permissions, explain.go explains errors, and dial.go connects. A file uses only files before it.
//
// Package process, below it, has the flags of the commands that run in a cluster until told to stop.
package frame
