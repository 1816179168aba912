package storageversion

import (
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/godwit-dev/godwit/internal/kube"
)

func TestCoverage(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		reason   string
		coverage coverage
		listed   int64
		begun    proof
		ended    proof
	}{
		"all": {
			reason:   "the list promises and shows what the API server counts",
			coverage: coverage{promised: 10, counted: 10}, listed: 10, begun: proven, ended: proven,
		},
		"nothing": {
			reason:   "no objects, and none listed",
			coverage: coverage{}, listed: 0, begun: proven, ended: proven,
		},
		"promises less": {
			reason:   "a reader of one namespace",
			coverage: coverage{promised: 5, counted: 10}, listed: 5, begun: refuted, ended: refuted,
		},
		"promises more": {
			reason:   "a reader of another cluster",
			coverage: coverage{promised: 11, counted: 10}, listed: 11, begun: refuted, ended: proven,
		},
		"loses a page": {
			reason:   "the list shows less than it promised",
			coverage: coverage{promised: 10, counted: 10}, listed: 7, begun: proven, ended: refuted,
		},
		"promises nothing, shows all": {
			reason:   "a selector that every object matches",
			coverage: coverage{promised: kube.UnknownCount, counted: 10}, listed: 10, begun: inconclusive, ended: proven,
		},
		"promises nothing, shows less": {
			reason:   "a selector",
			coverage: coverage{promised: kube.UnknownCount, counted: 10}, listed: 4, begun: inconclusive, ended: refuted,
		},
		"promises nothing, continued": {
			reason:   "the number listed is of several resourceVersions",
			coverage: coverage{promised: kube.UnknownCount, counted: 10, continued: true}, listed: 4, begun: inconclusive, ended: inconclusive,
		},
		"continued, less at the end": {
			reason:   "other clients deleted objects between two resourceVersions, or the reader drops some",
			coverage: coverage{promised: 10, counted: 10, continued: true}, listed: 7, begun: proven, ended: inconclusive,
		},
		"not counted": {
			reason:   "the API server does not say how many there are",
			coverage: coverage{promised: 10, counted: kube.UnknownCount}, listed: 10, begun: inconclusive, ended: inconclusive,
		},
		"neither": {
			reason:   "no number at all",
			coverage: coverage{promised: kube.UnknownCount, counted: kube.UnknownCount}, listed: 10, begun: inconclusive, ended: inconclusive,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := test.coverage.begun(); got != test.begun {
				t.Errorf("after the first page: %d, want %d: %s", got, test.begun, test.reason)
			}
			if got := test.coverage.ended(test.listed); got != test.ended {
				t.Errorf("after the last page: %d, want %d: %s", got, test.ended, test.reason)
			}
		})
	}
}

func TestIncompleteListErrorNamesCauseAndRemedy(t *testing.T) {
	t.Parallel()
	widgets := schema.GroupResource{Group: "example.com", Resource: "widgets"}
	const reader, proxy = "mgr.GetAPIReader()", "use the address of the API server itself"
	for name, test := range map[string]struct {
		err           *IncompleteListError
		cause, remedy string
	}{
		"a reader of one namespace": {&IncompleteListError{Resource: widgets, Listed: 5, Counted: 10, Live: true, Reader: true}, "shows 5 objects, the API server counts 10", reader},
		"a cache":                   {&IncompleteListError{Resource: widgets, Reader: true}, "comes from a cache", reader},
		"a page that is lost":       {&IncompleteListError{Resource: widgets, Listed: 3, Counted: 7, Live: true}, "shows 3 objects, the API server counts 7", proxy},
	} {
		err := error(test.err)
		for _, part := range []string{ReasonIncompleteList, "widgets.example.com", test.cause, test.remedy} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%s: %q does not contain %q", name, err, part)
			}
		}
		if _, again := retry(err); again || errors.Is(err, ErrChanged) {
			t.Errorf("%q is taken for an error that passes by itself", err)
		}
	}
}
