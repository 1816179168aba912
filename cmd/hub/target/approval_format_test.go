package target

import (
	"errors"
	"os"
	"reflect"
	"strings"
	"testing"

	operatorv1 "open-cluster-management.io/api/operator/v1"

	"github.com/godwit-dev/godwit/cmd/hub/cluster"
)

// TestApprovalOfOtherReleases: the form of v0.1.0 is read and written, and a newer one is refused.
func TestApprovalOfOtherReleases(t *testing.T) {
	annotated := func(release string) *operatorv1.ClusterManager {
		text, err := os.ReadFile("../../../test/state/" + release + "/approval.json")
		if err != nil {
			t.Fatal(err)
		}
		m := &operatorv1.ClusterManager{}
		m.Name, m.Annotations = ClusterManager, map[string]string{annotationApproval: strings.TrimSuffix(string(text), "\n")}
		return m
	}
	m := annotated("v0.1.0")
	oldest := m.Annotations[annotationApproval]
	a, err := approvalOf(m)
	if err != nil {
		t.Fatal(err)
	}
	if v := reflect.ValueOf(a); v.NumField() != 3 || v.Field(0).IsZero() || v.Field(1).IsZero() || v.Field(2).IsZero() {
		t.Errorf("%+v has a field that v0.1.0 does not store: say in docs/reference/state.md what a program does that does not know it", a)
	}
	if err := a.save(m); err != nil || m.Annotations[annotationApproval] != oldest {
		t.Errorf("%v: written otherwise than v0.1.0 did:\n%s", err, m.Annotations[annotationApproval])
	}
	var failure *cluster.Error
	if a, err := approvalOf(annotated("newer")); !errors.As(err, &failure) || failure.Reason != cluster.ReasonNewerFormat {
		t.Errorf("format 2 is read as %+v: %v", a, err)
	}
}
