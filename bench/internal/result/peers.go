package result

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/godwit-dev/godwit/bench/internal/frame"
)

// Peers is the result that `make bench-peers` writes to bench/out/peers.json: all parts, and their medians.
type Peers struct {
	Environment  Environment       `json:"environment"`
	Objects      int               `json:"objects"`
	Rounds       int               `json:"rounds"`
	LimitSeconds float64           `json:"limitSeconds"`
	Ceiling      string            `json:"ceiling"` // the contestant that it is
	Medians      map[string]Median `json:"medians"`
	Turns        []Turn            `json:"turns"`
	Faults       []Residue         `json:"faults"`
	// Missing are rounds and faults that are still to be measured.
	Missing []string `json:"missing,omitempty"`
	// Unavailable are contestants that could not be built or started, with the cause.
	Unavailable map[string]string `json:"unavailable,omitempty"`
}

// Environment describes the machine, the versions and the conditions of a measurement.
type Environment struct {
	Date     string            `json:"date"`
	CPU      string            `json:"cpu"`
	CPUs     int               `json:"cpus"`
	Memory   string            `json:"memory"`
	Go       string            `json:"go"`
	Load     float64           `json:"loadAverageBefore"`
	Versions map[string]string `json:"versions"`
}

// Turn is one migration by one contestant.
type Turn struct {
	Round      int     `json:"round"`
	Contestant string  `json:"contestant"`
	Objects    int     `json:"objects"` // that it has migrated
	Seconds    float64 `json:"seconds"`
	Cost
	Limited bool   `json:"limited,omitempty"` // ended by the limit
	Claim   string `json:"claim,omitempty"`   // what the contestant reports
	Error   string `json:"error,omitempty"`
}

// Cost is the cost per object.
type Cost struct {
	PerSecond float64 `json:"objectsPerSecond"`
	Requests  float64 `json:"requestsPerObject"`
	APIServer float64 `json:"apiServerMillisecondsPerObject"` // CPU time
	Etcd      float64 `json:"etcdMillisecondsPerObject"`      // CPU time
}

// String has the error, or the speed with the other costs.
func (t Turn) String() string {
	switch {
	case t.Error != "":
		return fmt.Sprintf("%-13s failed: %s", t.Contestant, t.Error)
	case t.Limited:
		return fmt.Sprintf("%-13s %5.0f objects/s, over the %d objects of the first %.0f s", t.Contestant, t.PerSecond, t.Objects, t.Seconds)
	}
	return fmt.Sprintf("%-13s %5.0f objects/s, %.2f requests, %.2f ms of kube-apiserver and %.2f ms of etcd per object",
		t.Contestant, t.PerSecond, t.Requests, t.APIServer, t.Etcd)
}

// Median has the medians of all rounds of a contestant.
type Median struct {
	Cost
	// ToCeiling and CPUToCeiling are medians of the ratios within each round.
	ToCeiling    float64 `json:"speedToCeiling"`
	CPUToCeiling float64 `json:"apiServerCPUToCeiling"`
	Limited      bool    `json:"limited,omitempty"`
}

// Residue is the state that a contestant leaves after a fault.
type Residue struct {
	Fault      string `json:"fault"`
	Contestant string `json:"contestant"`
	Objects    int    `json:"objects"`
	During     State  `json:"during"` // as long as the fault lasts
	After      State  `json:"after"`
	// Repeated counts the repeated writes of objects by a process that was killed and started again.
	Repeated *int64 `json:"repeatedWrites,omitempty"`
	Error    string `json:"error,omitempty"`
}

// State is the state of etcd and of the CRD, with the report of the contestant.
type State struct {
	Old            int      `json:"oldObjects"` // in etcd
	StoredVersions []string `json:"storedVersions"`
	Claim          string   `json:"claim"` // what the contestant reports
	// Loss means that objects are stored at a version which storedVersions does not list: once the CRD drops that version,
	// they can't be read.
	Loss bool `json:"loss"`
}

// String has the number of old objects and the stored versions.
func (s State) String() string {
	text := fmt.Sprintf("%d old, storedVersions %s", s.Old, strings.Join(s.StoredVersions, "+"))
	if s.Loss {
		text += ": LOST"
	}
	return text
}

// RawName returns the name of the contestant that is the raw loop with width requests in flight.
func RawName(width int) string { return fmt.Sprintf("raw-%d", width) }

// turnsOf returns the turns of a contestant in which it migrated objects.
func (r *Peers) turnsOf(contestant string) []Turn {
	var turns []Turn
	for _, t := range r.Turns {
		if t.Contestant == contestant && t.Error == "" && t.Objects > 0 {
			turns = append(turns, t)
		}
	}
	return turns
}

// Rate picks the ceiling by its median, and compares round by round.
func (r *Peers) Rate() {
	perSecond := func(t Turn) float64 { return t.PerSecond }
	best := 0.0
	for _, width := range frame.InFlight {
		name := RawName(width)
		if speed := frame.Median(r.turnsOf(name), perSecond); r.Ceiling == "" || speed > best {
			r.Ceiling, best = name, speed
		}
	}
	ceiling := map[int]Turn{}
	for _, t := range r.turnsOf(r.Ceiling) {
		ceiling[t.Round] = t
	}
	r.Medians = map[string]Median{}
	for _, t := range r.Turns {
		turns := r.turnsOf(t.Contestant)
		if len(turns) == 0 {
			continue
		}
		median := func(value func(Turn) float64) float64 { return frame.Median(turns, value) }
		ratio := func(value func(Turn) float64) float64 {
			return frame.MedianRatio(turns, value, func(t Turn) float64 { return value(ceiling[t.Round]) })
		}
		apiServer := func(t Turn) float64 { return t.APIServer }
		r.Medians[t.Contestant] = Median{
			Cost: Cost{
				PerSecond: median(perSecond), Requests: median(func(t Turn) float64 { return t.Requests }),
				APIServer: median(apiServer), Etcd: median(func(t Turn) float64 { return t.Etcd }),
			},
			ToCeiling: ratio(perSecond), CPUToCeiling: ratio(apiServer),
			Limited: slices.ContainsFunc(turns, func(t Turn) bool { return t.Limited }),
		}
	}
}

// Failures returns the contestants without a result, with the cause.
func (r *Peers) Failures() map[string]string {
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
