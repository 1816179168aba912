package externalname_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"

	"github.com/godwit-dev/godwit/externalname"
	"github.com/godwit-dev/godwit/externalname/crossplane"
)

// jobs create entries asynchronously.
type jobs struct {
	mu   sync.Mutex
	to   directory
	list map[string]*oneJob
}

type oneJob struct {
	entry entry
	id    string
	err   error
}

func (j *jobs) begin(e entry) string {
	j.mu.Lock()
	defer j.mu.Unlock()
	id := fmt.Sprintf("job-%d", len(j.list)+1)
	j.list[id] = &oneJob{entry: e, err: crossplane.ErrOperationRunning}
	return id
}

// end ends all jobs: they fail with the error, or create their entries.
func (j *jobs) end(ctx context.Context, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, job := range j.list {
		if !errors.Is(job.err, crossplane.ErrOperationRunning) {
			continue
		}
		if job.err = err; err == nil {
			made, err := j.to.Add(ctx, job.entry)
			job.id, job.err = made.ID, err
		}
	}
}

func (j *jobs) count() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return len(j.list)
}

func asynchronous(d directory, j *jobs, begun func()) personResource {
	kind := recovering(d)
	kind.OperationPoll = pollEvery
	kind.Names.Legacy = append(kind.Names.Legacy, externalname.LegacyOperation[string]("Job",
		externalname.Text(externalname.Check("job-…", func(text string) bool { return strings.HasPrefix(text, "job-") }))))
	connect := kind.Connect
	kind.Connect = func(ctx context.Context, p *person) (crossplane.External[*person, string, entry], error) {
		e, err := connect(ctx, p)
		e.Create = func(_ context.Context, p *person) (crossplane.Created[string], error) {
			id := j.begin(entryOf(p))
			begun()
			return crossplane.Pending[string](id), nil
		}
		e.Operation = crossplane.Operation[*person, string]{
			Await: func(_ context.Context, operation string) (string, error) {
				j.mu.Lock()
				defer j.mu.Unlock()
				if job := j.list[operation]; job != nil {
					return job.id, job.err
				}
				return "", crossplane.ErrOperationNotFound
			},
			Find: func(_ context.Context, p *person) (string, error) {
				j.mu.Lock()
				defer j.mu.Unlock()
				for id, job := range j.list {
					if token := crossplane.Token(p); token != "" && job.entry.Mark == token {
						return id, nil
					}
				}
				return "", crossplane.ErrOperationNotFound
			},
		}
		return e, err
	}
	return kind
}

func newJobs(w *world) *jobs { return &jobs{to: w.store, list: map[string]*oneJob{}} }

func (w *world) awaitJob(j *jobs) {
	w.t.Helper()
	w.await("job", func() string {
		if j.count() == 0 {
			return "none"
		}
		return ""
	})
}

// A creation whose key is known later is journalled, and resolved by Observe.
func TestOperation(t *testing.T) {
	w := newWorld(t)
	j := newJobs(w)
	run(w, asynchronous(w.wire, j, func() {}), options{})
	p := w.person("jane", nil)
	w.awaitPerson(p, "pending", func(p *person) bool { return p.Annotations[crossplane.AnnotationOperation] == "job-1" && synced(p) })
	if meta.GetExternalName(p) != "" || ready(p) {
		t.Errorf("annotations %v, conditions %+v", p.Annotations, p.Status.Conditions)
	}
	time.Sleep(4 * pollEvery)
	if n := j.count(); n != 1 {
		t.Errorf("%d creations while one is pending", n)
	}

	// What is being created can't be deleted yet, and is not lost.
	w.delete(p)
	w.awaitPerson(p, "refused", failing("operation is running"))
	j.end(t.Context(), nil)
	w.awaitGone(p)
	w.checkEntries(0)
}

func TestOperationEnds(t *testing.T) {
	w := newWorld(t)
	j := newJobs(w)
	run(w, asynchronous(w.wire, j, func() {}), options{})
	p := w.person("jane", nil)
	w.awaitJob(j)
	j.end(t.Context(), crossplane.ErrOperationFailed)
	w.await("second attempt", func() string {
		if j.count() != 2 {
			return fmt.Sprint(j.count())
		}
		return ""
	})
	if events := w.events.with("CreationOperationFailed"); len(events) == 0 || !strings.Contains(events[0], "job-1") {
		t.Errorf("events are %q", events)
	}
	j.end(t.Context(), nil)
	w.awaitPerson(p, "created", func(p *person) bool { return bound(p) && ready(p) })
	w.checkEntries(1)
	w.checkClean(p)
	if j.count() != 2 {
		t.Errorf("%d jobs", j.count())
	}
}

// 53: a provider that is killed before it has written the operation down finds it again.
func TestKilledWhilePending(t *testing.T) {
	w := newWorld(t)
	j := newJobs(w)
	var p *process
	p = run(w, asynchronous(w.wire, j, func() { p.kill() }), options{})
	jane := w.person("jane", nil)
	<-p.done
	if get(w, jane); jane.Annotations[crossplane.AnnotationOperation] != "" {
		t.Fatalf("annotations are %v: the process was not killed in between", jane.Annotations)
	}
	run(w, asynchronous(w.wire, j, func() {}), options{})
	time.Sleep(4 * soon)
	if n := j.count(); n != 1 {
		t.Errorf("%d jobs", n)
	}
	j.end(t.Context(), nil)
	w.awaitPerson(jane, "created", bound)
	w.checkEntries(1)
	w.checkClean(jane)
}

// An external name that is the ID of an operation, as another release wrote it, is swapped for the key.
func TestLegacyOperation(t *testing.T) {
	w := newWorld(t)
	j := newJobs(w)
	id := j.begin(entry{Name: "jane"})
	run(w, asynchronous(w.wire, j, func() {}), options{})
	p := w.person("jane", named(id))
	w.awaitPerson(p, "pending", func(p *person) bool { return synced(p) })
	if meta.GetExternalName(p) != id || j.count() != 1 {
		t.Errorf("external name %q, %d jobs", meta.GetExternalName(p), j.count())
	}
	j.end(t.Context(), nil)
	w.awaitPerson(p, "swapped", func(p *person) bool { return bound(p) && meta.GetExternalName(p) == w.store.all()[0].ID })
}
