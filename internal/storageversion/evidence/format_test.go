package evidence

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/godwit-dev/godwit/internal/format"
	"github.com/godwit-dev/godwit/internal/format/formattest"
	"github.com/godwit-dev/godwit/internal/kube/kubetest"
)

// TestCheckpointOfOtherReleases: the form of v0.1.0 is read and written, and a newer one is refused.
func TestCheckpointOfOtherReleases(t *testing.T) {
	load := func(text string) (Checkpoint, error) {
		return AnnotationJournal{}.Load(t.Context(), kubetest.Widgets(func(crd *apiextensionsv1.CustomResourceDefinition) {
			crd.Annotations = map[string]string{CheckpointAnnotation: text}
		}))
	}
	oldest := formattest.Frozen(t, "checkpoint.json")
	want := formattest.Same[stored](t, oldest, ".Proof").Checkpoint
	got, err := load(oldest)
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v: (-want +got):\n%s", err, diff)
	}
	var newer *format.NewerError
	if c, err := load(formattest.Newer(t, "checkpoint.json")); !errors.As(err, &newer) || newer.Format != "2" || !c.IsZero() {
		t.Errorf("format 2 is read as %+v: %v", c, err)
	}
}
