package externalname_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	xpcontroller "github.com/crossplane/crossplane-runtime/v2/pkg/controller"
	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"github.com/crossplane/crossplane-runtime/v2/pkg/ratelimiter"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/godwit-dev/godwit/externalname/crossplane"
	"github.com/godwit-dev/godwit/externalname/crossplane/mirror"
	"github.com/godwit-dev/godwit/test/externalname/database"
	"github.com/godwit-dev/godwit/test/jobservice"
)

// databases is the kind with the delays of these tests.
func databases(c jobservice.Client) crossplane.Resource[*database.Database, string, jobservice.Database] {
	r := database.Resource(c)
	r.RecoveryDelay, r.OperationPoll = soon, pollEvery
	return r
}

// serviceWorld is a world with a job service in a process of its own.
type serviceWorld struct {
	*world

	service *jobservice.Process
	client  jobservice.Client
}

func newServiceWorld(t *testing.T) *serviceWorld {
	t.Helper()
	w := &serviceWorld{world: newWorld(t)}
	service, err := jobservice.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := service.Stop(); err != nil {
			t.Error(err)
		}
	})
	w.service, w.client = service, jobservice.Client{URL: service.URL}
	return w
}

func (w *serviceWorld) control(c jobservice.Control) {
	w.t.Helper()
	if err := w.service.Control(w.t.Context(), c); err != nil {
		w.t.Fatal(err)
	}
}

func (w *serviceWorld) requests(pattern string) int {
	w.t.Helper()
	counts, err := w.service.Requests(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	return counts[pattern]
}

func (w *serviceWorld) database(name string) *database.Database {
	w.t.Helper()
	d := &database.Database{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: w.namespace}}
	d.Spec.ForProvider = database.Parameters{Name: name, Size: 1}
	w.create(d)
	return d
}

// checkDatabases compares the names that exist.
func (w *serviceWorld) checkDatabases(want ...string) {
	w.t.Helper()
	var names []string
	for d, err := range w.client.All(w.t.Context()) {
		if err != nil {
			w.t.Fatal(err)
		}
		names = append(names, d.Name)
	}
	if !slices.Equal(names, want) {
		w.t.Errorf("databases are %v, want %v", names, want)
	}
}

// 36: a database is created by an operation, and deleted once although its deletion takes long.
func TestDatabase(t *testing.T) {
	w := newServiceWorld(t)
	w.control(jobservice.Control{Hold: true})
	run(w.world, databases(w.client), options{})
	d := w.database("orders")
	awaitObject(w.world, d, "pending", func(d *database.Database) bool {
		return d.Annotations[crossplane.AnnotationOperation] != "" && synced(d) && !ready(d)
	})
	w.control(jobservice.Control{})
	awaitObject(w.world, d, "created", func(d *database.Database) bool { return isBound(d) && ready(d) })
	if n := w.requests("POST /databases"); n != 1 {
		t.Errorf("%d creations", n)
	}
	w.checkClean(d)

	w.patch(d, `{"spec":{"forProvider":{"size":2}}}`)
	awaitObject(w.world, d, "resized", func(d *database.Database) bool { return d.Status.AtProvider.Size == 2 && synced(d) })

	w.control(jobservice.Control{Hold: true})
	w.delete(d)
	w.await("deletion", func() string {
		if w.requests("DELETE /databases/{id}") == 0 {
			return "none"
		}
		return ""
	})
	seen := w.requests("GET /databases/{id}")
	w.await("two further observations", func() string {
		if n := w.requests("GET /databases/{id}"); n < seen+2 {
			return fmt.Sprintf("%d of 2", n-seen)
		}
		return ""
	})
	if get(w.world, d); len(d.Finalizers) != 1 || w.requests("DELETE /databases/{id}") != 1 {
		t.Errorf("finalizers %v, %d deletions", d.Finalizers, w.requests("DELETE /databases/{id}"))
	}
	w.control(jobservice.Control{})
	w.awaitGone(d)
	w.checkDatabases()
}

// 31, 42: whatever answers the creation, there is one database in the end, and a message says what happened.
func TestDatabaseFaults(t *testing.T) {
	for kind, message := range map[jobservice.FaultKind]string{
		jobservice.Lose:        "EOF",
		jobservice.Drop:        "EOF",
		jobservice.Hang:        "deadline exceeded",
		jobservice.Garbage:     "invalid character",
		jobservice.Conflict:    "409 Conflict",
		jobservice.Unavailable: "503 Service Unavailable",
	} {
		t.Run(string(kind), func(t *testing.T) {
			w := newServiceWorld(t)
			w.control(jobservice.Control{Faults: []jobservice.Fault{{Kind: kind, Pattern: "POST /databases", Times: 1}}})
			run(w.world, databases(w.client), options{further: []managed.ReconcilerOption{managed.WithTimeout(2 * time.Second)}})
			d := w.database("orders")
			awaitObject(w.world, d, "created", func(d *database.Database) bool { return isBound(d) && ready(d) })
			w.checkDatabases("orders")
			w.checkClean(d)
			if events := strings.Join(w.events.with("CannotCreateExternalResource"), "\n"); !strings.Contains(events, message) || len(events) > 2000 || strings.ContainsRune(events, '\x1b') {
				t.Errorf("events are %q, want %q", events, message)
			}
		})
	}
}

// Whatever answers an observation or an update, the object says why it is not synced, and no second database is created.
func TestDatabaseFaultsAreReported(t *testing.T) {
	for kind, message := range map[jobservice.FaultKind]string{
		jobservice.Drop:        "EOF",
		jobservice.Hang:        "deadline exceeded",
		jobservice.Garbage:     "invalid character",
		jobservice.Conflict:    "409 Conflict",
		jobservice.Unavailable: "503 Service Unavailable",
	} {
		t.Run(string(kind), func(t *testing.T) {
			w := newServiceWorld(t)
			run(w.world, databases(w.client), options{further: []managed.ReconcilerOption{managed.WithTimeout(2 * time.Second)}})
			d := w.database("orders")
			awaitObject(w.world, d, "created", func(d *database.Database) bool { return isBound(d) && ready(d) })
			name := meta.GetExternalName(d)
			w.control(jobservice.Control{Faults: []jobservice.Fault{{Kind: kind, Pattern: "GET /databases/{id}"}}})
			awaitObject(w.world, d, "reported", func(d *database.Database) bool {
				c := d.GetCondition(xpv2.TypeSynced)
				return c.Status == corev1.ConditionFalse && strings.Contains(c.Message, message) && len(c.Message) < 2000
			})
			w.control(jobservice.Control{Faults: []jobservice.Fault{{Kind: kind, Pattern: "PUT /databases/{id}", Times: 1}}})
			w.patch(d, `{"spec":{"forProvider":{"size":2}}}`)
			awaitObject(w.world, d, "resized", func(d *database.Database) bool { return isBound(d) && d.Status.AtProvider.Size == 2 })
			// The next observation may find the update carried out, so that the status does not keep the message. The client does not
			// read the answer of PUT.
			events := strings.Join(w.events.with("CannotUpdateExternalResource"), "\n")
			if kind != jobservice.Garbage && !strings.Contains(events, message) {
				t.Errorf("events of the update are %q, want %q", events, message)
			}
			if n := w.requests("POST /databases"); n != 1 || meta.GetExternalName(d) != name {
				t.Errorf("%d creations, external name %q, then %q", n, name, meta.GetExternalName(d))
			}
			w.checkDatabases("orders")
			w.delete(d)
			w.awaitGone(d)
			w.checkDatabases()
		})
	}
}

// An external system that does not answer a deletion is asked again, and nothing is lost. The last fault deletes the database.
func TestDatabaseDeletionFaults(t *testing.T) {
	for last, message := range map[jobservice.FaultKind]string{
		jobservice.Drop: "EOF",
		jobservice.Hang: "deadline exceeded",
	} {
		t.Run(string(last), func(t *testing.T) {
			w := newServiceWorld(t)
			run(w.world, databases(w.client), options{further: []managed.ReconcilerOption{managed.WithTimeout(2 * time.Second)}})
			d := w.database("orders")
			awaitObject(w.world, d, "created", isBound[*database.Database])
			w.control(jobservice.Control{Faults: []jobservice.Fault{
				{Kind: jobservice.Unavailable, Pattern: "DELETE /databases/{id}", Times: 1},
				{Kind: jobservice.Conflict, Pattern: "DELETE /databases/{id}", Times: 1},
				{Kind: jobservice.Garbage, Pattern: "GET /databases/{id}", Times: 1},
				{Kind: last, Pattern: "DELETE /databases/{id}", Times: 1},
			}})
			w.delete(d)
			w.awaitGone(d)
			w.checkDatabases()
			events := strings.Join(w.events.with("CannotDeleteExternalResource"), "\n")
			for _, want := range []string{"503 Service Unavailable", "409 Conflict", message} {
				if !strings.Contains(events, want) {
					t.Errorf("events are %q, want %q", events, want)
				}
			}
		})
	}
}

// An operation that fails has created nothing, and the next one is begun.
func TestDatabaseOperationFails(t *testing.T) {
	w := newServiceWorld(t)
	w.control(jobservice.Control{Fail: "quota exceeded"})
	run(w.world, databases(w.client), options{})
	d := w.database("orders")
	w.await("failure", func() string {
		if events := w.events.with("CreationOperationFailed"); len(events) == 0 || !strings.Contains(events[0], "quota exceeded") {
			return fmt.Sprint(events)
		}
		return ""
	})
	w.control(jobservice.Control{})
	awaitObject(w.world, d, "created", isBound[*database.Database])
	w.checkDatabases("orders")
}

// 53: a provider that is killed while its creation is pending, before it has written the operation down, creates no second one.
func TestDatabaseKilledWhilePending(t *testing.T) {
	w := newServiceWorld(t)
	w.control(jobservice.Control{Hold: true})
	kind := databases(w.client)
	var p *process
	connect := kind.Connect
	kind.Connect = func(ctx context.Context, d *database.Database) (crossplane.External[*database.Database, string, jobservice.Database], error) {
		e, err := connect(ctx, d)
		create := e.Create
		e.Create = func(ctx context.Context, d *database.Database) (crossplane.Created[string], error) {
			created, err := create(ctx, d)
			p.kill()
			return created, err
		}
		return e, err
	}
	p = run(w.world, kind, options{})
	d := w.database("orders")
	<-p.done
	if get(w.world, d); d.Annotations[crossplane.AnnotationOperation] != "" || d.Annotations[meta.AnnotationKeyExternalCreatePending] == "" {
		t.Fatalf("annotations are %v: the process was not killed in between", d.Annotations)
	}
	run(w.world, databases(w.client), options{})
	awaitObject(w.world, d, "pending", func(d *database.Database) bool { return synced(d) && d.GetCondition("Ready").Reason == "Creating" })
	w.control(jobservice.Control{})
	awaitObject(w.world, d, "created", isBound[*database.Database])
	if n := w.requests("POST /databases"); n != 1 {
		t.Errorf("%d creations", n)
	}
	w.checkDatabases("orders")
	w.checkClean(d)
}

// The same kind that is written on crossplane-runtime alone, with which the benchmark compares, has the same life.
func TestDatabaseByHand(t *testing.T) {
	w := newServiceWorld(t)
	w.start(options{}, func(m manager.Manager) error {
		return database.SetupByHand(m, w.client, xpcontroller.Options{
			PollInterval: pollEvery, MaxConcurrentReconciles: 1, GlobalRateLimiter: ratelimiter.NewGlobal(100),
		})
	})
	d := w.database("orders")
	awaitObject(w.world, d, "created", func(d *database.Database) bool { return synced(d) && ready(d) && d.Status.AtProvider.Size == 1 })
	w.patch(d, `{"spec":{"forProvider":{"size":2}}}`)
	awaitObject(w.world, d, "resized", func(d *database.Database) bool { return d.Status.AtProvider.Size == 2 && synced(d) })
	w.delete(d)
	w.awaitGone(d)
	w.checkDatabases()
	for _, pattern := range []string{"POST /databases", "DELETE /databases/{id}"} {
		if n := w.requests(pattern); n != 1 {
			t.Errorf("%d times %s", n, pattern)
		}
	}
}

// An import copies status.atProvider, so that no field may be missing there.
func TestDatabaseMirror(t *testing.T) {
	if missing, err := mirror.Missing(&database.Database{}); err != nil || len(missing) > 0 {
		t.Errorf("status.atProvider lacks %v, %v", missing, err)
	}
}

// The list has several pages, and ends after an error.
func TestDatabaseList(t *testing.T) {
	w := newServiceWorld(t)
	for i := range 7 {
		if _, err := w.client.Create(t.Context(), jobservice.Database{Name: fmt.Sprint("db", i)}); err != nil {
			t.Fatal(err)
		}
	}
	e, err := databases(w.client).Connect(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for id, err := range e.List(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	if len(ids) != 7 {
		t.Errorf("%d databases", len(ids))
	}
	w.control(jobservice.Control{Faults: []jobservice.Fault{{Kind: jobservice.Unavailable, Pattern: "GET /databases"}}})
	for _, err := range e.List(t.Context()) {
		if err == nil || errors.Is(err, crossplane.ErrNotFound) {
			t.Errorf("error is %v", err)
		}
	}
}
