// Package root is the program: the tree of all commands, help, completion and version.
package root
