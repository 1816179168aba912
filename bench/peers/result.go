package main

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"os"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/godwit-dev/godwit/bench/internal/measure"
	"github.com/godwit-dev/godwit/bench/internal/proc"
)

// result is what is written to bench/out/peers.json: all parts, and what they say together.
type result struct {
	Environment  environment       `json:"environment"`
	Objects      int               `json:"objects"`
	Rounds       int               `json:"rounds"`
	LimitSeconds float64           `json:"limitSeconds"`
	Ceiling      string            `json:"ceiling"` // the contestant that it is
	Medians      map[string]median `json:"medians"`
	Turns        []turn            `json:"turns"`
	Faults       []residue         `json:"faults"`
	// Missing are rounds and faults that are still to be measured.
	Missing []string `json:"missing,omitempty"`
	// Unavailable are contestants that could not be built or started, with the cause.
	Unavailable map[string]string `json:"unavailable,omitempty"`
}

// median of all rounds of a contestant.
type median struct {
	Cost
	// ToCeiling and CPUToCeiling are compared within each round: a machine that is shared is never equally fast twice.
	ToCeiling    float64 `json:"speedToCeiling"`
	CPUToCeiling float64 `json:"apiServerCPUToCeiling"`
	Limited      bool    `json:"limited,omitempty"`
}

// environment is what the numbers depend on.
type environment struct {
	Date     string            `json:"date"`
	CPU      string            `json:"cpu"`
	CPUs     int               `json:"cpus"`
	Memory   string            `json:"memory"`
	Go       string            `json:"go"`
	Load     float64           `json:"loadAverageBefore"`
	Versions map[string]string `json:"versions"`
}

func newEnvironment(versions map[string]string) environment {
	return environment{
		CPU: lineOf("/proc/cpuinfo", "model name"), CPUs: runtime.NumCPU(),
		Memory: lineOf("/proc/meminfo", "MemTotal"), Go: runtime.Version(), Versions: versions,
	}
}

// setNow sets what is another in each part.
func (e *environment) setNow() {
	e.Date, e.Load = time.Now().UTC().Format(time.DateOnly), proc.LoadAverage()
}

// lineOf is the value of a line of a file in /proc, or empty.
func lineOf(path, name string) string {
	file, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer func() { _ = file.Close() }()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if key, value, _ := strings.Cut(lines.Text(), ":"); strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// turnsOf are the turns of a contestant that did something.
func (r *result) turnsOf(contestant string) []turn {
	var turns []turn
	for _, t := range r.Turns {
		if t.Contestant == contestant && t.Error == "" && t.Objects > 0 {
			turns = append(turns, t)
		}
	}
	return turns
}

// rate picks the ceiling by its median, and compares round by round.
func (r *result) rate() {
	r.Medians = map[string]median{}
	for _, width := range measure.InFlight {
		speed := func(name string) float64 {
			return measure.Median(r.turnsOf(name), func(t turn) float64 { return t.PerSecond })
		}
		if name := rawName(width); r.Ceiling == "" || speed(name) > speed(r.Ceiling) {
			r.Ceiling = name
		}
	}
	ceiling := map[int]turn{}
	for _, t := range r.turnsOf(r.Ceiling) {
		ceiling[t.Round] = t
	}
	for _, t := range r.Turns {
		turns := r.turnsOf(t.Contestant)
		if len(turns) == 0 {
			continue
		}
		of := func(value func(turn) float64) float64 { return measure.Median(turns, value) }
		r.Medians[t.Contestant] = median{
			Cost: Cost{
				PerSecond: of(func(t turn) float64 { return t.PerSecond }), Requests: of(func(t turn) float64 { return t.Requests }),
				APIServer: of(func(t turn) float64 { return t.APIServer }), Etcd: of(func(t turn) float64 { return t.Etcd }),
			},
			ToCeiling:    of(func(t turn) float64 { return measure.Ratio(t.PerSecond, ceiling[t.Round].PerSecond) }),
			CPUToCeiling: of(func(t turn) float64 { return measure.Ratio(t.APIServer, ceiling[t.Round].APIServer) }),
			Limited:      slices.ContainsFunc(turns, func(t turn) bool { return t.Limited }),
		}
	}
}

// contestantNames are all of them, in the order of the tables.
var contestantNames = []string{
	rawName(measure.InFlight[0]), rawName(measure.InFlight[1]), rawName(measure.InFlight[2]),
	"godwit-patch", "godwit-update", "godwit-apply", "capi", "capi-shipped", "intree", "ksvm",
}

// failures are the contestants without a result, with the cause.
func (r *result) failures() map[string]string {
	failed := map[string]string{}
	for _, t := range r.Turns {
		if t.Error != "" {
			failed[t.Contestant] = t.Error
		}
	}
	for _, f := range r.Faults {
		if f.Error != "" {
			failed[f.Contestant+" ("+f.Fault+")"] = f.Error
		}
	}
	maps.Copy(failed, r.Unavailable)
	return failed
}

// write writes the tables, and the line for scripts.
func (r *result) write(w io.Writer) {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintf(table, "CONTESTANT\tOBJECTS/S\tOF CEILING\tREQUESTS\tAPISERVER MS\tOF CEILING\tETCD MS\t\n")
	failed := r.failures()
	for _, name := range contestantNames {
		m, found := r.Medians[name]
		switch {
		case !found:
			_, _ = fmt.Fprintf(table, "%s\tnot measured: %s\n", name, firstLine(failed[name]))
		default:
			note := ""
			if m.Limited {
				note = fmt.Sprintf("over what it did in %.0f s", r.LimitSeconds)
			}
			_, _ = fmt.Fprintf(table, "%s\t%.0f\t%.2f\t%.2f\t%.2f\t%.2f\t%.2f\t%s\n", name, m.PerSecond, m.ToCeiling, m.Requests, m.APIServer, m.CPUToCeiling, m.Etcd, note)
		}
	}
	_, _ = fmt.Fprintf(table, "\nFAULT\tCONTESTANT\tDURING\tAFTER\tREPEATED\tIT SAYS\n")
	for _, f := range r.Faults {
		if f.Error != "" {
			_, _ = fmt.Fprintf(table, "%s\t%s\tnot measured: %s\n", f.Fault, f.Contestant, firstLine(f.Error))
			continue
		}
		_, _ = fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\n", f.Fault, f.Contestant, f.During, f.After, f.repeated(), firstLine(f.After.Claim))
	}
	_ = table.Flush()
	value := func(name string) string {
		if m, found := r.Medians[name]; found {
			return fmt.Sprintf("%.0f", m.PerSecond)
		}
		if failed[name] != "" {
			return "failed"
		}
		return "missing"
	}
	if len(r.Missing) > 0 {
		_, _ = fmt.Fprintf(w, "peers: missing=%s: run the same command to continue\n", strings.Join(r.Missing, ","))
		return
	}
	_, _ = fmt.Fprintf(w, "peers: godwit=%s capi=%s capi_shipped=%s intree=%s ksvm=%s ceiling=%s cpu_ratio=%.2f\n", value("godwit-patch"), value("capi"),
		value("capi-shipped"), value("intree"), value("ksvm"), value(r.Ceiling), r.Medians["godwit-patch"].CPUToCeiling)
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return line
}
