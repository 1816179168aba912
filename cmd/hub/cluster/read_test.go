package cluster_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/godwit-dev/godwit/cmd/hub/cluster"
	"github.com/godwit-dev/godwit/cmd/hub/resource"
)

// TestBatchReads counts the requests of a pass that reads three kinds of each of its clusters.
func TestBatchReads(t *testing.T) {
	for _, test := range []struct {
		name          string
		clusters, hub int
		gets, lists   int64
		alone         bool
	}{
		{name: "many clusters are read by one request of each kind", clusters: 20, hub: 20, lists: 3},
		{name: "few clusters are read one by one", clusters: 8, hub: 20, gets: 16, lists: 8},
		{name: "few of many clusters are read one by one", clusters: 10, hub: 100, gets: 20, lists: 3 + 10},
		{name: "outside a pass, clusters are read one by one", clusters: 20, hub: 20, gets: 40, lists: 20, alone: true},
	} {
		t.Run(test.name, func(t *testing.T) {
			h, sent := hubWith(t, test.hub)
			pass := h.WithBatchReads(names(test.clusters))
			if test.alone {
				pass = pass.Live()
			}
			leases := cluster.Leases{}
			for _, name := range names(test.clusters) {
				mc, err := pass.Find(t.Context(), name)
				if err != nil || mc == nil || mc.Name != name {
					t.Fatalf("find %s: got %v, %v", name, mc, err)
				}
				requests, err := pass.SigningRequests(t.Context(), name)
				if err != nil || len(requests) != 1 || requests[0].Name != name {
					t.Errorf("CertificateSigningRequests of %s: got %v, %v", name, requests, err)
				}
				if fresh, err := leases.Fresh(t.Context(), pass, name); err != nil || fresh {
					t.Errorf("the lease of %s, seen once: got fresh %t, %v", name, fresh, err)
				}
			}
			if got := [2]int64{sent.gets.Load(), sent.lists.Load()}; got != [2]int64{test.gets, test.lists} {
				t.Errorf("got %d reads of one object and %d lists, want %d and %d", got[0], got[1], test.gets, test.lists)
			}
		})
	}
}

// TestBatchReadsWithoutObjects: a cluster that a list does not have is none, and its lease is not fresh.
func TestBatchReadsWithoutObjects(t *testing.T) {
	h, _ := hubWith(t, 9)
	pass := h.WithBatchReads(names(10))
	leases := cluster.Leases{}
	mc, err := pass.Find(t.Context(), names(10)[9])
	if mc != nil || err != nil {
		t.Errorf("a ManagedCluster that does not exist: got %v, %v", mc, err)
	}
	if fresh, err := leases.Fresh(t.Context(), pass, names(10)[9]); fresh || err != nil {
		t.Errorf("a lease that does not exist: got fresh %t, %v", fresh, err)
	}
}

// TestBatchReadsFails: what can't be read is no cluster without objects.
func TestBatchReadsFails(t *testing.T) {
	h, sent := hubWith(t, 10)
	sent.refused = context.DeadlineExceeded
	pass := h.WithBatchReads(names(10))
	for _, name := range names(10)[:2] {
		if mc, err := pass.Find(t.Context(), name); err == nil {
			t.Errorf("find %s: got %v and no error, want one", name, mc)
		}
		if _, err := pass.SigningRequests(t.Context(), name); err == nil {
			t.Errorf("CertificateSigningRequests of %s: got no error, want one", name)
		}
	}
	if got := sent.lists.Load(); got != 2 {
		t.Errorf("got %d lists, want one of each kind", got)
	}
}

// TestUserObjects: a pass reads the Secrets and ConfigMaps of all of its clusters by one request of each kind, and those of namespace
// default once. What is in each namespace, and what a controller has made, is no user's.
func TestUserObjects(t *testing.T) {
	h, sent := hubWith(t, 20)
	create := func(o client.Object) {
		if err := h.Client.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range append(names(20), metav1.NamespaceDefault) {
		create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "kube-root-ca.crt"}})
		create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "of-a-tool"}})
	}
	create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "cluster-003", Name: "mine"}})
	create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "cluster-003", Name: "owned", OwnerReferences: []metav1.OwnerReference{{Name: "x"}}}})
	pass := h.Pass().WithBatchReads(names(20))
	for _, name := range names(20) {
		found, err := pass.UserObjects(t.Context(), name)
		want := ""
		if name == "cluster-003" {
			want = "[Secret mine]"
		}
		if got := fmt.Sprint(found); err != nil || got != want && (want != "" || len(found) > 0) {
			t.Errorf("objects of users of %s: got %v, %v, want %s", name, got, err, want)
		}
	}
	if got := sent.lists.Load(); got != 3 {
		t.Errorf("got %d lists, want one for each kind, and one for namespace default, where a Secret is looked for", got)
	}
}

// TestOwnedBatch: a pass finds what the migration has created for all of its clusters by one request of each kind. Without batch reads, it
// finds the same.
func TestOwnedBatch(t *testing.T) {
	h, sent := hubWith(t, 20)
	h.UID = "u"
	h.Rules = []resource.Rule{{Kind: "Secret", Label: "x"}, {Kind: "ConfigMap", Label: "x"}}
	create := func(o client.Object, uid string) {
		o.SetLabels(map[string]string{cluster.LabelMigration: uid})
		if err := h.Client.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range names(20) {
		create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, "u")
		create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "ours", Annotations: map[string]string{"of": name}}}, "u")
		create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "theirs"}}, "other")
		create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "return", Name: "return-" + name}}, "u")
	}
	for title, pass := range map[string]struct {
		cluster.Hub
		lists, gets int64
	}{
		"batch":      {h.WithBatchReads(names(20)), 3, 0}, // Secrets, ConfigMaps and Namespaces
		"one by one": {h, 2 * 20, 2 * 20},
	} {
		sent.lists.Store(0)
		sent.gets.Store(0)
		for _, name := range names(20) {
			objects, err := pass.Owned(t.Context(), name)
			if err != nil || len(objects) != 1 || objects[0].GetKind() != "Secret" || objects[0].GetName() != "ours" || objects[0].GetAnnotations()["of"] != name {
				t.Errorf("%s: objects of %s: got %v, %v", title, name, objects, err)
			}
			for _, o := range []client.Object{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "return", Name: "return-" + name}}} {
				if found, err := pass.FindOwned(t.Context(), o); err != nil || !found || o.GetResourceVersion() == "" {
					t.Errorf("%s: find %s: got %t, %v", title, o.GetName(), found, err)
				}
			}
		}
		if got := [2]int64{sent.lists.Load(), sent.gets.Load()}; got != [2]int64{pass.lists, pass.gets} {
			t.Errorf("%s: got %d lists and %d reads of one object, want %d and %d", title, got[0], got[1], pass.lists, pass.gets)
		}
		if found, err := pass.FindOwned(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: names(1)[0], Name: "theirs"}}); found || err != nil {
			t.Errorf("%s: the Secret of another migration: got %t, %v", title, found, err)
		}
	}
}

// sent counts requests, and refuses lists.
type sent struct {
	gets, lists atomic.Int64
	refused     error
}

func names(n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("cluster-%03d", i)
	}
	return all
}

// hubWith is a hub that has clusters, each with a lease and a CertificateSigningRequest.
func hubWith(t *testing.T, clusters int) (cluster.Hub, *sent) {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, clusterv1.Install} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	kinds := meta.NewDefaultRESTMapper([]schema.GroupVersion{corev1.SchemeGroupVersion})
	for kind, scope := range map[string]meta.RESTScope{"Secret": meta.RESTScopeNamespace, "ConfigMap": meta.RESTScopeNamespace, "Namespace": meta.RESTScopeRoot} {
		kinds.Add(corev1.SchemeGroupVersion.WithKind(kind), scope)
	}
	b, s := fake.NewClientBuilder().WithScheme(scheme).WithRESTMapper(kinds), &sent{}
	renewed := metav1.NewMicroTime(time.Unix(1, 0))
	for _, name := range names(clusters) {
		b.WithObjects(
			&clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: name}},
			&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: cluster.LeaseName}, Spec: coordinationv1.LeaseSpec{RenewTime: &renewed}},
			&certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{clusterv1.ClusterNameLabelKey: name}}},
		)
	}
	c := b.WithIndex(&coordinationv1.Lease{}, metav1.ObjectNameField, func(o client.Object) []string { return []string{o.GetName()} }).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
			s.gets.Add(1)
			return c.Get(ctx, key, o, options...)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			s.lists.Add(1)
			if s.refused != nil {
				return s.refused
			}
			err := c.List(ctx, list, options...)
			o := client.ListOptions{}
			o.ApplyOptions(options)
			if clusters > int(o.Limit) && o.Limit > 0 {
				list.SetContinue("more") // which the fake does not say
			}
			return err
		},
	}).Build()
	return cluster.Hub{Client: c}, s
}
