package releasecheck

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/godwit-dev/godwit/internal/fixtest"
	"github.com/godwit-dev/godwit/internal/kube/kubetest"
)

// required gives a version's schema a field that is required.
func required(version, name string) kubetest.Edit {
	return func(crd *apiextensionsv1.CustomResourceDefinition) {
		fields(version, name)(crd)
		versionOf(crd, version).Schema.OpenAPIV3Schema.Required = []string{name}
	}
}

func scope(s apiextensionsv1.ResourceScope) kubetest.Edit {
	return func(crd *apiextensionsv1.CustomResourceDefinition) { crd.Spec.Scope = s }
}

// Two files show what holds for each cluster that has the previous release, and no more.
func TestCompared(t *testing.T) {
	crd := kubetest.Widgets
	cases := map[string]struct {
		reason         string
		previous, next *apiextensionsv1.CustomResourceDefinition
		want           []string
	}{
		"new": {
			"no cluster has objects of it", nil, crd(has("v1*")), []string{"Safe removes "},
		},
		"same":    {"", crd(has("v1", "v2*")), crd(has("v1", "v2*")), []string{"Safe removes "}},
		"added":   {"", crd(has("v1*")), crd(has("v1*", "v2")), []string{"Safe removes "}},
		"flipped": {"objects at v1 stay readable", crd(has("v1*", "v2")), crd(has("v1", "v2*")), []string{"Safe removes "}},
		"served version removed": {
			"objects may still be stored at it, and clients use it", crd(has("v1", "v2*")), crd(has("v2*")),
			[]string{"Unknown removes v1", "Unknown ClusterNotRead", "Unknown ReferencesUnread", "Safe RemovedWhileServed"},
		},
		"unserved version removed": {
			"objects may still be stored at it", crd(has("v1-", "v2*")), crd(has("v2*")),
			[]string{"Unknown removes v1", "Unknown ClusterNotRead"},
		},
		"version not served": {"clients may use it", crd(has("v1", "v2*")), crd(has("v1-", "v2*")), []string{"Unknown removes ", "Unknown ReferencesUnread"}},
		"storage version removed": {
			"the API server has it in status.storedVersions, wherever the previous release is", crd(has("v1*", "v2")), crd(has("v2*")),
			[]string{"Refused removes v1", "Refused StoredVersionRemoved", "Safe RemovedWhileServed"},
		},
		"status in the file": {
			"it is of another time, or of no cluster", crd(has("v1", "v2*"), kubetest.Stored("v0")), crd(has("v1", "v2*")), []string{"Safe removes "},
		},
		"scope": {
			"the API server has established the CRD", crd(has("v1*"), scope("Namespaced")), crd(has("v1*"), scope("Cluster")),
			[]string{"Refused removes ", "Refused ImmutableField"},
		},
		"nothing served": {"objects can't be read", crd(has("v1*")), crd(has("v1*-")), []string{"Unsafe removes ", "Unsafe NoServedVersion", "Unknown ReferencesUnread"}},
		"field removed":  {"objects may have a value there", crd(has("v1*"), fields("v1", "color")), crd(has("v1*")), []string{"Unknown removes ", "Unknown FieldsMayBeLost"}},
		"field of another version removed": {
			"the storage version has what is stored", crd(has("v1", "v2*"), fields("v1", "color")), crd(has("v1", "v2*")), []string{"Safe removes "},
		},
		"field required":          {"objects that exist lack it", crd(has("v1*")), crd(has("v1*"), required("v1", "owner")), []string{"Unknown removes ", "Unknown StricterSchema"}},
		"field required already":  {"", crd(has("v1*"), required("v1", "owner")), crd(has("v1*"), required("v1", "owner")), []string{"Safe removes "}},
		"field required unserved": {"no client writes at it", crd(has("v1", "v2*")), crd(has("v1-", "v2*"), required("v1", "owner")), []string{"Unknown removes ", "Unknown ReferencesUnread"}},
		"previous release without a storage version": {
			"it is on no cluster", crd(has("v1", "v2")), crd(has("v2*")),
			[]string{"Unknown removes v1", "Unknown ClusterNotRead", "Unknown ReferencesUnread", "Safe RemovedWhileServed"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			check := For(Compared(tc.previous, tc.next, "next.yaml"))
			if diff := cmp.Diff(append(tc.want, "Safe NotDryRun"), sorted(resultsOf(check))); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			for _, f := range check.Reasons {
				if err := fixtest.Check(f.Finding); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// Each constraint that a field gets may refuse objects that exist, and goes without a finding in the other direction. Another type is
// refused in both, and keeps the finding that a plain comparison of fields has.
func TestStricter(t *testing.T) {
	for name, tc := range map[string]struct {
		loose, strict string // JSON schemas of a field
		retyped       bool
	}{
		"multipleOf":        {`{"type":"integer"}`, `{"type":"integer","multipleOf":2}`, false},
		"larger multipleOf": {`{"type":"integer","multipleOf":2}`, `{"type":"integer","multipleOf":4}`, false},
		"exclusiveMinimum":  {`{"type":"integer","minimum":1}`, `{"type":"integer","minimum":1,"exclusiveMinimum":true}`, false},
		"exclusiveMaximum":  {`{"type":"integer","maximum":1}`, `{"type":"integer","maximum":1,"exclusiveMaximum":true}`, false},
		"uniqueItems":       {`{"type":"array"}`, `{"type":"array","uniqueItems":true}`, false},
		"set":               {`{"type":"array"}`, `{"type":"array","x-kubernetes-list-type":"set"}`, false},
		"map":               {`{"type":"array","x-kubernetes-list-type":"atomic"}`, `{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["a"]}`, false},
		"fewer keys": {
			`{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["a","b"]}`,
			`{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["a"]}`, false,
		},
		"allOf":           {`{"type":"string"}`, `{"type":"string","allOf":[{"pattern":"a"}]}`, false},
		"anyOf":           {`{"type":"string"}`, `{"type":"string","anyOf":[{"pattern":"a"}]}`, false},
		"fewer of anyOf":  {`{"type":"string","anyOf":[{"pattern":"a"},{"pattern":"b"}]}`, `{"type":"string","anyOf":[{"pattern":"a"}]}`, false},
		"oneOf":           {`{"type":"string"}`, `{"type":"string","oneOf":[{"pattern":"a"}]}`, false},
		"not":             {`{"type":"string"}`, `{"type":"string","not":{"pattern":"a"}}`, false},
		"string to array": {`{"type":"string"}`, `{"type":"array"}`, true},
	} {
		t.Run(name, func(t *testing.T) {
			with := func(text string) *apiextensionsv1.CustomResourceDefinition {
				t.Helper()
				var s apiextensionsv1.JSONSchemaProps
				if err := json.Unmarshal([]byte(text), &s); err != nil {
					t.Fatal(err)
				}
				crd := kubetest.Widgets(has("v1*"), fields("v1", "color"))
				versionOf(crd, "v1").Schema.OpenAPIV3Schema.Properties["color"] = s
				return crd
			}
			want := []string{"Unknown removes ", "Unknown StricterSchema", "Safe NotDryRun"}
			if tc.retyped {
				want = slices.Insert(want, 1, "Unknown FieldsMayBeLost")
			}
			if diff := cmp.Diff(want, sorted(resultsOf(For(Compared(with(tc.loose), with(tc.strict), "next.yaml"))))); diff != "" {
				t.Errorf("stricter (-want +got):\n%s", diff)
			}
			if !tc.retyped {
				want = []string{"Safe removes ", "Safe NotDryRun"}
			}
			if diff := cmp.Diff(want, sorted(resultsOf(For(Compared(with(tc.strict), with(tc.loose), "next.yaml"))))); diff != "" {
				t.Errorf("less strict (-want +got):\n%s", diff)
			}
		})
	}
}

// sorted has the note that each comparison of files has at the end.
func sorted(lines []string) []string {
	const note = "Safe NotDryRun"
	var others []string
	for _, l := range lines {
		if l != note {
			others = append(others, l)
		}
	}
	return append(others, note)
}

// Whether a CRD that the release lacks is deleted depends on the tool that installs it.
func TestGone(t *testing.T) {
	want, gone := []string{"Unknown removes v1,v2", "Unknown CRDRemoved"}, Gone(kubetest.Widgets(has("v1", "v2*")))
	if err := fixtest.Check(gone.Reasons[0].Finding); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff(want, resultsOf(gone)); diff != "" {
		t.Error(diff)
	}
}

// With a cluster, a stricter schema is a note, unless there is no object.
func TestStricterSchemaOfALiveCRD(t *testing.T) {
	none := int64(0)
	facts := Facts{Live: kubetest.Widgets(has("v1*"), kubetest.Stored("v1")), Next: kubetest.Widgets(has("v1*"), required("v1", "owner"))}
	if diff := cmp.Diff([]string{"Safe removes ", "Safe StricterSchema"}, resultsOf(For(facts))); diff != "" {
		t.Error(diff)
	}
	facts.Objects = &none
	if diff := cmp.Diff([]string{"Safe removes "}, resultsOf(For(facts))); diff != "" {
		t.Error(diff)
	}
}
