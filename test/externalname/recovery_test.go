package externalname_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-dev/godwit/externalname/crossplane"
)

// soon is a recovery delay for tests in which no request is under way.
const soon = 300 * time.Millisecond

func recovering(d directory) personResource {
	kind := persons(d)
	kind.RecoveryDelay = soon
	return kind
}

// 30: a provider that is killed inside Create, before or after the directory carries it out, ends with
// exactly one entry. There is no window of time in which a foreign entry would be taken.
func TestKilledInsideCreate(t *testing.T) {
	for reason, carriedOut := range map[string]bool{"before": false, "after": true} {
		t.Run(reason, func(t *testing.T) {
			w := newWorld(t)
			p := run(w, recovering(w.wire), options{})
			w.wire.set(func(_ context.Context, call string, send func() error) error {
				if call != "Add" {
					return send()
				}
				if carriedOut {
					_ = send()
				}
				p.kill()
				return errDead
			})
			jane := w.person("jane", nil)
			<-p.done
			w.wire.set(nil)
			if get(w, jane); jane.Annotations[meta.AnnotationKeyExternalCreatePending] == "" || crossplane.Token(jane) == "" {
				t.Fatalf("annotations %v do not record the creation", jane.Annotations)
			}
			run(w, recovering(w.wire), options{})
			w.awaitPerson(jane, "recovered", bound)
			w.checkEntries(1)
			w.checkClean(jane)
		})
	}
}

// 31: an answer that is lost after the entry was created leads to the entry, by its token.
func TestAnswerLost(t *testing.T) {
	for reason, lost := range map[string]error{
		"connection reset": io.ErrUnexpectedEOF,
		"timeout":          context.DeadlineExceeded,
		"said so":          fmt.Errorf("gateway: %w", crossplane.ErrOutcomeUnknown),
	} {
		t.Run(reason, func(t *testing.T) {
			w := newWorld(t)
			w.wire.set(func(_ context.Context, call string, send func() error) error {
				err := send()
				if call == "Add" {
					return lost
				}
				return err
			})
			run(w, recovering(w.wire), options{})
			jane := w.person("jane", nil)
			w.awaitPerson(jane, "recovered", bound)
			w.checkEntries(1)
			w.checkClean(jane)
			if n := w.wire.count("Add"); n != 1 {
				t.Errorf("%d creations", n)
			}
		})
	}
}

// 32: an entry that another client creates in the same moment is not adopted. Both remedies work.
func TestForeignEntry(t *testing.T) {
	for _, remedy := range []string{"name", "create"} {
		t.Run(remedy, func(t *testing.T) {
			w := newWorld(t)
			w.wire.set(func(ctx context.Context, call string, send func() error) error {
				if call != "Add" {
					return send()
				}
				if _, err := w.store.Add(ctx, entry{Name: "jane", Mark: "another client"}); err != nil {
					return err
				}
				return io.ErrUnexpectedEOF
			})
			run(w, recovering(w.wire), options{})
			jane := w.person("jane", nil)
			w.awaitPerson(jane, "refused", failing("no external resource that matches is proven to come from it"))
			if meta.GetExternalName(jane) != "" {
				t.Errorf("a foreign entry was adopted: %v", jane.Annotations)
			}
			w.checkEntries(1)
			w.wire.set(nil)
			foreign := w.store.all()[0].ID
			if remedy == "name" {
				w.annotate(jane, meta.AnnotationKeyExternalName, foreign)
				w.awaitPerson(jane, "adopted", func(p *person) bool { return bound(p) && meta.GetExternalName(p) == foreign })
			} else {
				w.store.change(foreign, func(e *entry) bool { e.Name = "other"; return true })
				w.annotate(jane, meta.AnnotationKeyExternalCreatePending, "")
				w.awaitPerson(jane, "created", func(p *person) bool { return bound(p) && meta.GetExternalName(p) != foreign })
			}
			w.checkClean(jane)
		})
	}
}

// A kind that can't prove anything stalls after an interrupted creation, and never creates twice.
func TestNoProof(t *testing.T) {
	w := newWorld(t)
	kind := recovering(w.wire)
	kind.Names.Legacy = nil
	connect := kind.Connect
	kind.Connect = func(ctx context.Context, p *person) (crossplane.External[*person, string, entry], error) {
		e, err := connect(ctx, p)
		e.Find, e.Ours = nil, nil
		return e, err
	}
	w.wire.set(func(_ context.Context, call string, send func() error) error {
		if err := send(); err != nil || call != "Add" {
			return err
		}
		return io.EOF
	})
	run(w, kind, options{})
	jane := w.person("jane", nil)
	w.awaitPerson(jane, "refused", failing("outcome unknown"))
	time.Sleep(3 * soon)
	if n := w.wire.count("Add"); n != 1 {
		t.Errorf("%d creations", n)
	}
	w.annotate(jane, meta.AnnotationKeyExternalName, w.store.all()[0].ID)
	w.awaitPerson(jane, "adopted", bound)
	w.checkClean(jane)
}

// 33: the API server is away right after a creation: the provider records it when the API server is
// back, or finds the entry if it dies before.
func TestAPIServerAway(t *testing.T) {
	for reason, kill := range map[string]bool{"and back": false, "and the provider dies": true} {
		t.Run(reason, func(t *testing.T) {
			w := newWorld(t)
			p := run(w, recovering(w.wire), options{})
			away := func(*http.Request) error { return errors.New("connection refused by the test") }
			w.wire.set(func(_ context.Context, call string, send func() error) error {
				err := send()
				if call == "Add" {
					p.cut.Store(&away)
				}
				return err
			})
			jane := w.person("jane", nil)
			w.await("creation", func() string {
				if w.wire.count("Add") == 0 {
					return "none"
				}
				return ""
			})
			time.Sleep(time.Second)
			w.wire.set(nil)
			if kill {
				p.kill()
				<-p.done
				run(w, recovering(w.wire), options{})
			} else {
				p.cut.Store(nil)
			}
			w.awaitPerson(jane, "recovered", bound)
			w.checkEntries(1)
			w.checkClean(jane)
		})
	}
}

// staleClient answers reads with what it read first, as a cache that lags behind does.
type staleClient struct {
	client.Client

	first map[client.ObjectKey]*person
	left  int
}

func (c *staleClient) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	p, ok := o.(*person)
	if !ok {
		return c.Client.Get(ctx, key, o, opts...)
	}
	if old := c.first[key]; old != nil && c.left > 0 {
		c.left--
		*p = *throughJSON(old)
		return nil
	}
	if err := c.Client.Get(ctx, key, p, opts...); err != nil {
		return err
	}
	if c.first[key] == nil {
		c.first[key] = throughJSON(p)
	}
	return nil
}

// 34: a cache that does not have the name yet leads to no second creation, and to no leak when the
// object is deleted.
func TestStaleCache(t *testing.T) {
	w := newWorld(t)
	stale := &staleClient{first: map[client.ObjectKey]*person{}, left: 5}
	kind := recovering(w.wire)
	run(w, kind, options{newClient: func(cfg *rest.Config, o client.Options) (c client.Client, err error) {
		stale.Client, err = client.New(cfg, o)
		return stale, err
	}})
	jane := w.person("jane", nil)
	w.awaitPerson(jane, "created", bound)
	w.passes(2)
	if n := w.wire.count("Add"); n != 1 {
		t.Errorf("%d creations", n)
	}
	w.checkEntries(1)
	if stale.left != 0 {
		t.Fatalf("%d stale reads were not used", stale.left)
	}
}

// 49: a backup that was made in the middle of a creation recovers in another cluster, where the object
// has another UID.
func TestRestoredDuringCreate(t *testing.T) {
	w := newWorld(t)
	w.add(entry{Name: "jane", Mark: "TOKEN-OF-THE-BACKUP"})
	run(w, recovering(w.wire), options{})
	jane := w.person("jane", func(p *person) {
		p.Annotations = map[string]string{
			crossplane.AnnotationToken:              "TOKEN-OF-THE-BACKUP",
			meta.AnnotationKeyExternalCreatePending: "2026-01-02T03:04:05Z",
		}
	})
	w.awaitPerson(jane, "recovered", bound)
	w.checkEntries(1)
	w.checkClean(jane)

}

// An object without a token, and an entry or an operation without a mark: two empty texts that are equal prove nothing,
// whatever the kind compares.
func TestEmptyTokenProvesNothing(t *testing.T) {
	for reason, ours := range map[string]func(p *person, e entry) bool{
		"equal":    func(p *person, e entry) bool { return e.Mark == crossplane.Token(p) },
		"contains": func(p *person, e entry) bool { return strings.Contains(e.Mark, crossplane.Token(p)) },
	} {
		t.Run(reason, func(t *testing.T) {
			w := newWorld(t)
			foreign := w.add(entry{Name: "john"})
			kind := recovering(w.wire)
			connect := kind.Connect
			kind.Connect = func(ctx context.Context, p *person) (crossplane.External[*person, string, entry], error) {
				e, err := connect(ctx, p)
				e.Ours = func(_ context.Context, p *person, e entry) (bool, error) { return ours(p, e), nil }
				e.Operation.Find = func(_ context.Context, p *person) (string, error) {
					if crossplane.Token(p) == "" {
						return "an operation of another client", nil
					}
					return "", crossplane.ErrOperationNotFound
				}
				e.Operation.Await = func(context.Context, string) (string, error) { return foreign.ID, nil }
				return e, err
			}
			run(w, kind, options{})
			john := w.person("john", func(p *person) {
				p.Annotations = map[string]string{meta.AnnotationKeyExternalCreatePending: "2026-01-02T03:04:05Z"}
			})
			w.awaitPerson(john, "refused", failing("proven to come from it"))
			w.passes(2)
			if name := meta.GetExternalName(get(w, john)); name != "" || crossplane.Token(john) != "" {
				t.Errorf("external name %q, annotations %v", name, john.Annotations)
			}
			w.checkEntries(1)
		})
	}
}

// A creation that is interrupted while a resource that is gone is created again recovers as well.
func TestKilledWhileCreatingAgain(t *testing.T) {
	w := newWorld(t)
	p := run(w, recovering(w.wire), options{})
	jane := w.person("jane", nil)
	w.awaitPerson(jane, "created", bound)
	before := meta.GetExternalName(jane)
	w.wire.set(func(_ context.Context, call string, send func() error) error {
		err := send()
		if call == "Add" {
			p.kill()
		}
		return err
	})
	w.store.change(before, func(*entry) bool { return false })
	<-p.done
	w.wire.set(nil)
	run(w, recovering(w.wire), options{})
	w.awaitPerson(jane, "recovered", func(p *person) bool { return bound(p) && meta.GetExternalName(p) != before })
	w.checkEntries(1)
	w.checkClean(jane)
	if strings.Contains(strings.Join(w.events.with("CannotCreateExternalResource"), ""), "already exists") {
		t.Error("a second creation was tried")
	}
}
