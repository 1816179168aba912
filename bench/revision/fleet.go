package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/godwit-dev/godwit/bench/internal/frame"
	"github.com/godwit-dev/godwit/revision/decision"
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

// fleet is all VirtualMachines of a cluster. None of them runs.
type fleet struct {
	*frame.Cluster
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

// role is one of the two references of a VirtualMachine to a revision.
type role struct {
	field   string // the field of the spec; the field of the status ends in Ref
	fixture fixture.Fixture
	// source is the name of the old revision.
	source string
	// replacement is the new revision that godwit created, ready to be created again.
	replacement *appsv1.ControllerRevision
}

// startFleet starts a control plane that has KubeVirt's CRDs, namespaces, and no VirtualMachine yet.
func startFleet(ctx context.Context, b *frame.Bench, namespaces int) (*fleet, error) {
	c, err := b.StartCluster(ctx, controlplane.Options{})
	if err != nil {
		return nil, err
	}
	if err := cluster.Install(ctx, c.Config()); err != nil {
		return nil, err
	}
	f := &fleet{Cluster: c}
	if f.core, err = kubernetes.NewForConfig(c.User); err != nil {
		return nil, err
	}
	if f.dynamic, err = dynamic.NewForConfig(c.User); err != nil {
		return nil, err
	}
	config := rest.CopyConfig(c.User)
	config.NegotiatedSerializer = metadata.ConfigFor(config).NegotiatedSerializer
	config.ContentType = "application/json"
	if f.plain, err = rest.UnversionedRESTClientFor(config); err != nil {
		return nil, err
	}
	f.namespaces = frame.Names("team", namespaces)
	for _, name := range f.namespaces {
		if err := f.CreateNamespace(ctx, name); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// oldFixtures returns the fixtures of both roles at versions that KubeVirt can't read any more.
func oldFixtures() (instancetypes, preferences []fixture.Fixture) {
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

// vm returns the i-th VirtualMachine. All together combine each fixture of one role with each fixture of the other role.
func (f *fleet) vm(i int) *vm {
	instancetypes, preferences := oldFixtures()
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
	frame.Logf("creating %d VirtualMachines in %d namespaces", n-len(f.vms), len(f.namespaces))
	var more []*vm
	for i := len(f.vms); i < n; i++ {
		more = append(more, f.vm(i))
	}
	f.vms = append(f.vms, more...)
	return frame.Each(more, fillers, func(m *vm) error { return f.create(ctx, m) })
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
	return frame.Each(f.vms, fillers, func(m *vm) error {
		if err := f.repoint(ctx, m, func(r role) string { return r.source }); err != nil {
			return err
		}
		for _, r := range m.roles {
			if err := send(ctx, f.plain.Delete().AbsPath(revisions(m.namespace, r.replacement.Name)...)); err != nil {
				return err
			}
		}
		return f.setUnreferencedSince(ctx, m, nil)
	})
}

// endRetention dates back the start of the retention of every old revision, so that the retention has ended.
func (f *fleet) endRetention(ctx context.Context) error {
	since := time.Now().Add(-2 * decision.DefaultRetention).UTC().Format(time.RFC3339)
	return frame.Each(f.vms, fillers, func(m *vm) error { return f.setUnreferencedSince(ctx, m, &since) })
}

// setUnreferencedSince writes to the old revisions of a VirtualMachine the time since which no object refers to them. nil removes
// the time.
func (f *fleet) setUnreferencedSince(ctx context.Context, m *vm, since *string) error {
	annotations := map[string]*string{decision.UnreferencedAnnotation: since}
	if since == nil {
		annotations[decision.ToAnnotation] = nil
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

// send sends a request that asks for the smallest possible response.
func send(ctx context.Context, r *rest.Request) error {
	return r.SetHeader("Accept", "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json").MaxRetries(0).Do(ctx).Error()
}
