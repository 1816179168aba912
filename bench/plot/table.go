package main

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/godwit-dev/godwit/bench/internal/frame"
	"github.com/godwit-dev/godwit/bench/internal/result"
)

// label is the name of a contestant for readers.
type label struct{ id, text string }

// labels in the order of the tables, without the raw loop, whose name depends on its width.
var labels = []label{
	{"godwit-patch", "Godwit, patch (default)"}, {"godwit-apply", "Godwit, apply"}, {"godwit-update", "Godwit, update"},
	{"capi", "Cluster API, no rate limit"}, {"capi-shipped", "Cluster API, as released"},
	{"intree", "kube-controller-manager"}, {"ksvm", "kube-storage-version-migrator"},
}

// rowsOf returns the contestants that were measured, the ceiling first.
func rowsOf(p result.Peers) []label {
	rows := []label{{p.Ceiling, "Raw loop, " + strings.TrimPrefix(p.Ceiling, "raw-") + " in flight"}}
	for _, l := range labels {
		if _, found := p.Medians[l.id]; found {
			rows = append(rows, l)
		}
	}
	return rows
}

func nameOf(id string) string {
	for _, l := range labels {
		if l.id == id {
			return strings.TrimSuffix(l.text, ", patch (default)")
		}
	}
	return id
}

func peersTable(p result.Peers) string {
	var t strings.Builder
	t.WriteString("![Objects rewritten per second](../assets/peers-speed.svg)\n\n![CPU time of the servers per object](../assets/peers-cost.svg)\n\n")
	e := p.Environment
	fmt.Fprintf(&t, "Measured on %s: %d objects, medians of %d rounds; %d CPUs (%s), memory %s, %s; load average before: %.1f.\n",
		e.Date, p.Objects, p.Rounds, e.CPUs, e.CPU, e.Memory, e.Go, e.Load)
	var versions []string
	for _, name := range slices.Sorted(maps.Keys(e.Versions)) {
		versions = append(versions, name+" "+e.Versions[name])
	}
	fmt.Fprintf(&t, "Versions: %s.\n\n", strings.Join(versions, ", "))
	t.WriteString("| | objects/s | of the ceiling | requests per object | API server CPU per object | of the raw loop | etcd CPU per object |\n|---|--:|--:|--:|--:|--:|--:|\n")
	limited := false
	for _, row := range rowsOf(p) {
		m, mark := p.Medians[row.id], ""
		if m.Limited {
			limited, mark = true, " *"
		}
		fmt.Fprintf(&t, "| %s | %.0f%s | %.2f | %.2f | %.2f ms | %.2f | %.2f ms |\n", row.text, m.PerSecond, mark, m.ToCeiling, m.Requests, m.APIServer, m.CPUToCeiling, m.Etcd)
	}
	for _, name := range slices.Sorted(maps.Keys(p.Unavailable)) {
		fmt.Fprintf(&t, "| %s | not measured | | | | | |\n", nameOf(name))
	}
	if limited {
		fmt.Fprintf(&t, "\n\\* over the objects of the first %.0f s.\n", p.LimitSeconds)
	}
	if len(p.Faults) > 0 {
		t.WriteString("\n| fault | migrator | during the fault | after it | writes repeated | it says |\n|---|---|---|---|--:|---|\n")
	}
	for _, f := range p.Faults {
		if f.Error != "" {
			fmt.Fprintf(&t, "| %s | %s | not measured | | | |\n", f.Fault, nameOf(f.Contestant))
			continue
		}
		repeated := ""
		if f.Repeated != nil {
			repeated = strconv.FormatInt(*f.Repeated, 10)
		}
		fmt.Fprintf(&t, "| %s | %s | %s | %s | %s | %s |\n", f.Fault, nameOf(f.Contestant), cell(f.During), cell(f.After), repeated, strings.ReplaceAll(f.After.Claim, "|", "\\|"))
	}
	return t.String()
}

// cell returns a state as a cell of a table. A loss is bold.
func cell(s result.State) string {
	text := fmt.Sprintf("%d old; %s", s.Old, strings.Join(s.StoredVersions, ", "))
	if s.Loss {
		return "**" + text + "**"
	}
	return text
}

func scaleTable(scales []result.Scale) string {
	if len(scales) == 0 {
		return ""
	}
	var t strings.Builder
	t.WriteString("![Peak memory of godwit crd run](../assets/scale-memory.svg)\n\n")
	t.WriteString("| objects | payload | date | plan | objects/s | killed with … old | resumed in | peak memory of godwit | of kube-apiserver |\n|--:|--:|---|--:|--:|--:|--:|--:|--:|\n")
	for _, s := range scales {
		fmt.Fprintf(&t, "| %d | %d B | %s | %.1f s | %.0f | %d | %.0f s | %.0f MiB | %.0f MiB |\n", s.Objects, s.PayloadBytes, s.Date, s.PlanSeconds,
			s.ObjectsPerSecond, s.KilledOld, s.ResumeSeconds, frame.MiB(max(s.KilledRSS, s.ResumeRSS)), frame.MiB(s.APIServerRSS))
	}
	return t.String()
}
