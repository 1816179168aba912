// Package guide runs the tutorials in docs/tutorials: every command, in its order, in one shell against a real control
// plane, and compares the output. So a tutorial cannot have a command that does not run.
//
// A tutorial consists of prose and of three kinds of fenced blocks:
//
//   - yaml, whose first line is a comment with a file name: the file is written
//     when the test reaches the block.
//   - console, with commands after "$ " and the output below each. A line
//     that is "..." stands for any lines, "..." within a line for any text. A
//     command must succeed, unless the next one is `echo $?`. A background process
//     prints to a file, and ends with the tutorial.
//   - go, whose first line is a comment with a path in this repository: the other
//     lines are consecutive lines of that file.
//
// Besides the control plane, the machine needs a POSIX shell.
//
// A guide in docs/guides is for the cluster of its reader. A test compares it with the tutorials: each command, output and YAML
// of a guide is in a tutorial. The pages in docs/errors are compared in the same way.
//
// Read guide_test.go, then howto_test.go for the guides, document_test.go for the form of both,
// shell_test.go for how commands are run, and cluster_test.go for the cluster
// that the tutorials use; kubevirt_test.go and thirdparty_test.go install the CRDs of other projects.
package guide
