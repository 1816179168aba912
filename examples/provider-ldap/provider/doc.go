// Package provider is a provider for LDAP directories, on package crossplane: three kinds, and commands to run it, to export what
// a directory has, and to find imports that can be managed.
//
// Read person.go first, which is a kind whose external name the directory makes. group.go is another one, membership.go has a
// compound key. connect.go finds the directory of an object. export.go says how each kind is exported, command.go has the
// commands.
package provider
