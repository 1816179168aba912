package hub

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/godwit-dev/godwit/cmd/hub/api/v1alpha1"
	"github.com/godwit-dev/godwit/internal/format"
)

const (
	// shardClusters is the number of clusters in a ConfigMap.
	shardClusters = 250
	// maxShardBytes leaves room for metadata within the API server's limit of 1 MiB.
	maxShardBytes = 900 << 10
	// clustersKey and shardsKey are the keys of the clusters in a ConfigMap and of the number of ConfigMaps. No key of
	// a record equals them.
	clustersKey = "clusters"
	shardsKey   = "shards"
)

// Shard is the data of a ConfigMap, named <migration>-state-<n>. Its keys are
// those of records, such as source-deploying or source, clusters, shards and format.
type Shard struct {
	Name string
	Data map[string]string
}

// storedCluster is the stored form of a cluster. Fields that are not stored follow from the spec.
type storedCluster struct {
	Name     string       `json:"name"`
	State    ClusterState `json:"state"`
	Turn     int          `json:"turn,omitempty"`
	Attempt  int64        `json:"attempt,omitempty"`
	Note     string       `json:"note,omitempty"`
	FailedIn api.Phase    `json:"failedIn,omitempty"`
	Message  string       `json:"message,omitempty"`
	Reason   string       `json:"reason,omitempty"`
	// Certificate is when the certificate of the target hub expires.
	Certificate time.Time `json:"certificate,omitzero"`
	Since       time.Time `json:"since,omitzero"`
}

type storedRecord struct {
	Stage          api.Phase         `json:"stage"`
	Attempt        int64             `json:"attempt"`
	Sent           int               `json:"sent,omitempty"`
	Unsent         string            `json:"unsent,omitempty"`
	Started        bool              `json:"started,omitempty"`
	Finished       bool              `json:"finished,omitempty"`
	Error          string            `json:"error,omitempty"`
	Reason         string            `json:"reason,omitempty"`
	ClusterErrors  map[string]string `json:"clusterErrors,omitempty"`
	ClusterReasons map[string]string `json:"clusterReasons,omitempty"`
}

func storeCluster(c Cluster) storedCluster {
	return storedCluster{c.Name, c.State, c.Turn, c.Attempt, c.Note, c.FailedIn, c.Failure.String(), c.Reason, c.Certificate, c.Since}
}

func (c storedCluster) restore() Cluster {
	return Cluster{c.Name, c.State, c.Turn, c.Attempt, c.Note, c.FailedIn, ReadFailure(c.Reason, c.Message), c.Certificate, c.Since}
}

func storeRecord(r Record) storedRecord {
	stored := storedRecord{Stage: r.Stage, Attempt: r.Attempt, Sent: r.Sent, Unsent: r.Unsent, Started: r.Started, Finished: r.Finished, Error: r.Error.String(), Reason: r.Error.Reason}
	stored.ClusterErrors, stored.ClusterReasons = Texts(r.ClusterErrors)
	return stored
}

func (r storedRecord) restore() Record {
	return Record{
		Stage: r.Stage, Attempt: r.Attempt, Sent: r.Sent, Unsent: r.Unsent, Started: r.Started, Finished: r.Finished,
		Error: ReadFailure(r.Reason, r.Error), ClusterErrors: ReadFailures(r.ClusterErrors, r.ClusterReasons),
	}
}

// Shards returns the clusters and the records as the data of ConfigMaps. The manager writes them before the Progress.
func (s State) Shards(migration string) []Shard { return s.shards(migration, shardClusters) }

func (s State) shards(migration string, size int) []Shard {
	var shards []Shard
	total := strconv.Itoa(max(1, (len(s.Clusters)+size-1)/size))
	for from := 0; from == 0 || from < len(s.Clusters); from += size {
		part := s.Clusters[from:min(from+size, len(s.Clusters))]
		data := s.shard(part)
		data[shardsKey] = total
		shards = append(shards, Shard{Name: ShardName(migration, len(shards)), Data: data})
	}
	return shards
}

// ShardName returns the name of the n-th ConfigMap of a migration.
func ShardName(migration string, n int) string { return fmt.Sprintf("%s-state-%d", migration, n) }

func (s State) shard(part []Cluster) map[string]string {
	clusters := make([]storedCluster, len(part))
	names := make(map[string]bool, len(part))
	for i, c := range part {
		clusters[i] = storeCluster(c)
		names[c.Name] = true
	}
	data := map[string]string{clustersKey: encode(clusters), format.Key: strconv.Itoa(format.Current)}
	total := len(data[clustersKey])
	// The newest records come first: if they do not fit, the errors of the oldest are dropped. Their effect on a
	// cluster is stored with the cluster.
	keys := slices.SortedFunc(maps.Keys(s.Records), func(a, b Key) int {
		return cmp.Or(cmp.Compare(s.Records[b].Attempt, s.Records[a].Attempt), cmp.Compare(a.String(), b.String()))
	})
	for _, k := range keys {
		r := s.Records[k]
		r.ClusterErrors = maps.Clone(r.ClusterErrors)
		maps.DeleteFunc(r.ClusterErrors, func(name string, _ Failure) bool { return !names[name] })
		text := encode(storeRecord(r))
		if total+len(text) > maxShardBytes {
			r.ClusterErrors = nil
			text = encode(storeRecord(r))
		}
		total += len(text)
		data[k.String()] = text
	}
	return data
}

// encode returns the JSON of a type that JSON can always encode.
func encode(v any) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(err)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// Progress returns the part of the state that is stored in the status. Its write is the commit of the state.
func (s State) Progress(shards int) *api.MigrationProgress {
	p := &api.MigrationProgress{
		Format: format.Current, Stage: s.Stage, Turn: int32(s.Turn), Attempt: s.Attempt, Thirds: int32(s.Thirds), //nolint:gosec // small numbers
		RollbackStage: s.RollbackStage, Reason: s.Reason, Message: s.Message, WaitingFor: s.WaitingFor,
		Deleting: s.Deleting, TargetLost: s.TargetLost, Abandoned: s.Abandoned, DeniedRequests: s.DeniedRequests, Shards: int32(shards), //nolint:gosec // admission allows 5,000 clusters
	}
	for _, w := range s.Warnings {
		p.Warnings = append(p.Warnings, api.ClusterWarning(w))
	}
	if !s.Since.IsZero() {
		p.Since = &metav1.MicroTime{Time: s.Since}
	}
	return p
}

// Restore rebuilds a state from its stored form. Shards without their commit are not an error: their event is delivered
// again, and [Step] computes the same state from it.
func Restore(spec api.ManagedClusterMigrationSpec, phase api.Phase, p *api.MigrationProgress, shards []map[string]string) (State, error) {
	s := New(spec)
	if p == nil {
		return s, nil
	}
	if err := checkFormats(p, shards); err != nil {
		return State{}, err
	}
	s.Phase, s.Stage, s.Turn, s.Attempt, s.Thirds = phase, p.Stage, int(p.Turn), p.Attempt, int(p.Thirds)
	s.RollbackStage, s.Reason, s.Message, s.WaitingFor = p.RollbackStage, p.Reason, p.Message, p.WaitingFor
	s.Deleting, s.TargetLost, s.Abandoned, s.DeniedRequests = p.Deleting, p.TargetLost, p.Abandoned, p.DeniedRequests
	for _, w := range p.Warnings {
		s.Warnings = append(s.Warnings, Warning(w))
	}
	if p.Since != nil {
		s.Since = p.Since.Time
	}
	if len(shards) < int(p.Shards) {
		return State{}, fmt.Errorf("restore the migration: %d of %d ConfigMaps with its state are missing", int(p.Shards)-len(shards), p.Shards)
	}
	shards = shards[:p.Shards]
	if slices.ContainsFunc(shards, func(data map[string]string) bool { return data[shardsKey] != strconv.Itoa(int(p.Shards)) }) {
		// The shards of a newly resolved placement were written without their commit.
		if phase != api.PhaseValidating && phase != api.PhasePending {
			return State{}, fmt.Errorf("restore the migration: its state has %d ConfigMaps, which say otherwise", p.Shards)
		}
		return s, nil
	}
	s.Clusters, s.Records = nil, nil
	for n, data := range shards {
		if err := s.addShard(data, n == 0); err != nil {
			return State{}, fmt.Errorf("restore the migration: ConfigMap %d: %w", n, err)
		}
	}
	slices.SortFunc(s.Clusters, func(a, b Cluster) int { return strings.Compare(a.Name, b.Name) })
	s.Clusters = slices.CompactFunc(s.Clusters, func(a, b Cluster) bool { return a.Name == b.Name })
	s.reconcileShards()
	return s, nil
}

// reconcileShards corrects what the shards have of a later state than the commit. Before phase Registering every cluster
// is Selected. From then on, the attempts of the later state must not be used for other commands.
func (s *State) reconcileShards() {
	for i := range s.Clusters {
		c := &s.Clusters[i]
		if ByCluster(s.Stage) {
			s.Attempt = max(s.Attempt, c.Attempt)
		} else {
			c.State, c.Turn, c.Attempt = Selected, 0, 0
		}
	}
	if s.walks() {
		for _, r := range s.Records {
			s.Attempt = max(s.Attempt, r.Attempt)
		}
	}
}

// checkFormats also refuses ConfigMaps that a newer release wrote without the commit.
func checkFormats(p *api.MigrationProgress, shards []map[string]string) error {
	if err := format.CheckNumber("status.progress of the migration", int64(p.Format)); err != nil {
		return err
	}
	for n, data := range shards {
		if err := format.CheckData(fmt.Sprintf("ConfigMap %d with the state of the migration", n), data); err != nil {
			return err
		}
	}
	return nil
}

func (s *State) addShard(data map[string]string, first bool) error {
	var clusters []storedCluster
	if err := json.Unmarshal([]byte(data[clustersKey]), &clusters); err != nil {
		return fmt.Errorf("read key %s: %w", clustersKey, err)
	}
	for _, c := range clusters {
		s.Clusters = append(s.Clusters, c.restore())
	}
	records := map[Key]Record{}
	for name, text := range data {
		if name == clustersKey || name == shardsKey || name == format.Key {
			continue
		}
		key, ok := parseKey(name)
		if !ok {
			return fmt.Errorf("key %q names no party and stage", name)
		}
		var r storedRecord
		if err := json.Unmarshal([]byte(text), &r); err != nil {
			return fmt.Errorf("read key %s: %w", name, err)
		}
		records[key] = r.restore()
	}
	if first {
		s.Records = records
		return nil
	}
	s.mergeRecords(records)
	return nil
}

// mergeRecords keeps the older of two records that differ: the newer one was not written to every shard, so its event
// is delivered again.
func (s *State) mergeRecords(others map[Key]Record) {
	for key, mine := range s.Records {
		other, ok := others[key]
		if !ok {
			delete(s.Records, key)
			continue
		}
		older, errors := mine, []map[string]Failure{mine.ClusterErrors, other.ClusterErrors}
		if !sameRecord(mine, other) {
			errors = errors[:1]
			if olderThan(other, mine) {
				older, errors = other, errors[1:]
			}
		}
		merged := map[string]Failure{}
		for _, e := range errors {
			maps.Copy(merged, e)
		}
		older.ClusterErrors = nil
		if len(merged) > 0 {
			older.ClusterErrors = merged
		}
		s.Records[key] = older
	}
}

// sameRecord does not compare Unsent: the next attempt to send the command sets it again.
func sameRecord(a, b Record) bool {
	return a.Attempt == b.Attempt && a.Sent == b.Sent && a.Started == b.Started && a.Finished == b.Finished && a.Error == b.Error
}

// olderThan compares the progress of records: attempt, then sent, started, finished.
func olderThan(a, b Record) bool {
	switch {
	case a.Attempt != b.Attempt:
		return a.Attempt < b.Attempt
	case a.Finished != b.Finished:
		return b.Finished
	case a.Started != b.Started:
		return b.Started
	}
	return a.Sent < b.Sent
}

// parseKey parses the key of a record.
func parseKey(text string) (Key, bool) {
	for _, p := range []Party{Manager, Source, Target} {
		for _, stage := range append([]api.Phase{""}, stages...) {
			if k := (Key{p, stage}); k.String() == text {
				return k, true
			}
		}
	}
	return Key{}, false
}
