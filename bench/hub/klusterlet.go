package main

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/clientcmd"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-dev/godwit/cmd/hub/cluster"
	simulation "github.com/godwit-dev/godwit/test/hub/klusterlet"
	"github.com/godwit-dev/godwit/test/hub/ocm"
	"github.com/godwit-dev/godwit/test/process"
)

// leaseSeconds is how often a klusterlet renews its lease.
const leaseSeconds = 5

// klusterlet plays the agents of a cluster, and what the import controllers of its hubs do for it.
type klusterlet struct {
	name string
	// configured means that hubs configure its klusterlet by a ManifestWork.
	configured bool
	// done is called when it has renewed its lease at another hub than its first one twice.
	done func()

	mutex sync.Mutex
	at    *hub
	first *hub
	// kubeconfigs by the address of their hub.
	kubeconfigs map[string][]byte
	// annotation of the ManagedCluster that the ManifestWork of a hub is made of.
	annotation map[*hub]string
	// renewals of the lease at the present hub, and the time of the last.
	renewals int
	renewed  time.Time
}

// reconcile does what follows from the ManagedCluster of a hub. It returns when it is to be called again.
func (k *klusterlet) reconcile(ctx context.Context, h *hub, mc *clusterv1.ManagedCluster) (time.Duration, error) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	if k.at == h && !mc.Spec.HubAcceptsClient && len(k.kubeconfigs) > 1 {
		k.at = nil
	}
	if k.at == nil && mc.Spec.HubAcceptsClient && k.kubeconfigs[h.server()] != nil {
		if err := k.register(ctx, h); err != nil {
			return time.Second, fmt.Errorf("register %s at %s: %w", k.name, h.Name, err)
		}
		k.at, k.renewals, k.renewed = h, 0, time.Time{}
	}
	if k.configured {
		if err := k.configure(ctx, h, mc); err != nil {
			return time.Second, err
		}
	}
	if k.at != h {
		return time.Second, nil
	}
	if left := time.Until(k.renewed.Add(leaseSeconds * time.Second)); left > 0 {
		return left, nil
	}
	if err := k.renew(ctx, h); err != nil {
		return leaseSeconds * time.Second, err
	}
	// A hub that is late with leases takes the cluster for unavailable; its agent says that it is not.
	if k.renewals > 1 && !meta.IsStatusConditionTrue(mc.Status.Conditions, clusterv1.ManagedClusterConditionAvailable) {
		return leaseSeconds * time.Second, k.join(ctx, h)
	}
	return leaseSeconds * time.Second, nil
}

// register requests a certificate with the bootstrap kubeconfig of a hub, and joins with it.
func (k *klusterlet) register(ctx context.Context, h *hub) error {
	config, err := clientcmd.RESTConfigFromKubeConfig(k.kubeconfigs[h.server()])
	if err != nil {
		return err
	}
	bootstrap, err := client.New(unlimited(config), client.Options{Scheme: ocm.Scheme(), Mapper: h.direct.RESTMapper()})
	if err != nil {
		return err
	}
	csr, err := simulation.NewSigningRequest("", k.name)
	if err != nil {
		return err
	}
	csr.GenerateName = k.name + "-"
	if err := bootstrap.Create(ctx, csr); err != nil {
		return err
	}
	if err := process.Poll(ctx, "the certificate of "+k.name, func(ctx context.Context) error {
		if err := bootstrap.Get(ctx, client.ObjectKeyFromObject(csr), csr); err != nil {
			return err
		}
		if len(csr.Status.Certificate) == 0 {
			return fmt.Errorf("CertificateSigningRequest %s has no certificate", csr.Name)
		}
		return nil
	}); err != nil {
		return err
	}
	return k.join(ctx, h)
}

// join says that the cluster has joined a hub, and is available.
func (k *klusterlet) join(ctx context.Context, h *hub) error {
	mc := &clusterv1.ManagedCluster{}
	if err := h.direct.Get(ctx, client.ObjectKey{Name: k.name}, mc); err != nil {
		return err
	}
	before := mc.DeepCopy()
	for _, condition := range []string{clusterv1.ManagedClusterConditionJoined, clusterv1.ManagedClusterConditionAvailable} {
		meta.SetStatusCondition(&mc.Status.Conditions, metav1.Condition{Type: condition, Status: metav1.ConditionTrue, Reason: "Played"})
	}
	return h.direct.Status().Patch(ctx, mc, client.MergeFrom(before))
}

func (k *klusterlet) renew(ctx context.Context, h *hub) error {
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: k.name, Name: cluster.LeaseName}}
	err := h.direct.Get(ctx, client.ObjectKeyFromObject(lease), lease)
	now := metav1.NowMicro()
	lease.Spec.RenewTime = &now
	switch {
	case apierrors.IsNotFound(err):
		return client.IgnoreNotFound(h.direct.Create(ctx, lease)) // the hub creates the namespace
	case err != nil:
		return err
	}
	if err := h.direct.Update(ctx, lease); err != nil {
		return err
	}
	k.renewals++
	k.renewed = time.Now()
	if k.renewals == 2 && h != k.first && k.done != nil {
		k.done()
	}
	return nil
}

// configure writes the ManifestWork of a hub when the annotation has changed, and applies it if the cluster is there.
func (k *klusterlet) configure(ctx context.Context, h *hub, mc *clusterv1.ManagedCluster) error {
	work := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Namespace: k.name, Name: cluster.KlusterletWork(k.name)}}
	annotation, known := k.annotation[h]
	current := mc.Annotations[cluster.AnnotationKlusterletConfig]
	if known && annotation == current && k.at != h {
		return nil
	}
	err := h.direct.Get(ctx, client.ObjectKeyFromObject(work), work)
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	if err != nil || annotation != current {
		if err := k.write(ctx, h, work, current); err != nil {
			return client.IgnoreNotFound(err) // the hub creates the namespace
		}
	}
	if k.at != h {
		return nil
	}
	return k.apply(ctx, h, work)
}

// write writes a ManifestWork as the KlusterletConfig of an annotation says.
func (k *klusterlet) write(ctx context.Context, h *hub, work *workv1.ManifestWork, annotation string) error {
	var err error
	if work.Spec.Workload.Manifests, err = h.manifests(ctx, annotation); err != nil {
		return err
	}
	if work.UID == "" {
		err = h.direct.Create(ctx, work)
	} else {
		err = h.direct.Update(ctx, work)
	}
	if err == nil {
		k.annotation[h] = annotation
	}
	return err
}

func (k *klusterlet) isConfiguredBy(h *hub) bool {
	_, ok := k.annotation[h]
	return ok
}

// apply takes the bootstrap kubeconfigs of a ManifestWork.
func (k *klusterlet) apply(ctx context.Context, h *hub, work *workv1.ManifestWork) error {
	if applied := meta.FindStatusCondition(work.Status.Conditions, workv1.WorkApplied); applied != nil && applied.ObservedGeneration == work.Generation {
		return nil
	}
	kubeconfigs := map[string][]byte{}
	for _, m := range work.Spec.Workload.Manifests {
		secret := &corev1.Secret{}
		if err := json.Unmarshal(m.Raw, secret); err != nil {
			return err
		}
		config, err := clientcmd.RESTConfigFromKubeConfig(secret.Data[cluster.KubeconfigKey])
		if err != nil {
			return err
		}
		kubeconfigs[config.Host] = secret.Data[cluster.KubeconfigKey]
	}
	k.kubeconfigs = kubeconfigs
	before := work.DeepCopy()
	meta.SetStatusCondition(&work.Status.Conditions, metav1.Condition{
		Type: workv1.WorkApplied, Status: metav1.ConditionTrue, Reason: "Played", ObservedGeneration: work.Generation,
	})
	return h.direct.Status().Patch(ctx, work, client.MergeFrom(before))
}

// manifests are the bootstrap secrets that the import controller gives a klusterlet with a KlusterletConfig, or without one.
func (h *hub) manifests(ctx context.Context, config string) ([]workv1.Manifest, error) {
	own := "bootstrap-hub-kubeconfig"
	var others []any
	if config != "" {
		o := cluster.KlusterletConfig(config)
		if err := h.direct.Get(ctx, client.ObjectKeyFromObject(o), o); err != nil {
			return nil, err
		}
		own += "-current-hub"
		others, _, _ = unstructured.NestedSlice(o.Object, "spec", "multipleHubsConfig", "bootstrapKubeConfigs", "localSecretsConfig", "kubeConfigSecrets")
	}
	secrets := map[string][]byte{own: h.BootstrapKubeconfig()}
	for _, other := range others {
		fields, _ := other.(map[string]any)
		secret := &corev1.Secret{}
		name, _, _ := unstructured.NestedString(fields, "name")
		if err := h.direct.Get(ctx, client.ObjectKey{Namespace: "multicluster-engine", Name: name}, secret); err != nil {
			return nil, err
		}
		secrets[name] = secret.Data[cluster.KubeconfigKey]
	}
	var manifests []workv1.Manifest
	for name, kubeconfig := range secrets {
		text, err := json.Marshal(&corev1.Secret{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
			ObjectMeta: metav1.ObjectMeta{Namespace: "open-cluster-management-agent", Name: name},
			Data:       map[string][]byte{cluster.KubeconfigKey: kubeconfig},
		})
		if err != nil {
			return nil, err
		}
		manifests = append(manifests, workv1.Manifest{RawExtension: runtime.RawExtension{Raw: text}})
	}
	return manifests, nil
}
