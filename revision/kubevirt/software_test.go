package kubevirt

import (
	"maps"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/godwit-dev/godwit/revision/decision"
	"github.com/godwit-dev/godwit/revision/reference"
)

// TestSoftware: the versions that a release's CRDs define tell what it reads.
func TestSoftware(t *testing.T) {
	t.Parallel()
	define := func(found bool, preference []string, others ...string) map[schema.GroupResource]decision.CRD {
		crds := map[schema.GroupResource]decision.CRD{}
		for _, r := range (Family{}).Describe().Resources {
			crds[r] = decision.CRD{Found: found, Versions: others}
		}
		if preference != nil {
			crds[crdOf("virtualmachinepreferences")] = decision.CRD{Found: true, Versions: preference}
		}
		return crds
	}
	for name, test := range map[string]struct {
		crds            map[schema.GroupResource]decision.CRD
		reads, upgrades bool // v1alpha2; and itself
	}{
		"v1.2 to v1.6":               {define(true, nil, v1alpha1, v1alpha2, v1beta1), true, true},
		"v1.7":                       {define(true, nil, v1beta1), false, true},
		"a later one, with v1":       {define(true, nil, v1beta1, "v1"), false, true},
		"one that is being upgraded": {define(true, []string{v1alpha1, v1alpha2, v1beta1}, v1beta1), false, true},
		"none":                       {define(false, nil), true, false},
		"nothing was read":           {nil, true, false},
	} {
		s := Family{}.Software(test.crds)
		if got := s.CanRead(v1alpha2); got != test.reads || !s.CanRead(v1beta1) || s.Upgrades != test.upgrades {
			t.Errorf("%s: %+v reads v1alpha2: %t, want %t", name, s, got, test.reads)
		}
	}
}

// TestHolds: a UID and a generation are of one spec, and an owner's name is of one owner.
func TestHolds(t *testing.T) {
	t.Parallel()
	data := whole(v1beta1, "VirtualMachinePreference", `{}`)
	gone := "db-0-u1.medium-" + aUID + "-2"
	for name, test := range map[string]struct {
		name, data, gone string
		proven           bool
	}{
		"the next version":        {"db-0-u1.medium-v1beta1-" + aUID + "-2", data, gone, true},
		"of a labelled one":       {"db-0-u1.medium-v1beta1-" + aUID + "-2", data, "db-0-u1.medium-v1alpha2-" + aUID + "-2", true},
		"another generation":      {"db-0-u1.medium-v1beta1-" + aUID + "-2", data, "db-0-u1.medium-" + aUID + "-1", false},
		"another object":          {"db-0-u1.medium-v1beta1-" + aUID + "-2", data, "db-0-u1.medium-0b9c5a0e-31a4-4c52-9a43-4f0f6dfd7a01-2", false},
		"another owner":           {"db-0-u1.medium-v1beta1-" + aUID + "-2", data, "mail-u1.medium-" + aUID + "-2", false},
		"an owner with a prefix":  {"db-0-u1.medium-v1beta1-" + aUID + "-2", data, "db-0-2-u1.medium-" + aUID + "-2", false},
		"data of another":         {"db-0-u1.medium-v1beta1-" + aUID + "-3", data, "db-0-u1.medium-" + aUID + "-3", false},
		"a name without a UID":    {"db-0--v1beta1--0", data, gone, false},
		"a gone name without":     {"db-0-u1.medium-v1beta1-" + aUID + "-2", data, "db-0-copy", false},
		"data that can't be read": {"db-0-u1.medium-v1beta1-" + aUID + "-2", "7", gone, false},
	} {
		r := storing(test.data)
		r.Name = test.name
		if proof := (Family{}).Holds(r, test.gone); (proof != "") != test.proven {
			t.Errorf("%s: %q, want a proof: %t", name, proof, test.proven)
		}
	}
}

// TestEqual: what a conversion fills in means the same as what KubeVirt leaves out. A preference
// that says no is no preference that says nothing.
func TestEqual(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		kind, one, other string
		equal            bool
	}{
		"filled in":            {"VirtualMachineInstancetype", `{"cpu":{"guest":1},"memory":{"guest":"1Gi"}}`, `{"cpu":{"guest":1,"model":"","dedicatedCPUPlacement":false,"isolateEmulatorThread":false},"memory":{"guest":"1Gi"}}`, true},
		"another model":        {"VirtualMachineInstancetype", `{"cpu":{"guest":1},"memory":{"guest":"1Gi"}}`, `{"cpu":{"guest":1,"model":"host-model"},"memory":{"guest":"1Gi"}}`, false},
		"a preference says no": {"VirtualMachinePreference", `{"devices":{"preferredAutoattachInputDevice":false}}`, `{"devices":{}}`, false},
	} {
		var stored [2]decision.StoredObject
		for i, spec := range []string{test.one, test.other} {
			s, err := Family{}.Decode(storing(whole(v1beta1, test.kind, spec)), reference.ExpectedType{})
			if err != nil {
				t.Fatal(err)
			}
			stored[i] = s
		}
		before := maps.Clone(stored[0].Object)
		if got := (Family{}).Equal(stored[0], stored[1]); got != test.equal {
			t.Errorf("%s: %t", name, got)
		}
		if len(before) != len(stored[0].Object) {
			t.Errorf("%s: the object was changed", name)
		}
	}
}

// TestComposeTakesOffWhatKubeVirtTakesOff before it stores an object.
func TestComposeTakesOffWhatKubeVirtTakesOff(t *testing.T) {
	t.Parallel()
	data := `{"apiVersion":"instancetype.kubevirt.io/v1alpha2","kind":"VirtualMachinePreference","metadata":{"name":"u1.medium","uid":"` + aUID + `","generation":2,` +
		`"labels":{"a":"b"},"annotations":{"a":"b"},"managedFields":[],"finalizers":["x/y"],"ownerReferences":[],"creationTimestamp":null},"spec":{}}`
	r := storing(data)
	s, err := Family{}.Decode(r, reference.ExpectedType{})
	if err == nil {
		s, err = Family{}.Convert(s, v1beta1)
	}
	if err != nil {
		t.Fatal(err)
	}
	composed, err := Family{}.Compose(r, s)
	want := `{"apiVersion":"instancetype.kubevirt.io/v1beta1","kind":"VirtualMachinePreference","metadata":{"creationTimestamp":null,"generation":2,"name":"u1.medium","uid":"` + aUID + `"},"spec":{}}`
	if err != nil || string(composed.Data.Raw) != want {
		t.Errorf("%s, %v, want %s", composed.Data.Raw, err, want)
	}
}
