package externalname_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	xpcontroller "github.com/crossplane/crossplane-runtime/v2/pkg/controller"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	ldapv1 "github.com/godwit-dev/godwit/examples/provider-ldap/api/v1"
	"github.com/godwit-dev/godwit/externalname"
	"github.com/godwit-dev/godwit/externalname/crossplane"
)

// strictPersons is a kind whose CRD requires fields of status.atProvider. Mirror forgets one while forgets is true.
func strictPersons(d directory, forgets *atomic.Bool) crossplane.Resource[*ldapv1.Person, string, entry] {
	return crossplane.Resource[*ldapv1.Person, string, entry]{
		Kind:  ldapv1.GroupVersion.WithKind("Person"),
		Names: externalname.Scheme[string]{Codec: externalname.GUID()},
		Connect: func(context.Context, *ldapv1.Person) (crossplane.External[*ldapv1.Person, string, entry], error) {
			return crossplane.External[*ldapv1.Person, string, entry]{
				Get: d.Read,
				Create: func(ctx context.Context, p *ldapv1.Person) (crossplane.Created[string], error) {
					made, err := d.Add(ctx, entry{Name: p.Spec.ForProvider.UID})
					return crossplane.Created[string]{Key: made.ID}, err
				},
				Update: func(_ context.Context, _ *ldapv1.Person, id string, _ entry) (string, error) { return id, nil },
				Delete: d.Remove,
				Mirror: func(p *ldapv1.Person, e entry) {
					p.Status.AtProvider = ldapv1.PersonParameters{Parent: "dc=org", CommonName: e.Name, Surname: e.Name}
					if !forgets.Load() {
						p.Status.AtProvider.UID = e.Name
					}
				},
				Diff: func(*ldapv1.Person, entry) []crossplane.Difference { return nil },
			}, nil
		},
	}
}

// A status that the API server refuses is a condition and one event. The object recovers with a provider that writes a
// valid one.
func TestInvalidStatusIsReported(t *testing.T) {
	w := newWorld(t)
	forgets := &atomic.Bool{}
	forgets.Store(true)
	w.start(options{}, func(m manager.Manager) error {
		return strictPersons(w.wire, forgets).Setup(m, xpcontroller.Options{PollInterval: pollEvery, MaxConcurrentReconciles: 1},
			managed.WithCreationGracePeriod(time.Millisecond))
	})
	jane := &ldapv1.Person{ObjectMeta: metav1.ObjectMeta{Name: "jane", Namespace: w.namespace}}
	jane.Spec.ManagedResourceSpec = spec()
	jane.Spec.ForProvider = ldapv1.PersonParameters{Parent: "dc=org", UID: "jane", CommonName: "jane", Surname: "Doe"}
	w.create(jane)
	awaitObject(w, jane, "refused status", isRefused[*ldapv1.Person]("the API server refuses the status", "status.atProvider.uid", "Mirror"))
	if reason := jane.GetCondition(xpv2.TypeReady).Reason; reason != xpv2.ReasonCreating {
		t.Errorf("Ready has the reason %s", reason)
	}
	w.passes(2)
	var messages []string
	w.await("event", func() string {
		var list corev1.EventList
		if err := w.client.List(t.Context(), &list, client.InNamespace(w.namespace)); err != nil {
			return err.Error()
		}
		messages = nil
		for _, e := range list.Items {
			if e.Reason == "StatusInvalid" {
				messages = append(messages, fmt.Sprintf("%d times: %s", max(e.Count, 1), e.Message))
			}
		}
		if len(messages) == 0 {
			return "none"
		}
		return ""
	})
	if len(messages) != 1 || !strings.HasPrefix(messages[0], "1 times: ") || !strings.Contains(messages[0], "status.atProvider.uid") {
		t.Errorf("events are %q", messages)
	}
	forgets.Store(false)
	awaitObject(w, jane, "recovered", func(p *ldapv1.Person) bool { return isBound(p) && ready(p) && p.Status.AtProvider.UID == "jane" })
	w.checkEntries(1)
}

// The key is in the status, also if the external system does not return it with the resource.
func TestMirrorKey(t *testing.T) {
	w := newWorld(t)
	group := w.add(entry{Name: "admins"})
	kind := memberships(w.wire)
	connect := kind.Connect
	kind.Connect = func(ctx context.Context, m *membership) (crossplane.External[*membership, member, entry], error) {
		e, err := connect(ctx, m)
		e.Mirror = func(m *membership, e entry) { m.Status.AtProvider = membershipParameters{Title: e.Title} }
		e.MirrorKey = func(m *membership, k member) {
			m.Status.AtProvider.Group, m.Status.AtProvider.Member = k.Group, k.Member
		}
		return e, err
	}
	run(w, kind, options{})
	m := &membership{ObjectMeta: metav1.ObjectMeta{Name: "jane", Namespace: w.namespace}}
	m.Spec.ForProvider = membershipParameters{Group: group.ID, Member: "cn=jane", Title: "engineer"}
	w.create(m)
	w.awaitMembership(m, "created", func(m *membership) bool {
		return boundMember(m) && ready(m) && m.Status.AtProvider == m.Spec.ForProvider
	})
}
