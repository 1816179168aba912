package property

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// history is the log of all writes of users.
type history struct {
	mu     sync.Mutex
	last   map[string]int64    // the number that the last answered write of an object had
	tried  map[string]int64    // the newest number that was sent: an answer may be lost
	fields map[string][]string // the fields that a user has written, by object
	gained []string            // the fields that the CRD has gained
}

func newHistory() *history {
	return &history{last: map[string]int64{}, tried: map[string]int64{}, fields: map[string][]string{}}
}

func (h *history) tries(name string, n int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.tried[name] = n
}

func (h *history) wrote(name string, n int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.last[name] = n
}

func (h *history) grew(name, field string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !slices.Contains(h.fields[name], field) {
		h.fields[name] = append(h.fields[name], field)
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

// watch begins with what etcd has.
func (p *play) watch() *watched {
	p.t.Helper()
	ctx, cancel := context.WithCancel(p.t.Context())
	w := &watched{cancel: cancel, done: make(chan struct{})}
	now, err := plane.Etcd().Get(ctx, p.keys(), prefix)
	if err != nil {
		p.t.Fatal(err)
	}
	for _, kv := range now.Kvs {
		w.events = append(w.events, &clientv3.Event{Type: clientv3.EventTypePut, Kv: kv})
	}
	answers := plane.Etcd().Watch(ctx, "/registry/", prefix, clientv3.WithRev(now.Header.Revision+1))
	crdKey := "/registry/apiextensions.k8s.io/customresourcedefinitions/" + p.crd
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

// checkHistory reads the events in their order: whenever status.storedVersions loses a version, no object is stored at it.
func (p *play) checkHistory(w *watched) {
	p.t.Helper()
	at := map[string]string{}
	var before []string
	for _, e := range w.events {
		key := string(e.Kv.Key)
		if !strings.HasPrefix(key, p.keys()) {
			var crd struct {
				Status struct{ StoredVersions []string }
			}
			if err := json.Unmarshal(e.Kv.Value, &crd); err != nil {
				continue // deleted
			}
			p.checkTrim(e.Kv.ModRevision, before, crd.Status.StoredVersions, at)
			before = crd.Status.StoredVersions
			continue
		}
		if e.Type == clientv3.EventTypeDelete {
			delete(at, key)
			continue
		}
		var o struct{ APIVersion string }
		if err := json.Unmarshal(e.Kv.Value, &o); err != nil {
			p.t.Errorf("seed %d: %s in etcd: %v", p.seed, key, err)
		}
		at[key] = strings.TrimPrefix(o.APIVersion, p.group+"/")
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
		var o struct{ Spec map[string]any }
		if err := json.Unmarshal(kv.Value, &o); err != nil {
			p.t.Fatal(err)
		}
		name := string(kv.Key)[strings.LastIndex(string(kv.Key), "/")+1:]
		n, _ := o.Spec["n"].(float64)
		if last, tried := p.log.last[name], p.log.tried[name]; int64(n) != last && int64(n) != tried {
			p.t.Errorf("seed %d: %s has %v, and a user wrote %d last", p.seed, name, n, last)
		}
		for _, field := range p.log.fields[name] {
			if o.Spec[field] != "kept" {
				p.t.Errorf("seed %d: %s lost %s, which a user wrote: %s", p.seed, name, field, kv.Value)
			}
		}
		// A still object is written by runs alone: once for each change of the storage version, and once to clean managedFields.
		if most := 2 + p.flips.Load(); name < nameOf(still) && kv.Version > most {
			p.t.Errorf("seed %d: %s was written %d times, want at most %d", p.seed, name, kv.Version, most)
		}
		if secret, ok := o.Spec["secret"]; name < nameOf(still) && (!ok || secret != "of "+name) {
			p.t.Errorf("seed %d: %s lost its secret, which no user gave up (lossy: %t): %s", p.seed, name, p.lossy, kv.Value)
		}
	}
}
