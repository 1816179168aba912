package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/godwit-dev/godwit/revision/decision"
	"github.com/godwit-dev/godwit/test/kubevirt/fixture"
)

// VirtualMachines is the resource of virtual machines.
var VirtualMachines = schema.GroupVersionResource{Group: "kubevirt.io", Version: "v1", Resource: "virtualmachines"}

// Namespace has virtual machines, snapshots and the ControllerRevisions that they refer to.
type Namespace struct {
	Name    string
	Core    kubernetes.Interface
	Objects dynamic.Interface
}

// Ensure creates the namespace, unless it exists.
func (n Namespace) Ensure(ctx context.Context) error {
	_, err := n.Core.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: n.Name}}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create namespace %s: %w", n.Name, err)
	}
	return nil
}

// Machine says how to create a virtual machine.
type Machine struct {
	Name   string
	Labels map[string]string
	// Running gives it an instance, and the revision that it was started with.
	Running bool
	// Unknown gives its stored objects a field that no version knows.
	Unknown bool
}

// CreateMachine creates a virtual machine that refers to revisions of its own, of the fixtures, in spec and status.
func (n Namespace) CreateMachine(ctx context.Context, m Machine, fixtures ...fixture.Fixture) error {
	vm := fixture.VirtualMachine(n.Name, m.Name, fixture.InSpec|fixture.InStatus, fixtures...)
	if m.Labels != nil {
		vm.SetLabels(m.Labels)
	}
	if m.Running {
		vm = fixture.Running(vm)
	}
	vm, err := Create(ctx, n.Objects, vm)
	if err != nil {
		return err
	}
	for _, f := range fixtures {
		if m.Unknown {
			f.Data = strings.Replace(f.Data, `"spec":{`, `"spec":{"experimental":true,`, 1)
		}
		if err := n.CreateRevision(ctx, f.Revision(vm)); err != nil {
			return err
		}
	}
	if m.Running {
		return n.CreateRevision(ctx, fixture.StartRevision(vm))
	}
	return nil
}

// CreateRevision creates a ControllerRevision like a client that encodes the whole object.
func (n Namespace) CreateRevision(ctx context.Context, r *appsv1.ControllerRevision) error {
	if _, err := n.Core.AppsV1().ControllerRevisions(n.Name).Create(ctx, r, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create controllerrevision %s: %w", r.Name, err)
	}
	return nil
}

// ReadMachine reads a virtual machine.
func (n Namespace) ReadMachine(ctx context.Context, name string) (*unstructured.Unstructured, error) {
	vm, err := n.Objects.Resource(VirtualMachines).Namespace(n.Name).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("read virtual machine %s: %w", name, err)
	}
	return vm, nil
}

// CloneMachine creates a virtual machine that refers to the revisions of another one.
func (n Namespace) CloneMachine(ctx context.Context, of, name string) error {
	original, err := n.ReadMachine(ctx, of)
	if err != nil {
		return err
	}
	clone := &unstructured.Unstructured{Object: map[string]any{"spec": original.Object["spec"], "status": original.Object["status"]}}
	clone.SetGroupVersionKind(original.GroupVersionKind())
	clone.SetNamespace(n.Name)
	clone.SetName(name)
	_, err = Create(ctx, n.Objects, clone)
	return err
}

// StopMachine removes the instance of a virtual machine.
func (n Namespace) StopMachine(ctx context.Context, name string) error {
	_, err := n.Objects.Resource(VirtualMachines).Namespace(n.Name).Patch(ctx, name, types.MergePatchType,
		[]byte(`{"status":{"printableStatus":"Stopped","created":false,"ready":false}}`), metav1.PatchOptions{}, "status")
	if err != nil {
		return fmt.Errorf("stop virtual machine %s: %w", name, err)
	}
	return nil
}

// CreateSnapshot creates a snapshot of a virtual machine, with revisions of its own.
func (n Namespace) CreateSnapshot(ctx context.Context, of, name string, fixtures ...fixture.Fixture) error {
	vm, err := n.ReadMachine(ctx, of)
	if err != nil {
		return err
	}
	snapshot, err := Create(ctx, n.Objects, fixture.Snapshot(vm, name))
	if err != nil {
		return err
	}
	if _, err := Create(ctx, n.Objects, fixture.SnapshotContent(vm, name, fixture.InSpec|fixture.InStatus, fixtures...)); err != nil {
		return err
	}
	for _, f := range fixtures {
		if err := n.CreateRevision(ctx, f.Revision(snapshot)); err != nil {
			return err
		}
	}
	return nil
}

// SetUnreferenced writes the time since which a revision is unreferenced.
func (n Namespace) SetUnreferenced(ctx context.Context, name string, since time.Time) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]any{
		decision.UnreferencedAnnotation: since.UTC().Format(time.RFC3339),
	}}})
	if err != nil {
		return err
	}
	if _, err := n.Core.AppsV1().ControllerRevisions(n.Name).Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		return fmt.Errorf("patch controllerrevision %s: %w", name, err)
	}
	return nil
}
