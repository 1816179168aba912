package hub_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-dev/godwit/cmd/hub/cluster"
)

// hold is a finalizer that no controller removes.
const hold = "example.com/hold"

// noProof is what the target says of a ManagedCluster that has the label of the migration alone.
const noProof = "no proof that the migration has created it"

// plant creates a ManagedCluster with the bootstrap token, with what would stop its own removal.
func (a account) plant(metadata metav1.ObjectMeta) {
	a.t.Helper()
	mc := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{
		Name: a.name, Labels: metadata.Labels, Annotations: metadata.Annotations, Finalizers: []string{hold},
	}}
	err := a.token.Create(a.t.Context(), mc)
	for deadline := time.Now().Add(patience); apierrors.IsForbidden(err) && time.Now().Before(deadline); {
		pause(a.t.Context(), 100*time.Millisecond) // an authorizer reads a role later than a client
		err = a.token.Create(a.t.Context(), mc)
	}
	if err != nil {
		a.t.Fatal(err)
	}
}

// marks returns the labels and annotations that a client which knows the UID of the migration can write.
func (s site) marks() metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Labels:      map[string]string{cluster.LabelMigration: s.uid},
		Annotations: map[string]string{"godwit.dev/state-format": "2", "godwit.dev/migration-content": "hash"},
	}
}

// mustNotHold fails the test unless the rollback ends, and leaves the planted ManagedCluster alone.
func (a account) mustNotHold() {
	a.t.Helper()
	planted := a.cluster()
	hub, clusters := a.target(a.c), []string{a.name}
	a.done(func() (cluster.Result, error) { return hub.StopAccepting(a.t.Context(), clusters) })
	if r := a.finish(func() (cluster.Result, error) { return hub.DeleteCreated(a.t.Context(), clusters) }); !strings.Contains(r.Gone[a.name], noProof) {
		a.t.Errorf("the rollback does not say that the ManagedCluster stays: %+v", r)
	}
	if diff := cmp.Diff(planted, a.cluster()); diff != "" {
		a.t.Errorf("the planted ManagedCluster (-before +after):\n%s", diff)
	}
	if len(a.objects()) != 1 {
		a.t.Errorf("%d objects are left, want the ManagedCluster alone", len(a.objects()))
	}
	namespace := &corev1.Namespace{}
	if err := a.c.Get(a.t.Context(), client.ObjectKey{Name: a.name}, namespace); err == nil && namespace.DeletionTimestamp.IsZero() {
		a.t.Error("the namespace that the migration has created is left")
	}
}

// TestPlantedCluster: with the bootstrap token and the UID of the migration, a hostile source creates the ManagedCluster before the target does, with
// the label of the migration, a finalizer, and a format that keeps agents from changing it. It is not taken for that of the migration, and the
// rollback ends.
//
// Matrix: H119.
func TestPlantedCluster(t *testing.T) {
	t.Parallel()
	s, arrived := moving(t)
	a := s.grant(s.target(s.c))
	a.plant(s.marks())
	s.mustFail(cluster.ReasonExists, "which the migration has not created", s.receive(s.c, arrived))
	s.mustFail(cluster.ReasonForeignObject, noProof, func() (cluster.Result, error) {
		return s.target(s.c).AcceptClusters(t.Context(), []string{s.name})
	})
	a.mustNotHold()
}

// TestPlantedClusterOfPresentNamespace: the namespace was there before, so that no object of it says that the migration is new to it.
//
// Matrix: H119.
func TestPlantedClusterOfPresentNamespace(t *testing.T) {
	t.Parallel()
	s, arrived := moving(t)
	s.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.name}})
	a := s.grant(s.target(s.c))
	a.plant(s.marks())
	s.mustFail(cluster.ReasonExists, "which the migration has not created", s.receive(s.c, arrived))
	remove := func() (cluster.Result, error) { return s.target(s.c).DeleteCreated(t.Context(), []string{s.name}) }
	if r := s.finish(remove); !strings.Contains(r.Gone[s.name], noProof) {
		t.Errorf("the rollback does not say that the ManagedCluster stays: %+v", r)
	}
	namespace := &corev1.Namespace{}
	if err := s.c.Get(t.Context(), client.ObjectKey{Name: s.name}, namespace); err != nil || len(namespace.Annotations) > 0 {
		t.Errorf("the namespace of the user has %v: %v", namespace.Annotations, err)
	}
}

// TestPlantedAfterTheDeletion: the ManagedCluster of the migration can be read by the bootstrap token. A copy that is created as soon as the target
// has deleted it is left alone.
//
// Matrix: H119.
func TestPlantedAfterTheDeletion(t *testing.T) {
	t.Parallel()
	s, arrived := moving(t)
	a := s.grant(s.target(s.c))
	s.done(s.receive(s.c, arrived))
	mc := s.cluster()
	if err := cluster.Patch(t.Context(), s.c, mc, func() error { mc.Finalizers = []string{hold}; return nil }); err != nil {
		t.Fatal(err)
	}
	s.mustWait("is being deleted", func() (cluster.Result, error) { return s.target(s.c).DeleteCreated(t.Context(), []string{s.name}) })
	copied := s.cluster()
	if err := cluster.Patch(t.Context(), s.c, copied, func() error { copied.Finalizers = nil; return nil }); err != nil {
		t.Fatal(err)
	}
	a.plant(copied.ObjectMeta)
	a.mustNotHold()
}

// TestBootstrapAccountMay: the account may do what a registration agent does at a hub that has its ManagedCluster, and what the agent checks before it
// uses a kubeconfig. It may join no ManagedClusterSet, for which the webhook of Open Cluster Management asks when a ManagedCluster is created.
//
// Matrix: H123.
func TestBootstrapAccountMay(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	hub := s.target(s.c)
	s.grant(hub)
	const ocm, certificates = "cluster.open-cluster-management.io", "certificates.k8s.io"
	may := func(group, resource, subresource, verb string) bool {
		t.Helper()
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User: "system:serviceaccount:" + hub.Account.Namespace + ":" + hub.Account.Name, Groups: []string{"system:serviceaccounts", "system:authenticated"},
			ResourceAttributes: &authorizationv1.ResourceAttributes{Group: group, Resource: resource, Subresource: subresource, Verb: verb, Name: "any"},
		}}
		if err := s.c.Create(t.Context(), review); err != nil {
			t.Fatal(err)
		}
		return review.Status.Allowed
	}
	verbs := []string{"get", "list", "watch", "create", "update", "patch", "delete"}
	for _, test := range []struct {
		reason                       string
		group, resource, subresource string
		want                         []string
	}{
		{"The agent reads whether the hub accepts it, and uses no kubeconfig without create.", ocm, "managedclusters", "", []string{"get", "create"}},
		{"The agent requests its certificate.", certificates, "certificatesigningrequests", "", []string{"get", "list", "watch", "create"}},
		{"Without it, the webhook denies the creation of a ManagedCluster.", ocm, "managedclustersets", "join", nil},
		{"The migration decides.", certificates, "certificatesigningrequests", "approval", nil},
		{"The migration accepts.", "register.open-cluster-management.io", "managedclusters", "accept", nil},
		{"No agent needs it.", "", "configmaps", "", nil},
		{"No agent needs it.", "", "secrets", "", nil},
		{"Who may do what is not for a source to know.", "authorization.k8s.io", "subjectaccessreviews", "", nil},
	} {
		var got []string
		for _, verb := range verbs {
			if may(test.group, test.resource, test.subresource, verb) {
				got = append(got, verb)
			}
		}
		slices.Sort(got)
		slices.Sort(test.want)
		if !slices.Equal(got, test.want) {
			t.Errorf("%s %s/%s: %q, want %q", test.reason, test.resource, test.subresource, got, test.want)
		}
	}
}
