package hub_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/cmd/hub/cluster"
	"github.com/godwit-dev/godwit/cmd/hub/resource"
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
//
// Matrix: H121.
func TestNamespaceInUse(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	if err := s.c.Delete(t.Context(), s.cluster()); err != nil {
		t.Fatal(err)
	}
	s.mustFail(cluster.ReasonNamespaceInUse, "has Secret ", s.validate)
	s.emptyNamespace()
	s.mustFail(cluster.ReasonNamespaceInUse, "has KlusterletAddonConfig "+s.name+", BareMetalHost node-1, BareMetalHost node-2 and ", s.validate)
	s.emptyOfKinds()
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

func (s site) validate() (cluster.Result, error) {
	return s.target(s.c).ValidateTarget(s.t.Context(), []string{s.name})
}

// emptyOfKinds deletes the objects of the cluster of the kinds that move, except Secrets and ConfigMaps.
func (s site) emptyOfKinds() {
	s.t.Helper()
	objects, err := s.source(s.c).Objects(s.t.Context(), s.name, resource.Rules())
	if err != nil {
		s.t.Fatal(err)
	}
	for _, o := range objects {
		release := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))
		if err := errors.Join(s.c.Patch(s.t.Context(), o.Unstructured, release), s.c.Delete(s.t.Context(), o.Unstructured)); err != nil {
			s.t.Fatal(err)
		}
	}
}

// TestLeftovers: what an object of a migration would meet in Deploying is found in Validating, so that other clusters are not moved back for it.
//
// Matrix: H121.
func TestLeftovers(t *testing.T) {
	t.Parallel()
	for name, leave := range map[string]func(s site){
		"Host": func(s site) {
			s.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.name}})
			s.apply("apiVersion: metal3.io/v1alpha1\nkind: BareMetalHost\nmetadata: {name: node-1, namespace: " + s.name + "}\nspec: {online: true}")
		},
		"AddonConfig": func(s site) {
			s.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.name}})
			s.apply("apiVersion: agent.open-cluster-management.io/v1\nkind: KlusterletAddonConfig\nmetadata: {name: " + s.name + ", namespace: " + s.name + "}\nspec: {clusterName: x}")
		},
		"Return": func(s site) {
			s.apply("apiVersion: config.open-cluster-management.io/v1alpha1\nkind: KlusterletConfig\nmetadata: {name: godwit-return-" + s.name + "}")
		},
		"ReturnSecret": func(s site) {
			s.create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "godwit-return-" + s.name, Namespace: bootstrapNamespace}})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, arrived := moving(t)
			s.done(s.validate)
			leave(s)
			r, err := s.validate()
			if err != nil || r.Failed[s.name] == nil {
				t.Errorf("validated: failed %v, waiting %v, %v", r.Failed, r.Waiting, err)
			}
			s.mustFail(cluster.ReasonExists, "which the migration has not created", s.receive(s.c, arrived))
		})
	}
}

// TestJoinedAlready: a cluster that has joined the target hub is never to be deleted, whenever it has joined. The same cluster reads differently from
// another one of its name.
//
// Matrix: H122.
func TestJoinedAlready(t *testing.T) {
	t.Parallel()
	s, arrived := moving(t)
	hub, clusters := s.target(s.c), []string{s.name}
	hub.Identities = map[string]string{s.name: "id-of-" + s.name}
	validate := func() (cluster.Result, error) { return hub.ValidateTarget(t.Context(), clusters) }
	for _, test := range []struct {
		identity string
		reason   *godwit.Reason
		says     string
	}{
		{"id-of-" + s.name, cluster.ReasonMoved, "has joined the target hub already, with the same claim"},
		{"id-of-another", cluster.ReasonOtherCluster, "has another cluster"},
		{"", cluster.ReasonOtherCluster, "that has joined: remove the cluster from the migration"},
	} {
		s.join(test.identity)
		s.mustFail(test.reason, test.says, validate)
		s.mustFail(test.reason, test.says, s.receive(s.c, arrived))
		s.mustFail(test.reason, test.says, func() (cluster.Result, error) { return hub.AcceptClusters(t.Context(), clusters) })
		if err := s.c.Delete(t.Context(), s.cluster()); err != nil {
			t.Fatal(err)
		}
	}

	s.done(s.receive(s.c, arrived))
	if err := s.c.Delete(t.Context(), s.cluster()); err != nil {
		t.Fatal(err)
	}
	finish := func() (cluster.Result, error) { return hub.FinishMoved(t.Context(), clusters) }
	s.join("id-of-another")
	if r := s.finish(finish); !strings.Contains(r.Gone[s.name], "another cluster has joined there under this name") {
		t.Errorf("another cluster is taken for the one that has moved: %+v", r)
	}
	if err := s.c.Delete(t.Context(), s.cluster()); err != nil {
		t.Fatal(err)
	}
	s.join("id-of-" + s.name)
	if r := s.finish(finish); len(r.Gone) > 0 || len(r.Done) != 1 {
		t.Errorf("a user has imported the cluster again: %+v", r)
	}
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
	s.emptyOfKinds()
	s.done(s.validate)
	for i := range 9 {
		s.signing(fmt.Sprintf("%s-%d", s.name, i+1))
	}
	s.mustFail(cluster.ReasonTooManyRequests, "kubectl delete csr -l open-cluster-management.io/cluster-name="+s.name, s.validate)
}
