package hub_test

import (
	"context"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-dev/godwit/cmd/hub/cluster"
	"github.com/godwit-dev/godwit/cmd/hub/message"
	"github.com/godwit-dev/godwit/cmd/hub/source"
	"github.com/godwit-dev/godwit/test/fault"
)

// interruption is an action on a site of its own, and what holds when it was done, however
// often its agent was killed.
type interruption struct {
	site
	pass  func(ctx context.Context, c client.Client) (cluster.Result, error)
	check func()
}

// TestInterrupted kills the agent before and after each write of each action. The next agent
// finishes, and the result is that of an action that was not interrupted.
//
// Matrix: H33.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	actions := map[string]func(t *testing.T) interruption{
		"InstallBootstrap":   interruptedInstall,
		"SendResources":      interruptedSend,
		"ReleaseClusters":    interruptedRelease,
		"RestoreAcceptance":  interruptedRestore,
		"RemovePauses":       interruptedPauses,
		"RevertBootstrap":    interruptedRevert,
		"DeleteMoved":        interruptedDeleteMoved,
		"ReceiveResources":   interruptedReceive,
		"AcceptClusters":     interruptedAccept,
		"StopAccepting":      interruptedStop,
		"DeleteCreated":      interruptedDeleteCreated,
		"FinishMoved":        interruptedFinish,
		"GrantRegistration":  interruptedGrant,
		"RevokeRegistration": interruptedRevoke,
	}
	for name, start := range actions {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			i := start(t)
			writes := 0
			for ; writes <= 100 && i.interrupt("killed before the write"); writes++ {
				i.interrupt("killed after the write")
			}
			if writes == 0 || writes > 100 {
				t.Errorf("the action is done after %d writes", writes)
			}
			i.done(func() (cluster.Result, error) { return i.pass(t.Context(), i.c) })
			i.check()
		})
	}
}

// interrupt kills an agent at its first write, and reports whether it came to one. So a row
// of agents gets through the action, each of which does one write or none.
func (i interruption) interrupt(kill string) bool {
	i.t.Helper()
	transport := &fault.Transport{Fault: fault.All()[kill]}
	transport.Run(i.t.Context(), func(ctx context.Context) {
		r, err := i.pass(ctx, hubClient(i.t, transport.Config(shared.Config())))
		if len(r.Failed) > 0 || err != nil && i.isFinal(err) {
			i.t.Fatalf("%s, the action calls that final: %v %v", kill, r.Failed, err)
		}
	})
	return len(transport.Writes()) > 0
}

// equal fails the test if the objects are not these.
func (s site) equal(want map[string]string) {
	s.t.Helper()
	if diff := cmp.Diff(want, s.objects()); diff != "" {
		s.t.Errorf("objects (-want +got):\n%s", diff)
	}
}

func (s site) clusters() []string { return []string{s.name} }

func interruptedInstall(t *testing.T) interruption {
	s := newSite(t)
	before := s.objects()
	return interruption{s, func(ctx context.Context, c client.Client) (cluster.Result, error) {
		if _, ok := s.cluster().Annotations[cluster.AnnotationMigrating]; ok {
			s.setWork(true)
		}
		return s.source(c).InstallBootstrap(ctx, s.clusters(), s.targetKubeconfig())
	}, func() {
		s.done(func() (cluster.Result, error) { return s.source(s.c).RevertBootstrap(t.Context(), s.clusters()) })
		s.equal(before)
		s.sharedIsGone()
	}}
}

func interruptedSend(t *testing.T) interruption {
	s := newSite(t)
	s.installed()
	before := s.objects()
	return interruption{s, func(ctx context.Context, c client.Client) (cluster.Result, error) {
		return s.source(c).SendResources(ctx, source.Parcel{Clusters: s.clusters(), Total: 1}, func(context.Context, message.ResourceBundle) error { return nil })
	}, func() {
		for name, text := range s.objects() {
			if strings.HasPrefix(name, "BareMetalHost/") && !strings.Contains(text, `"baremetalhost.metal3.io/paused":"true"`) {
				t.Errorf("%s is not paused", name)
			}
		}
		s.done(func() (cluster.Result, error) { return s.source(s.c).RemovePauses(t.Context(), s.clusters()) })
		s.equal(before)
	}}
}

func interruptedRelease(t *testing.T) interruption {
	s := newSite(t)
	s.installed()
	before := s.objects()
	return interruption{s, func(ctx context.Context, c client.Client) (cluster.Result, error) {
		return s.source(c).ReleaseClusters(ctx, s.clusters())
	}, func() {
		if s.cluster().Spec.HubAcceptsClient {
			t.Error("the source accepts the cluster")
		}
		s.done(func() (cluster.Result, error) { return s.source(s.c).RestoreAcceptance(t.Context(), s.clusters()) })
		s.equal(before)
	}}
}

func interruptedRestore(t *testing.T) interruption {
	s := newSite(t)
	s.installed()
	before := s.objects()
	s.released()
	return interruption{s, func(ctx context.Context, c client.Client) (cluster.Result, error) {
		return s.source(c).RestoreAcceptance(ctx, s.clusters())
	}, func() { s.equal(before) }}
}

func interruptedPauses(t *testing.T) interruption {
	s := newSite(t)
	s.installed()
	before := s.objects()
	s.sent()
	return interruption{s, func(ctx context.Context, c client.Client) (cluster.Result, error) {
		return s.source(c).RemovePauses(ctx, s.clusters())
	}, func() { s.equal(before) }}
}

func interruptedRevert(t *testing.T) interruption {
	s := newSite(t)
	before := s.objects()
	s.installed()
	return interruption{s, func(ctx context.Context, c client.Client) (cluster.Result, error) {
		return s.source(c).RevertBootstrap(ctx, s.clusters())
	}, func() {
		s.equal(before)
		s.sharedIsGone()
	}}
}

func interruptedDeleteMoved(t *testing.T) interruption {
	s := newSite(t)
	s.installed()
	s.sent()
	s.released()
	return interruption{s, func(ctx context.Context, c client.Client) (cluster.Result, error) {
		return s.source(c).DeleteMoved(ctx, s.clusters())
	}, func() {
		if left := s.objects(); len(left) != 1 || left["ConfigMap/not-moved"] == "" {
			t.Errorf("left on the source: %v", left)
		}
		s.sharedIsGone()
	}}
}

func interruptedReceive(t *testing.T) interruption {
	s, arrived := moving(t)
	other, same := moving(t)
	other.done(other.receive(other.c, same))
	return interruption{s, func(ctx context.Context, c client.Client) (cluster.Result, error) {
		return s.target(c).ReceiveResources(ctx, arrived)
	}, func() {
		if diff := cmp.Diff(named(other), named(s)); diff != "" {
			t.Errorf("what was received (-not interrupted +interrupted):\n%s", diff)
		}
	}}
}

var (
	contentHash = regexp.MustCompile("[0-9a-f]{64}")
	proof       = regexp.MustCompile(`\b[A-Z2-7]{26}\b`) // of crypto/rand.Text
)

// named are the objects of a moving site, with placeholders for what is its own.
func named(s site) map[string]string {
	objects := map[string]string{}
	for name, text := range s.objects() {
		text = strings.NewReplacer(s.uid, "UID", s.name, "NAME", s.to, "TO", strings.TrimPrefix(s.to, "to-"), "FROM").Replace(text)
		text = proof.ReplaceAllString(contentHash.ReplaceAllString(text, "HASH"), "PROOF")
		objects[strings.ReplaceAll(name, s.name, "NAME")] = text
	}
	return objects
}

func interruptedAccept(t *testing.T) interruption {
	s, arrived := moving(t)
	s.done(s.receive(s.c, arrived))
	return interruption{s, func(ctx context.Context, c client.Client) (cluster.Result, error) {
		return s.target(c).AcceptClusters(ctx, s.clusters())
	}, func() {
		if !s.cluster().Spec.HubAcceptsClient {
			t.Error("the target does not accept the cluster")
		}
	}}
}

func interruptedStop(t *testing.T) interruption {
	i := interruptedAccept(t)
	i.done(func() (cluster.Result, error) { return i.pass(t.Context(), i.c) })
	s := i.site
	return interruption{s, func(ctx context.Context, c client.Client) (cluster.Result, error) {
		return s.target(c).StopAccepting(ctx, s.clusters())
	}, func() {
		if s.cluster().Spec.HubAcceptsClient {
			t.Error("the target accepts the cluster")
		}
	}}
}

func interruptedDeleteCreated(t *testing.T) interruption {
	s, arrived := moving(t)
	s.done(s.receive(s.c, arrived))
	return interruption{s, func(ctx context.Context, c client.Client) (cluster.Result, error) {
		return s.target(c).DeleteCreated(ctx, s.clusters())
	}, func() {
		s.equal(map[string]string{})
		s.returnIsGone()
	}}
}

func interruptedFinish(t *testing.T) interruption {
	s, arrived := moving(t)
	s.done(s.receive(s.c, arrived))
	return interruption{s, func(ctx context.Context, c client.Client) (cluster.Result, error) {
		s.setWork(true)
		return s.target(c).FinishMoved(ctx, s.clusters())
	}, func() {
		s.returnIsGone()
		for name, text := range s.objects() {
			if strings.Contains(text, "godwit.dev/") || strings.Contains(text, cluster.AnnotationMigrating) ||
				strings.Contains(text, `"baremetalhost.metal3.io/paused":"true"`) || strings.Contains(text, "reconcile-pause") {
				t.Errorf("%s has marks of the migration: %s", name, text)
			}
		}
	}}
}

// whole is an action for the migration and not for clusters.
func (s site) whole(waits string, err error) (cluster.Result, error) {
	switch {
	case err != nil:
		return cluster.Result{}, err
	case waits != "":
		return cluster.Result{Waiting: map[string]string{s.name: waits}}, nil
	}
	return cluster.Result{Done: s.clusters()}, nil
}

func interruptedGrant(t *testing.T) interruption {
	s := newSite(t)
	if _, err := s.validate(); err != nil {
		t.Fatal(err)
	}
	return interruption{s, func(ctx context.Context, c client.Client) (cluster.Result, error) {
		return s.whole(s.target(c).GrantRegistration(ctx))
	}, func() {
		s.shared(2)
		if err := s.target(s.c).RevokeRegistration(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.shared(0)
	}}
}

func interruptedRevoke(t *testing.T) interruption {
	s := newSite(t)
	if _, err := s.validate(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.target(s.c).GrantRegistration(t.Context()); err != nil {
		t.Fatal(err)
	}
	return interruption{s, func(ctx context.Context, c client.Client) (cluster.Result, error) {
		return s.whole("", s.target(c).RevokeRegistration(ctx))
	}, func() { s.shared(0) }}
}

// shared fails the test unless so many roles and bindings are the migration's.
func (s site) shared(want int) {
	s.t.Helper()
	got := 0
	for _, list := range []client.ObjectList{&rbacv1.ClusterRoleList{}, &rbacv1.ClusterRoleBindingList{}} {
		if err := s.c.List(s.t.Context(), list); err != nil {
			s.t.Fatal(err)
		}
		if err := meta.EachListItem(list, func(o runtime.Object) error {
			if object, ok := o.(client.Object); ok && object.GetAnnotations()["godwit.dev/migrations"] == s.uid {
				got++
			}
			return nil
		}); err != nil {
			s.t.Fatal(err)
		}
	}
	if got != want {
		s.t.Errorf("%d roles and bindings are the migration's, want %d", got, want)
	}
}
