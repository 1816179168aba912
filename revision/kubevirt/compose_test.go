package kubevirt

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"

	"github.com/godwit-dev/godwit/revision/decision"
	"github.com/godwit-dev/godwit/revision/reference"
)

func TestCompose(t *testing.T) {
	t.Parallel()
	labels := func(name, kind string) map[string]string {
		return map[string]string{
			"instancetype.kubevirt.io/object-generation": "2",
			"instancetype.kubevirt.io/object-kind":       kind,
			"instancetype.kubevirt.io/object-name":       name,
			"instancetype.kubevirt.io/object-uid":        "6fc1a5c4-2b8e-4b8a-9a57-0d6f2f3f9c11",
			"instancetype.kubevirt.io/object-version":    "v1beta1",
		}
	}
	named := func(name string) string {
		return strings.Replace(whole("v1alpha2", preference, `{}`), "u1.medium", name, 1)
	}
	const plain = "db-0-u1.medium-v1beta1-6fc1a5c4-2b8e-4b8a-9a57-0d6f2f3f9c11-2"
	long := strings.Repeat("a", 200)
	tests := map[string]struct {
		reason   string
		of       *appsv1.ControllerRevision
		expected reference.ExpectedType
		name     string
		labels   map[string]string
	}{
		"object": {
			reason: "KubeVirt's own name",
			of:     storing(named("u1.medium")), name: plain, labels: labels("u1.medium", preference),
		},
		"object, labels lie": {
			reason: "data first",
			of:     labelled(storing(named("u1.medium")), "name", "other", "uid", "other", "generation", "7", "kind", instancetype, "version", "v1"),
			name:   plain, labels: labels("u1.medium", preference),
		},
		"spec": {
			reason: "all from the old name",
			of:     storing(bare("", `{}`)), expected: reference.ExpectedType{Kind: preference, Name: "since-renamed"}, name: plain, labels: labels("u1.medium", preference),
		},
		"spec of a snapshot": {
			reason:   "snapshots put their own name in place of the machine's",
			of:       ownedBy(called(storing(bare("", `{}`)), "nightly-u1.medium-"+aUID+"-2"), "snapshot.kubevirt.io/v1beta1", "VirtualMachineSnapshot", "nightly"),
			expected: reference.ExpectedType{Kind: instancetype, Name: "u1.medium"},
			name:     "nightly-u1.medium-v1beta1-6fc1a5c4-2b8e-4b8a-9a57-0d6f2f3f9c11-2", labels: labels("u1.medium", instancetype),
		},
		"spec under another name": {
			reason:   "labels say what the name does not",
			of:       labelled(called(storing(bare("", `{}`)), "restored"), "uid", aUID, "generation", "2"),
			expected: reference.ExpectedType{Kind: instancetype, Name: "u1.medium"},
			name:     plain, labels: labels("u1.medium", instancetype),
		},
		"long name": {
			reason: "a label takes 63 characters, and two objects must stay two",
			of:     storing(named(strings.Repeat("n", 70))),
			name:   "db-0-" + strings.Repeat("n", 70) + "-v1beta1-6fc1a5c4-2b8e-4b8a-9a57-0d6f2f3f9c11-2",
			labels: labels(strings.Repeat("n", 54)+"-85069ddf", preference),
		},
		"too long a name": {
			reason: "253 characters, and the owner in front",
			of:     ownedBy(storing(named("u1.medium")), "kubevirt.io/v1", "VirtualMachine", long),
			name:   long + "-u1.medium-v1beta1-6fc1a5c4-2b8e-4b8a-9a57-0-10a30939", labels: labels("u1.medium", preference),
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := decodeAndConvert(t, test.of, test.expected)
			got, err := Family{}.Compose(test.of, s)
			if err != nil {
				t.Fatalf("%s: %v", test.reason, err)
			}
			if got.Name != test.name {
				t.Errorf("%s: name\n%s, want\n%s", test.reason, got.Name, test.name)
			}
			if diff := cmp.Diff(test.labels, got.Labels); diff != "" {
				t.Errorf("%s: labels (-want +got):\n%s", test.reason, diff)
			}
			back, err := Family{}.Decode(got, reference.ExpectedType{})
			if diff := cmp.Diff(s.Object, back.Object); err != nil || diff != "" {
				t.Errorf("what was composed reads otherwise: %v (-want +got):\n%s", err, diff)
			}
		})
	}
}

func decodeAndConvert(t *testing.T, r *appsv1.ControllerRevision, expected reference.ExpectedType) decision.StoredObject {
	t.Helper()
	s, err := Family{}.Decode(r, expected)
	if err != nil {
		t.Fatal(err)
	}
	if s, err = (Family{}).Convert(s, v1beta1); err != nil {
		t.Fatal(err)
	}
	return s
}

// What is at the target already is labelled, and otherwise left as it is, to the blank.
func TestComposeKeepsBytes(t *testing.T) {
	t.Parallel()
	data := strings.Replace(whole("v1beta1", preference, `{"preferredArchitecture":"arm64","x":1.50}`), ":", ": ", 3)
	old := storing(data)
	got, err := Family{}.Compose(old, decodeAndConvert(t, old, reference.ExpectedType{}))
	if err != nil || string(got.Data.Raw) != data {
		t.Errorf("data is now %s: %v, want %s", got.Data.Raw, err, data)
	}
}

func TestComposeRefuses(t *testing.T) {
	t.Parallel()
	expected := reference.ExpectedType{Kind: preference, Name: "u1.medium"}
	for name, test := range map[string]struct {
		of       *appsv1.ControllerRevision
		expected reference.ExpectedType
		want     string
	}{
		"no UID":        {of: called(storing(bare("", `{}`)), "restored"), expected: expected, want: "object-uid, instancetype.kubevirt.io/object-generation"},
		"no name":       {of: withoutOwner(called(storing(bare("", `{}`)), "restored")), expected: reference.ExpectedType{Kind: preference}, want: "object-name, instancetype.kubevirt.io/object-uid, instancetype.kubevirt.io/object-generation"},
		"no generation": {of: labelled(called(storing(bare("", `{}`)), "restored"), "uid", aUID), expected: expected, want: "it needs the labels instancetype.kubevirt.io/object-generation"},
		"no owner":      {of: withoutOwner(called(storing(whole("v1alpha2", preference, `{}`)), "restored")), want: "no controller"},
		"hostile name": {
			of: storing(strings.Replace(whole("v1alpha2", preference, `{}`), "u1.medium", "../etc", 1)), want: "subdomain",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := Family{}.Compose(test.of, decodeAndConvert(t, test.of, test.expected))
			if err == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), "prod/"+test.of.Name) {
				t.Errorf("got %v, %v, want an error with %q that names the revision", got, err, test.want)
			}
		})
	}
}

// A revision without an owner keeps the front of its name.
func TestComposeUnowned(t *testing.T) {
	t.Parallel()
	for name, old := range map[string]*appsv1.ControllerRevision{
		"before v1.3": storing(whole("v1alpha2", preference, `{}`)),
		"since v1.3":  labelled(called(storing(whole("v1alpha2", preference, `{}`)), "db-0-u1.medium-v1alpha2-"+aUID+"-2"), "version", "v1alpha2"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			old := withoutOwner(old)
			got, err := Family{}.Compose(old, decodeAndConvert(t, old, reference.ExpectedType{}))
			if want := "db-0-u1.medium-v1beta1-" + aUID + "-2"; err != nil || got.Name != want {
				t.Errorf("it is called %v: %v, want %s", got, err, want)
			}
		})
	}
}
