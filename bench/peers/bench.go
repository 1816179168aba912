package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/godwit-dev/godwit/bench/internal/frame"
	"github.com/godwit-dev/godwit/bench/internal/proc"
	"github.com/godwit-dev/godwit/bench/internal/result"
	"github.com/godwit-dev/godwit/bench/internal/widget"
)

// part is one round, or one fault, in a separate file, so that an interrupted measurement continues after its last part. A part
// has a whole round, because turns are compared within a round.
type part struct {
	conditions
	Environment result.Environment `json:"environment"`
	Turns       []result.Turn      `json:"turns,omitempty"`
	Faults      []result.Residue   `json:"faults,omitempty"`
	// Unavailable are contestants that could not be built, with the cause.
	Unavailable map[string]string `json:"unavailable,omitempty"`
}

// conditions are the same in all parts of a measurement.
type conditions struct {
	Objects      int     `json:"objects"`
	FaultObjects int     `json:"faultObjects"`
	LimitSeconds float64 `json:"limitSeconds"`
}

const (
	roundPrefix = "round-"
	faultPrefix = "fault-"
)

func roundPart(round int) string    { return roundPrefix + strconv.Itoa(round) }
func faultPart(fault string) string { return faultPrefix + fault }

// roundOf returns the number of the round in a part.
func roundOf(name string) (round int, is bool) {
	number, is := strings.CutPrefix(name, roundPrefix)
	round, err := strconv.Atoi(number)
	return round, is && err == nil
}

// faultOf returns the name of the fault in a part.
func faultOf(name string) string { return strings.TrimPrefix(name, faultPrefix) }

// add adds a part to the result. The result has the environment of the last part, with the highest load of all parts.
func add(r *result.Peers, p part) {
	load := max(r.Environment.Load, p.Environment.Load)
	r.Environment = p.Environment
	r.Environment.Load = load
	r.Turns = append(r.Turns, p.Turns...)
	r.Faults = append(r.Faults, p.Faults...)
	maps.Copy(r.Unavailable, p.Unavailable)
}

// bench is one run of the command. Its result has all parts, also those of earlier runs.
type bench struct {
	result.Peers

	faultObjects int
	limit        time.Duration
	faultList    string
	faults       []string
	servers      string // folder

	folder   string        // of the parts
	duration time.Duration // after which no part begins; 0: none
	began    time.Time
	parts    map[string]part
	current  part

	env
	meter       *meter
	resource    *widget.Resource
	environment result.Environment
	unavailable map[string]string
}

// partNames returns all parts of the measurement, in their order.
func (b *bench) partNames() []string {
	var names []string
	for round := range b.Rounds {
		names = append(names, roundPart(round+1))
	}
	for _, fault := range b.faults {
		names = append(names, faultPart(fault))
	}
	return names
}

func (b *bench) file(name string) string { return filepath.Join(b.folder, name+".json") }

func (b *bench) conditions() conditions {
	return conditions{Objects: b.Objects, FaultObjects: b.faultObjects, LimitSeconds: b.limit.Seconds()}
}

// load reads the parts of earlier runs.
func (b *bench) load() error {
	b.parts = map[string]part{}
	for _, name := range b.partNames() {
		text, err := os.ReadFile(b.file(name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		var p part
		if err := json.Unmarshal(text, &p); err != nil {
			return fmt.Errorf("read %s: %w; delete it to measure again", b.file(name), err)
		}
		if p.conditions != b.conditions() {
			return fmt.Errorf("%s was measured with %+v, not %+v: delete it, or name another folder with -parts", b.file(name), p.conditions, b.conditions())
		}
		frame.Logf("%s was measured on %s: %s", name, p.Environment.Date, b.file(name))
		b.parts[name] = p
	}
	return nil
}

// checkVersions refuses parts that were measured with other versions of the servers or the peers.
func (b *bench) checkVersions() error {
	for name, p := range b.parts {
		if !maps.Equal(p.Environment.Versions, b.environment.Versions) {
			return fmt.Errorf("%s was measured with %v, not %v: delete it, or name another folder with -parts", b.file(name), p.Environment.Versions, b.environment.Versions)
		}
	}
	return nil
}

// begin starts a part.
func (b *bench) begin() {
	b.current = part{conditions: b.conditions(), Environment: b.environment, Unavailable: b.unavailable}
	b.current.Environment.Date, b.current.Environment.Load = time.Now().UTC().Format(time.DateOnly), proc.LoadAverage()
}

// keep writes the part that was measured.
func (b *bench) keep(name string) error {
	b.parts[name] = b.current
	return frame.WriteJSON(b.file(name), b.current)
}

// missing returns the parts that are not measured yet.
func (b *bench) missing() []string {
	return slices.DeleteFunc(b.partNames(), func(name string) bool { _, found := b.parts[name]; return found })
}

// timeIsOver reports whether the flag -for prevents another part.
func (b *bench) timeIsOver() bool { return b.duration > 0 && time.Since(b.began) >= b.duration }

// failed reports whether a contestant has failed in a turn.
func (b *bench) failed(contestant string) bool {
	b.collect()
	return slices.ContainsFunc(b.Turns, func(t result.Turn) bool { return t.Contestant == contestant && t.Error != "" })
}

// collect makes the result from all parts.
func (b *bench) collect() {
	b.Peers = result.Peers{Rounds: b.Rounds, Objects: b.Objects, LimitSeconds: b.limit.Seconds(), Missing: b.missing(), Unavailable: map[string]string{}}
	for _, name := range b.partNames() {
		if p, found := b.parts[name]; found {
			add(&b.Peers, p)
		}
	}
}
