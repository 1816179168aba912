// Package provider is a provider for LDAP directories, on package crossplane: three kinds, and commands to run it, to export what
// a directory has, and to find imports that can be managed.
//
// # Reading order
//
// connect.go finds the directory of an object. person.go and group.go are kinds whose external names the directory makes.
// membership.go is a kind with a compound key. export.go says how each kind is exported, and command.go has the commands. A
// file uses only files before it.
package provider
