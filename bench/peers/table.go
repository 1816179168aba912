package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/godwit-dev/godwit/bench/internal/frame"
	"github.com/godwit-dev/godwit/bench/internal/result"
)

// contestantNames are the names of all contestants, in the order of the tables.
var contestantNames = []string{
	result.RawName(frame.InFlight[0]), result.RawName(frame.InFlight[1]), result.RawName(frame.InFlight[2]),
	"godwit-patch", "godwit-update", "godwit-apply", "capi", "capi-shipped", "intree", "ksvm",
}

// writeTables writes the speeds, and the state after each fault.
func writeTables(w io.Writer, r *result.Peers) {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintf(table, "CONTESTANT\tOBJECTS/S\tOF CEILING\tREQUESTS\tAPISERVER MS\tOF CEILING\tETCD MS\t\n")
	failed := r.Failures()
	for _, name := range contestantNames {
		m, found := r.Medians[name]
		if !found {
			_, _ = fmt.Fprintf(table, "%s\tnot measured: %s\n", name, firstLine(failed[name]))
			continue
		}
		note := ""
		if m.Limited {
			note = fmt.Sprintf("over what it did in %.0f s", r.LimitSeconds)
		}
		_, _ = fmt.Fprintf(table, "%s\t%.0f\t%.2f\t%.2f\t%.2f\t%.2f\t%.2f\t%s\n", name, m.PerSecond, m.ToCeiling, m.Requests, m.APIServer, m.CPUToCeiling, m.Etcd, note)
	}
	_, _ = fmt.Fprintf(table, "\nFAULT\tCONTESTANT\tDURING\tAFTER\tREPEATED\tIT SAYS\n")
	for _, f := range r.Faults {
		if f.Error != "" {
			_, _ = fmt.Fprintf(table, "%s\t%s\tnot measured: %s\n", f.Fault, f.Contestant, firstLine(f.Error))
			continue
		}
		repeated := "-"
		if f.Repeated != nil {
			repeated = strconv.FormatInt(*f.Repeated, 10)
		}
		_, _ = fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\n", f.Fault, f.Contestant, f.During, f.After, repeated, firstLine(f.After.Claim))
	}
	_ = table.Flush()
}

// summaryLine returns the line for scripts.
func summaryLine(r *result.Peers) string {
	if len(r.Missing) > 0 {
		return fmt.Sprintf("peers: missing=%s: run the same command to continue", strings.Join(r.Missing, ","))
	}
	failed := r.Failures()
	value := func(name string) string {
		if m, found := r.Medians[name]; found {
			return fmt.Sprintf("%.0f", m.PerSecond)
		}
		if failed[name] != "" {
			return "failed"
		}
		return "missing"
	}
	return fmt.Sprintf("peers: godwit=%s capi=%s capi_shipped=%s intree=%s ksvm=%s ceiling=%s cpu_ratio=%.2f", value("godwit-patch"), value("capi"),
		value("capi-shipped"), value("intree"), value("ksvm"), value(r.Ceiling), r.Medians["godwit-patch"].CPUToCeiling)
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return line
}
