package property

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/apimachinery/pkg/types"
)

// history is the log of all writes of users and runs, and of what decides whether they are right.
type history struct {
	mu     sync.Mutex
	crd    types.UID               // of the CRD
	crdOf  map[types.UID]types.UID // the UID of the CRD of an object, by its UID
	last   map[types.UID]int64     // the number that the last answered write of an object had
	tried  map[string]int64        // the newest number that was sent, by name: an answer may be lost
	fields map[types.UID][]string  // the fields that a user has written, by object
	gained []string                // the fields that the CRD has gained
	flips  []flip                  // when the storage version was set
	acts   []act                   // of runs
}

// flip is a change of the storage version, which took effect after it was sent and before it was answered.
type flip struct {
	storage        string
	sent, answered time.Time
}

func newHistory() *history {
	return &history{crdOf: map[types.UID]types.UID{}, last: map[types.UID]int64{}, tried: map[string]int64{}, fields: map[types.UID][]string{}}
}

// begins is called when there is a new CRD.
func (h *history) begins(crd types.UID, f flip) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.crd, h.gained, h.flips = crd, nil, append(h.flips, f)
}

// present is the UID of the CRD that was created last.
func (h *history) present() types.UID {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.crd
}

func (h *history) flipped(f flip) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.flips = append(h.flips, f)
}

func (h *history) created(o, crd types.UID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.crdOf[o] = crd
}

func (h *history) tries(name string, n int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.tried[name] = n
}

func (h *history) wrote(o types.UID, n int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.last[o] = n
}

func (h *history) grew(o types.UID, field string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !slices.Contains(h.fields[o], field) {
		h.fields[o] = append(h.fields[o], field)
	}
}

func (h *history) hasField(field string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.gained = append(h.gained, field)
}

func (h *history) newestField() (string, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.gained) == 0 {
		return "", false
	}
	return h.gained[len(h.gained)-1], true
}

// watched are the events of etcd about the CRD and its objects.
type watched struct {
	cancel context.CancelFunc
	done   chan struct{}
	events []*clientv3.Event
}

// watch begins with what etcd has: the CRD, and then its objects.
func (p *play) watch() *watched {
	p.t.Helper()
	ctx, cancel := context.WithCancel(p.t.Context())
	w := &watched{cancel: cancel, done: make(chan struct{})}
	crdKey := "/registry/apiextensions.k8s.io/customresourcedefinitions/" + p.crd
	now, err := plane.Etcd().Get(ctx, p.keys(), prefix)
	if err != nil {
		p.t.Fatal(err)
	}
	crd, err := plane.Etcd().Get(ctx, crdKey, clientv3.WithRev(now.Header.Revision))
	if err != nil {
		p.t.Fatal(err)
	}
	for _, kv := range slices.Concat(crd.Kvs, now.Kvs) {
		w.events = append(w.events, &clientv3.Event{Type: clientv3.EventTypePut, Kv: kv})
	}
	answers := plane.Etcd().Watch(ctx, "/registry/", prefix, clientv3.WithRev(now.Header.Revision+1))
	go func() {
		defer close(w.done)
		for answer := range answers {
			for _, e := range answer.Events {
				if key := string(e.Kv.Key); key == crdKey || strings.HasPrefix(key, p.keys()) {
					w.events = append(w.events, e)
				}
			}
		}
	}()
	return w
}

func (w *watched) stop() { w.cancel(); <-w.done }

// stored is what the contract needs of the CRD and of objects as etcd has them.
type stored struct {
	APIVersion string
	Metadata   struct{ UID types.UID }
	Status     struct{ StoredVersions []string }
}

// checkHistory reads the events in their order: whenever status.storedVersions loses a version, no object is stored at it. A CRD that
// was created again begins with no objects, and has only those that were created for it.
func (p *play) checkHistory(w *watched) {
	p.t.Helper()
	at, crd := map[string]string{}, stored{} // no CRD has the UID ""
	for _, e := range w.events {
		key, next := string(e.Kv.Key), stored{}
		if e.Type == clientv3.EventTypePut {
			if err := json.Unmarshal(e.Kv.Value, &next); err != nil {
				p.t.Errorf("seed %d: %s in etcd: %v", p.seed, key, err)
			}
		}
		switch isObject := strings.HasPrefix(key, p.keys()); {
		case isObject && e.Type == clientv3.EventTypeDelete:
			delete(at, key)
		case isObject:
			if of := p.log.crdOf[next.Metadata.UID]; of == "" || of != crd.Metadata.UID {
				p.t.Errorf("seed %d: at revision %d, %s with UID %s is stored, which was created for CRD %q, while the CRD is %q",
					p.seed, e.Kv.ModRevision, key, next.Metadata.UID, of, crd.Metadata.UID)
			}
			at[key] = strings.TrimPrefix(next.APIVersion, p.group+"/")
		case e.Type == clientv3.EventTypeDelete && len(at) > 0:
			p.t.Errorf("seed %d: at revision %d, the CRD is deleted and its objects are not: %v", p.seed, e.Kv.ModRevision, at)
		case next.Metadata.UID == crd.Metadata.UID:
			p.checkTrim(e.Kv.ModRevision, crd.Status.StoredVersions, next.Status.StoredVersions, at)
		}
		if !strings.HasPrefix(key, p.keys()) {
			crd = next
		}
	}
}

func (p *play) checkTrim(revision int64, before, after []string, at map[string]string) {
	p.t.Helper()
	lost := slices.DeleteFunc(slices.Clone(before), func(v string) bool { return slices.Contains(after, v) })
	if len(lost) == 0 {
		return
	}
	p.trims.Add(1)
	for key, version := range at {
		if slices.Contains(lost, version) {
			p.t.Errorf("seed %d: at revision %d, status.storedVersions goes from %v to %v while %s is stored at %s", p.seed, revision, before, after, key, version)
		}
	}
}

// checkRuns compares the writes of runs with their plans and with the settle time: a run writes to the CRD that it was planned for, and to
// objects of it, and no object before the settle time after a change of the storage version that the run has begun with.
func (p *play) checkRuns() {
	p.t.Helper()
	settle := max(p.settle, 0)
	if p.settle == 0 {
		settle = documented
	}
	for _, a := range p.log.acts {
		of := a.uid
		if strings.Contains(a.path, "/"+p.group+"/") {
			of = p.log.crdOf[a.uid]
			p.rewritten.Add(1)
			for _, f := range p.log.flips {
				if early := f.sent.Add(settle).Sub(a.sent); f.answered.Before(a.began) && early > 0 {
					p.t.Errorf("seed %d: a run wrote %s %v before the storage version had settled for %v", p.seed, a.path, early, settle)
				}
			}
		}
		if of != a.planned && !a.answered.IsZero() {
			p.t.Errorf("seed %d: a run that was planned for CRD %s wrote to %s of CRD %q", p.seed, a.planned, a.path, of)
		}
	}
}

// overtaken reports whether v2 became the storage version while a run wrote an object to store it at v1, before the run had read the
// CRD again. A write has no precondition about the CRD, so that the API server drops what v2 lacks, as from the write of any client.
func (p *play) overtaken(name string, o types.UID) bool {
	for _, a := range p.log.acts {
		answered := a.answered
		if answered.IsZero() {
			answered = a.sent.Add(time.Second)
		}
		if a.uid != o && a.uid != "" || !strings.HasSuffix(a.path, "/"+name) || !strings.Contains(a.path, "/v1/") {
			continue
		}
		for _, f := range p.log.flips {
			if f.storage == "v2" && f.sent.Before(answered) && a.read.Before(f.answered) {
				return true
			}
		}
	}
	return false
}

// checkEtcd compares the objects with the log of the users' writes.
func (p *play) checkEtcd() {
	p.t.Helper()
	now, err := plane.Etcd().Get(p.t.Context(), p.keys(), prefix)
	if err != nil {
		p.t.Fatal(err)
	}
	if len(now.Kvs) != objects {
		p.t.Errorf("seed %d: %d objects are left of %d", p.seed, len(now.Kvs), objects)
	}
	for _, kv := range now.Kvs {
		var o struct {
			Metadata struct{ UID types.UID }
			Spec     map[string]any
		}
		if err := json.Unmarshal(kv.Value, &o); err != nil {
			p.t.Fatal(err)
		}
		name := string(kv.Key)[strings.LastIndex(string(kv.Key), "/")+1:]
		n, _ := o.Spec["n"].(float64)
		if last, tried := p.log.last[o.Metadata.UID], p.log.tried[name]; int64(n) != last && int64(n) != tried {
			p.t.Errorf("seed %d: %s has %v, and a user wrote %d last", p.seed, name, n, last)
		}
		for _, field := range p.log.fields[o.Metadata.UID] {
			if o.Spec[field] != "kept" {
				p.t.Errorf("seed %d: %s lost %s, which a user wrote: %s", p.seed, name, field, kv.Value)
			}
		}
		// A still object is written by runs alone: once for each change of the storage version, and once to clean managedFields.
		if most := 2 + p.flips.Load(); name < nameOf(still) && kv.Version > most {
			p.t.Errorf("seed %d: %s was written %d times, want at most %d", p.seed, name, kv.Version, most)
		}
		switch secret := o.Spec["secret"]; {
		case name >= nameOf(still), secret == "of "+name:
		case secret == nil && p.overtaken(name, o.Metadata.UID):
			p.dropped.Add(1)
		default:
			p.t.Errorf("seed %d: %s lost its secret, which no user gave up (lossy: %t, a webhook converts: %t, written %d times): %s", p.seed, name, p.lossy, p.converts, kv.Version, kv.Value)
		}
	}
}
