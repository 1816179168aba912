package rescue

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/godwit-dev/godwit/internal/fixtest"
	"github.com/godwit-dev/godwit/internal/format/formattest"
	"github.com/godwit-dev/godwit/internal/kube/kubetest"
)

// TestJournalOfOtherReleases: the form of v0.1.0 is read and written, and a newer one is refused.
func TestJournalOfOtherReleases(t *testing.T) {
	annotated := func(text string) *apiextensionsv1.CustomResourceDefinition {
		return kubetest.Widgets(func(crd *apiextensionsv1.CustomResourceDefinition) {
			crd.UID, crd.Annotations = "00000000-0000-4000-8000-000000000001", map[string]string{Annotation: text}
		})
	}
	oldest := formattest.Frozen(t, "rescue.json")
	want := formattest.Same[stored](t, oldest).Journal
	got, err := JournalOf(annotated(oldest))
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v: (-want +got):\n%s", err, diff)
	}
	crd := annotated(formattest.Newer(t, "rescue.json"))
	var newer *BlockedError
	if j, err := JournalOf(crd); !errors.As(err, &newer) || newer.Blocker.Reason != ReasonNewerFormat || !j.IsZero() {
		t.Fatalf("format 2 is read as %+v: %v", j, err)
	}
	if !strings.Contains(newer.Error(), "widgets.example.com has format 2, and this release of Godwit reads format 1") {
		t.Errorf("%v", newer)
	}
	if err := fixtest.Check(newer.Blocker); err != nil {
		t.Error(err)
	}
	p := PlanFor(Facts{CRD: crd, Newer: newer}, Options{})
	if p.State != Blocked || len(p.Blockers) != 1 || p.Blockers[0].Reason != ReasonNewerFormat {
		t.Errorf("the plan is %+v", p)
	}
}
