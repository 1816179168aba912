package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	group  = "instancetype.kubevirt.io"
	target = "v1beta1"
)

var virtualMachines = schema.GroupVersionResource{Group: "kubevirt.io", Version: "v1", Resource: "virtualmachines"}

// mustBeUpgraded keeps the measurement honest: what is timed has to be work. It finds
// the new revisions of every machine, by namespace and name, in the order of its roles.
// It shares no code with what it judges.
func (f *fleet) mustBeUpgraded(ctx context.Context) (map[string][2]*appsv1.ControllerRevision, error) {
	all := map[string][2]*appsv1.ControllerRevision{}
	for _, namespace := range f.namespaces {
		there, err := f.revisions(ctx, namespace)
		if err != nil {
			return nil, err
		}
		vms, err := f.dynamic.Resource(virtualMachines).Namespace(namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, err
		}
		for i := range vms.Items {
			vm := &vms.Items[i]
			found, err := resolve(vm, there)
			if err != nil {
				return nil, fmt.Errorf("virtual machine %s/%s: %w", namespace, vm.GetName(), err)
			}
			all[namespace+"/"+vm.GetName()] = found
		}
	}
	if len(all) != len(f.machines) {
		return nil, fmt.Errorf("%d virtual machines are there, want %d", len(all), len(f.machines))
	}
	return all, nil
}

// mustBeRid: besides, nothing is left that is old.
func (f *fleet) mustBeRid(ctx context.Context) error {
	if _, err := f.mustBeUpgraded(ctx); err != nil {
		return err
	}
	n := 0
	for _, namespace := range f.namespaces {
		there, err := f.revisions(ctx, namespace)
		if err != nil {
			return err
		}
		n += len(there)
	}
	if n != 2*len(f.machines) {
		return fmt.Errorf("%d revisions are left of %d machines, want 2 of each", n, len(f.machines))
	}
	return nil
}

func (f *fleet) revisions(ctx context.Context, namespace string) (map[string]*appsv1.ControllerRevision, error) {
	list, err := f.core.AppsV1().ControllerRevisions(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	all := make(map[string]*appsv1.ControllerRevision, len(list.Items))
	for i := range list.Items {
		all[list.Items[i].Name] = &list.Items[i]
	}
	return all, nil
}

// resolve follows the references of a machine, in its spec and in its status, to
// revisions of its own that hold what they should, at the target version.
func resolve(vm *unstructured.Unstructured, there map[string]*appsv1.ControllerRevision) ([2]*appsv1.ControllerRevision, error) {
	var found [2]*appsv1.ControllerRevision
	for i, field := range []string{"instancetype", "preference"} {
		name, _, err := unstructured.NestedString(vm.Object, "spec", field, "revisionName")
		if err != nil {
			return found, err
		}
		recorded, _, err := unstructured.NestedString(vm.Object, "status", field+"Ref", "controllerRevisionRef", "name")
		if err != nil {
			return found, err
		}
		r := there[name]
		switch {
		case name != recorded:
			return found, fmt.Errorf("its spec names revision %q as its %s, its status %q", name, field, recorded)
		case r == nil:
			return found, fmt.Errorf("its %s is revision %q, which is not there", field, name)
		case !metav1.IsControlledBy(r, vm):
			return found, fmt.Errorf("its %s is revision %s, which is not its own", field, name)
		}
		var data struct{ APIVersion, Kind string }
		if err := json.Unmarshal(r.Data.Raw, &data); err != nil {
			return found, fmt.Errorf("its %s is revision %s, which can't be read: %w", field, name, err)
		}
		if data.APIVersion != group+"/"+target || !strings.HasSuffix(strings.ToLower(data.Kind), field) {
			return found, fmt.Errorf("its %s is revision %s, which holds a %s of %s", field, name, data.Kind, data.APIVersion)
		}
		found[i] = r
	}
	return found, nil
}
