package decision

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/godwit-dev/godwit/revision/reference"
)

// TestWhyUnowned: a message says what the name of a revision without a controller begins with.
func TestWhyUnowned(t *testing.T) {
	machine := func(name string, fixed bool) reference.Reference {
		return reference.Reference{Referrer: &reference.Referrer{Kind: "VirtualMachine", Name: name}, Fixed: fixed}
	}
	for name, c := range map[string]struct {
		references []reference.Reference
		want       string
	}{
		"another name":              {[]reference.Reference{machine("db", false)}, ErrNoOwner.Error()},
		"a name that others extend": {[]reference.Reference{machine("web", false), machine("web-1", false)}, "it has no controller, and its name begins with those of VirtualMachine web and VirtualMachine web-1"},
		"a fixed field": {
			[]reference.Reference{machine("web", true), machine("web", true)},
			"it has no controller, and its name begins with that of VirtualMachine web, which names it only in fields that can't be written, or is of a kind that owns no revisions",
		},
	} {
		f := Facts{Revision: &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Name: "web-1-u1.medium-1"}}, References: c.references}
		if got := f.whyUnowned(); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
