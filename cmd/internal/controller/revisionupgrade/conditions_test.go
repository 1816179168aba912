package revisionupgrade

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/godwit-dev/godwit/api/v1alpha1"
	"github.com/godwit-dev/godwit/revision"
)

func TestFillKeepsWhatIsNoLongerSeen(t *testing.T) {
	item := revision.Item{UID: "a", Version: "v1alpha1", Form: "Object", Target: "v1beta1", Replacement: "new"}
	first := revision.Result{Item: item, Phase: revision.Created, ResourceVersion: "7", Hash: "old", ReplacementUID: "b", ReplacementHash: "new"}
	source := v1alpha1.RevisionSource{UID: "a", Version: "v1alpha1", Form: "Object", Hash: "old", ResourceVersion: "7"}
	successor := v1alpha1.RevisionReplacement{Name: "new", UID: "b", Version: "v1beta1", Hash: "new"}
	began := v1alpha1.ControllerRevisionUpgradeStatus{Phase: "Created", Source: &source, Replacement: &successor}
	with := func(change func(*v1alpha1.ControllerRevisionUpgradeStatus)) v1alpha1.ControllerRevisionUpgradeStatus {
		s := *began.DeepCopy()
		change(&s)
		return s
	}
	result := func(change func(*revision.Result)) revision.Result {
		r := first
		change(&r)
		return r
	}
	for name, test := range map[string]struct {
		reason string
		result revision.Result
		want   v1alpha1.ControllerRevisionUpgradeStatus
	}{
		"nothing new": {"what was found once is written once", first, began},
		"written by us": {
			"our own annotations gave it another resourceVersion, which no backup has",
			result(func(r *revision.Result) { r.ResourceVersion, r.Phase = "9", revision.Retained }),
			with(func(s *v1alpha1.ControllerRevisionUpgradeStatus) { s.Phase = "Retained" }),
		},
		"the source is gone": {
			"it is what a backup is compared with",
			revision.Result{Item: revision.Item{Replacement: "new"}, Phase: revision.Succeeded, ReplacementUID: "b", ReplacementHash: "new"},
			with(func(s *v1alpha1.ControllerRevisionUpgradeStatus) { s.Phase = "Succeeded" }),
		},
		"not read": {
			"no answer is no news of where it stands",
			revision.Result{Item: revision.Item{Reason: revision.ReasonUnanswered}, Phase: revision.Analyzing}, began,
		},
		"a holder runs by now": {
			"the successor's name is on the source, and nobody looked at more",
			result(func(r *revision.Result) { r.Phase, r.ReplacementUID, r.ReplacementHash = revision.InUse, "", "" }),
			with(func(s *v1alpha1.ControllerRevisionUpgradeStatus) { s.Phase = "InUse" }),
		},
		"made again": {
			"a successor of the same name is another one",
			result(func(r *revision.Result) { r.ReplacementUID = "c" }),
			with(func(s *v1alpha1.ControllerRevisionUpgradeStatus) { s.Replacement.UID = "c" }),
		},
	} {
		got := *began.DeepCopy()
		fill(&got, test.result)
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s: %s (-want +got):\n%s", name, test.reason, diff)
		}
	}
	var fresh v1alpha1.ControllerRevisionUpgradeStatus
	fill(&fresh, first)
	if diff := cmp.Diff(began, fresh); diff != "" {
		t.Errorf("the first time (-want +got):\n%s", diff)
	}
}

// TestWishIsAboutWhatWasFound: an upgrade by name does not go over to another revision
// that has the name later.
func TestWishIsAboutWhatWasFound(t *testing.T) {
	one := &v1alpha1.ControllerRevisionUpgrade{}
	if got := wish(one).UID; got != "" {
		t.Errorf("nothing was found, and it is about %s", got)
	}
	one.Status.Source = &v1alpha1.RevisionSource{UID: "found"}
	if got := wish(one).UID; got != "found" {
		t.Errorf("it is about %q, want what was found", got)
	}
	one.Spec.TargetUID = "named"
	if got := wish(one).UID; got != "named" {
		t.Errorf("it is about %q, want what the spec names", got)
	}
}

// TestNextLookWithASkewedClock: the retention ends by the API server's clock. A node whose
// clock is ahead does not scan each second until then.
func TestNextLookWithASkewedClock(t *testing.T) {
	server := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	r := revision.Result{Phase: revision.Retained, Item: revision.Item{Reason: revision.ReasonRetained, Until: server.Add(2 * time.Minute)}}
	if got := nextLook(r, server.Add(5*time.Minute), later); got != later {
		t.Errorf("the node is 5 min ahead, and it looks again after %v, want %v", got, later)
	}
	if got := nextLook(r, server, later); got != 2*time.Minute+time.Second {
		t.Errorf("it looks again after %v, want the end of the retention", got)
	}
}

func TestWhenToLookAgain(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	at := func(p revision.Phase, reason string, until time.Time) revision.Result {
		return revision.Result{Phase: p, Item: revision.Item{Reason: reason, Until: until}}
	}
	for name, test := range map[string]struct {
		result revision.Result
		want   time.Duration
	}{
		"kept for a while":             {at(revision.Retained, revision.ReasonRetained, now.Add(time.Hour)), time.Hour + time.Second},
		"kept until a moment ago":      {at(revision.Retained, revision.ReasonRetained, now.Add(-time.Minute)), later},
		"kept for good":                {at(revision.Retained, revision.ReasonKept, time.Time{}), rare},
		"its owner is being copied":    {at(revision.Retained, revision.ReasonReferrerNotReady, now.Add(-time.Minute)), later},
		"it could not be removed":      {at(revision.Retained, revision.ReasonUnanswered, now.Add(-time.Minute)), soon},
		"it changed meanwhile":         {at(revision.Repointed, revision.ReasonChanged, time.Time{}), soon},
		"a machine runs":               {at(revision.Converted, revision.ReasonRunning, time.Time{}), later},
		"the API server did not say":   {at(revision.Analyzing, revision.ReasonUnanswered, time.Time{}), soon},
		"somebody has to do something": {at(revision.Failed, revision.ReasonLossy, time.Time{}), rare},
		"a write was refused":          {at(revision.Failed, revision.ReasonRefused, time.Time{}), rare},
		"a read was refused":           {at(revision.Analyzing, revision.ReasonForbidden, time.Time{}), rare},
		"others keep changing it":      {at(revision.InUse, revision.ReasonChanged, time.Time{}), later},
		"the end":                      {at(revision.Succeeded, "", time.Time{}), 0},
	} {
		if got := nextLook(test.result, now, later); got != test.want {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
}
