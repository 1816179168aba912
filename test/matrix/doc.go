// Command matrix builds the API server and the controller manager of several versions of Kubernetes, one after the other,
// runs tests against each, and writes what came of them into the table of docs/reference/versions.md.
//
//	go run ./test/matrix -versions "1.33 1.34"
//
// A cell is never better than its run: it says "fails" with the names of the tests, also for a test that did not run, and
// "not run" where nothing did. A version whose server does not build has a row that says so, and the others go on; the exit
// code is 1 then. Rows of versions that were not selected stay, unless they are of another patch release or have other
// columns.
//
// # Reading order
//
// column.go names the tests, result.go reads go test -json, table.go reads and writes the table, version.go finds and
// builds versions, and main.go runs all.
package main
