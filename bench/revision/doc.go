// Command revision measures `godwit revision run` on VirtualMachines. Each has a revision of an
// instance type and a revision of a preference, at versions that KubeVirt can no longer read.
//
// The ceiling is a client that knows beforehand what to write, sends nothing else, and leaves the
// same objects: for each VirtualMachine it creates two revisions, repoints the spec and the
// status, and writes to both old revisions the time since which no object refers to them. The
// retention is counted from these last two writes. A client without them could never delete an
// old revision safely. A second number is for the same client without them.
//
// Both run against the same control plane, in turns and several times, because other processes change the speed of a machine: the
// result is the ratio within one run of this command. The ratio of CPU times depends less on other processes, but they share caches
// and cores with the measured processes. Compare only results of a quiet machine. If a reference does not name a revision at the
// target version after a measurement, there is no result.
//
// Memory is the peak of the process, for n and for ten times n VirtualMachines. A second run, which deletes the old revisions, and a
// third, which finds nothing to do, are measured for ten times n.
//
// # Reading order
//
// fleet.go starts a control plane and creates the VirtualMachines, and check.go checks the work of a client. ceiling.go is the client
// of the ceiling, and command.go runs the command. plan.go measures a plan of a large cluster, whose objects it copies in etcd.
// result.go has the numbers, and main.go measures all. A file uses only files before it.
package main
