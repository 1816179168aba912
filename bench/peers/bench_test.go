package main

import (
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic/fake"

	"github.com/godwit-dev/godwit/bench/internal/result"
)

// TestParts: a second run has what the first one has measured, and measures what is missing.
func TestParts(t *testing.T) {
	folder := t.TempDir()
	newBench := func() *bench {
		return &bench{Peers: result.Peers{Objects: 100, Rounds: 2}, folder: folder, faultObjects: 10, limit: time.Second, faults: []string{"killed"}}
	}
	first := newBench()
	if err := first.load(); err != nil {
		t.Fatal(err)
	}
	if want := []string{"round-1", "round-2", "fault-killed"}; !cmp.Equal(first.missing(), want) {
		t.Errorf("a first run: %s", cmp.Diff(want, first.missing()))
	}
	first.environment.Versions = map[string]string{"etcd": "3.6"}
	first.begin()
	first.current.Turns = []result.Turn{{Round: 2, Contestant: "ksvm", Error: "it ended by itself"}}
	if err := first.keep("round-2"); err != nil {
		t.Fatal(err)
	}

	second := newBench()
	if err := second.load(); err != nil {
		t.Fatal(err)
	}
	if want := []string{"round-1", "fault-killed"}; !cmp.Equal(second.missing(), want) {
		t.Errorf("a second run: %s", cmp.Diff(want, second.missing()))
	}
	if second.collect(); len(second.Turns) != 1 || !cmp.Equal(second.Missing, second.missing()) || second.Environment.Date == "" {
		t.Errorf("the result of an unfinished measurement: %+v", second.Peers)
	}
	if !second.failed("ksvm") || second.failed("intree") {
		t.Error("a contestant that failed in an earlier part is measured again, or another one is not")
	}
	if second.checkVersions() == nil {
		t.Error("a part of another version of etcd is accepted")
	}
	second.environment.Versions = map[string]string{"etcd": "3.6"}
	if err := second.checkVersions(); err != nil {
		t.Error(err)
	}

	second.Objects = 200
	if second.load() == nil {
		t.Error("a part with another number of objects is accepted")
	}
	if err := os.WriteFile(first.file("round-1"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if newBench().load() == nil {
		t.Error("a part that can't be read is accepted")
	}
}

func TestTimeIsOver(t *testing.T) {
	for reason, c := range map[string]struct {
		duration, since time.Duration
		want            bool
	}{
		"no limit":        {since: time.Hour},
		"within the time": {duration: time.Hour, since: time.Minute},
		"after the time":  {duration: time.Minute, since: time.Hour, want: true},
	} {
		b := bench{duration: c.duration, began: time.Now().Add(-c.since)}
		if b.timeIsOver() != c.want {
			t.Errorf("%s: %t", reason, !c.want)
		}
	}
}

// TestOrderAfterACrash: a migrator that is started again finds its order.
func TestOrderAfterACrash(t *testing.T) {
	objects := fake.NewSimpleDynamicClient(runtime.NewScheme()).Resource(ksvmMigrations)
	m := &ordered{objects: objects, order: newOrder("migration.k8s.io/v1alpha1", "widgets", map[string]any{"resource": "widgets"})}
	for start := range 2 {
		if err := m.begin(t.Context()); err != nil {
			t.Errorf("start %d: %v", start+1, err)
		}
	}
}
