// Package process runs servers as processes of a test, which end with it: on Linux the kernel kills them when the test
// ends in any way, also by a panic or a kill.
//
// # Reading order
//
// process.go, process_linux.go, process_other.go, log.go.
package process
