// Command matrix builds the API server and the controller manager of several versions of Kubernetes, one after the other,
// runs tests against each, and writes the results into the table of docs/reference/versions.md.
//
//	go run ./test/matrix -versions "1.33 1.34"
//
// A cell has "fails" with the names of the tests, also if a test did not run, and "not run" if no test ran. If the server of a
// version does not build, its row says so, the next version follows, and the exit code is 1. Rows of versions that were not
// selected stay, unless they are of another patch release or have other columns.
//
// # Reading order
//
// column.go names the tests, result.go reads go test -json, table.go reads and writes the table, version.go finds and
// builds versions, and main.go runs all.
package main
