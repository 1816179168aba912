package hub_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/cmd/hub/cluster"
)

// TestValidateSource names what is wrong with each cluster, and writes nothing.
//
// Matrix: H7.
func TestValidateSource(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason *godwit.Reason
		change func(s site)
	}{
		"Local": {cluster.ReasonLocal, func(s site) {
			s.edit(func(o *unstructured.Unstructured) { o.SetLabels(map[string]string{"local-cluster": "true"}) })
		}},
		"Hosted":            {cluster.ReasonHosted, func(s site) { s.annotate("import.open-cluster-management.io/klusterlet-deploy-mode", "Hosted") }},
		"HostedInLowerCase": {cluster.ReasonHosted, func(s site) { s.annotate("import.open-cluster-management.io/klusterlet-deploy-mode", "hosted") }},
		"SingletonHosted": {cluster.ReasonHosted, func(s site) {
			s.annotate("import.open-cluster-management.io/klusterlet-deploy-mode", "SingletonHosted")
		}},
		"NotAccepted": {cluster.ReasonUnavailable, func(s site) {
			s.edit(func(o *unstructured.Unstructured) {
				_ = unstructured.SetNestedField(o.Object, false, "spec", "hubAcceptsClient")
			})
		}},
		"Unavailable": {cluster.ReasonUnavailable, func(s site) {
			mc := s.cluster()
			mc.Status.Conditions = mc.Status.Conditions[:1]
			if err := s.c.Status().Update(s.t.Context(), mc); err != nil {
				s.t.Fatal(err)
			}
		}},
		"Deleting": {cluster.ReasonBeingDeleted, func(s site) {
			s.edit(func(o *unstructured.Unstructured) { o.SetFinalizers([]string{"example.com/hold"}) })
			if err := s.c.Delete(s.t.Context(), s.cluster()); err != nil {
				s.t.Fatal(err)
			}
		}},
		"Gone": {cluster.ReasonNotFound, func(s site) {
			if err := s.c.Delete(s.t.Context(), s.cluster()); err != nil {
				s.t.Fatal(err)
			}
		}},
		"OtherMigration": {cluster.ReasonOtherMigration, func(s site) {
			other := s
			other.uid, other.to = "other", "elsewhere-"+s.name
			other.installed()
		}},
		"NoWork": {cluster.ReasonNoKlusterletWork, func(s site) {
			work := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "work.open-cluster-management.io/v1", "kind": "ManifestWork"}}
			work.SetNamespace(s.name)
			work.SetName(s.name + "-klusterlet")
			if err := s.c.Delete(s.t.Context(), work); err != nil {
				s.t.Fatal(err)
			}
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			validate := func() (cluster.Result, error) { return s.source(s.c).ValidateSource(t.Context(), []string{s.name}) }
			s.done(validate)
			tc.change(s)
			before := s.objects()
			s.mustFail(tc.reason, s.name, validate)
			if diff := cmp.Diff(before, s.objects()); diff != "" {
				t.Errorf("the validation has written (-before +after):\n%s", diff)
			}
		})
	}
}

func (s site) edit(change func(*unstructured.Unstructured)) {
	s.t.Helper()
	o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedCluster"}}
	if err := s.c.Get(s.t.Context(), client.ObjectKey{Name: s.name}, o); err != nil {
		s.t.Fatal(err)
	}
	change(o)
	if err := s.c.Update(s.t.Context(), o); err != nil {
		s.t.Fatal(err)
	}
}

func (s site) annotate(name, value string) {
	s.t.Helper()
	s.edit(func(o *unstructured.Unstructured) {
		annotations := o.GetAnnotations()
		annotations[name] = value
		o.SetAnnotations(annotations)
	})
}

// TestForeignCluster: a ManagedCluster that the migration has not created is neither
// accepted nor deleted.
//
// Matrix: H8.
func TestForeignCluster(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	hub, clusters := s.target(s.c), []string{s.name}
	s.mustFail(cluster.ReasonOtherCluster, "has joined (id.k8s.io ", s.validate)
	mc := s.cluster()
	mc.Status.Conditions = nil
	if err := s.c.Status().Update(t.Context(), mc); err != nil {
		t.Fatal(err)
	}
	s.mustFail(cluster.ReasonExists, "has never joined", s.validate)
	before := s.objects()
	s.mustFail(cluster.ReasonForeignObject, "not created by the migration", func() (cluster.Result, error) { return hub.AcceptClusters(t.Context(), clusters) })
	s.done(func() (cluster.Result, error) { return hub.StopAccepting(t.Context(), clusters) })
	s.done(func() (cluster.Result, error) { return hub.DeleteCreated(t.Context(), clusters) })
	if diff := cmp.Diff(before, s.objects()); diff != "" {
		t.Errorf("the user's objects (-before +after):\n%s", diff)
	}
}

// TestNamespaceInUse: a namespace of the target hub may exist, if nothing in it would be lost or stands in the way.
func TestNamespaceInUse(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	if err := s.c.Delete(t.Context(), s.cluster()); err != nil {
		t.Fatal(err)
	}
	s.mustFail(cluster.ReasonNamespaceInUse, "has Secret ", s.validate)
	s.emptyNamespace()
	s.create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "kube-root-ca.crt", Namespace: s.name}})
	s.done(s.validate)
	s.create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "mine", Namespace: s.name}})
	s.mustFail(cluster.ReasonNamespaceInUse, "has ConfigMap mine: move or delete", s.validate)
}

// emptyNamespace deletes the Secrets and the ConfigMaps of the cluster, some of which have finalizers.
func (s site) emptyNamespace() {
	s.t.Helper()
	secrets, configs := &corev1.SecretList{}, &corev1.ConfigMapList{}
	for _, list := range []client.ObjectList{secrets, configs} {
		if err := s.c.List(s.t.Context(), list, client.InNamespace(s.name)); err != nil {
			s.t.Fatal(err)
		}
	}
	var all []client.Object
	for i := range secrets.Items {
		all = append(all, &secrets.Items[i])
	}
	for i := range configs.Items {
		all = append(all, &configs.Items[i])
	}
	for _, o := range all {
		release := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))
		if err := errors.Join(s.c.Patch(s.t.Context(), o, release), s.c.Delete(s.t.Context(), o)); err != nil {
			s.t.Fatal(err)
		}
	}
}

// bootstrapAccountRole returns the role by which clusters register at a hub.
func bootstrapAccountRole() *rbacv1.ClusterRole {
	return &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "open-cluster-management:bootstrap"},
		Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{clusterv1.GroupName}, Resources: []string{"managedclusters"}, Verbs: []string{"get"}},
			{APIGroups: []string{"certificates.k8s.io"}, Resources: []string{"certificatesigningrequests"}, Verbs: []string{"create"}},
		},
	}
}

// validate needs a role by which clusters register, which all tests share.
func (s site) validate() (cluster.Result, error) {
	if err := s.c.Create(s.t.Context(), bootstrapAccountRole()); err != nil && !apierrors.IsAlreadyExists(err) {
		s.t.Fatal(err)
	}
	return s.target(s.c).ValidateTarget(s.t.Context(), []string{s.name})
}

// TestTooManySigningRequests: with ten of them, the agent would never register.
//
// Matrix: H76.
func TestTooManySigningRequests(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	if err := s.c.Delete(t.Context(), s.cluster()); err != nil {
		t.Fatal(err)
	}
	s.emptyNamespace()
	s.done(s.validate)
	for i := range 9 {
		s.signing(fmt.Sprintf("%s-%d", s.name, i+1))
	}
	s.mustFail(cluster.ReasonTooManyRequests, "kubectl delete csr -l open-cluster-management.io/cluster-name="+s.name, s.validate)
}
