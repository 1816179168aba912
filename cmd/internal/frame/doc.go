// Package frame has what the commands of godwit share: streams, the terminal, consent, exit
// codes, common flags, output formats, and the connection to a cluster.
//
// Data goes to stdout, in one of the formats of package render. Progress, warnings,
// questions and errors go to stderr. A command that changes a cluster asks first on a
// terminal, and refuses without a terminal unless the user gives --yes. Every refusal and
// error is one line: the object, the cause, and what to do next. On a terminal it is wrapped, and what to do stands below.
//
// All commands that change a cluster use the order of [App.Change]: connect, plan, ask, run, print the result and
// choose the exit code. The command implements the steps. Functions in this package register the flags that several
// commands have, so that each has one name, one meaning and one default.
//
// The commands of each domain are in their own package, such as crd and revision. These packages import this one and
// not each other. Package root builds the tree of commands. Packages rbac, manager, agent, lint and explain have the
// other commands.
//
// # Reading order
//
// buildinfo.go has the version. problem.go is an error with its remedy. console.go and warning.go write to stderr. exit.go has the
// exit codes, and app.go is one invocation of the program, whose log is in log.go. commandline.go prints commands to paste,
// and suggest.go corrects typos. flag.go has kinds of values, shared.go and policy.go the flags of
// several commands, and output.go the flag -o. change.go is a command that changes a cluster, and finish.go ends one that failed. connection.go is the connection, says what it is for, and finds missing permissions, explain.go explains errors,
// dial.go connects, and complete.go completes arguments. A file uses only files before it.
//
// Package process, below it, has the flags of the commands that run in a cluster until told to stop.
package frame
