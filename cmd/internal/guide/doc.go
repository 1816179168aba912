// Package guide runs the guides in docs/guides: every command in them, in the
// order in which they are written, in one shell against a real control plane,
// and compares what they print. There is no way for a guide to have a command
// that is not run.
//
// A guide consists of prose and of three kinds of fenced blocks:
//
//   - yaml, whose first line is a comment with a file name: the file is written
//     when the guide gets there.
//   - console, with commands after "$ " and below each what it prints. A line
//     that is "..." stands for any lines, "..." within a line for any text. A
//     command must succeed, unless the next one is `echo $?`. What is started in
//     the background prints to a file, and ends with the guide.
//   - go, whose first line is a comment with a path in this repository: what
//     follows are lines of that file, in a row.
//
// What it expects of the machine besides the control plane is a POSIX shell.
//
// Read guide_test.go, then document_test.go for the form of a guide,
// shell_test.go for how commands are run, and cluster_test.go for the cluster
// that the guides speak of; kubevirt_test.go gives it what a cluster with KubeVirt has.
package guide
