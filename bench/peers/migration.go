package main

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
)

// ordered is a migration that an object of kind StorageVersionMigration orders: the API server's own kind, or the one of
// kube-storage-version-migrator.
type ordered struct {
	child   *child
	objects dynamic.ResourceInterface
	order   *unstructured.Unstructured
	// started is what has to happen after the order, or nil.
	started func(context.Context) error
	// finished says what the migrator still does after it has set the condition.
	finished func(context.Context) error
}

// begin orders the migration. After a crash the order is there already.
func (m *ordered) begin(ctx context.Context) error {
	if _, err := m.objects.Create(ctx, m.order, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	if m.started == nil {
		return nil
	}
	limited, cancel := context.WithTimeoutCause(ctx, faultLimit, errLimit)
	defer cancel()
	return m.started(limited)
}

func (m *ordered) wait(ctx context.Context) (string, error) {
	claim := "Running"
	err := m.child.during(ctx, func(ctx context.Context) error {
		return await(ctx, m.objects, m.order.GetName(), func(o *unstructured.Unstructured) bool {
			for _, condition := range []string{"Succeeded", "Failed"} {
				if conditionTrue(o, condition) {
					claim = condition
					return true
				}
			}
			return false
		})
	})
	if err != nil || m.finished == nil {
		return claim, err
	}
	return claim, m.child.during(ctx, m.finished)
}

func conditionTrue(o *unstructured.Unstructured, kind string) bool {
	conditions, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	for _, c := range conditions {
		if c, is := c.(map[string]any); is && c["type"] == kind && c["status"] == "True" {
			return true
		}
	}
	return false
}

func (m *ordered) kill() error { return m.child.crash() }

func (m *ordered) close(ctx context.Context) error {
	err := m.child.end()
	deleted := m.objects.Delete(ctx, m.order.GetName(), metav1.DeleteOptions{})
	if apierrors.IsNotFound(deleted) {
		deleted = nil
	}
	if deleted != nil {
		deleted = fmt.Errorf("delete migration %s: %w", m.order.GetName(), deleted)
	}
	return errors.Join(err, deleted)
}

// newOrder is a migration of a resource, with the fields that both kinds have.
func newOrder(apiVersion, name string, resource map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": apiVersion, "kind": "StorageVersionMigration",
		"metadata": map[string]any{"name": name},
		"spec":     map[string]any{"resource": resource},
	}}
}
