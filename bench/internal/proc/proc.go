// Package proc reads the CPU time and the memory of a process, and the load of the machine, in /proc of Linux.
package proc

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Usage is the CPU time and the memory of a process so far.
type Usage struct {
	CPU     float64 // seconds
	RSS     int64   // bytes
	PeakRSS int64   // bytes
}

// clockTicks is the number of ticks per second: 100 on every Linux architecture that Go supports.
const clockTicks = 100

// UsageOf reads the usage of a process that has not ended. The peak in the result of a wait would be useless: it is at least the
// peak of the parent, because both share their memory until the program is loaded, and Linux keeps the greater peak.
func UsageOf(pid int) (Usage, error) {
	folder := fmt.Sprintf("/proc/%d/", pid)
	stat, err := os.ReadFile(folder + "stat")
	if err != nil {
		return Usage{}, err
	}
	status, err := os.ReadFile(folder + "status")
	if err != nil {
		return Usage{}, err
	}
	return parse(string(stat), string(status))
}

// parse reads /proc/PID/stat and /proc/PID/status, as proc(5) describes them.
func parse(stat, status string) (Usage, error) {
	var u Usage
	fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:]) // the program's name comes before
	if len(fields) < 13 {
		return u, fmt.Errorf("read /proc/PID/stat: %q", stat)
	}
	for _, ticks := range fields[11:13] { // utime, stime
		n, err := strconv.ParseFloat(ticks, 64)
		if err != nil {
			return u, fmt.Errorf("read /proc/PID/stat: %w", err)
		}
		u.CPU += n / clockTicks
	}
	for name, into := range map[string]*int64{"VmRSS:": &u.RSS, "VmHWM:": &u.PeakRSS} {
		_, after, found := strings.Cut(status, name)
		if !found {
			return u, fmt.Errorf("read /proc/PID/status: it has no %s", name)
		}
		if _, err := fmt.Sscanf(after, "%d kB", into); err != nil {
			return u, fmt.Errorf("read /proc/PID/status: %s %w", name, err)
		}
		*into *= 1024
	}
	return u, nil
}

// children returns the processes that this process has started, and that have not ended.
func children() ([]int, error) {
	lists, err := filepath.Glob("/proc/self/task/*/children")
	if err != nil {
		return nil, err
	}
	var pids []int
	for _, list := range lists {
		text, err := os.ReadFile(list)
		if err != nil {
			continue // the thread has ended
		}
		for child := range strings.FieldsSeq(string(text)) {
			pid, err := strconv.Atoi(child)
			if err != nil {
				return nil, fmt.Errorf("read %s: %w", list, err)
			}
			pids = append(pids, pid)
		}
	}
	return pids, nil
}

// commLength is the length to which Linux cuts a program's name in /proc/PID/comm.
const commLength = 15

// Child returns the only child of this process that runs a program.
func Child(program string) (pid int, err error) {
	pids, err := children()
	if err != nil {
		return 0, err
	}
	pids = slices.DeleteFunc(pids, func(pid int) bool {
		comm, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
		return err != nil || strings.TrimSpace(string(comm)) != program[:min(len(program), commLength)]
	})
	if len(pids) != 1 {
		return 0, fmt.Errorf("find the process of %s: there are %d", program, len(pids))
	}
	return pids[0], nil
}

// ChildrenCPU returns the CPU time, in seconds, of the children of this process that have not ended.
func ChildrenCPU() (total float64, err error) {
	pids, err := children()
	for _, pid := range pids {
		if u, err := UsageOf(pid); err == nil { // otherwise it has ended
			total += u.CPU
		}
	}
	return total, err
}

// LoadAverage returns the load average of the machine over one minute; 0 if /proc does not have it.
func LoadAverage() float64 {
	var average float64
	if text, err := os.ReadFile("/proc/loadavg"); err == nil {
		_, _ = fmt.Sscan(string(text), &average)
	}
	return average
}
