package cluster_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/godwit-dev/godwit/cmd/hub/cluster"
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
	b, s := fake.NewClientBuilder().WithScheme(scheme), &sent{}
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
