// Package slapd starts slapd, OpenLDAP's server, as an external system for tests. It listens on the loopback address, keeps its
// data in a folder of its own, and dies with the test.
//
// It uses an installed slapd, or the one that tools/slapd/build.sh has unpacked into bin/slapd. Where there is neither, Start
// returns [ErrMissing]: a test is then skipped, and says so, unless [Required].
package slapd
