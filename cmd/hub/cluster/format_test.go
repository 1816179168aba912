package cluster

import (
	"errors"
	"os"
	"reflect"
	"strings"
	"testing"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/godwit-dev/godwit/internal/format"
)

const uid = "00000000-0000-4000-8000-000000000004"

func stateOf(t *testing.T, release, name string) string {
	t.Helper()
	text, err := os.ReadFile("../../../test/state/" + release + "/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSuffix(string(text), "\n")
}

// TestOriginalOfOtherReleases: the form of v0.1.0 is read and written, and a newer one is refused. v0.1.0 does not know DeleteOption.
func TestOriginalOfOtherReleases(t *testing.T) {
	oldest := stateOf(t, "v0.1.0", "original.json")
	annotated := func(name, text string) *clusterv1.ManagedCluster {
		mc := &clusterv1.ManagedCluster{}
		mc.Name, mc.Annotations = "c1", map[string]string{name: text}
		return mc
	}
	mc := annotated(annotationOriginal, oldest)
	original, err := OriginalOf(mc, uid)
	if err != nil {
		t.Fatal(err)
	}
	if v := reflect.ValueOf(original); v.NumField() != 4 || v.Field(0).IsZero() || v.Field(1).IsZero() || v.Field(2).IsZero() || original.DeleteOption != nil {
		t.Errorf("%+v has a field that v0.1.0 does not store: say in docs/reference/state.md what a program does that does not know it", original)
	}
	if err := original.Save(mc); err != nil || mc.Annotations[annotationOriginal] != oldest {
		t.Errorf("%v: written otherwise than v0.1.0 did:\n%s", err, mc.Annotations[annotationOriginal])
	}
	for name, mc := range map[string]*clusterv1.ManagedCluster{
		"document": annotated(annotationOriginal, stateOf(t, "newer", "original.json")), "annotation": annotated(format.Annotation, "2"),
	} {
		var failure *Error
		if name == "document" {
			if _, err := OriginalOf(mc, uid); !errors.As(err, &failure) || failure.Reason != ReasonNewerFormat || !strings.Contains(failure.Message, "c1 has format 2") {
				t.Errorf("%s: %v", name, err)
			}
			if !HasOriginal(mc, "another") || CheckOriginal(mc) == nil {
				t.Errorf("%s: it has something to restore, which is not known", name)
			}
			continue
		}
		if err := Patch(t.Context(), nil, mc, func() error { t.Error("it is edited"); return nil }); !errors.As(err, &failure) || failure.Reason != ReasonNewerFormat {
			t.Errorf("%s: patch: %v", name, err)
		}
		if err := Delete(t.Context(), nil, mc); !errors.As(err, &failure) || failure.Reason != ReasonNewerFormat {
			t.Errorf("%s: delete: %v", name, err)
		}
	}
}
