// Command revision measures `godwit revision run` on VirtualMachines of which each has a revision
// of an instance type and one of a preference, at versions that KubeVirt can no longer read.
//
// The ceiling is a client that knows beforehand what to write, sends nothing else, and leaves the
// same objects: for each VirtualMachine it creates two revisions, repoints the spec and the
// status, and writes to both old revisions since when no object refers to them. These last two
// writes are what the retention is counted by, so that a client without them could never delete
// an old revision safely. A second number is of the same client without them.
//
// Both run against the same control plane, in turns and several times, since other processes of a machine change how fast it is:
// the result is the ratio within one run of this command. The ratio of CPU times depends less on other processes, but it does
// depend on them: they share caches and cores with what is measured. Compare only results of a quiet machine. After each
// measurement every reference must name a revision at the target version, or there is no result.
//
// Memory is the peak of the process at n and at ten times n. A second run, which deletes the old revisions, and a third, which
// finds nothing to do, are measured at ten times n.
//
// # Reading order
//
// fleet.go starts a control plane and creates the VirtualMachines, and check.go checks what a client has done to them. ceiling.go is
// the client of the ceiling, and command.go runs the command. plan.go measures a plan of a cluster that is too large to be created by
// an API server, result.go has the numbers, and main.go measures all. A file uses only files before it.
package main
