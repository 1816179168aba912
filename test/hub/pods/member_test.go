//go:build linux

package pods_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	operatorv1 "open-cluster-management.io/api/operator/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-dev/godwit/cmd/hub/klusterlet"
)

// member is a cluster that joins a hub.
type member struct {
	*site
	before operatorv1.KlusterletSpec
}

// startMember starts a cluster, and installs the klusterlet operator with a bootstrap kubeconfig of a hub. The operator installs the
// agents: one pod in mode Singleton, or one for registration and one for works.
func startMember(t *testing.T, name string, mode operatorv1.InstallMode, hub *site) *member {
	t.Helper()
	s := startSite(t, name, "registration-operator", "registration", "work")
	s.helm(t, "klusterlet", "klusterlet/chart/klusterlet", map[string]any{
		"replicaCount":           1,
		"bootstrapHubKubeConfig": hub.bootstrapKubeconfig(t),
		"images": map[string]any{"overrides": map[string]any{
			"operatorImage": s.images["registration-operator"], "registrationImage": s.images["registration"], "workImage": s.images["work"],
		}},
		"klusterlet": map[string]any{"clusterName": name, "mode": mode, "resourceRequirement": map[string]any{"type": "BestEffort"}},
	})
	return &member{site: s}
}

// awaitJoined waits until a cluster is available at a hub, whose user accepts it, and its agents are ready.
func (m *member) awaitJoined(t *testing.T, hub *site) {
	t.Helper()
	await(t, m.name+" to join "+hub.name, func(ctx context.Context) error { return hub.accept(ctx, m.name) })
	hub.awaitAvailable(t, m.name)
	m.awaitDeployments(t, agentNamespace, 1)
	m.before = m.spec(t)
}

// spec reads the specification of the Klusterlet.
func (m *member) spec(t *testing.T) operatorv1.KlusterletSpec {
	t.Helper()
	k := &operatorv1.Klusterlet{}
	if err := m.Get(t.Context(), client.ObjectKey{Name: "klusterlet"}, k); err != nil {
		t.Fatal(err)
	}
	if k.Spec.RegistrationConfiguration == nil {
		// The API server sets these defaults as soon as there is a configuration.
		k.Spec.RegistrationConfiguration = &operatorv1.RegistrationConfiguration{
			KubeAPIQPS: 50, KubeAPIBurst: 100, BootstrapKubeConfigs: operatorv1.BootstrapKubeConfigs{Type: operatorv1.None},
		}
	}
	return k.Spec
}

// awaitNothing waits until a cluster has nothing of a migration.
func (m *member) awaitNothing(t *testing.T) {
	t.Helper()
	for name, o := range map[client.ObjectKey]client.Object{
		{Namespace: agentNamespace, Name: klusterlet.SourceSecret}: &corev1.Secret{},
		{Namespace: agentNamespace, Name: klusterlet.TargetSecret}: &corev1.Secret{},
		{Name: "godwit:klusterlet"}:                                &rbacv1.ClusterRole{},
	} {
		await(t, fmt.Sprintf("%T %s of %s to go", o, name, m.name), func(ctx context.Context) error {
			err := m.Get(ctx, name, o)
			if err == nil {
				return fmt.Errorf("it has owners %v", o.GetOwnerReferences())
			}
			return client.IgnoreNotFound(err)
		})
	}
}

// restartAgents deletes the pods of the agents, and waits for others.
func (m *member) restartAgents(t *testing.T) {
	t.Helper()
	pods := &corev1.PodList{}
	if err := m.List(t.Context(), pods, client.InNamespace(agentNamespace)); err != nil {
		t.Fatal(err)
	}
	old := map[string]bool{}
	for i := range pods.Items {
		old[string(pods.Items[i].UID)] = true
		if err := client.IgnoreNotFound(m.Delete(t.Context(), &pods.Items[i])); err != nil {
			t.Fatal(err)
		}
	}
	await(t, "other agents of "+m.name, func(ctx context.Context) error {
		pods := &corev1.PodList{}
		if err := m.List(ctx, pods, client.InNamespace(agentNamespace)); err != nil {
			return err
		}
		for _, p := range pods.Items {
			if old[string(p.UID)] {
				return fmt.Errorf("pod %s is not gone", p.Name)
			}
		}
		if len(pods.Items) == 0 {
			return errors.New("no pod")
		}
		return nil
	})
	m.awaitDeployments(t, agentNamespace, 1)
}

// labels returns labels that select pods of a name.
func labels(name string) map[string]string { return map[string]string{"app": name} }

// named is the metadata of an object.
func named(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name}
}
