package hub

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	api "github.com/godwit-dev/godwit/cmd/hub/api/v1alpha1"
)

func restore(spec api.ManagedClusterMigrationSpec, progress State, shards []Shard, committed int) (State, error) {
	data := make([]map[string]string, len(shards))
	for i, s := range shards {
		data[i] = s.Data
	}
	return Restore(spec, progress.Phase, progress.Progress(committed), data)
}

func specOf(n int) api.ManagedClusterMigrationSpec {
	spec := api.ManagedClusterMigrationSpec{From: "hub1", To: "hub2"}
	for i := range n {
		spec.IncludedManagedClusters = append(spec.IncludedManagedClusters, api.ClusterName(fmt.Sprintf("c%04d", i)))
	}
	return spec
}

// randomEvent is one that may or may not fit.
func randomEvent(random *rand.Rand, s State) Event {
	now := s.Since.Add(time.Duration(random.IntN(400)) * time.Second)
	pick := func() (names []string) {
		for _, c := range s.Clusters {
			if random.IntN(3) > 0 {
				names = append(names, c.Name)
			}
		}
		return names
	}
	r := Report{At: now, Party: []Party{Manager, Source, Target}[random.IntN(3)], Finished: random.IntN(4) > 0, Done: s.clustersIn(clusterStates[:]...)}
	r.Stage, r.Attempt = s.Record(r.Party).Stage, s.Record(r.Party).Attempt
	if random.IntN(10) == 0 {
		r.Done = pick()
	}
	if random.IntN(40) == 0 {
		r.Error = Failure{"RequestRefused", "no luck"}
	}
	if random.IntN(40) == 0 {
		r.ClusterErrors = map[string]Failure{}
		for _, name := range pick() {
			r.ClusterErrors[name] = Failure{"NotInTime", "no luck"}
		}
	}
	switch random.IntN(40) {
	case 0:
		return Tick{At: now}
	case 1:
		return Rollback{At: now}
	case 2, 3, 4:
		if due := Due(s); len(due) > 0 {
			return Sent{At: now, Key: due[0].Key}
		}
	}
	return r
}

// present is a state without what decides nothing: its history, its texts, and whether a
// command was sent, since it may be sent again.
func present(s State) State {
	s = s.clone()
	s.Reason, s.Message = "", ""
	for k, r := range s.Records {
		if r.Sent, r.Started = 0, false; k != s.key(k.Party) || !s.walks() && r.Attempt != s.Attempt || !r.Finished {
			delete(s.Records, k)
			continue
		}
		if ByCluster(s.Stage) {
			r.Attempt = 0 // a crash uses up an attempt
		}
		s.Records[k] = r
	}
	if !ByCluster(s.Stage) {
		return s
	}
	s.Attempt = 0
	for i, c := range s.Clusters {
		s.Clusters[i].Attempt = 0
		if t := s.turnOf(c); t != nil && s.Record(t.party()).Finished {
			s.Clusters[i].Attempt = 1
		}
	}
	return s
}

// stored is all of a state that is stored.
func stored(s State) string {
	progress, _ := json.Marshal(s.Progress(1))
	return fmt.Sprint(s.Phase, s.Shards("m"), string(progress))
}

// TestRestore: a state that was stored is read back, and one of which only some shards were
// stored becomes the same state when its event is delivered again.
func TestRestore(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	reached := map[api.Phase]int{}
	for range 200 {
		spec := specOf(5)
		s := Step(New(spec), Start{At: epoch})
		for range 60 {
			e := randomEvent(random, s)
			next := Step(s, e)
			reached[next.Phase]++
			const size = 2
			old, written := s.shards("m", size), next.shards("m", size)
			got, err := restore(spec, next, written, len(written))
			if err != nil {
				t.Fatal(err)
			}
			if stored(next) != stored(got) {
				t.Fatalf("restored (-stored +restored):\n%s", cmp.Diff(next, got, cmpopts.EquateEmpty()))
			}
			if _, ok := e.(Report); ok {
				some := make([]Shard, len(old))
				for i := range old {
					some[i] = []Shard{old[i], written[i]}[random.IntN(2)]
				}
				half, err := restore(spec, s, some, len(old))
				if err != nil {
					t.Fatal(err)
				}
				want, got := present(next), present(Step(half, e))
				if stored(want) != stored(got) {
					t.Fatalf("after a crash between the shards, %+v makes another state (-want +got):\n%s", e, cmp.Diff(want, got, cmpopts.EquateEmpty()))
				}
			}
			s = next
		}
	}
	for _, phase := range append([]api.Phase{api.PhaseFailed, api.PhaseCompleted}, stages...) {
		if reached[phase] == 0 {
			t.Errorf("no random migration was in phase %s", phase)
		}
	}
}

// TestRestoreResolving: the ConfigMaps of a placement's clusters are written one after
// another. After a crash in between, the source is asked again.
func TestRestoreResolving(t *testing.T) {
	spec := api.ManagedClusterMigrationSpec{From: "hub1", To: "hub2", IncludedManagedClustersPlacementRef: "all"}
	before := Step(New(spec), Start{At: epoch})
	before = Step(before, Report{At: epoch, Party: Manager, Stage: before.Stage, Attempt: before.Attempt, Finished: true})
	report := Report{At: epoch, Party: Source, Stage: before.Stage, Attempt: before.Attempt, Finished: true}
	for i := range 600 {
		report.Clusters = append(report.Clusters, fmt.Sprintf("c%04d", i))
	}
	after := Step(before, report)
	shards := after.Shards("m")
	if len(shards) != 3 {
		t.Fatalf("%d shards, want 3", len(shards))
	}
	half, err := restore(spec, before, shards, 1)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(present(after), present(Step(half, report)), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("after the crash (-want +got):\n%s", diff)
	}
	if _, err := restore(spec, after, shards[:2], 3); err == nil || !strings.Contains(err.Error(), "1 of 3 ConfigMaps") {
		t.Errorf("restored from 2 of 3 ConfigMaps: %v, want an error that says so", err)
	}
}

// TestShardSize: 5,000 clusters with the longest messages fit into ConfigMaps, and counts
// and failures into the status.
//
// Matrix: H23.
func TestShardSize(t *testing.T) {
	spec := api.ManagedClusterMigrationSpec{From: "hub1", To: "hub2"}
	for i := range 5000 {
		spec.IncludedManagedClusters = append(spec.IncludedManagedClusters, api.ClusterName(fmt.Sprintf("%s-%04d", strings.Repeat("c", 58), i)))
	}
	s := New(spec)
	s.Records = map[Key]Record{}
	for i, c := range s.Clusters {
		s.Clusters[i].Failure = Failure{strings.Repeat("R", 63), strings.Repeat(`"\`, 1000)}.clip()
		s.Clusters[i].Note = clip(strings.Repeat(`"\`, 1000))
		for _, p := range []Party{Manager, Source, Target} {
			r := s.Records[Key{Party: p}]
			if r.ClusterErrors == nil {
				r.ClusterErrors = map[string]Failure{}
			}
			r.ClusterErrors[c.Name] = s.Clusters[i].Failure
			s.Records[Key{Party: p}] = r
		}
	}
	shards := s.Shards("m")
	if len(shards) != 20 {
		t.Errorf("%d ConfigMaps, want 20 of 250 clusters", len(shards))
	}
	for _, shard := range shards {
		text, err := json.Marshal(shard)
		if err != nil {
			t.Fatal(err)
		}
		total := 0
		for k, v := range shard.Data {
			total += len(k) + len(v)
		}
		if total > 1<<20 {
			t.Errorf("ConfigMap %s has %d bytes of data (%d as JSON), want at most 1 MiB", shard.Name, total, len(text))
		}
	}
	if n := len(s.Failures()); n != 20 {
		t.Errorf("%d failures in the status, want 20", n)
	}
}

// FuzzRestore: no stored text makes Restore panic, and what it reads is what it writes.
func FuzzRestore(f *testing.F) {
	s := Step(New(specOf(2)), Start{At: epoch})
	for _, e := range []Event{
		Report{Party: Manager, Finished: true},
		Report{Party: Source, Finished: true, ClusterErrors: map[string]Failure{"c0001": {"NotInTime", "no"}}},
	} {
		data := s.Shards("m")[0].Data
		f.Add(string(s.Phase), string(s.Stage), int32(s.Turn), s.Attempt, data["clusters"], data["manager-validating"])
		r := e.(Report)
		r.Stage, r.Attempt = s.Stage, s.Attempt
		s = Step(s, r)
	}
	f.Fuzz(func(t *testing.T, phase, stage string, turn int32, attempt int64, clusters, record string) {
		data := map[string]string{"clusters": clusters, "shards": "1", "source": record}
		p := &api.MigrationProgress{Stage: api.Phase(stage), Turn: turn, Attempt: attempt, Shards: 1}
		s, err := Restore(specOf(2), api.Phase(phase), p, []map[string]string{data})
		if err != nil {
			return
		}
		shards := s.Shards("m")
		if len(shards) != 1 {
			return // more clusters than one ConfigMap has
		}
		again, err := Restore(specOf(2), s.Phase, s.Progress(1), []map[string]string{shards[0].Data})
		if err != nil {
			t.Fatalf("read what was written: %v", err)
		}
		if diff := cmp.Diff(s, again, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("read again (-first +second):\n%s", diff)
		}
		Step(s, Tick{At: epoch})
		Due(s)
		Deadline(s)
		s.Conditions()
	})
}
