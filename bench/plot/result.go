package main

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// peers is the part of bench/out/peers.json that is shown.
type peers struct {
	Environment struct {
		Date     string            `json:"date"`
		CPU      string            `json:"cpu"`
		CPUs     int               `json:"cpus"`
		Memory   string            `json:"memory"`
		Go       string            `json:"go"`
		Load     float64           `json:"loadAverageBefore"`
		Versions map[string]string `json:"versions"`
	} `json:"environment"`
	Objects      int               `json:"objects"`
	Rounds       int               `json:"rounds"`
	LimitSeconds float64           `json:"limitSeconds"`
	Ceiling      string            `json:"ceiling"`
	Medians      map[string]median `json:"medians"`
	Faults       []residue         `json:"faults"`
	Unavailable  map[string]string `json:"unavailable"`
}

type median struct {
	PerSecond    float64 `json:"objectsPerSecond"`
	Requests     float64 `json:"requestsPerObject"`
	APIServer    float64 `json:"apiServerMillisecondsPerObject"`
	Etcd         float64 `json:"etcdMillisecondsPerObject"`
	ToCeiling    float64 `json:"speedToCeiling"`
	CPUToCeiling float64 `json:"apiServerCPUToCeiling"`
	Limited      bool    `json:"limited"`
}

type residue struct {
	Fault      string `json:"fault"`
	Contestant string `json:"contestant"`
	Objects    int    `json:"objects"`
	During     state  `json:"during"`
	After      state  `json:"after"`
	Repeated   *int64 `json:"repeatedWrites"`
	Error      string `json:"error"`
}

type state struct {
	Old            int      `json:"oldObjects"`
	StoredVersions []string `json:"storedVersions"`
	Claim          string   `json:"claim"`
	Loss           bool     `json:"loss"`
}

// scale is the part of bench/out/scale-N.json that is shown.
type scale struct {
	Date             string  `json:"date"`
	Objects          int     `json:"objects"`
	PayloadBytes     int     `json:"payloadBytes"`
	ByteBudget       bool    `json:"byteBudget"`
	PlanSeconds      float64 `json:"planSeconds"`
	KilledAfter      float64 `json:"killedAfterSeconds"`
	KilledOld        int     `json:"oldObjectsWhenKilled"`
	KilledRSS        int64   `json:"killedPeakRSSBytes"`
	ResumeSeconds    float64 `json:"resumeSeconds"`
	ResumeRSS        int64   `json:"resumePeakRSSBytes"`
	ObjectsPerSecond float64 `json:"objectsPerSecond"`
	APIServerRSS     int64   `json:"apiServerPeakRSSBytes"`
	Resumed          struct {
		Migrated int64 `json:"migrated"`
		Skipped  int64 `json:"skipped"`
		Requests int64 `json:"requests"`
	} `json:"resumed"`
}

// label is what a reader knows a contestant by.
type label struct{ id, text string }

// labels in the order of the tables, without the raw loop, whose name depends on its width.
var labels = []label{
	{"godwit-patch", "Godwit, patch (default)"}, {"godwit-apply", "Godwit, apply"}, {"godwit-update", "Godwit, update"},
	{"capi", "Cluster API, no rate limit"}, {"capi-shipped", "Cluster API, as released"},
	{"intree", "kube-controller-manager"}, {"ksvm", "kube-storage-version-migrator"},
}

// rows are the contestants that were measured, the ceiling first.
func (p peers) rows() []label {
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

func (p peers) tables() string {
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
	for _, row := range p.rows() {
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
		fmt.Fprintf(&t, "| %s | %s | %s | %s | %s | %s |\n", f.Fault, nameOf(f.Contestant), f.During, f.After, repeated, strings.ReplaceAll(f.After.Claim, "|", "\\|"))
	}
	return t.String()
}

func (s state) String() string {
	text := fmt.Sprintf("%d old; %s", s.Old, strings.Join(s.StoredVersions, ", "))
	if s.Loss {
		return "**" + text + "**"
	}
	return text
}

func scaleTable(scales []scale) string {
	if len(scales) == 0 {
		return ""
	}
	var t strings.Builder
	t.WriteString("![Peak memory of godwit crd run](../assets/scale-memory.svg)\n\n")
	t.WriteString("| objects | payload | date | plan | objects/s | killed with … old | resumed in | peak memory of godwit | of kube-apiserver |\n|--:|--:|---|--:|--:|--:|--:|--:|--:|\n")
	for _, s := range scales {
		fmt.Fprintf(&t, "| %d | %d B | %s | %.1f s | %.0f | %d | %.0f s | %.0f MiB | %.0f MiB |\n", s.Objects, s.PayloadBytes, s.Date, s.PlanSeconds,
			s.ObjectsPerSecond, s.KilledOld, s.ResumeSeconds, mib(max(s.KilledRSS, s.ResumeRSS)), mib(s.APIServerRSS))
	}
	return t.String()
}

func mib(bytes int64) float64 { return float64(bytes) / (1 << 20) }
