//go:build linux

package pods_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// ownNamespace has a Deployment that a user of the cluster makes, and workNamespace one of a ManifestWork.
	ownNamespace  = "shop"
	workNamespace = "given"
	replicas      = 2
)

// deployment returns a Deployment whose pods run until they are ended.
func deployment(namespace string) *appsv1.Deployment {
	count := int32(replicas)
	return &appsv1.Deployment{
		TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"}, ObjectMeta: named(namespace, "front"),
		Spec: appsv1.DeploymentSpec{
			Replicas: &count, Selector: &metav1.LabelSelector{MatchLabels: labels("front")},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels("front")},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "localhost/pause:latest", ImagePullPolicy: corev1.PullNever}}},
			},
		},
	}
}

// runOwn creates the Deployment of the cluster itself.
func (m *member) runOwn(t *testing.T) {
	t.Helper()
	if err := m.AwaitNamespace(t.Context(), ownNamespace, nil); err != nil {
		t.Fatal(err)
	}
	if err := m.Create(t.Context(), deployment(ownNamespace)); err != nil {
		t.Fatal(err)
	}
}

// giveWork creates a ManifestWork with a Deployment for a cluster, which stays when the work goes.
func (s *site) giveWork(t *testing.T, cluster string) {
	t.Helper()
	namespace := &corev1.Namespace{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"}, ObjectMeta: metav1.ObjectMeta{Name: workNamespace}}
	work := &workv1.ManifestWork{ObjectMeta: named(cluster, "front"), Spec: workv1.ManifestWorkSpec{
		DeleteOption: &workv1.DeleteOption{PropagationPolicy: workv1.DeletePropagationPolicyTypeOrphan},
		Workload: workv1.ManifestsTemplate{Manifests: []workv1.Manifest{
			{RawExtension: runtime.RawExtension{Object: namespace}}, {RawExtension: runtime.RawExtension{Object: deployment(workNamespace)}},
		}},
	}}
	if err := s.Create(t.Context(), work); err != nil {
		t.Fatal(err)
	}
}

// workloads returns, by pod, when the pod and its container began, and how often the container began.
func (m *member) workloads(t *testing.T) map[string]string {
	t.Helper()
	var all map[string]string
	await(t, "the workloads of "+m.name, func(ctx context.Context) error {
		all = map[string]string{}
		for _, namespace := range []string{ownNamespace, workNamespace} {
			pods := &corev1.PodList{}
			if err := m.List(ctx, pods, client.InNamespace(namespace)); err != nil {
				return err
			}
			if len(pods.Items) != replicas {
				return fmt.Errorf("%d pods in %s", len(pods.Items), namespace)
			}
			for _, p := range pods.Items {
				if len(p.Status.ContainerStatuses) != 1 || p.Status.ContainerStatuses[0].State.Running == nil || p.Status.StartTime == nil {
					return fmt.Errorf("pod %s has status %+v", p.Name, p.Status)
				}
				c := p.Status.ContainerStatuses[0]
				all[namespace+"/"+p.Name] = fmt.Sprintf("pod %s, container %s, %d restarts", p.Status.StartTime.Format(time.RFC3339), c.State.Running.StartedAt.Format(time.RFC3339), c.RestartCount)
			}
		}
		return nil
	})
	return all
}
