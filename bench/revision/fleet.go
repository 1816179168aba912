package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/godwit-dev/godwit/bench/internal/measure"
	"github.com/godwit-dev/godwit/revision"
	"github.com/godwit-dev/godwit/test/controlplane"
	"github.com/godwit-dev/godwit/test/kubevirt/cluster"
	"github.com/godwit-dev/godwit/test/kubevirt/fixture"
)

const (
	group  = "instancetype.kubevirt.io"
	target = "v1beta1"
)

// fillers prepare VirtualMachines in parallel.
const fillers = 16

// fleet is all VirtualMachines of the cluster. None of them runs.
type fleet struct {
	plane      *controlplane.ControlPlane
	core       kubernetes.Interface
	dynamic    dynamic.Interface
	plain      *rest.RESTClient
	namespaces []string
	vms        []*vm
}

// vm is a VirtualMachine that names its revisions in its spec and in its status.
type vm struct {
	namespace, name string
	roles           [2]role
}

// role is what one of the two revisions of a VirtualMachine is to it.
type role struct {
	field   string // of the spec; that of the status ends in Ref
	fixture fixture.Fixture
	// source is the name of the old revision.
	source string
	// replacement is what godwit created for it, ready to be created again.
	replacement *appsv1.ControllerRevision
}

func newFleet(ctx context.Context, plane *controlplane.ControlPlane, user *rest.Config, namespaces int) (*fleet, error) {
	f := &fleet{plane: plane}
	var err error
	if f.core, err = kubernetes.NewForConfig(user); err != nil {
		return nil, err
	}
	if f.dynamic, err = dynamic.NewForConfig(user); err != nil {
		return nil, err
	}
	config := rest.CopyConfig(user)
	config.NegotiatedSerializer = metadata.ConfigFor(config).NegotiatedSerializer
	config.ContentType = "application/json"
	if f.plain, err = rest.UnversionedRESTClientFor(config); err != nil {
		return nil, err
	}
	for i := range namespaces {
		name := fmt.Sprintf("team-%03d", i)
		f.namespaces = append(f.namespaces, name)
		if _, err := f.core.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// old are the fixtures of either role at versions that KubeVirt can't read any more.
func old() (instancetypes, preferences []fixture.Fixture) {
	for _, f := range fixture.All() {
		switch {
		case f.Version == target:
		case f.Preference():
			preferences = append(preferences, f)
		default:
			instancetypes = append(instancetypes, f)
		}
	}
	return instancetypes, preferences
}

// vm is the i-th VirtualMachine. Forms and kinds take turns, each of one role with each of the
// other.
func (f *fleet) vm(i int) *vm {
	instancetypes, preferences := old()
	m := &vm{namespace: f.namespaces[i%len(f.namespaces)], name: fmt.Sprintf("vm-%06d", i)}
	m.roles[0] = role{field: "instancetype", fixture: instancetypes[i%len(instancetypes)]}
	m.roles[1] = role{field: "preference", fixture: preferences[i/len(instancetypes)%len(preferences)]}
	for i := range m.roles {
		m.roles[i].source = m.roles[i].fixture.RevisionName(m.name)
	}
	return m
}

// grow creates VirtualMachines until there are n.
func (f *fleet) grow(ctx context.Context, n int) error {
	measure.Say("creating %d VirtualMachines in %d namespaces", n-len(f.vms), len(f.namespaces))
	var more []*vm
	for i := len(f.vms); i < n; i++ {
		more = append(more, f.vm(i))
	}
	f.vms = append(f.vms, more...)
	return measure.Each(more, fillers, func(m *vm) error { return f.create(ctx, m) })
}

func (f *fleet) create(ctx context.Context, m *vm) error {
	created, err := cluster.Create(ctx, f.dynamic, fixture.VirtualMachine(m.namespace, m.name, fixture.InSpec|fixture.InStatus, m.roles[0].fixture, m.roles[1].fixture))
	if err != nil {
		return err
	}
	for _, r := range m.roles {
		if _, err := f.core.AppsV1().ControllerRevisions(m.namespace).Create(ctx, r.fixture.Revision(created), metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	return nil
}

// reset undoes the upgrade of every VirtualMachine.
func (f *fleet) reset(ctx context.Context) error {
	return measure.Each(f.vms, fillers, func(m *vm) error {
		if err := f.repoint(ctx, m, func(r role) string { return r.source }); err != nil {
			return err
		}
		for _, r := range m.roles {
			if err := send(ctx, f.plain.Delete().AbsPath(revisions(m.namespace, r.replacement.Name)...)); err != nil {
				return err
			}
		}
		return f.note(ctx, m, nil)
	})
}

// endRetention lets the retention of every old revision be over.
func (f *fleet) endRetention(ctx context.Context) error {
	since := time.Now().Add(-2 * revision.DefaultRetention).UTC().Format(time.RFC3339)
	return measure.Each(f.vms, fillers, func(m *vm) error { return f.note(ctx, m, &since) })
}

// note writes to the old revisions of a VirtualMachine since when no object refers to them; nil
// removes that.
func (f *fleet) note(ctx context.Context, m *vm, since *string) error {
	annotations := map[string]*string{revision.UnreferencedAnnotation: since}
	if since == nil {
		annotations[revision.ToAnnotation] = nil
	}
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": annotations}})
	if err != nil {
		return err
	}
	for _, r := range m.roles {
		if err := send(ctx, f.plain.Patch(types.MergePatchType).AbsPath(revisions(m.namespace, r.source)...).Body(body)); err != nil {
			return err
		}
	}
	return nil
}

// repoint makes a VirtualMachine name other revisions: in its spec, then in its status.
func (f *fleet) repoint(ctx context.Context, m *vm, to func(role) string) error {
	spec, status := map[string]any{}, map[string]any{}
	for _, r := range m.roles {
		spec[r.field] = map[string]any{"revisionName": to(r)}
		status[r.field+"Ref"] = map[string]any{"controllerRevisionRef": map[string]any{"name": to(r)}}
	}
	path := []string{"apis", "kubevirt.io", "v1", "namespaces", m.namespace, "virtualmachines", m.name}
	for _, one := range []struct {
		path    []string
		content map[string]any
	}{{path, map[string]any{"spec": spec}}, {append(path, "status"), map[string]any{"status": status}}} {
		body, err := json.Marshal(one.content)
		if err != nil {
			return err
		}
		if err := send(ctx, f.plain.Patch(types.MergePatchType).AbsPath(one.path...).Body(body)); err != nil {
			return err
		}
	}
	return nil
}

func revisions(namespace string, more ...string) []string {
	return append([]string{"apis", "apps", "v1", "namespaces", namespace, "controllerrevisions"}, more...)
}

// send asks for the smallest answer there is.
func send(ctx context.Context, r *rest.Request) error {
	return r.SetHeader("Accept", "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json").MaxRetries(0).Do(ctx).Error()
}
