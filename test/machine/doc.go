// Package machine runs the tests of a package on a machine of their own, as far as the kernel of Linux can: in namespaces of
// processes, mounts, network, IPC and cgroups that the tests share with no other process. What the tests start there listens on no
// address of this machine, and mounts, interfaces, rules of iptables and files below /var and /run are of that machine alone.
//
// The tests may end in any way, also by a kill: then the kernel ends all processes of the machine, and with them its mounts and
// its network. A further process, which waits for the end, removes its cgroups and its folder.
//
// A machine needs root. It does not separate users, and is no protection from what runs in it: tests are trusted. It has no way to
// other networks, so what the tests need from there must be prepared before.
//
// # Reading order
//
// role.go tells what a process is. cgroup_linux.go and mount_linux.go prepare the machine, and init_linux.go is its first process.
// sweep_linux.go cleans up, and main_linux.go starts the machine and awaits its end. machine_other.go refuses other systems, and
// machine.go has Main. remains_linux.go finds what is left, and
// hold_linux.go kills a machine, for tests of the same. A file uses only files before it.
package machine
