package revisionupgrade

import (
	"testing"

	"github.com/godwit-dev/godwit/api/v1alpha1"
)

// TestRequestIsAboutTheRevisionThatWasFound: an upgrade by name is not about another revision that has the name later.
func TestRequestIsAboutTheRevisionThatWasFound(t *testing.T) {
	one := &v1alpha1.ControllerRevisionUpgrade{}
	if got := requestFor(one).UID; got != "" {
		t.Errorf("no revision was found, and the request is about %s", got)
	}
	one.Status.Source = &v1alpha1.RevisionSource{UID: "found"}
	if got := requestFor(one).UID; got != "found" {
		t.Errorf("the request is about %q, want the revision that was found", got)
	}
	one.Spec.TargetUID = "named"
	if got := requestFor(one).UID; got != "named" {
		t.Errorf("the request is about %q, want the revision that the spec names", got)
	}
}
