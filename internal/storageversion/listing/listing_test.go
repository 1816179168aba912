package listing

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/godwit-dev/godwit/internal/kube"
)

func TestCoverage(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		reason   string
		coverage Coverage
		listed   int64
		begun    Proof
		ended    Proof
	}{
		"all": {
			reason:   "the list promises and shows what the API server counts",
			coverage: Coverage{Promised: 10, Counted: 10}, listed: 10, begun: Proven, ended: Proven,
		},
		"nothing": {
			reason:   "no objects, and none listed",
			coverage: Coverage{}, listed: 0, begun: Proven, ended: Proven,
		},
		"promises less": {
			reason:   "a reader of one namespace",
			coverage: Coverage{Promised: 5, Counted: 10}, listed: 5, begun: Refuted, ended: Refuted,
		},
		"promises more": {
			reason:   "a reader of another cluster",
			coverage: Coverage{Promised: 11, Counted: 10}, listed: 11, begun: Refuted, ended: Proven,
		},
		"loses a page": {
			reason:   "the list shows less than it promised",
			coverage: Coverage{Promised: 10, Counted: 10}, listed: 7, begun: Proven, ended: Refuted,
		},
		"promises nothing, shows all": {
			reason:   "a selector that every object matches",
			coverage: Coverage{Promised: kube.UnknownCount, Counted: 10}, listed: 10, begun: Inconclusive, ended: Proven,
		},
		"promises nothing, shows less": {
			reason:   "a selector",
			coverage: Coverage{Promised: kube.UnknownCount, Counted: 10}, listed: 4, begun: Inconclusive, ended: Refuted,
		},
		"promises nothing, continued": {
			reason:   "the number listed is of several resourceVersions",
			coverage: Coverage{Promised: kube.UnknownCount, Counted: 10, Continued: true}, listed: 4, begun: Inconclusive, ended: Inconclusive,
		},
		"continued, less at the end": {
			reason:   "other clients deleted objects between two resourceVersions, or the reader drops some",
			coverage: Coverage{Promised: 10, Counted: 10, Continued: true}, listed: 7, begun: Proven, ended: Inconclusive,
		},
		"not counted": {
			reason:   "the API server does not say how many there are",
			coverage: Coverage{Promised: 10, Counted: kube.UnknownCount}, listed: 10, begun: Inconclusive, ended: Inconclusive,
		},
		"neither": {
			reason:   "no number at all",
			coverage: Coverage{Promised: kube.UnknownCount, Counted: kube.UnknownCount}, listed: 10, begun: Inconclusive, ended: Inconclusive,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := test.coverage.Begun(); got != test.begun {
				t.Errorf("after the first page: %d, want %d: %s", got, test.begun, test.reason)
			}
			if got := test.coverage.Ended(test.listed); got != test.ended {
				t.Errorf("after the last page: %d, want %d: %s", got, test.ended, test.reason)
			}
		})
	}
}

func TestIncompleteErrorNamesCauseAndRemedy(t *testing.T) {
	t.Parallel()
	widgets := schema.GroupResource{Group: "example.com", Resource: "widgets"}
	const reader, proxy = "mgr.GetAPIReader()", "use the address of the API server itself"
	for name, test := range map[string]struct {
		err           *IncompleteError
		cause, remedy string
	}{
		"a reader of one namespace": {&IncompleteError{Resource: widgets, Listed: 5, Counted: 10, Live: true, Reader: true}, "shows 5 objects, the API server counts 10", reader},
		"a cache":                   {&IncompleteError{Resource: widgets, Reader: true}, "comes from a cache", reader},
		"a page that is lost":       {&IncompleteError{Resource: widgets, Listed: 3, Counted: 7, Live: true}, "shows 3 objects, the API server counts 7", proxy},
	} {
		err := error(test.err)
		for _, part := range []string{ReasonIncompleteList.Name, "widgets.example.com", test.cause, test.remedy} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%s: %q does not contain %q", name, err, part)
			}
		}
	}
}
