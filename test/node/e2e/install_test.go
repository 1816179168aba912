package e2e_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-dev/godwit/api/v1alpha1"
)

// TestInstall: the chart of a release installs the manager, which migrates by itself with the default values, and its removal keeps the
// CRDs of the chart, the migration and every object.
func TestInstall(t *testing.T) {
	s := newStage(t, version)
	g := s.define("install.example.com", 500)
	s.install(version, merged(g.values(), map[string]any{"operator": map[string]any{"replicas": 2}}))
	s.expectReady(version, 2)
	g.flip()
	g.awaitMigrated()
	t.Logf("resident memory of the pods in MiB: %v", s.memory())

	events := &corev1.EventList{}
	if err := s.List(t.Context(), events); err != nil {
		t.Fatal(err)
	}
	var reasons []string
	for _, e := range events.Items {
		if e.InvolvedObject.Name == g.crd() {
			reasons = append(reasons, e.Reason)
		}
	}
	if !strings.Contains(strings.Join(reasons, " "), "Succeeded") {
		t.Errorf("events of the migration are %q, want one that it has succeeded", reasons)
	}
	s.expectReady(version, 2)

	s.helm("uninstall", manager, "--wait")
	s.await("the pods to be gone", func(context.Context) error {
		if left := s.pods(); len(left) > 0 {
			return fmt.Errorf("%d pods are left", len(left))
		}
		return nil
	})
	if err := s.Get(t.Context(), client.ObjectKey{Name: g.crd()}, &v1alpha1.CRDMigration{}); err != nil {
		t.Errorf("the migration is not kept: %v", err)
	}
	roles, err := s.Clients.RbacV1().ClusterRoles().List(t.Context(), metav1.ListOptions{LabelSelector: "app.kubernetes.io/instance=" + manager})
	if err != nil || len(roles.Items) > 0 {
		t.Errorf("roles are left: %v: %v", roles.Items, err)
	}
	g.expectMigrated()
}
