package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var virtualMachines = schema.GroupVersionResource{Group: "kubevirt.io", Version: "v1", Resource: "virtualmachines"}

// mustBeUpgraded returns the new revisions of every VirtualMachine, by namespace and name, in the order of its roles. It fails
// unless each VirtualMachine has both. It shares no code with the clients that it checks.
func (f *fleet) mustBeUpgraded(ctx context.Context) (map[string][2]*appsv1.ControllerRevision, error) {
	revisions, err := f.allRevisions(ctx)
	if err != nil {
		return nil, err
	}
	return f.findUpgraded(ctx, revisions)
}

func (f *fleet) findUpgraded(ctx context.Context, revisions map[string]byName) (map[string][2]*appsv1.ControllerRevision, error) {
	all := map[string][2]*appsv1.ControllerRevision{}
	for _, namespace := range f.namespaces {
		vms, err := f.dynamic.Resource(virtualMachines).Namespace(namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, err
		}
		for i := range vms.Items {
			vm := &vms.Items[i]
			found, err := resolve(vm, revisions[namespace])
			if err != nil {
				return nil, fmt.Errorf("VirtualMachine %s/%s: %w", namespace, vm.GetName(), err)
			}
			all[namespace+"/"+vm.GetName()] = found
		}
	}
	if len(all) != len(f.vms) {
		return nil, fmt.Errorf("the cluster has %d VirtualMachines, want %d", len(all), len(f.vms))
	}
	return all, nil
}

// mustBeRetained fails unless all VirtualMachines are upgraded, and each old revision has the time since which no object refers
// to it, and the name of its replacement.
func (f *fleet) mustBeRetained(ctx context.Context) error {
	revisions, err := f.allRevisions(ctx)
	if err != nil {
		return err
	}
	found, err := f.findUpgraded(ctx, revisions)
	if err != nil {
		return err
	}
	for _, m := range f.vms {
		for i, r := range m.roles {
			if err := checkRetained(revisions[m.namespace][r.source], found[m.namespace+"/"+m.name][i].Name); err != nil {
				return fmt.Errorf("old revision %s/%s: %w", m.namespace, r.source, err)
			}
		}
	}
	return nil
}

// checkRetained checks one old revision.
func checkRetained(old *appsv1.ControllerRevision, replacement string) error {
	if old == nil {
		return errors.New("it is gone")
	}
	if to := old.Annotations["godwit.dev/upgraded-to"]; to != replacement {
		return fmt.Errorf("it names %q as its replacement, want %q", to, replacement)
	}
	if _, err := time.Parse(time.RFC3339, old.Annotations["godwit.dev/unreferenced-since"]); err != nil {
		return fmt.Errorf("it has no time since when no object refers to it: %w", err)
	}
	return nil
}

// mustBeRemoved fails unless all VirtualMachines are upgraded, and no old revision is left.
func (f *fleet) mustBeRemoved(ctx context.Context) error {
	revisions, err := f.allRevisions(ctx)
	if err != nil {
		return err
	}
	if _, err := f.findUpgraded(ctx, revisions); err != nil {
		return err
	}
	n := 0
	for _, all := range revisions {
		n += len(all)
	}
	if n != 2*len(f.vms) {
		return fmt.Errorf("%d revisions of %d VirtualMachines are left, want 2 of each", n, len(f.vms))
	}
	return nil
}

// byName has the revisions of one namespace, by name.
type byName map[string]*appsv1.ControllerRevision

// allRevisions returns the revisions of all namespaces, by namespace.
func (f *fleet) allRevisions(ctx context.Context) (map[string]byName, error) {
	all := map[string]byName{}
	for _, namespace := range f.namespaces {
		revisions, err := f.revisions(ctx, namespace)
		if err != nil {
			return nil, err
		}
		all[namespace] = revisions
	}
	return all, nil
}

func (f *fleet) revisions(ctx context.Context, namespace string) (byName, error) {
	list, err := f.core.AppsV1().ControllerRevisions(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	all := make(byName, len(list.Items))
	for i := range list.Items {
		all[list.Items[i].Name] = &list.Items[i]
	}
	return all, nil
}

// resolve follows the references of a VirtualMachine, in its spec and in its status. It fails unless they name revisions that the
// VirtualMachine owns, with the right kind at the target version.
func resolve(vm *unstructured.Unstructured, revisions byName) ([2]*appsv1.ControllerRevision, error) {
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
		r := revisions[name]
		switch {
		case name != recorded:
			return found, fmt.Errorf("its spec names revision %q as its %s, its status %q", name, field, recorded)
		case r == nil:
			return found, fmt.Errorf("its %s is revision %q, which does not exist", field, name)
		case !metav1.IsControlledBy(r, vm):
			return found, fmt.Errorf("its %s is revision %s, which is not its own", field, name)
		}
		var data struct{ APIVersion, Kind string }
		if err := json.Unmarshal(r.Data.Raw, &data); err != nil {
			return found, fmt.Errorf("its %s is revision %s, which can't be read: %w", field, name, err)
		}
		if data.APIVersion != group+"/"+target || !strings.HasSuffix(strings.ToLower(data.Kind), field) {
			return found, fmt.Errorf("its %s is revision %s, which stores a %s of %s", field, name, data.Kind, data.APIVersion)
		}
		found[i] = r
	}
	return found, nil
}

// keepReplacements keeps the revisions that godwit has created, ready to be created again.
func (f *fleet) keepReplacements(ctx context.Context) error {
	found, err := f.mustBeUpgraded(ctx)
	if err != nil {
		return err
	}
	for _, m := range f.vms {
		for i := range m.roles {
			r := &m.roles[i]
			created := found[m.namespace+"/"+m.name][i]
			r.replacement = &appsv1.ControllerRevision{
				TypeMeta: metav1.TypeMeta{APIVersion: appsv1.SchemeGroupVersion.String(), Kind: "ControllerRevision"},
				ObjectMeta: metav1.ObjectMeta{
					Name: created.Name, Namespace: created.Namespace, Labels: created.Labels,
					Annotations: created.Annotations, OwnerReferences: created.OwnerReferences,
				},
				Data: created.Data, Revision: created.Revision,
			}
		}
	}
	return nil
}
