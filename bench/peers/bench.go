package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/godwit-dev/godwit/bench/internal/measure"
	"github.com/godwit-dev/godwit/bench/internal/widget"
	"github.com/godwit-dev/godwit/test/controlplane"
)

// bench is one run of the command.
type bench struct {
	objects, faultObjects, rounds int
	limit                         time.Duration
	faults                        []string
	godwit, servers               string

	out      string        // file of the result
	folder   string        // of the parts
	duration time.Duration // after which no part begins; 0: none
	began    time.Time
	parts    map[string]part
	current  part

	dir         string
	plane       *controlplane.ControlPlane
	user        *rest.Config
	kubeconfig  string
	clients     dynamic.Interface
	meter       *meter
	resource    *widget.Resource
	environment environment
	unavailable map[string]string
}

// partNames are all parts of the measurement, in their order.
func (b *bench) partNames() []string {
	var names []string
	for round := range b.rounds {
		names = append(names, roundPart(round+1))
	}
	for _, fault := range b.faults {
		names = append(names, faultPart(fault))
	}
	return names
}

func (b *bench) file(name string) string { return filepath.Join(b.folder, name+".json") }

func (b *bench) conditions() conditions {
	return conditions{Objects: b.objects, FaultObjects: b.faultObjects, LimitSeconds: b.limit.Seconds()}
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
		measure.Say("%s was measured on %s: %s", name, p.Environment.Date, b.file(name))
		b.parts[name] = p
	}
	return nil
}

// checkVersions refuses parts of other servers or peers: their numbers say nothing about these.
func (b *bench) checkVersions() error {
	for name, p := range b.parts {
		if !maps.Equal(p.Environment.Versions, b.environment.Versions) {
			return fmt.Errorf("%s was measured with %v, not %v: delete it, or name another folder with -parts", b.file(name), p.Environment.Versions, b.environment.Versions)
		}
	}
	return nil
}

// begin begins a part.
func (b *bench) begin() {
	b.current = part{conditions: b.conditions(), Environment: b.environment, Unavailable: b.unavailable}
	b.current.Environment.setNow()
}

// keep writes the part that was measured.
func (b *bench) keep(name string) error {
	b.parts[name] = b.current
	return measure.Write(io.Discard, b.file(name), b.current)
}

// missing are the parts that are to be measured.
func (b *bench) missing() []string {
	return slices.DeleteFunc(b.partNames(), func(name string) bool { _, found := b.parts[name]; return found })
}

// timeIsOver reports whether no further part is to begin.
func (b *bench) timeIsOver() bool { return b.duration > 0 && time.Since(b.began) >= b.duration }

// failed reports whether a contestant has failed in a turn.
func (b *bench) failed(contestant string) bool {
	return slices.ContainsFunc(b.collect().Turns, func(t turn) bool { return t.Contestant == contestant && t.Error != "" })
}

// collect makes one result of all parts.
func (b *bench) collect() result {
	r := result{Rounds: b.rounds, Objects: b.objects, LimitSeconds: b.limit.Seconds(), Missing: b.missing(), Unavailable: map[string]string{}}
	for _, name := range b.partNames() {
		p, found := b.parts[name]
		if !found {
			continue
		}
		r.add(p)
	}
	return r
}
