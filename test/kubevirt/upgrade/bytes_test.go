package upgrade_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/godwit-dev/godwit/revision"
	"github.com/godwit-dev/godwit/revision/correction"
	"github.com/godwit-dev/godwit/revision/decision"
	"github.com/godwit-dev/godwit/revision/reference"
	"github.com/godwit-dev/godwit/test/kubevirt/cluster"
	"github.com/godwit-dev/godwit/test/kubevirt/fixture"
)

// asWritten is a fixture as a script or a backup tool writes it: with spaces, and with
// & < > in a text. The API server would write the same data in other bytes.
func asWritten(t *testing.T, f fixture.Fixture) fixture.Fixture {
	t.Helper()
	data := strings.Replace(f.Data, `"guest":1}`, `"guest":1,"model":"a & b <c>"}`, 1)
	if data == f.Data {
		t.Fatalf("%s has no such field", f.Name)
	}
	f.Data = spaced(t, data)
	return f
}

func spaced(t *testing.T, data string) string {
	t.Helper()
	var text bytes.Buffer
	if err := json.Indent(&text, []byte(data), "", "  "); err != nil {
		t.Fatal(err)
	}
	return text.String()
}

// createAsWritten creates a revision with the very bytes of its data.
func (y *testNamespace) createAsWritten(r *appsv1.ControllerRevision) *appsv1.ControllerRevision {
	y.t.Helper()
	created, err := cluster.CreateRevision(y.t.Context(), y.core, r)
	y.must(created, err)
	y.mustStore(r.Name, string(r.Data.Raw))
	return created
}

// mustStore compares the bytes of a revision's data in etcd.
func (y *testNamespace) mustStore(name, data string) {
	y.t.Helper()
	stored, err := shared.Etcd().Get(y.t.Context(), "/registry/controllerrevisions/"+y.namespace+"/"+name)
	y.must(stored, err)
	if len(stored.Kvs) != 1 || !bytes.Contains(stored.Kvs[0].Value, []byte(data)) {
		y.t.Errorf("etcd does not hold the data of %s as they were written", name)
	}
}

// TestDataAsOthersWriteThem: each write of a revision leaves the bytes of its data as
// they are, so that the API server, which compares bytes, takes it.
func TestDataAsOthersWriteThem(t *testing.T) {
	for name, test := range map[string]func(*testNamespace){
		"relabel": func(y *testNamespace) {
			f := asWritten(t, fixture.Find("F3/VirtualMachineClusterInstancetype/unlabelled"))
			r := y.createAsWritten(f.Revision(y.create(fixture.VirtualMachine(y.namespace, "web", both, f))))
			y.mustBe(y.run(decision.Policy{}), r.Name, revision.Succeeded, nil)
			if got := y.revisions()[r.Name].Labels["instancetype.kubevirt.io/object-version"]; got != "v1beta1" {
				y.t.Errorf("its version is labelled %q", got)
			}
			y.mustStore(r.Name, f.Data)
		},
		"upgrade, pinned again, removed": func(y *testNamespace) {
			f := asWritten(t, instancetype)
			r := y.createAsWritten(f.Revision(y.create(fixture.VirtualMachine(y.namespace, "web", both, f))))
			y.mustBe(y.run(decision.Policy{}), r.Name, revision.Retained, decision.ReasonRetained)
			y.mustStore(r.Name, f.Data)
			y.change(machines, "web", "", set(r.Name, "spec", "instancetype", "revisionName"))
			y.mustBe(y.run(decision.Policy{}), r.Name, revision.Retained, decision.ReasonRetained)
			y.mustStore(r.Name, f.Data)
			y.retire()
			y.mustHave("web" + instancetypeTail)
		},
		"rollback": func(y *testNamespace) {
			f := asWritten(t, instancetype)
			r := y.createAsWritten(f.Revision(y.create(fixture.VirtualMachine(y.namespace, "web", both, f))))
			y.run(decision.Policy{})
			back := y.advance(decision.Policy{}, revision.Request{Name: r.Name, Rollback: true})
			y.mustBe(map[string]revision.Result{r.Name: back}, r.Name, revision.RolledBack, decision.ReasonRetained)
			y.mustRefer(machines, "web", map[string]string{inSpec: r.Name, inStatus: r.Name})
			y.mustStore(r.Name, f.Data)
		},
		"a replacement that another client made": func(y *testNamespace) {
			f := asWritten(t, instancetype)
			vm := y.create(fixture.VirtualMachine(y.namespace, "web", both, f))
			r := y.createAsWritten(f.Revision(vm))
			made := virtController{y}.compose(r, f)
			made.Namespace, made.Data.Raw = y.namespace, []byte(spaced(y.t, string(made.Data.Raw)))
			y.createAsWritten(made)
			y.mustBe(y.run(decision.Policy{}), r.Name, revision.Retained, decision.ReasonRetained)
			if y.revisions()[made.Name].Annotations[decision.FromAnnotation] != r.Name {
				y.t.Error("the replacement does not say where it comes from")
			}
			y.mustStore(made.Name, string(made.Data.Raw))
			y.retire()
			y.mustHave(made.Name)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			y := newNamespace(t)
			test(y)
			y.mustResolve()
		})
	}
}

// TestRemedyOfDataAsOthersWriteThem: Fix changes metadata and leaves the bytes of the data, where
// the API server refuses a metadata patch.
func TestRemedyOfDataAsOthersWriteThem(t *testing.T) {
	t.Parallel()
	y := newNamespace(t)
	f := asWritten(t, instancetype)
	vm := y.create(fixture.VirtualMachine(y.namespace, "web", both, f))
	r := f.Revision(vm)
	r.OwnerReferences[0].APIVersion, r.OwnerReferences[0].Kind, r.OwnerReferences[0].Name = "apps/v1", "StatefulSet", "other"
	y.createAsWritten(r)
	if i := y.plan(decision.Policy{})[r.Name]; i.Reason != decision.ReasonUnexpectedOwner {
		t.Errorf("it is %s (%s), want %s", i.Action, i.Reason, decision.ReasonUnexpectedOwner)
	}

	_, err := y.core.AppsV1().ControllerRevisions(y.namespace).Patch(t.Context(), r.Name, types.MergePatchType,
		[]byte(`{"metadata":{"labels":{"a":"b"}}}`), metav1.PatchOptions{})
	if !apierrors.IsInvalid(err) {
		t.Errorf("the patch of a client is answered with %v, want a 422", err)
	}
	key := types.NamespacedName{Namespace: y.namespace, Name: r.Name}
	corrected := correction.Correction{Owner: reference.Owner{Kind: "VirtualMachine", Name: "web"}, Labels: map[string]string{"a": "b"}}
	for _, want := range []bool{true, false} { // the second time nothing is left to write
		if written, err := y.corrector().Fix(t.Context(), key, corrected); err != nil || written != want {
			t.Fatalf("Fix() = %t, %v; want %t", written, err, want)
		}
	}
	y.mustStore(r.Name, f.Data)
	fixed := y.revisions()[r.Name]
	if owner := metav1.GetControllerOf(fixed); owner == nil || owner.UID != vm.GetUID() || len(fixed.OwnerReferences) != 1 || fixed.Labels["a"] != "b" {
		t.Errorf("its owners are %v, its labels %v", fixed.OwnerReferences, fixed.Labels)
	}
	y.mustBe(y.run(decision.Policy{}), r.Name, revision.Retained, decision.ReasonRetained)
}

// TestFixLeavesOtherFamilies: a StatefulSet's revision is not written.
func TestFixLeavesOtherFamilies(t *testing.T) {
	t.Parallel()
	y := newNamespace(t)
	start := fixture.StartRevision(y.create(fixture.VirtualMachine(y.namespace, "web", both)))
	y.createAsWritten(start)
	_, err := y.corrector().Fix(t.Context(), types.NamespacedName{Namespace: y.namespace, Name: start.Name},
		correction.Correction{Labels: map[string]string{"a": "b"}})
	if !errors.Is(err, decision.ErrNotInFamily) {
		t.Errorf("Fix() = %v, want %v", err, decision.ErrNotInFamily)
	}
}
