package externalname_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/godwit-dev/godwit/externalname/crossplane"
)

// An annotation that the API server refuses, and one that is almost as long, lead to no call.
func TestHugeName(t *testing.T) {
	w := newWorld(t)
	run(w, persons(w.wire), options{})
	const all = 256 << 10 // the API server's limit for all annotations of an object
	p := &person{ObjectMeta: metav1.ObjectMeta{Name: "jane", Namespace: w.namespace}}
	p.Spec.ForProvider.Name = "jane"
	meta.SetExternalName(p, strings.Repeat("a", 2*all))
	if err := w.client.Create(t.Context(), p); !kerrors.IsInvalid(err) || !strings.Contains(err.Error(), "Too long") {
		t.Fatalf("512 KiB: %v", err)
	}
	meta.SetExternalName(p, strings.Repeat("a", all-len(meta.AnnotationKeyExternalName)-len(`"":""`)))
	w.create(p)
	w.awaitPerson(p, "refused", failing("TooLong"))
	if n := w.wire.count(); n != 0 {
		t.Errorf("%d calls: %v", n, w.wire.calls)
	}
}

// requests counts the answers of the API server that are about the objects of a test.
type requests struct {
	mu     sync.Mutex
	counts map[string]int
	// unanswered are the writes to any object that are under way.
	unanswered map[*http.Request]bool
}

// watch counts from now on. Lists and watches belong to the cache of a process, and not to a pass. Conflicts are retried by
// either provider, depending on the moment.
func (r *requests) watch(p *process) {
	r.counts, r.unanswered = map[string]int{}, map[*http.Request]bool{}
	sent := func(req *http.Request) error {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.unanswered[req] = true
		return nil
	}
	answered := func(req *http.Request, answer *http.Response) {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.unanswered, req)
		at := strings.SplitN(req.URL.Path, "/persons/", 2)
		if len(at) != 2 || answer.StatusCode == http.StatusConflict {
			return
		}
		what := "metadata"
		if strings.HasSuffix(at[1], "/status") {
			what = "status"
		}
		if req.Method == http.MethodGet {
			what = "read"
		}
		r.counts[what]++
	}
	p.answered.Store(&answered)
	p.cut.Store(&sent)
}

// awaitAnswers waits for the answers to all writes: others see what a write has done before its sender has the answer.
func (r *requests) awaitAnswers(w *world) {
	w.await("answers", func() string {
		r.mu.Lock()
		defer r.mu.Unlock()
		if n := len(r.unanswered); n > 0 {
			return fmt.Sprintf("%d writes have no answer", n)
		}
		return ""
	})
}

func (r *requests) of(what string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.counts[what]
}

// life is what the life of an object costs.
type life struct {
	// metadata and reads are requests to the API server in the whole life.
	metadata, reads int
	// statusPerPass and callsPerPass are requests to the API server and calls of the external system, while nothing changes.
	statusPerPass, callsPerPass float64
	// writes are the calls that change the external system.
	writes []string
}

// liveOnce creates, observes, updates and deletes a person.
func liveOnce(t *testing.T, start func(*world) *process) life {
	t.Helper()
	w := newWorld(t)
	counted := &requests{}
	counted.watch(start(w))
	var order []string
	var mu sync.Mutex
	w.wire.set(func(_ context.Context, call string, send func() error) error {
		if call != "Read" && call != "Search" {
			mu.Lock()
			order = append(order, call)
			mu.Unlock()
		}
		return send()
	})
	p := w.person("jane", nil)
	w.awaitPerson(p, "created", func(p *person) bool { return synced(p) && ready(p) && meta.GetExternalName(p) != "" })
	w.passes(2)
	status, calls, reads := counted.of("status"), w.wire.count(), w.wire.count("Read")
	const passes = 10
	w.passes(passes)
	time.Sleep(pollEvery / 2) // the write of the status that follows the last observation
	observed := float64(w.wire.count("Read") - reads)
	l := life{callsPerPass: float64(w.wire.count()-calls) / observed, statusPerPass: float64(counted.of("status")-status) / observed}
	w.patch(p, `{"spec":{"forProvider":{"title":"manager"}}}`)
	w.await("update", func() string {
		if all := w.store.all(); all[0].Title != "manager" {
			return all[0].Title
		}
		return ""
	})
	w.passes(2)
	w.delete(p)
	w.awaitGone(p)
	counted.awaitAnswers(w)
	l.metadata, l.reads = counted.of("metadata"), counted.of("read")
	mu.Lock()
	defer mu.Unlock()
	l.writes = order
	return l
}

// A kind of package crossplane sends as many requests as the same kind written by hand on crossplane-runtime, to the API
// server and to the external system.
func TestRequestsPerReconcile(t *testing.T) {
	t.Parallel()
	lives := map[string]func(*world) *process{
		"package crossplane": func(w *world) *process { return run(w, persons(w.wire), options{}) },
		"written by hand": func(w *world) *process {
			return w.manage(options{}, func(m manager.Manager) ([]managed.ReconcilerOption, error) {
				c := wrapped(plainPerson(w.wire), []rule{{"UnnamedIsAbsent", crossplane.UnnamedIsAbsent()}})
				connector := managed.ExternalConnectorFn(func(context.Context, resource.Managed) (managed.ExternalClient, error) { return c, nil })
				return []managed.ReconcilerOption{
					managed.WithExternalConnector(connector), managed.WithManagementPolicies(), managed.WithInitializers(), managed.WithRecorder(w.events),
				}, nil
			}, groupVersion.WithKind("Person"))
		},
	}
	var mu sync.Mutex
	cost := map[string]life{}
	t.Run("lives", func(t *testing.T) {
		for name, start := range lives {
			t.Run(name, func(t *testing.T) {
				l := liveOnce(t, start)
				mu.Lock()
				defer mu.Unlock()
				cost[name] = l
			})
		}
	})
	ours, plain := cost["package crossplane"], cost["written by hand"]
	t.Logf("package crossplane: %+v", ours)
	t.Logf("written by hand:    %+v", plain)
	if ours.metadata > plain.metadata || ours.reads > plain.reads {
		t.Errorf("%d writes of metadata and %d reads in a life, by hand only %d and %d", ours.metadata, ours.reads, plain.metadata, plain.reads)
	}
	if ours.statusPerPass > 1.2 || ours.callsPerPass > 1 {
		t.Errorf("%.2f writes of the status and %.2f calls in a pass without changes", ours.statusPerPass, ours.callsPerPass)
	}
	if !slices.Equal(ours.writes, plain.writes) {
		t.Errorf("calls that write are %v, by hand %v", ours.writes, plain.writes)
	}
}
