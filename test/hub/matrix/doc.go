// Package matrix checks that each number of docs/reference/hub-test-matrix.md has the tests
// that the page names, and that no test has a number that the page lacks. It also finds
// reasons of refusals that docs/reference/hub-protocol.md lacks.
package matrix
