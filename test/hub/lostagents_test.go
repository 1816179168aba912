package hub_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	operatorv1 "open-cluster-management.io/api/operator/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-dev/godwit/cmd/hub/cluster"
	own "github.com/godwit-dev/godwit/cmd/hub/klusterlet"
	"github.com/godwit-dev/godwit/test/hub/klusterlet"
)

// play plays the operator and the agents of the cluster, and the controllers of the hub, until the returned function is called.
func (l *lostCluster) play() (stop func()) {
	l.t.Helper()
	return playing(l.t, func(ctx context.Context) error {
		return errors.Join(operate(ctx, l.c), l.imports(ctx), l.register(ctx), l.evict(ctx))
	})
}

// playing repeats a pass until the returned function is called.
func playing(t *testing.T, pass func(context.Context) error) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for ctx.Err() == nil {
			if err := pass(ctx); err != nil && ctx.Err() == nil && !klusterlet.IsTransient(err) {
				t.Log(err)
			}
			pause(ctx, 20*time.Millisecond)
		}
	}()
	return func() {
		cancel()
		<-ended
	}
}

// operate plays the klusterlet operator of a cluster.
func operate(ctx context.Context, c client.Client) error {
	k := &operatorv1.Klusterlet{}
	if err := c.Get(ctx, client.ObjectKey{Name: own.Name}, k); err != nil || k.Status.ObservedGeneration == k.Generation {
		return client.IgnoreNotFound(err)
	}
	k.Status.ObservedGeneration = k.Generation
	return c.Status().Update(ctx, k)
}

// imports plays the import controller of the hub: it makes a bootstrap kubeconfig, approves the requests of the cluster, and configures its klusterlet.
func (l *lostCluster) imports(ctx context.Context) error {
	mc := &clusterv1.ManagedCluster{}
	if l.importer == nil {
		return nil
	}
	if err := l.hub.Get(ctx, client.ObjectKey{Name: l.name}, mc); err != nil || !mc.Spec.HubAcceptsClient {
		return client.IgnoreNotFound(err)
	}
	if _, disabled := mc.Annotations[cluster.AnnotationNoAutoImport]; disabled {
		return nil
	}
	manifest := fmt.Sprintf("apiVersion: v1\nkind: Namespace\nmetadata: {name: %s}\n---\napiVersion: v1\nkind: Secret\nmetadata: {name: %s}\ndata: {kubeconfig: %s}\n",
		agentsNamespace, own.OwnSecret, base64.StdEncoding.EncodeToString(l.importer.Kubeconfig))
	for _, o := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: l.name}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: l.name, Name: l.name + "-import"}, Data: map[string][]byte{"import.yaml": []byte(manifest)}},
	} {
		if err := l.hub.Create(ctx, o); err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
	requests, err := cluster.Hub{Client: l.hub}.SigningRequests(ctx, l.name)
	if err != nil {
		return err
	}
	for i := range requests {
		if r := &requests[i]; len(r.Status.Conditions) == 0 {
			r.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "Imported"}}
			if err := l.hub.SubResource("approval").Update(ctx, r); err != nil {
				return err
			}
		}
	}
	works, err := l.importer.Configure(ctx, mc)
	if err != nil {
		return err
	}
	return l.importer.SetApplied(ctx, works.CRDs, works.Klusterlet)
}

// register plays the registration agent. While its klusterlet has several hubs, it waits for a hub that does not answer.
func (l *lostCluster) register(ctx context.Context) error {
	k, bootstrap, hub := &operatorv1.Klusterlet{}, &corev1.Secret{}, &corev1.Secret{}
	if err := errors.Join(l.c.Get(ctx, client.ObjectKey{Name: own.Name}, k),
		l.c.Get(ctx, client.ObjectKey{Namespace: agentsNamespace, Name: own.OwnSecret}, bootstrap),
		l.c.Get(ctx, client.ObjectKey{Namespace: agentsNamespace, Name: own.HubSecret}, hub)); err != nil {
		return err
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(bootstrap.Data["kubeconfig"])
	if err != nil {
		return err
	}
	registered, err := clientcmd.RESTConfigFromKubeConfig(hub.Data["kubeconfig"])
	if _, several := own.KnowsSeveral(k); err != nil || several || config.Host == lostServer {
		return err
	}
	mc := &clusterv1.ManagedCluster{}
	if err := l.hub.Get(ctx, client.ObjectKey{Name: l.name}, mc); err != nil {
		return err
	}
	if registered.Host == config.Host {
		l.registered.Store(true)
		return renewAt(ctx, l.hub, mc)
	}
	if !mc.Spec.HubAcceptsClient {
		return nil
	}
	if err := l.hub.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: l.name}}); err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	issued, err := requestAt(ctx, l.hub, l.name, fmt.Sprintf("%s-%d", l.name, l.requests), config)
	if err != nil || !issued {
		return err
	}
	hub.Data["kubeconfig"] = l.secret(own.HubSecret, config.Host, "").Data["kubeconfig"]
	return l.c.Update(ctx, hub)
}

// requestAt requests a certificate for a cluster with the bootstrap token of a hub, and reports whether the request is approved.
func requestAt(ctx context.Context, hub client.Client, clusterName, name string, bootstrap *rest.Config) (bool, error) {
	r := &certificatesv1.CertificateSigningRequest{}
	if err := hub.Get(ctx, client.ObjectKey{Name: name}, r); apierrors.IsNotFound(err) {
		c, err := client.New(bootstrap, client.Options{Scheme: hubScheme(), Mapper: hub.RESTMapper()})
		if err != nil {
			return false, err
		}
		if r, err = klusterlet.NewSigningRequest(name, clusterName); err != nil {
			return false, err
		}
		return false, c.Create(ctx, r)
	} else if err != nil {
		return false, err
	}
	return slices.ContainsFunc(r.Status.Conditions, func(c certificatesv1.CertificateSigningRequestCondition) bool {
		return c.Type == certificatesv1.CertificateApproved
	}), nil
}

// renewAt renews the lease of a cluster that is registered at a hub.
func renewAt(ctx context.Context, hub client.Client, mc *clusterv1.ManagedCluster) error {
	changed := false
	for _, kind := range []string{clusterv1.ManagedClusterConditionJoined, clusterv1.ManagedClusterConditionAvailable} {
		changed = meta.SetStatusCondition(&mc.Status.Conditions, metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: "R", Message: "m"}) || changed
	}
	if changed {
		if err := hub.Status().Update(ctx, mc); err != nil {
			return err
		}
	}
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: mc.Name, Name: cluster.LeaseName}}
	err := hub.Get(ctx, client.ObjectKeyFromObject(lease), lease)
	now := metav1.NowMicro()
	lease.Spec.RenewTime = &now
	if apierrors.IsNotFound(err) {
		return hub.Create(ctx, lease)
	}
	if err != nil {
		return err
	}
	return hub.Update(ctx, lease)
}

// evict plays the work agent: it deletes what a deleted work owns, and removes its finalizer. It evicts the works of other hubs at once,
// unless it is told to evict nothing.
func (l *lostCluster) evict(ctx context.Context) error {
	works, k := &workv1.AppliedManifestWorkList{}, &operatorv1.Klusterlet{}
	if err := errors.Join(l.c.List(ctx, works), l.c.Get(ctx, client.ObjectKey{Name: own.Name}, k)); err != nil {
		return err
	}
	protected := k.Spec.WorkConfiguration != nil && k.Spec.WorkConfiguration.AppliedManifestWorkEvictionGracePeriod.Duration >= 100*365*24*time.Hour
	for i := range works.Items {
		w := &works.Items[i]
		if w.DeletionTimestamp.IsZero() && l.registered.Load() && !protected {
			if err := client.IgnoreNotFound(l.c.Delete(ctx, w)); err != nil {
				return err
			}
		}
		if w.DeletionTimestamp.IsZero() || !slices.Contains(w.Finalizers, agentFinalizer) {
			continue
		}
		for _, r := range w.Status.AppliedResources {
			o := &metav1.PartialObjectMetadata{}
			o.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(map[string]string{"configmaps": "ConfigMap", "serviceaccounts": "ServiceAccount"}[r.Resource]))
			err := l.c.Get(ctx, client.ObjectKey{Namespace: r.Namespace, Name: r.Name}, o)
			owned := err == nil && slices.ContainsFunc(o.OwnerReferences, func(owner metav1.OwnerReference) bool { return owner.UID == w.UID })
			if owned {
				err = l.c.Delete(ctx, o)
			}
			if client.IgnoreNotFound(err) != nil {
				return err
			}
		}
		w.Finalizers = slices.DeleteFunc(w.Finalizers, func(f string) bool { return f == agentFinalizer })
		if err := l.c.Update(ctx, w); err != nil {
			return err
		}
	}
	return nil
}
