package main

import (
	"context"
	"fmt"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/godwit-dev/godwit/test/kubevirt/cluster"
	"github.com/godwit-dev/godwit/test/kubevirt/fixture"
)

// shopOf is the namespace $NS of a script.
func shopOf(ts *testscript.TestScript) (s cluster.Namespace, err error) {
	config := clusterOf(ts).Config()
	s.Name = ts.Getenv("NS")
	if s.Core, err = kubernetes.NewForConfig(config); err != nil {
		return s, err
	}
	if s.Objects, err = dynamic.NewForConfig(config); err != nil {
		return s, err
	}
	return s, s.Ensure(context.Background())
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
	m := cluster.Machine{Name: args[0], Labels: map[string]string{"app": args[0]}}
	var fixtures []fixture.Fixture
	for _, arg := range args[1:] {
		switch arg {
		case "-running":
			m.Running = true
		case "-unknown":
			m.Unknown = true
		default:
			fixtures = append(fixtures, fixture.Find(arg))
		}
	}
	return s.CreateMachine(context.Background(), m, fixtures...)
}

// snapshot MACHINE NAME FIXTURE...: a snapshot with revisions of its own.
func createSnapshot(ts *testscript.TestScript, args []string) error {
	s, err := shopOf(ts)
	if err != nil {
		return err
	}
	var fixtures []fixture.Fixture
	for _, name := range args[2:] {
		fixtures = append(fixtures, fixture.Find(name))
	}
	return s.CreateSnapshot(context.Background(), args[0], args[1], fixtures...)
}

// stopped MACHINE: it has no instance any more.
func stopMachine(ts *testscript.TestScript, args []string) error {
	s, err := shopOf(ts)
	if err != nil {
		return err
	}
	return s.StopMachine(context.Background(), args[0])
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
	return s.SetUnreferenced(context.Background(), args[0], time.Now().Add(-age))
}

// refers MACHINE REVISION...: spec and status of the machine name these revisions and
// no others, and each is there.
func checkReferences(ts *testscript.TestScript, args []string) error {
	s, err := shopOf(ts)
	if err != nil {
		return err
	}
	vm, err := s.ReadMachine(context.Background(), args[0])
	if err != nil {
		return err
	}
	want := map[string]bool{}
	for _, name := range args[1:] {
		want[name] = true
		if _, err := s.Core.AppsV1().ControllerRevisions(s.Name).Get(context.Background(), name, metav1.GetOptions{}); err != nil {
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
	_, err = s.Core.AppsV1().ControllerRevisions(s.Name).Get(context.Background(), args[0], metav1.GetOptions{})
	if err == nil {
		return fmt.Errorf("controllerrevision %s is there, want it gone", args[0])
	}
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
