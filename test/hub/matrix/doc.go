// Package matrix checks that each number of docs/reference/hub-test-matrix.md has the tests
// that the page names, and that no test has a number which is not there. It also finds a
// reason of a refusal that docs/reference/hub-protocol.md lacks.
package matrix
