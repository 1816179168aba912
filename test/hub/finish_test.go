package hub_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/clock"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-dev/godwit"
	api "github.com/godwit-dev/godwit/cmd/hub/api/v1alpha1"
	"github.com/godwit-dev/godwit/cmd/hub/cluster"
	"github.com/godwit-dev/godwit/cmd/hub/message"
	"github.com/godwit-dev/godwit/cmd/hub/preflight"
	"github.com/godwit-dev/godwit/test/fault"
)

// join creates a ManagedCluster that a user has imported and that has joined. It has reported no claim if the identity is empty.
func (s site) join(identity string) {
	s.t.Helper()
	s.create(&clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: s.name}, Spec: clusterv1.ManagedClusterSpec{HubAcceptsClient: true}})
	s.reportJoined(identity)
}

// reportJoined plays the agent of the cluster, which joins and reports its claim.
func (s site) reportJoined(identity string) {
	s.t.Helper()
	mc := s.cluster()
	mc.Status.Version.Kubernetes = "v1"
	mc.Status.Conditions = []metav1.Condition{{Type: clusterv1.ManagedClusterConditionJoined, Status: metav1.ConditionTrue, Reason: "R", LastTransitionTime: metav1.Now()}}
	mc.Status.ClusterClaims = nil
	if identity != "" {
		mc.Status.ClusterClaims = []clusterv1.ManagedClusterClaim{{Name: cluster.ClaimID, Value: identity}}
	}
	if err := s.c.Status().Update(s.t.Context(), mc); err != nil {
		s.t.Fatal(err)
	}
}

// deleteCluster deletes the ManagedCluster, as a user does.
func (s site) deleteCluster() {
	s.t.Helper()
	if err := s.c.Delete(s.t.Context(), s.cluster()); err != nil {
		s.t.Fatal(err)
	}
}

// deleteNamespace deletes the namespace of the cluster, and plays the controller that lets it end.
func (s site) deleteNamespace() {
	s.t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.name}}
	if err := s.c.Delete(s.t.Context(), namespace); err != nil {
		s.t.Fatal(err)
	}
	if err := s.c.Get(s.t.Context(), client.ObjectKeyFromObject(namespace), namespace); err != nil {
		s.t.Fatal(err)
	}
	namespace.Spec.Finalizers = nil
	if err := s.c.SubResource("finalize").Update(s.t.Context(), namespace); err != nil {
		s.t.Fatal(err)
	}
}

// withoutClaims removes the claims of the cluster from what the source has sent.
func withoutClaims(t *testing.T, arrived []message.Resources) {
	t.Helper()
	for i, text := range arrived[0].Objects {
		o := &unstructured.Unstructured{}
		if err := o.UnmarshalJSON(text); err != nil {
			t.Fatal(err)
		}
		unstructured.RemoveNestedField(o.Object, "status", "clusterClaims")
		changed, err := json.Marshal(o.Object)
		if err != nil {
			t.Fatal(err)
		}
		arrived[0].Objects[i] = changed
	}
}

// TestFinishIdentifiesTheCluster: FinishMoved is done, and the source then deletes what it has, for a ManagedCluster that is known to be the one
// that has moved. A user has deleted that of the migration, and has imported a cluster of its name.
//
// Matrix: H122.
func TestFinishIdentifiesTheCluster(t *testing.T) {
	t.Parallel()
	finish := func(s site) func() (cluster.Result, error) {
		return func() (cluster.Result, error) { return s.target(s.c).FinishMoved(t.Context(), s.clusters()) }
	}
	mustBeGone := func(t *testing.T, s site, says string) {
		t.Helper()
		if r := s.finish(finish(s)); !strings.Contains(r.Gone[s.name], says) {
			t.Errorf("a cluster that may be another one is taken for the one that has moved: %+v", r)
		}
	}
	mustBeMoved := func(t *testing.T, s site) {
		t.Helper()
		if r := s.finish(finish(s)); len(r.Gone) > 0 || len(r.Done) != 1 {
			t.Errorf("the cluster that has moved is not taken for it: %+v", r)
		}
	}
	t.Run("ClaimComesLater", func(t *testing.T) {
		t.Parallel()
		s, arrived := moving(t)
		s.done(s.receive(s.c, arrived))
		s.deleteCluster()
		s.join("")
		s.mustWait("has not reported claim id.k8s.io", finish(s))
		s.reportJoined("id-of-another")
		mustBeGone(t, s, "another cluster has joined there under this name")
		s.reportJoined("id-of-" + s.name)
		mustBeMoved(t, s)
	})
	t.Run("NoClaimAtTheSource", func(t *testing.T) {
		t.Parallel()
		s, arrived := moving(t)
		withoutClaims(t, arrived)
		s.done(s.receive(s.c, arrived))
		s.deleteCluster()
		s.join("")
		mustBeMoved(t, s)
	})
	t.Run("NewNamespace", func(t *testing.T) {
		t.Parallel()
		s, arrived := moving(t)
		s.done(s.receive(s.c, arrived))
		s.deleteCluster()
		s.deleteNamespace()
		s.join("id-of-another")
		mustBeGone(t, s, "the target hub does not know whether")
		s.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.name}})
		mustBeGone(t, s, "the target hub does not know whether")
		hub := s.target(s.c) // of a process with access to the source hub
		for identity, isGone := range map[string]bool{"id-of-" + s.name: true, "id-of-another": false} {
			hub.Identities = map[string]string{s.name: identity}
			if r := s.finish(func() (cluster.Result, error) { return hub.FinishMoved(t.Context(), s.clusters()) }); len(r.Gone) > 0 != isGone || len(r.Done) != 1 {
				t.Errorf("the cluster of the source hub has %s, and that of the target id-of-another: %+v", identity, r)
			}
		}
	})
	t.Run("FinishedBefore", func(t *testing.T) {
		t.Parallel()
		s, arrived := moving(t)
		s.done(s.receive(s.c, arrived))
		s.done(func() (cluster.Result, error) { return s.target(s.c).AcceptClusters(t.Context(), s.clusters()) })
		s.reportJoined("")
		s.setWork(true)
		s.mustWait("has not removed the kubeconfig of the source hub", finish(s))
		s.setWork(true)
		mustBeMoved(t, s)
		mustBeMoved(t, s)
		s.deleteCluster()
		s.join("")
		mustBeGone(t, s, "the target hub does not know whether")
	})
}

// TestPlanKnowsTheMovedCluster: a plan with access to both hubs compares the claims.
//
// Matrix: H122.
func TestPlanKnowsTheMovedCluster(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	there := site{t: t, c: hubClient(t, second.Config()), name: s.name}
	there.join("id-of-" + s.name)
	hubs := preflight.Hubs{
		Global: globalClient(t, shared.Config(), hubMapper()), Direct: &clusterv1.ClientConfig{URL: shared.Config().Host, CABundle: shared.Config().CAData}, Clock: clock.RealClock{},
		Source: &preflight.View{Client: s.c, AgentNamespace: "default", Clock: clock.RealClock{}},
		Target: &preflight.View{Client: there.c, AgentNamespace: "default", Clock: clock.RealClock{}},
	}
	r, err := hubs.Run(t.Context(), preflight.Request{From: "from", To: s.to, Clusters: s.clusters(), OnUserObjects: api.UserObjectsKeep})
	if err != nil || len(r.Clusters) != 1 {
		t.Fatalf("%+v, %v", r, err)
	}
	if !slices.ContainsFunc(r.Clusters[0].Reasons, func(f godwit.Finding) bool { return f.Reason == cluster.ReasonMoved }) {
		t.Errorf("%s is not among %v", cluster.ReasonMoved, r.Clusters[0].Reasons)
	}
}

// TestDirectKnowsTheMovedCluster: a process with access to both hubs compares the claims in Validating.
//
// Matrix: H122.
func TestDirectKnowsTheMovedCluster(t *testing.T) {
	t.Parallel()
	d := newDirectMove(t, 1, nil)
	here := d.sites[0].cluster()
	there := site{t: t, c: d.target.c, name: here.Name}
	there.join(cluster.IdentityOf(here))
	if err := d.run(t.Context(), "one", &fault.Transport{}); err != nil {
		t.Fatal(err)
	}
	m := d.read()
	if f := m.Status.Failures; len(f) != 1 || !strings.Contains(f[0].Message, cluster.ReasonMoved.Name) || f[0].Phase != api.PhaseValidating {
		t.Errorf("the migration has ended in %s with %+v, want %s in Validating", m.Status.Phase, f, cluster.ReasonMoved)
	}
}

// TestFinishWithoutNamespace: a user has deleted the namespace of a cluster that has joined. FinishMoved releases the ManagedCluster when the
// controllers of the hub have created the namespace again.
//
// Matrix: H122.
func TestFinishWithoutNamespace(t *testing.T) {
	t.Parallel()
	s, arrived := moving(t)
	s.done(s.receive(s.c, arrived))
	s.done(func() (cluster.Result, error) { return s.target(s.c).AcceptClusters(t.Context(), s.clusters()) })
	s.reportJoined("id-of-" + s.name)
	s.deleteNamespace()
	finish := func() (cluster.Result, error) { return s.target(s.c).FinishMoved(t.Context(), s.clusters()) }
	s.mustWait("namespace "+s.name+" of the target hub is gone", finish)
	s.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.name}})
	s.setWork(true)
	s.mustWait("has not removed the kubeconfig of the source hub", finish)
	s.setWork(true)
	s.done(finish)
	s.returnIsGone()
	if mc := s.cluster(); cluster.IsOwned(mc, s.uid) || cluster.HasOriginal(mc, s.uid) {
		t.Errorf("the ManagedCluster has marks of the migration: %v %v", mc.Labels, mc.Annotations)
	}
}
