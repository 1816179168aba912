package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/godwit-dev/godwit/revision"
	"github.com/godwit-dev/godwit/test/kubevirt/cluster"
	"github.com/godwit-dev/godwit/test/kubevirt/fixture"
)

var virtualMachines = schema.GroupVersionResource{Group: "kubevirt.io", Version: "v1", Resource: "virtualmachines"}

// shop is what a script has of KubeVirt: the namespace $NS and clients.
type shop struct {
	namespace string
	core      kubernetes.Interface
	dynamic   dynamic.Interface
}

func shopOf(ts *testscript.TestScript) (*shop, error) {
	config := clusterOf(ts).Config()
	core, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	objects, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	s := &shop{ts.Getenv("NS"), core, objects}
	_, err = core.CoreV1().Namespaces().Create(context.Background(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}}, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		err = nil
	}
	return s, err
}

// machine NAME [-running] [-unknown] FIXTURE...: a virtual machine that refers to its
// own revisions of the fixtures in spec and status. With -running it has an instance,
// and the revision that it was started with; with -unknown the stored objects have a
// field that no version knows.
func createMachine(ts *testscript.TestScript, args []string) error {
	s, err := shopOf(ts)
	if err != nil {
		return err
	}
	running, unknown := false, false
	var fixtures []fixture.Fixture
	for _, arg := range args[1:] {
		switch arg {
		case "-running":
			running = true
		case "-unknown":
			unknown = true
		default:
			fixtures = append(fixtures, fixture.Find(arg))
		}
	}
	vm := fixture.VirtualMachine(s.namespace, args[0], fixture.InSpec|fixture.InStatus, fixtures...)
	vm.SetLabels(map[string]string{"app": args[0]})
	if running {
		vm = fixture.Running(vm)
	}
	if vm, err = cluster.Create(context.Background(), s.dynamic, vm); err != nil {
		return err
	}
	for _, f := range fixtures {
		if unknown {
			f.Data = strings.Replace(f.Data, `"spec":{`, `"spec":{"experimental":true,`, 1)
		}
		if err := s.create(f.Revision(vm)); err != nil {
			return err
		}
	}
	if running {
		return s.create(fixture.StartRevision(vm))
	}
	return nil
}

func (s *shop) create(r *appsv1.ControllerRevision) error {
	_, err := s.core.AppsV1().ControllerRevisions(s.namespace).Create(context.Background(), r, metav1.CreateOptions{})
	return err
}

// snapshot MACHINE NAME FIXTURE...: a snapshot with revisions of its own.
func createSnapshot(ts *testscript.TestScript, args []string) error {
	s, err := shopOf(ts)
	if err != nil {
		return err
	}
	vm, err := s.machine(args[0])
	if err != nil {
		return err
	}
	var fixtures []fixture.Fixture
	for _, name := range args[2:] {
		fixtures = append(fixtures, fixture.Find(name))
	}
	snapshot, err := cluster.Create(context.Background(), s.dynamic, fixture.Snapshot(vm, args[1]))
	if err != nil {
		return err
	}
	if _, err := cluster.Create(context.Background(), s.dynamic, fixture.SnapshotContent(vm, args[1], fixture.InSpec|fixture.InStatus, fixtures...)); err != nil {
		return err
	}
	for _, f := range fixtures {
		if err := s.create(f.Revision(snapshot)); err != nil {
			return err
		}
	}
	return nil
}

// stopped MACHINE: it has no instance any more.
func stopMachine(ts *testscript.TestScript, args []string) error {
	s, err := shopOf(ts)
	if err != nil {
		return err
	}
	_, err = s.dynamic.Resource(virtualMachines).Namespace(s.namespace).Patch(context.Background(), args[0], types.MergePatchType,
		[]byte(`{"status":{"printableStatus":"Stopped","created":false,"ready":false}}`), metav1.PatchOptions{}, "status")
	return err
}

// unreferenced REVISION AGE: sets since when no object has referred to it.
func ageRevision(ts *testscript.TestScript, args []string) error {
	s, err := shopOf(ts)
	if err != nil {
		return err
	}
	age, err := time.ParseDuration(args[1])
	if err != nil {
		return err
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]any{
		revision.UnreferencedAnnotation: time.Now().Add(-age).UTC().Format(time.RFC3339),
	}}})
	if err != nil {
		return err
	}
	_, err = s.core.AppsV1().ControllerRevisions(s.namespace).Patch(context.Background(), args[0], types.MergePatchType, patch, metav1.PatchOptions{})
	return err
}

// refers MACHINE REVISION...: spec and status of the machine name these revisions and
// no others, and each is there.
func checkReferences(ts *testscript.TestScript, args []string) error {
	s, err := shopOf(ts)
	if err != nil {
		return err
	}
	vm, err := s.machine(args[0])
	if err != nil {
		return err
	}
	want := map[string]bool{}
	for _, name := range args[1:] {
		want[name] = true
		if _, err := s.core.AppsV1().ControllerRevisions(s.namespace).Get(context.Background(), name, metav1.GetOptions{}); err != nil {
			return err
		}
	}
	for _, path := range [][]string{
		{"spec", "instancetype", "revisionName"}, {"spec", "preference", "revisionName"},
		{"status", "instancetypeRef", "controllerRevisionRef", "name"}, {"status", "preferenceRef", "controllerRevisionRef", "name"},
	} {
		name, found, err := unstructured.NestedString(vm.Object, path...)
		if err != nil {
			return err
		}
		if found && !want[name] {
			return fmt.Errorf("%s refers to %q at %v, want one of %v", args[0], name, path, args[1:])
		}
	}
	return nil
}

// gone REVISION: it is not there.
func checkGone(ts *testscript.TestScript, args []string) error {
	s, err := shopOf(ts)
	if err != nil {
		return err
	}
	_, err = s.core.AppsV1().ControllerRevisions(s.namespace).Get(context.Background(), args[0], metav1.GetOptions{})
	if err == nil {
		return fmt.Errorf("controllerrevision %s is there, want it gone", args[0])
	}
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

func (s *shop) machine(name string) (*unstructured.Unstructured, error) {
	return s.dynamic.Resource(virtualMachines).Namespace(s.namespace).Get(context.Background(), name, metav1.GetOptions{})
}
