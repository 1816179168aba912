package hub_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	operatorv1 "open-cluster-management.io/api/operator/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/yaml"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/cmd/hub/cluster"
	"github.com/godwit-dev/godwit/cmd/hub/resource"
	"github.com/godwit-dev/godwit/cmd/hub/source"
	"github.com/godwit-dev/godwit/test/hub/klusterlet"
)

var hubScheme = sync.OnceValue(func() *runtime.Scheme {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, clusterv1.Install, clusterv1beta1.Install, workv1.Install, operatorv1.Install,
	} {
		if err := add(scheme); err != nil {
			panic(err)
		}
	}
	return scheme
})

// hubMapper is shared: a mapper of its own would cost each client a discovery.
var hubMapper = sync.OnceValue(func() meta.RESTMapper {
	clients, err := rest.HTTPClientFor(shared.Config())
	if err != nil {
		panic(err)
	}
	mapper, err := apiutil.NewDynamicRESTMapper(shared.Config(), clients)
	if err != nil {
		panic(err)
	}
	return mapper
})

// hubClient is the client of an agent.
func hubClient(t *testing.T, config *rest.Config) client.Client {
	t.Helper()
	config.QPS = -1
	c, err := client.New(config, client.Options{Scheme: hubScheme(), Mapper: hubMapper()})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// site is a managed cluster on its hub: three hosts, of which the user has paused the
// third, and what belongs to them.
type site struct {
	t    *testing.T
	c    client.Client
	name string
	// uid of the migration that moves it, and the target hub of that.
	uid, to string
	// freezes is of the import controller of its hub.
	freezes bool
}

var sites atomic.Int32

const bootstrapNamespace = "multicluster-engine"

// newName is the name of a cluster that no other test has.
func newName() string { return fmt.Sprintf("site%d", sites.Add(1)) }

func newSite(t *testing.T) site {
	t.Helper()
	return newSiteOn(t, shared.Config())
}

func newSiteOn(t *testing.T, hub *rest.Config) site {
	t.Helper()
	name := newName()
	s := site{t: t, c: hubClient(t, hub), name: name, uid: "uid-of-" + name, to: "to-" + name}
	s.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	if err := s.c.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: bootstrapNamespace}}); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	for document := range strings.SplitSeq(strings.ReplaceAll(siteObjects, "NAME", name), "\n---\n") {
		s.apply(document)
	}
	s.setWork(true)
	s.renewLease()
	s.signing(name + "-0")
	return s
}

func (s site) create(o client.Object) {
	s.t.Helper()
	if err := s.c.Create(s.t.Context(), o); err != nil {
		s.t.Fatal(err)
	}
}

// apply creates an object with its status.
func (s site) apply(document string) {
	s.t.Helper()
	o := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(document), &o.Object); err != nil {
		s.t.Fatal(err)
	}
	status := o.Object["status"]
	s.create(o)
	if status == nil {
		return
	}
	o.Object["status"] = status
	if err := s.c.Status().Update(s.t.Context(), o); err != nil {
		s.t.Fatal(err)
	}
}

// source is the agent of the source hub.
func (s site) source(c client.Client) source.Hub {
	return source.Hub{Hub: cluster.Hub{Client: c, UID: s.uid}, AgentNamespace: "default", To: s.to, Reconnect: 180 * time.Second}
}

// signing creates a CertificateSigningRequest, as the agent of the cluster does.
func (s site) signing(name string) *certificatesv1.CertificateSigningRequest {
	s.t.Helper()
	r, err := klusterlet.NewSigningRequest(name, s.name)
	if err != nil {
		s.t.Fatal(err)
	}
	s.create(r)
	return r
}

// importer is the import controller of the hub.
func (s site) importer() klusterlet.Importer {
	return klusterlet.Importer{Client: s.c, Server: "https://hub.example.com", BootstrapNamespace: bootstrapNamespace, Freezes: s.freezes}
}

// setWork plays the import controller, which writes the work of the klusterlet, and the
// klusterlet, which applies it.
func (s site) setWork(applied bool) {
	s.t.Helper()
	works, err := s.importer().Configure(s.t.Context(), s.cluster())
	if err != nil {
		s.t.Fatal(err)
	}
	if !applied {
		return
	}
	if err := s.importer().SetApplied(s.t.Context(), works.CRDs, works.Klusterlet); err != nil {
		s.t.Fatal(err)
	}
}

// renewLease plays the agent of the cluster.
func (s site) renewLease() {
	s.t.Helper()
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: s.name, Name: cluster.LeaseName}}
	err := s.c.Get(s.t.Context(), client.ObjectKeyFromObject(lease), lease)
	at := metav1.NewMicroTime(time.Unix(1_700_000_000, 0))
	if lease.Spec.RenewTime != nil {
		at = metav1.NewMicroTime(lease.Spec.RenewTime.Add(time.Second))
	}
	lease.Spec.RenewTime = &at
	if apierrors.IsNotFound(err) {
		s.create(lease)
	} else if err := s.c.Update(s.t.Context(), lease); err != nil {
		s.t.Fatal(err)
	}
}

// cluster reads the ManagedCluster.
func (s site) cluster() *clusterv1.ManagedCluster {
	s.t.Helper()
	mc := &clusterv1.ManagedCluster{}
	if err := s.c.Get(s.t.Context(), client.ObjectKey{Name: s.name}, mc); err != nil {
		s.t.Fatal(err)
	}
	return mc
}

// objects returns what is in the API server of the kinds that move, as text by kind and
// name, without what only the API server writes.
func (s site) objects() map[string]string {
	s.t.Helper()
	found := map[string]string{}
	seen := map[schema.GroupKind]bool{}
	for _, rule := range resource.Rules() {
		kind := schema.GroupKind{Group: rule.Group, Kind: rule.Kind}
		if seen[kind] {
			continue
		}
		seen[kind] = true
		mapping, err := hubMapper().RESTMapping(kind)
		if err != nil {
			s.t.Fatal(err)
		}
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(mapping.GroupVersionKind)
		options := []client.ListOption{client.InNamespace(s.name)}
		if rule.ClusterScoped {
			options = []client.ListOption{client.MatchingFields{"metadata.name": s.name}}
		}
		if err := s.c.List(s.t.Context(), list, options...); err != nil {
			s.t.Fatal(err)
		}
		for _, o := range list.Items {
			for _, field := range []string{"uid", "resourceVersion", "generation", "creationTimestamp", "managedFields"} {
				unstructured.RemoveNestedField(o.Object, "metadata", field)
			}
			text, err := json.Marshal(o.Object)
			if err != nil {
				s.t.Fatal(err)
			}
			found[o.GetKind()+"/"+o.GetName()] = string(text)
		}
	}
	return found
}

// isFinal reports whether repetition does not fix an error of a pass.
func (s site) isFinal(err error) bool {
	return new(cluster.Confirmations).Final(s.t.Context(), s.c, err)
}

// finish repeats a pass until no cluster waits, as an agent does, and returns what it came to.
func (s site) finish(pass func() (cluster.Result, error)) cluster.Result {
	s.t.Helper()
	for range 20 {
		r, err := pass()
		if err != nil && s.isFinal(err) {
			s.t.Fatal(err)
		}
		if err == nil && len(r.Waiting) == 0 {
			return r
		}
	}
	r, err := pass()
	s.t.Fatalf("the pass does not end: %v, waiting %v", err, r.Waiting)
	return r
}

// done fails the test unless the action is done for the site.
func (s site) done(pass func() (cluster.Result, error)) {
	s.t.Helper()
	if r := s.finish(pass); !slices.Equal(r.Done, []string{s.name}) || len(r.Failed) > 0 {
		s.t.Fatalf("done %v, failed %v", r.Done, r.Failed)
	}
}

// mustWait fails the test unless the site waits, for something with this text.
func (s site) mustWait(want string, pass func() (cluster.Result, error)) {
	s.t.Helper()
	if r, err := pass(); err != nil || !strings.Contains(r.Waiting[s.name], want) {
		s.t.Fatalf("waiting %q, failed %v, done %v, %v; want to wait for %q", r.Waiting, r.Failed, r.Done, err, want)
	}
}

// untilFailed repeats a pass until it fails for the site, as an agent does: a kind that is not served is final once the hub has
// said so for some seconds.
func (s site) untilFailed(pass func() (cluster.Result, error)) func() (cluster.Result, error) {
	return func() (r cluster.Result, err error) {
		_ = wait.PollUntilContextTimeout(s.t.Context(), 200*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
			r, err = pass()
			return len(r.Failed) > 0, err
		})
		return r, err
	}
}

// mustFail fails the test unless the action fails for the site, for a reason and with a text.
func (s site) mustFail(reason *godwit.Reason, want string, pass func() (cluster.Result, error)) {
	s.t.Helper()
	r, err := pass()
	if failed := r.Failed[s.name]; err != nil || failed == nil || failed.Reason != reason || !strings.Contains(failed.Message, want) {
		s.t.Fatalf("failed %v, waiting %q, done %v, %v; want %s with %q", r.Failed, r.Waiting, r.Done, err, reason, want)
	}
}
