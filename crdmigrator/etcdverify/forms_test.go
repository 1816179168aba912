package etcdverify

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// kmsV2Value is a value as the KMS v2 provider writes it: EncryptedObject has the data in field 1 and the ID of
// the key in field 2.
func kmsV2Value(keyID string) string {
	return "k8s:enc:kms:v2:vault:\x0a\x03abc\x12" + string(rune(len(keyID))) + keyID + "\x28\x01"
}

func protobuf(t *testing.T, apiVersion string) string {
	t.Helper()
	text, err := (&runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: apiVersion, Kind: "Secret"}, Raw: []byte("hunter2")}).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return "k8s\x00" + string(text)
}

func TestScanFormsCountsHowObjectsAreStored(t *testing.T) {
	stored := table{
		"/registry/secrets/a/1":      "k8s:enc:aescbc:v1:key1:\x00\x01:\x02",
		"/registry/secrets/a/2":      "k8s:enc:aescbc:v1:key2:\x00",
		"/registry/secrets/b/1":      "k8s:enc:secretbox:v1:key2:\x00",
		"/registry/secrets/b/2":      kmsV2Value("first"),
		"/registry/secrets/b/3":      kmsV2Value("second"),
		"/registry/secrets/b/4":      protobuf(t, "v1"),
		"/registry/secrets/b/5":      `{"apiVersion":"example.com/v2"}`,
		"/registry/secrets/b/6":      "hunter2",
		"/registry/secrets/b/7":      "k8s:enc:kms:v2:vault:hunter2",
		"/registry/secretstores/b/8": protobuf(t, "v1"),
	}
	got, err := ScanForms(t.Context(), stored, DefaultPrefix, Folder(schema.GroupResource{Resource: "secrets"}, false), "")
	if err != nil {
		t.Fatal(err)
	}
	want := Forms{
		Objects: 9,
		ByForm: map[string]int64{
			"k8s:enc:aescbc:v1:key1": 1, "k8s:enc:aescbc:v1:key2": 1, "k8s:enc:secretbox:v1:key2": 1,
			"k8s:enc:kms:v2:vault:first": 1, "k8s:enc:kms:v2:vault:second": 1, "v1": 1, "example.com/v2": 1,
		},
		Unreadable:    2,
		UnreadableWhy: "/registry/secrets/b/6: " + errNoForm.Error(),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if strings.Contains(got.UnreadableWhy, "hunter2") {
		t.Error("a message has a part of a value")
	}
	one, err := ScanForms(t.Context(), stored, DefaultPrefix, "secrets", "a")
	if err != nil || one.Objects != 2 || one.Uniform() || one.Proven("k8s:enc:aescbc:v1:key2") {
		t.Errorf("in one namespace: %+v, %v", one, err)
	}
}

func TestFolder(t *testing.T) {
	for want, r := range map[string]schema.GroupResource{
		"secrets":        {Resource: "secrets"},
		"services/specs": {Resource: "services"},
		"minions":        {Resource: "nodes"},
		"deployments":    {Group: "apps", Resource: "deployments"},
		"ingress":        {Group: "networking.k8s.io", Resource: "ingresses"},
		"apiextensions.k8s.io/customresourcedefinitions": {Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"},
	} {
		if got := Folder(r, false); got != want {
			t.Errorf("the folder of %s is %s, want %s", r, got, want)
		}
	}
	if got := Folder(widgets, true); got != "example.com/widgets" {
		t.Errorf("the folder of a custom resource is %s", got)
	}
}

func FuzzFormOf(f *testing.F) {
	f.Add([]byte("k8s:enc:kms:v2:vault:\x12\x01a"))
	f.Add([]byte("k8s\x00\x0a\x04\x0a\x02v1"))
	f.Fuzz(func(t *testing.T, value []byte) {
		if form, err := formOf(value); (form == "") != (err != nil) {
			t.Errorf("form %q, %v", form, err)
		}
	})
}
