// Package guide runs the tutorials in docs/tutorials: every command in them, in the
// order in which they are written, in one shell against a real control plane,
// and compares what they print. There is no way for a tutorial to have a command
// that is not run.
//
// A tutorial consists of prose and of three kinds of fenced blocks:
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
// A guide in docs/guides is for the cluster of its reader. It is compared with the tutorials: it shows no command, no output and
// no YAML that no tutorial shows.
//
// Read guide_test.go, then howto_test.go for the guides, document_test.go for the form of both,
// shell_test.go for how commands are run, and cluster_test.go for the cluster
// that the tutorials use; kubevirt_test.go and thirdparty_test.go install the CRDs of other projects.
package guide
