package hub_test

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/cmd/hub/cluster"
	"github.com/godwit-dev/godwit/cmd/hub/message"
	"github.com/godwit-dev/godwit/cmd/hub/target"
)

// target is the agent of the target hub. It is the same API server as that of the source:
// what was sent is deleted there before it is received, or is received by another name.
func (s site) target(c client.Client) target.Hub {
	return target.Hub{
		Hub: cluster.Hub{Client: c, UID: s.uid}, Account: types.NamespacedName{Namespace: "default", Name: "account-of-" + s.to}, Reconnect: 180 * time.Second,
	}
}

func (s site) receive(c client.Client, arrived []message.Resources) func() (cluster.Result, error) {
	confirmations := new(cluster.Confirmations) // of one command
	return func() (cluster.Result, error) {
		on := s.target(c)
		on.Confirmations = confirmations
		return on.ReceiveResources(s.t.Context(), arrived)
	}
}

// moving returns a site that has nothing on the hub, and the objects that arrive for it.
func moving(t *testing.T) (site, []message.Resources) {
	t.Helper()
	from := newSite(t)
	from.installed()
	s := site{t: t, c: from.c, name: newName() + "x", to: from.to}
	s.uid = "uid-of-" + s.name
	sent := from.sent()[0]
	to := message.Resources{Cluster: s.name, SourceKubeconfig: sent.SourceKubeconfig}
	for _, text := range sent.Objects {
		to.Objects = append(to.Objects, json.RawMessage(strings.ReplaceAll(string(text), from.name, s.name)))
	}
	return s, []message.Resources{to}
}

// TestMove: what arrives is what was sent, paused and not accepted; and after the move it is
// what the user had.
//
// Matrix: H18, H21, H70.
func TestMove(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	before := s.objects()
	s.installed()
	sent := s.sent()
	s.released()
	s.done(func() (cluster.Result, error) { return s.source(s.c).DeleteMoved(t.Context(), []string{s.name}) })

	s.done(s.receive(s.c, sent))
	for name, text := range s.objects() {
		if strings.HasPrefix(name, "BareMetalHost/") && (!strings.Contains(text, `"baremetalhost.metal3.io/paused"`) || !strings.Contains(text, "provisioned")) {
			t.Errorf("a host that is not paused, or without its status, is provisioned anew: %s", text)
		}
	}
	if mc := s.cluster(); mc.Spec.HubAcceptsClient || mc.Annotations[cluster.AnnotationAccepted] == "" {
		t.Errorf("the ManagedCluster is accepted, or may be automatically: %v %v", mc.Spec, mc.Annotations)
	}
	clusters, hub := []string{s.name}, s.target(s.c)
	s.done(func() (cluster.Result, error) { return hub.AcceptClusters(t.Context(), clusters) })
	s.register()

	finish := func() (cluster.Result, error) { return hub.FinishMoved(t.Context(), clusters) }
	s.setWork(true)
	s.mustWait("has not removed the kubeconfig of the source hub", finish)
	s.setWork(false)
	s.mustWait("has not applied generation", finish)
	s.setWork(true)
	s.done(finish)
	s.done(finish)
	s.returnIsGone()
	if diff := cmp.Diff(asUserSees(before), asUserSees(s.objects())); diff != "" {
		t.Errorf("after the move (-before +after):\n%s", diff)
	}
}

// register plays the agent of the cluster and the controllers of the hub: conditions that
// were there before prove nothing, two renewals of the lease do.
func (s site) register() {
	s.t.Helper()
	leases := &cluster.Leases{}
	await := func() (cluster.Result, error) {
		return s.target(s.c).AwaitRegistration(s.t.Context(), []string{s.name}, leases)
	}
	s.mustWait("CertificateSigningRequest", await)
	mc := s.cluster()
	for _, kind := range []string{clusterv1.ManagedClusterConditionJoined, clusterv1.ManagedClusterConditionAvailable} {
		mc.Status.Conditions = append(mc.Status.Conditions, metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: "R", LastTransitionTime: metav1.Now()})
		mc.Status.Version.Kubernetes = "v1"
		if err := s.c.Status().Update(s.t.Context(), mc); err != nil {
			s.t.Fatal(err)
		}
	}
	for range 2 {
		s.mustWait("has not renewed its lease on the target hub twice", await)
		s.renewLease()
	}
	s.done(await)
}

// asUserSees removes what a move changes on purpose: finalizers are set by the hub's own
// controllers, an ImageClusterInstall is marked as restored, and the addresses of a cluster
// are written by the hub.
func asUserSees(objects map[string]string) map[string]string {
	clean := map[string]string{}
	for name, text := range objects {
		o := &unstructured.Unstructured{}
		if err := o.UnmarshalJSON([]byte(text)); err != nil {
			panic(err)
		}
		o.SetFinalizers(nil)
		switch o.GetKind() {
		case "ImageClusterInstall":
			o.SetLabels(nil)
			o.SetAnnotations(nil)
		case "ManagedCluster":
			delete(o.Object, "status")
			unstructured.RemoveNestedField(o.Object, "spec", "managedClusterClientConfigs")
		}
		cleaned, err := o.MarshalJSON()
		if err != nil {
			panic(err)
		}
		clean[name] = string(cleaned)
	}
	return clean
}

// TestReceiveRefuses: no object of a cluster is applied if one of them is not allowed, or
// there already.
//
// Matrix: H17, H20, H54, H56, H99.
func TestReceiveRefuses(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason *godwit.Reason
		change func(s site, r *message.Resources)
	}{
		"Role": {cluster.ReasonRefusedObject, func(s site, r *message.Resources) {
			r.Objects = append(r.Objects, json.RawMessage(`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRoleBinding","metadata":{"name":"`+s.name+`"}}`))
		}},
		"OtherNamespace": {cluster.ReasonRefusedObject, func(_ site, r *message.Resources) {
			r.Objects = append(r.Objects, json.RawMessage(`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"bmc","namespace":"kube-system"}}`))
		}},
		"NotReferred": {cluster.ReasonRefusedObject, func(s site, r *message.Resources) {
			r.Objects = append(r.Objects, json.RawMessage(`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"other","namespace":"`+s.name+`"}}`))
		}},
		"NoCluster": {cluster.ReasonRefusedObject, func(_ site, r *message.Resources) {
			r.Objects = slices.DeleteFunc(r.Objects, func(o json.RawMessage) bool { return strings.Contains(string(o), `"kind":"ManagedCluster"`) })
		}},
		"Original": {cluster.ReasonRefusedObject, func(s site, r *message.Resources) {
			r.Objects = append(r.Objects, json.RawMessage(`{"apiVersion":"metal3.io/v1alpha1","kind":"BareMetalHost","metadata":{"name":"evil","namespace":"`+s.name+
				`","annotations":{"godwit.dev/migration-original":"{\"migration\":\"`+s.uid+`\",\"annotations\":{\"example.com/evil\":{\"was\":\"x\",\"set\":\"\"}}}"}}}`))
		}},
		"StateFormat": {cluster.ReasonRefusedObject, func(s site, r *message.Resources) {
			r.Objects = append(r.Objects, json.RawMessage(`{"apiVersion":"metal3.io/v1alpha1","kind":"BareMetalHost","metadata":{"name":"stays","namespace":"`+s.name+
				`","annotations":{"godwit.dev/state-format":"2"}}}`))
		}},
		"NoKubeconfig": {cluster.ReasonHubsDiffer, func(_ site, r *message.Resources) { r.SourceKubeconfig = nil }},
		"NoJSON":       {cluster.ReasonRefusedObject, func(_ site, r *message.Resources) { r.Objects = append(r.Objects, json.RawMessage(`[]`)) }},
		"Exists": {cluster.ReasonExists, func(s site, _ *message.Resources) {
			s.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.name}})
			s.apply("apiVersion: v1\nkind: Secret\nmetadata: {name: bmc, namespace: " + s.name + "}\nstringData: {mine: x}")
		}},
		"Invalid": {cluster.ReasonAPI, func(s site, r *message.Resources) {
			r.Objects = append(r.Objects, json.RawMessage(`{"apiVersion":"metal3.io/v1alpha1","kind":"BareMetalHost","metadata":{"name":"bad","namespace":"`+s.name+`"},"spec":{"online":"no"}}`))
		}},
		"Version": {cluster.ReasonKindNotServed, func(s site, r *message.Resources) {
			r.Objects = append(r.Objects, json.RawMessage(`{"apiVersion":"metal3.io/v9","kind":"BareMetalHost","metadata":{"name":"new","namespace":"`+s.name+`"}}`))
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, arrived := moving(t)
			tc.change(s, &arrived[0])
			before := s.objects()
			receive := s.receive(s.c, arrived)
			s.mustFail(tc.reason, "", s.untilFailed(receive))
			if after := s.objects(); tc.reason == cluster.ReasonRefusedObject && len(after) > 0 {
				t.Errorf("the target has applied %v", after)
			} else if before["Secret/bmc"] != "" && after["Secret/bmc"] != before["Secret/bmc"] {
				t.Errorf("the user's secret is %s", after["Secret/bmc"])
			}
		})
	}
}

// TestReturn: from the creation of the ManagedCluster on, the target configures the klusterlet
// with the kubeconfigs of both hubs, and keeps what the user's KlusterletConfig says. Later
// import controllers configure it when the cluster has moved.
func TestReturn(t *testing.T) {
	t.Parallel()
	for name, freezes := range map[string]bool{"Import controller": false, "Later import controller": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, arrived := moving(t)
			s.freezes = freezes
			s.apply("apiVersion: config.open-cluster-management.io/v1alpha1\nkind: KlusterletConfig\nmetadata: {name: proxy-" + s.name +
				"}\nspec: {hubKubeAPIServerConfig: {proxyURL: \"http://proxy.example.com\"}}")
			s.done(s.receive(s.c, arrived))
			config := cluster.KlusterletConfig(s.cluster().Annotations[cluster.AnnotationKlusterletConfig])
			if err := s.c.Get(t.Context(), client.ObjectKeyFromObject(config), config); err != nil {
				t.Fatal(err)
			}
			if proxy, _, _ := unstructured.NestedString(config.Object, "spec", "hubKubeAPIServerConfig", "proxyURL"); proxy != "http://proxy.example.com" {
				t.Errorf("KlusterletConfig %s has lost the proxy of the user: %v", config.GetName(), config.Object["spec"])
			}
			s.setWork(true)
			k, found, err := cluster.KlusterletOf(t.Context(), s.c, s.name)
			if err != nil || !found {
				t.Fatal(found, err)
			}
			if got := k.Kubeconfig("godwit-return-" + s.name); !bytes.Equal(got, arrived[0].SourceKubeconfig) || k.OwnKubeconfig() == nil {
				t.Errorf("the klusterlet is configured with %q and %q, want the kubeconfigs of the source and of the target", got, k.OwnKubeconfig())
			}

			finish := func() (cluster.Result, error) { return s.target(s.c).FinishMoved(t.Context(), []string{s.name}) }
			s.mustWait("has not removed the kubeconfig of the source hub", finish)
			s.setWork(true)
			s.done(finish)
			s.returnIsGone()
			if got := s.cluster().Annotations; got[cluster.AnnotationKlusterletConfig] != "proxy-"+s.name {
				t.Errorf("the annotations are %v, want the KlusterletConfig of the user", got)
			}
		})
	}
}

// returnIsGone fails the test if the target has what keeps the way back of the cluster.
func (s site) returnIsGone() {
	s.t.Helper()
	config, secret := cluster.KlusterletConfig("godwit-return-"+s.name), &corev1.Secret{}
	if err := s.c.Get(s.t.Context(), client.ObjectKeyFromObject(config), config); !apierrors.IsNotFound(err) {
		s.t.Errorf("read KlusterletConfig %s: %v, want NotFound", config.GetName(), err)
	}
	if err := s.c.Get(s.t.Context(), client.ObjectKey{Namespace: bootstrapNamespace, Name: "godwit-return-" + s.name}, secret); !apierrors.IsNotFound(err) {
		s.t.Errorf("read Secret godwit-return-%s: %v, want NotFound", s.name, err)
	}
}

// TestDeleteCreatedWithoutNamespace: a user has deleted the namespace of a cluster that returns, and with it the proof that the migration has
// created the ManagedCluster. It stays, and the result says so.
//
// Matrix: H141.
func TestDeleteCreatedWithoutNamespace(t *testing.T) {
	t.Parallel()
	s, arrived := moving(t)
	hub, clusters := s.target(s.c), []string{s.name}
	s.done(s.receive(s.c, arrived))
	s.deleteNamespace()
	s.done(func() (cluster.Result, error) { return hub.StopAccepting(t.Context(), clusters) })
	before := s.cluster()
	if r := s.finish(func() (cluster.Result, error) { return hub.DeleteCreated(t.Context(), clusters) }); !strings.Contains(r.Gone[s.name], "ManagedCluster "+s.name+" has the label of the migration, and no proof") {
		t.Errorf("the rollback does not say that the ManagedCluster stays: %+v", r)
	}
	if diff := cmp.Diff(before, s.cluster()); diff != "" {
		t.Errorf("the ManagedCluster (-before +after):\n%s", diff)
	}
}

// TestDeleteCreated: what the migration has created is deleted, and what was there before
// stays, also the namespace.
//
// Matrix: H16.
func TestDeleteCreated(t *testing.T) {
	t.Parallel()
	for name, existed := range map[string]bool{"NewNamespace": false, "NamespaceOfTheUser": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, arrived := moving(t)
			hub, clusters := s.target(s.c), []string{s.name}
			if existed {
				s.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.name}})
				s.apply("apiVersion: v1\nkind: Secret\nmetadata: {name: theirs, namespace: " + s.name + "}")
			}
			s.done(s.receive(s.c, arrived))
			s.done(func() (cluster.Result, error) { return hub.AcceptClusters(t.Context(), clusters) })
			remove := func() (cluster.Result, error) { return hub.DeleteCreated(t.Context(), clusters) }
			s.mustFail(cluster.ReasonNotPrepared, "accepts", remove)

			s.done(func() (cluster.Result, error) { return hub.StopAccepting(t.Context(), clusters) })
			if mc := s.cluster(); mc.Spec.HubAcceptsClient || mc.Annotations[cluster.AnnotationAccepted] == "" {
				t.Errorf("the target still accepts the cluster, or will: %v %v", mc.Spec, mc.Annotations)
			}
			s.done(remove)
			s.done(remove)
			s.returnIsGone()
			s.done(func() (cluster.Result, error) { return hub.StopAccepting(t.Context(), clusters) }) // no ManagedCluster, nothing to stop
			left := s.objects()
			namespace := &corev1.Namespace{}
			if err := s.c.Get(t.Context(), client.ObjectKey{Name: s.name}, namespace); err != nil {
				t.Fatal(err)
			}
			if existed != (left["Secret/theirs"] != "") || len(left) > 1 {
				t.Errorf("left on the target: %v", left)
			}
			if existed != namespace.DeletionTimestamp.IsZero() {
				t.Errorf("namespace that existed before: %v; it is deleted at %v", existed, namespace.DeletionTimestamp)
			}
		})
	}
}
