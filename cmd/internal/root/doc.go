// Package root is the program: the tree of all commands, help and completion.
//
// # Reading order
//
// completion.go and help.go change what cobra provides. root.go builds the tree, and command.go gives it to the
// reference. A file uses only files before it.
package root
