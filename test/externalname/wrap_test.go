package externalname_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	xpcontroller "github.com/crossplane/crossplane-runtime/v2/pkg/controller"
	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/godwit-dev/godwit/externalname"
	"github.com/godwit-dev/godwit/externalname/crossplane"
	"github.com/godwit-dev/godwit/externalname/crossplane/mirror"
)

// handWritten is a client as providers have it: the name is set where the API returns it, Observe writes
// the spec, and nothing persists the name after Update.
type handWritten struct {
	managed.NopClient

	to directory
}

func (h *handWritten) Observe(ctx context.Context, mg resource.Managed) (managed.ExternalObservation, error) {
	m := mg.(*membership)
	e, err := h.to.Read(ctx, meta.GetExternalName(m))
	if errors.Is(err, crossplane.ErrNotFound) {
		return managed.ExternalObservation{}, nil
	}
	if err != nil {
		return managed.ExternalObservation{}, err
	}
	m.Status.AtProvider = membershipParameters{Group: e.Parent, Member: e.Name, Title: e.Title}
	m.SetConditions(xpv2.Available())
	m.Spec.ForProvider.Title = "late-initialized"
	same := strings.EqualFold(m.Spec.ForProvider.Member, e.Name)
	diff := ""
	if !same {
		diff = "member: " + e.Name
	}
	return managed.ExternalObservation{ResourceExists: true, ResourceUpToDate: same, ResourceLateInitialized: true, Diff: diff}, nil
}

func (h *handWritten) Create(ctx context.Context, mg resource.Managed) (managed.ExternalCreation, error) {
	m := mg.(*membership)
	_, err := h.to.Add(ctx, entry{Parent: m.Spec.ForProvider.Group, Name: m.Spec.ForProvider.Member})
	meta.SetExternalName(m, m.Spec.ForProvider.Group+"/"+strings.ToLower(m.Spec.ForProvider.Member)) // Also if it failed.
	return managed.ExternalCreation{}, err
}

func (h *handWritten) Update(ctx context.Context, mg resource.Managed) (managed.ExternalUpdate, error) {
	m := mg.(*membership)
	written, err := h.to.Write(ctx, meta.GetExternalName(m), entry{Parent: m.Spec.ForProvider.Group, Name: m.Spec.ForProvider.Member})
	if err == nil {
		meta.SetExternalName(m, written.ID) // It is lost without a rule.
	}
	return managed.ExternalUpdate{}, err
}

func (h *handWritten) Delete(ctx context.Context, _ resource.Managed) (managed.ExternalDelete, error) {
	return managed.ExternalDelete{}, nil
}

// An existing client follows the rules that it adopts, without a change of the client.
func TestWrap(t *testing.T) {
	w := newWorld(t)
	group := w.add(entry{Name: "admins"})
	taken := w.add(entry{Parent: group.ID, Name: "cn=taken"})
	w.manage(options{}, func(m manager.Manager) ([]managed.ReconcilerOption, error) {
		client := crossplane.Wrap(&handWritten{to: w.wire},
			crossplane.UnnamedIsAbsent(),
			crossplane.NamesMustParse(externalname.Scheme[member]{Codec: memberNames}),
			crossplane.AbsentNeedsCreate(),
			crossplane.DiffIsReported(w.events),
			crossplane.NamesArePersisted(m),
			crossplane.ObserveKeepsSpec(),
			crossplane.FailedCreateKeepsName(),
			crossplane.ConflictsAreReported(),
		)
		connector := managed.ExternalConnectorFn(func(context.Context, resource.Managed) (managed.ExternalClient, error) { return client, nil })
		return []managed.ReconcilerOption{
			managed.WithExternalConnector(connector), managed.WithManagementPolicies(), managed.WithRecorder(w.events),
			managed.WithInitializers(crossplane.DefaultInitializers(m.GetClient())...),
			managed.WithCriticalAnnotationUpdater(crossplane.AnnotationUpdater(m)),
		}, nil
	}, groupVersion.WithKind("Membership"))

	m := w.membership("jane", func(m *membership) { m.Spec.ForProvider = membershipParameters{Group: group.ID, Member: "cn=jane"} })
	w.awaitMembership(m, "created", func(m *membership) bool { return synced(m) && meta.GetExternalName(m) == group.ID+"/cn=jane" })
	w.patch(m, `{"spec":{"forProvider":{"member":"cn=jane-doe"}}}`)
	w.awaitMembership(m, "renamed", func(m *membership) bool {
		return meta.GetExternalName(m) == group.ID+"/cn=jane-doe" && m.GetCondition(crossplane.TypeDrift).Status == corev1.ConditionFalse
	})
	if m.Spec.ForProvider.Title != "" || m.Generation != 2 {
		t.Errorf("spec %+v of generation %d", m.Spec.ForProvider, m.Generation)
	}
	if n := len(w.events.with("ExternalResourceDiffers")); n != 1 {
		t.Errorf("%d events for one diff", n)
	}
	w.checkEntries(3)

	exists := w.membership("taken", func(m *membership) { m.Spec.ForProvider = membershipParameters{Group: group.ID, Member: taken.Name} })
	w.awaitMembership(exists, "refused", refusedMember("already exists"))
	if name := meta.GetExternalName(exists); name != "" {
		t.Errorf("a creation that failed left the name %q", name)
	}
	malformed := w.membership("malformed", func(m *membership) {
		m.Spec.ForProvider = membershipParameters{Group: group.ID, Member: taken.Name}
		meta.SetExternalName(m, "cn=taken")
	})
	w.awaitMembership(malformed, "refused", refusedMember("WrongSegmentCount"))
}

// The updater of critical annotations keeps what another client writes during a creation.
func TestAnnotationUpdater(t *testing.T) {
	w := newWorld(t)
	group := w.add(entry{Name: "admins"})
	m := &membership{}
	w.wire.set(func(_ context.Context, call string, send func() error) error {
		err := send()
		if call == "Add" {
			w.annotate(m, "example.org/owner", "team-b")
		}
		return err
	})
	m.Name, m.Namespace = "jane", w.namespace
	m.Annotations = map[string]string{"example.org/owner": "team-a"}
	m.Spec.ForProvider = membershipParameters{Group: group.ID, Member: "cn=jane"}
	w.create(m)
	w.manage(options{}, func(m manager.Manager) ([]managed.ReconcilerOption, error) {
		connector := managed.ExternalConnectorFn(func(context.Context, resource.Managed) (managed.ExternalClient, error) {
			return crossplane.Wrap(&handWritten{to: w.wire}, crossplane.UnnamedIsAbsent(), crossplane.ObserveKeepsSpec()), nil
		})
		return []managed.ReconcilerOption{
			managed.WithExternalConnector(connector), managed.WithInitializers(), managed.WithCriticalAnnotationUpdater(crossplane.AnnotationUpdater(m)),
		}, nil
	}, groupVersion.WithKind("Membership"))
	live := &membership{}
	live.Name, live.Namespace = "jane", w.namespace
	w.awaitMembership(live, "created", func(m *membership) bool { return meta.GetExternalName(m) != "" })
	if got := live.Annotations["example.org/owner"]; got != "team-b" {
		t.Errorf("the user's annotation is %q, want team-b", got)
	}
}

// An external system that hangs after it has created the entry makes no second one.
func TestHangingCreate(t *testing.T) {
	w := newWorld(t)
	w.wire.set(func(ctx context.Context, call string, send func() error) error {
		err := send()
		if call == "Add" {
			<-ctx.Done()
			return ctx.Err()
		}
		return err
	})
	run(w, recovering(w.wire), options{further: []managed.ReconcilerOption{managed.WithTimeout(time.Second)}})
	p := w.person("jane", nil)
	w.awaitPerson(p, "recovered", bound)
	w.checkEntries(1)
	if n := w.wire.count("Add"); n != 1 {
		t.Errorf("%d creations", n)
	}
}

// Setup makes the whole controller.
func TestSetup(t *testing.T) {
	w := newWorld(t)
	kind := persons(w.wire)
	w.start(options{}, func(m manager.Manager) error { return kind.Setup(m, xpcontroller.Options{PollInterval: pollEvery}) })
	p := w.person("jane", nil)
	w.awaitPerson(p, "created", func(p *person) bool { return bound(p) && ready(p) })
	if d := kind.Describe(); d.Pattern != "<guid>" || fmt.Sprint(d.Legacy) != "[ObjectName]" {
		t.Errorf("description is %+v", d)
	}
}

// A kind takes less than 50 lines, and mirrors what it can read.
func TestKindIsShort(t *testing.T) {
	source, err := os.ReadFile("person_test.go")
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(source), "\nfunc persons(")
	kind, _, found := strings.Cut(after, "\n}\n")
	if lines := strings.Count(kind, "\n") + 2; !found || lines < 20 || lines >= 50 {
		t.Errorf("the kind has %d lines", lines)
	}
	if missing, err := mirror.Missing(&person{}, "secret"); err != nil || len(missing) != 0 {
		t.Errorf("status.atProvider lacks %v: %v", missing, err)
	}
}
