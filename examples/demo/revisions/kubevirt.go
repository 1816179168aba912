package revisions

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/godwit-dev/godwit/examples/demo/stage"
	"github.com/godwit-dev/godwit/test/kubevirt/cluster"
	"github.com/godwit-dev/godwit/test/kubevirt/fixture"
)

// oldVersions are the versions that the demo removes.
var oldVersions = []string{"v1alpha1", "v1alpha2"}

// demo is one run of the story.
type demo struct {
	stage.Stage
	shop     cluster.Namespace
	crds     []*apiextensionsv1.CustomResourceDefinition
	resolved int // references to revisions at the beginning
}

const (
	namespace = "shop"
	// running is the machine that runs. lossy has a field that no version knows. twin is a clone
	// of cloned, and shares its revisions.
	running, lossy, twin, cloned = "mail", "odd", "twin", "web"
)

// machines are the virtual machines, with the fixtures that each refers to.
var machines = []struct {
	name, since string
	fixtures    []string
}{
	{cloned, "v1alpha1 of KubeVirt v0.56: specs alone, in base64", []string{"F0/VirtualMachineClusterInstancetype/empty", "F0/VirtualMachinePreference/apiVersion"}},
	{"search", "v1alpha1, whole objects; a snapshot, nightly, has copies of its own", []string{"F1/VirtualMachineInstancetype/labelled", "F1/VirtualMachineClusterPreference/unlabelled"}},
	{running, "v1alpha2; it runs", []string{"F2/VirtualMachineClusterInstancetype/labelled", "F2/VirtualMachinePreference/labelled"}},
	{lossy, "v1alpha1, with a field that no version knows", []string{"F1/VirtualMachineInstancetype/unlabelled"}},
	{"stock", "v1beta1, labels forgotten", []string{"F3/VirtualMachineInstancetype/unlabelled"}},
	{"new", "v1beta1, as KubeVirt writes it now", []string{"F3/VirtualMachineClusterPreference/labelled"}},
}

// createRevisions creates the machines, a clone of one, and a snapshot of another. It returns
// the number of revisions.
func (d *demo) createRevisions(ctx context.Context) (int, error) {
	d.shop = cluster.Namespace{Name: namespace, Core: d.Clients, Objects: d.Objects}
	if err := d.shop.Ensure(ctx); err != nil {
		return 0, err
	}
	count := 0
	for _, m := range machines {
		if err := d.shop.CreateMachine(ctx, cluster.Machine{Name: m.name, Running: m.name == running, Unknown: m.name == lossy}, found(m.fixtures)...); err != nil {
			return 0, err
		}
		count += len(m.fixtures)
	}
	if err := d.shop.CloneMachine(ctx, cloned, twin); err != nil {
		return 0, err
	}
	return count + 1, d.shop.CreateSnapshot(ctx, "search", "nightly", fixture.Find("F1/VirtualMachineInstancetype/labelled"))
}

func found(names []string) []fixture.Fixture {
	fixtures := make([]fixture.Fixture, len(names))
	for i, name := range names {
		fixtures[i] = fixture.Find(name)
	}
	return fixtures
}

var snapshotContents = schema.GroupVersionResource{Group: "snapshot.kubevirt.io", Version: "v1beta1", Resource: "virtualmachinesnapshotcontents"}

// references counts the references to revisions that exist, and those to revisions that do not.
// The demo finds them by the form of the field names alone.
func (d *demo) references(ctx context.Context) (resolved, dangling int, err error) {
	there := map[string]bool{}
	revisions, err := d.Clients.AppsV1().ControllerRevisions(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return 0, 0, fmt.Errorf("list controllerrevisions: %w", err)
	}
	for _, r := range revisions.Items {
		there[r.Name] = true
	}
	for _, resource := range []schema.GroupVersionResource{cluster.VirtualMachines, snapshotContents} {
		list, err := d.Objects.Resource(resource).Namespace(namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return 0, 0, fmt.Errorf("list %s: %w", resource.GroupResource(), err)
		}
		for _, o := range list.Items {
			for _, name := range named(o.Object) {
				if there[name] {
					resolved++
				} else {
					dangling++
				}
			}
		}
	}
	return resolved, dangling, nil
}

// named collects every revisionName, and every name within a controllerRevisionRef.
func named(value any) []string {
	object, ok := value.(map[string]any)
	if !ok {
		return nil
	}
	var names []string
	for key, inner := range object {
		name, isText := inner.(string)
		switch {
		case key == "revisionName" && isText:
			names = append(names, name)
		case key == "controllerRevisionRef":
			if ref, ok := inner.(map[string]any); ok {
				names = append(names, fmt.Sprint(ref["name"]))
			}
		default:
			names = append(names, named(inner)...)
		}
	}
	return names
}

// revisionsAt counts the revisions whose data are at the current version, and at old ones.
func (d *demo) revisionsAt(ctx context.Context) (current, old int, err error) {
	revisions, err := d.Clients.AppsV1().ControllerRevisions(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return 0, 0, fmt.Errorf("list controllerrevisions: %w", err)
	}
	for _, r := range revisions.Items {
		if strings.HasPrefix(r.Name, "revision-start-vm-") {
			continue
		}
		var data struct{ APIVersion string }
		if err := json.Unmarshal(r.Data.Raw, &data); err != nil {
			return 0, 0, fmt.Errorf("read controllerrevision %s: %w", r.Name, err)
		}
		if data.APIVersion == "instancetype.kubevirt.io/v1beta1" {
			current++
		} else {
			old++
		}
	}
	return current, old, nil
}
