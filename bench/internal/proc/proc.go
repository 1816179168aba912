// Package proc reads what a process has cost, and how busy the machine is, where Linux
// tells it: in /proc.
package proc

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Usage is what a process has cost so far.
type Usage struct {
	CPU     float64 // seconds
	RSS     int64   // bytes
	PeakRSS int64   // bytes
}

// clockTicks per second are 100 on every architecture of Linux with a port of Go.
const clockTicks = 100

// UsageOf a process that has not ended. The peak that its parent is told at its end is
// none of its own where it is lower than the parent's: until the program is loaded,
// both share their memory, and Linux keeps the greater peak.
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

// commLength is what Linux keeps of a program's name in /proc/PID/comm.
const commLength = 15

// Children are the children of this process that run a program of that name.
func Children(program string) ([]int, error) {
	lists, err := filepath.Glob("/proc/self/task/*/children")
	if err != nil {
		return nil, err
	}
	var pids []int
	for _, list := range lists {
		children, err := os.ReadFile(list)
		if err != nil {
			continue // the thread has ended
		}
		for child := range strings.FieldsSeq(string(children)) {
			comm, err := os.ReadFile("/proc/" + child + "/comm")
			if err != nil || strings.TrimSpace(string(comm)) != program[:min(len(program), commLength)] {
				continue
			}
			pid, err := strconv.Atoi(child)
			if err != nil {
				return nil, fmt.Errorf("read %s: %w", list, err)
			}
			pids = append(pids, pid)
		}
	}
	return pids, nil
}

// ChildrenCPU is the CPU time, in seconds, of the children of this process that have not ended.
func ChildrenCPU() (float64, error) {
	lists, err := filepath.Glob("/proc/self/task/*/children")
	if err != nil {
		return 0, err
	}
	var total float64
	for _, list := range lists {
		children, err := os.ReadFile(list)
		if err != nil {
			continue // the thread has ended
		}
		for child := range strings.FieldsSeq(string(children)) {
			pid, err := strconv.Atoi(child)
			if err != nil {
				return 0, fmt.Errorf("read %s: %w", list, err)
			}
			if u, err := UsageOf(pid); err == nil { // otherwise it has ended
				total += u.CPU
			}
		}
	}
	return total, nil
}

// LoadAverage is the machine's over one minute; 0 where it is not told.
func LoadAverage() float64 {
	var average float64
	if text, err := os.ReadFile("/proc/loadavg"); err == nil {
		_, _ = fmt.Sscan(string(text), &average)
	}
	return average
}
