package upgrade_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/godwit-dev/godwit/revision"
	"github.com/godwit-dev/godwit/revision/decision"
	"github.com/godwit-dev/godwit/test/kubevirt/cluster"
	"github.com/godwit-dev/godwit/test/kubevirt/fixture"
)

// TestInventoryOfManyPages: 800 machines of two references each in namespaces that end
// at the end of a page, one before and one after, and whose names sort otherwise as
// names than as parts of keys. Every revision is seen once, with the references of its
// own machine and no other, though names are the same in all namespaces. Pages have 200
// objects: the lists of machines and of revisions end theirs at different machines.
func TestInventoryOfManyPages(t *testing.T) {
	t.Parallel()
	y := newNamespace(t)
	sizes := map[string]int{"inventory": 200, "inventory-a": 199, "inventory0": 201, "inventory-b": 100, "inventorya": 100}
	var work []*fleet
	for namespace, n := range sizes {
		y.must(y.core.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{}))
		for i := range n {
			work = append(work, &fleet{namespace, fmt.Sprintf("vm-%03d", i)})
		}
	}
	y.build(work)
	seen := map[string]int{}
	selector := labels.SelectorFromSet(labels.Set{"inventory": "yes"})
	for i, err := range y.upgrader(decision.Policy{}).Plan(t.Context(), revision.Scope{Selector: selector}) {
		y.must(i, err)
		vm := i.Owner.Name
		seen[i.Namespace+"/"+vm]++
		if i.Action != decision.Upgrade || len(i.References) != 1 || i.References[0].Name != vm || i.References[0].Namespace != i.Namespace || !strings.HasPrefix(i.Name, vm+"-") {
			t.Fatalf("%+v", i)
		}
	}
	for _, f := range work {
		if n := seen[f.namespace+"/"+f.vm]; n != 2 {
			t.Fatalf("%s/%s was seen with %d revisions, want 2", f.namespace, f.vm, n)
		}
	}
	if len(seen) != len(work) {
		t.Errorf("%d machines were seen, want %d: %.300v", len(seen), len(work), slices.Sorted(maps.Keys(seen)))
	}
}

// fleet is one machine of many.
type fleet struct{ namespace, vm string }

// build makes machines and their revisions, some at once.
func (y *testNamespace) build(all []*fleet) {
	y.t.Helper()
	next := make(chan *fleet)
	failed := make(chan error, 1)
	var workers sync.WaitGroup
	for range 8 {
		workers.Go(func() {
			for f := range next {
				if err := y.buildOne(y.t.Context(), f); err != nil {
					select {
					case failed <- err:
					default: // one is enough
					}
				}
			}
		})
	}
	for _, f := range all {
		next <- f
	}
	close(next)
	workers.Wait()
	select {
	case err := <-failed:
		y.t.Fatal(err)
	default:
	}
}

func (y *testNamespace) buildOne(ctx context.Context, f *fleet) error {
	vm := fixture.VirtualMachine(f.namespace, f.vm, fixture.InSpec, instancetype, preference)
	delete(vm.Object, "status")
	vm.SetLabels(map[string]string{"inventory": "yes"})
	vm, err := cluster.Create(ctx, y.dynamic, vm)
	if err != nil {
		return err
	}
	for _, of := range []fixture.Fixture{instancetype, preference} {
		if _, err := y.core.AppsV1().ControllerRevisions(f.namespace).Create(ctx, of.Revision(vm), metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	return nil
}
