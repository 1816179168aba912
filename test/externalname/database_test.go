package externalname_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/godwit-dev/godwit/externalname/crossplane"
	"github.com/godwit-dev/godwit/test/externalname/kinds"
	"github.com/godwit-dev/godwit/test/jobservice"
)

// databaseParameters are identified by a GUID that an operation makes.
type databaseParameters struct {
	Name string `json:"name"`
	Size int    `json:"size,omitempty"`
}

type database = object[databaseParameters]

// A kind that is created and deleted asynchronously.
func databases(c databaseClient) crossplane.Resource[*database, string, jobservice.Database] {
	return crossplane.Resource[*database, string, jobservice.Database]{
		Kind:          groupVersion.WithKind("Database"),
		Names:         kinds.DatabaseNames,
		RecoveryDelay: soon,
		OperationPoll: pollEvery,
		Connect: func(context.Context, *database) (crossplane.External[*database, string, jobservice.Database], error) {
			return crossplane.External[*database, string, jobservice.Database]{
				Get: c.read,
				Create: func(ctx context.Context, d *database) (crossplane.Created[string], error) {
					operation, err := c.create(ctx, wanted(d))
					return crossplane.Pending[string](operation), err
				},
				Update: func(ctx context.Context, d *database, id string, _ jobservice.Database) (string, error) {
					return id, c.send(ctx, http.MethodPut, "/databases/"+id, wanted(d), nil)
				},
				Delete: func(ctx context.Context, id string) error {
					return c.send(ctx, http.MethodDelete, "/databases/"+id, nil, nil)
				},
				Mirror: func(d *database, o jobservice.Database) {
					d.Status.AtProvider = databaseParameters{Name: o.Name, Size: o.Size}
				},
				Diff: func(d *database, o jobservice.Database) []crossplane.Difference {
					return differences(crossplane.Difference{Field: "size", Desired: fmt.Sprint(d.Spec.ForProvider.Size), Observed: fmt.Sprint(o.Size)})
				},
				Lifecycle: func(o jobservice.Database) crossplane.Lifecycle {
					return crossplane.Lifecycle{State: crossplane.State(o.State)}
				},
				Find: func(ctx context.Context, d *database) ([]string, error) { return c.find(ctx, d.Spec.ForProvider.Name) },
				Ours: func(_ context.Context, d *database, o jobservice.Database) (bool, error) {
					return o.Token == crossplane.Token(d), nil
				},
				List:      c.list,
				Operation: crossplane.Operation[*database, string]{Await: c.await, Find: c.findOperation},
			}, nil
		},
	}
}

func wanted(d *database) jobservice.Database {
	f := d.Spec.ForProvider
	return jobservice.Database{Name: f.Name, Size: f.Size, Token: crossplane.Token(d)}
}

// databaseClient is a client as its author has it.
type databaseClient struct{ url string }

// send returns what an answer means. A 5xx, an answer that is no JSON, and no answer at all leave a creation unknown.
func (c databaseClient) send(ctx context.Context, method, path string, body, into any) error {
	data, err := json.Marshal(body)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, method, c.url+path, bytes.NewReader(data))
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, 1<<20))
	if err != nil {
		return err
	}
	failure := fmt.Errorf("%s %s: %s: %s", method, path, response.Status, text)
	switch {
	case response.StatusCode == http.StatusNotFound && strings.HasPrefix(path, "/operations"):
		return fmt.Errorf("%w: %w", crossplane.ErrOperationNotFound, failure)
	case response.StatusCode == http.StatusNotFound:
		return fmt.Errorf("%w: %w", crossplane.ErrNotFound, failure)
	case response.StatusCode == http.StatusConflict && method == http.MethodPost:
		return fmt.Errorf("%w: %w", crossplane.ErrAlreadyExists, failure)
	case response.StatusCode >= http.StatusInternalServerError && method == http.MethodPost:
		return fmt.Errorf("%w: %w", crossplane.ErrOutcomeUnknown, failure)
	case response.StatusCode >= http.StatusBadRequest:
		return failure
	case into == nil:
		return nil
	}
	err = json.Unmarshal(text, into)
	if err != nil && method == http.MethodPost {
		return fmt.Errorf("%w: %w", crossplane.ErrOutcomeUnknown, err)
	}
	return err
}

func (c databaseClient) read(ctx context.Context, id string) (d jobservice.Database, err error) {
	return d, c.send(ctx, http.MethodGet, "/databases/"+id, nil, &d)
}

func (c databaseClient) create(ctx context.Context, d jobservice.Database) (string, error) {
	var made struct{ Operation string }
	if err := c.send(ctx, http.MethodPost, "/databases", d, &made); err != nil {
		return "", err
	}
	return made.Operation, nil
}

func (c databaseClient) all(ctx context.Context) iter.Seq2[jobservice.Database, error] {
	return func(yield func(jobservice.Database, error) bool) {
		after := ""
		for {
			var page []jobservice.Database
			if err := c.send(ctx, http.MethodGet, "/databases?after="+url.QueryEscape(after), nil, &page); err != nil {
				yield(jobservice.Database{}, err)
				return
			}
			for _, d := range page {
				if !yield(d, nil) {
					return
				}
				after = d.ID
			}
			if len(page) == 0 {
				return
			}
		}
	}
}

func (c databaseClient) list(ctx context.Context) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for d, err := range c.all(ctx) {
			if !yield(d.ID, err) {
				return
			}
		}
	}
}

func (c databaseClient) find(ctx context.Context, name string) (ids []string, err error) {
	for d, err := range c.all(ctx) {
		if err != nil {
			return nil, err
		}
		if d.Name == name {
			ids = append(ids, d.ID)
		}
	}
	return ids, nil
}

func (c databaseClient) await(ctx context.Context, operation string) (string, error) {
	var o jobservice.Operation
	if err := c.send(ctx, http.MethodGet, "/operations/"+url.PathEscape(operation), nil, &o); err != nil {
		return "", err
	}
	switch o.State {
	case jobservice.Running:
		return "", crossplane.ErrOperationRunning
	case jobservice.Succeeded:
		return o.Database, nil
	}
	return "", fmt.Errorf("%w: %s", crossplane.ErrOperationFailed, o.Message)
}

func (c databaseClient) findOperation(ctx context.Context, d *database) (string, error) {
	var o jobservice.Operation
	err := c.send(ctx, http.MethodGet, "/operations?token="+url.QueryEscape(crossplane.Token(d)), nil, &o)
	return o.ID, err
}

// serviceWorld is a world with a job service in a process of its own.
type serviceWorld struct {
	*world

	service *jobservice.Process
	client  databaseClient
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
	w.service, w.client = service, databaseClient{service.URL}
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

func (w *serviceWorld) database(name string) *database {
	w.t.Helper()
	d := &database{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: w.namespace}}
	d.Spec.ForProvider = databaseParameters{Name: name, Size: 1}
	w.create(d)
	return d
}

// checkDatabases compares the names that exist.
func (w *serviceWorld) checkDatabases(want ...string) {
	w.t.Helper()
	var names []string
	for d, err := range w.client.all(w.t.Context()) {
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
	awaitObject(w.world, d, "pending", func(d *database) bool {
		return d.Annotations[crossplane.AnnotationOperation] != "" && synced(d) && !ready(d)
	})
	w.control(jobservice.Control{})
	awaitObject(w.world, d, "created", func(d *database) bool { return isBound(d) && ready(d) })
	if n := w.requests("POST /databases"); n != 1 {
		t.Errorf("%d creations", n)
	}
	w.checkClean(d)

	w.patch(d, `{"spec":{"forProvider":{"size":2}}}`)
	awaitObject(w.world, d, "resized", func(d *database) bool { return d.Status.AtProvider.Size == 2 && synced(d) })

	w.control(jobservice.Control{Hold: true})
	w.delete(d)
	w.await("deletion", func() string {
		if w.requests("DELETE /databases/{id}") == 0 {
			return "none"
		}
		return ""
	})
	time.Sleep(4 * pollEvery)
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
			awaitObject(w.world, d, "created", func(d *database) bool { return isBound(d) && ready(d) })
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
			awaitObject(w.world, d, "created", func(d *database) bool { return isBound(d) && ready(d) })
			name := meta.GetExternalName(d)
			w.control(jobservice.Control{Faults: []jobservice.Fault{{Kind: kind, Pattern: "GET /databases/{id}"}}})
			awaitObject(w.world, d, "reported", func(d *database) bool {
				c := d.GetCondition(xpv2.TypeSynced)
				return c.Status == corev1.ConditionFalse && strings.Contains(c.Message, message) && len(c.Message) < 2000
			})
			w.control(jobservice.Control{Faults: []jobservice.Fault{{Kind: kind, Pattern: "PUT /databases/{id}", Times: 1}}})
			w.patch(d, `{"spec":{"forProvider":{"size":2}}}`)
			awaitObject(w.world, d, "resized", func(d *database) bool { return isBound(d) && d.Status.AtProvider.Size == 2 })
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

// An external system that does not answer a deletion is asked again, and nothing is lost.
func TestDatabaseDeletionFaults(t *testing.T) {
	w := newServiceWorld(t)
	run(w.world, databases(w.client), options{further: []managed.ReconcilerOption{managed.WithTimeout(2 * time.Second)}})
	d := w.database("orders")
	awaitObject(w.world, d, "created", isBound[*database])
	w.control(jobservice.Control{Faults: []jobservice.Fault{
		{Kind: jobservice.Unavailable, Pattern: "DELETE /databases/{id}", Times: 1},
		{Kind: jobservice.Conflict, Pattern: "DELETE /databases/{id}", Times: 1},
		{Kind: jobservice.Garbage, Pattern: "GET /databases/{id}", Times: 1},
		{Kind: jobservice.Drop, Pattern: "DELETE /databases/{id}", Times: 1},
	}})
	w.delete(d)
	w.awaitGone(d)
	w.checkDatabases()
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
	awaitObject(w.world, d, "created", isBound[*database])
	w.checkDatabases("orders")
}

// 53: a provider that is killed while its creation is pending, before it has written the operation down, creates no second one.
func TestDatabaseKilledWhilePending(t *testing.T) {
	w := newServiceWorld(t)
	w.control(jobservice.Control{Hold: true})
	kind := databases(w.client)
	var p *process
	connect := kind.Connect
	kind.Connect = func(ctx context.Context, d *database) (crossplane.External[*database, string, jobservice.Database], error) {
		e, err := connect(ctx, d)
		create := e.Create
		e.Create = func(ctx context.Context, d *database) (crossplane.Created[string], error) {
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
	awaitObject(w.world, d, "pending", func(d *database) bool { return synced(d) && d.GetCondition("Ready").Reason == "Creating" })
	w.control(jobservice.Control{})
	awaitObject(w.world, d, "created", isBound[*database])
	if n := w.requests("POST /databases"); n != 1 {
		t.Errorf("%d creations", n)
	}
	w.checkDatabases("orders")
	w.checkClean(d)
}

// The list has several pages, and ends after an error.
func TestDatabaseList(t *testing.T) {
	w := newServiceWorld(t)
	for i := range 7 {
		if _, err := w.client.create(t.Context(), jobservice.Database{Name: fmt.Sprint("db", i)}); err != nil {
			t.Fatal(err)
		}
	}
	var ids []string
	for id, err := range w.client.list(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	if len(ids) != 7 {
		t.Errorf("%d databases", len(ids))
	}
	w.control(jobservice.Control{Faults: []jobservice.Fault{{Kind: jobservice.Unavailable, Pattern: "GET /databases"}}})
	for _, err := range w.client.list(t.Context()) {
		if err == nil || errors.Is(err, crossplane.ErrNotFound) {
			t.Errorf("error is %v", err)
		}
	}
}
