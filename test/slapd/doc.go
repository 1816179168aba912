// Package slapd starts slapd, OpenLDAP's server, as an external system for tests. It listens on the loopback address, keeps its
// data in a temporary folder, and ends with the test.
//
// It uses an installed slapd, or the one that tools/slapd/build.sh has unpacked into bin/slapd. If there is neither, Start
// returns [ErrMissing]: a test then skips itself with a message, unless [Required].
package slapd
