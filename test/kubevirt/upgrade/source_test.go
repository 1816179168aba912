package upgrade_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	testclock "k8s.io/utils/clock/testing"

	"github.com/godwit-dev/godwit/revision"
	"github.com/godwit-dev/godwit/test/fault"
)

// slowClock makes every scan, and every list of old revisions, too old by the time it is used.
type slowClock struct{ *testclock.FakePassiveClock }

func (c slowClock) Now() time.Time {
	c.SetTime(c.FakePassiveClock.Now().Add(revision.MaxScanAge))
	return c.FakePassiveClock.Now()
}

// TestSourcesAreListedOnce for a batch, and read live only where that list is old.
func TestSourcesAreListedOnce(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		slow bool
		want int
	}{
		"list of a moment ago": {want: 0},
		"old list":             {slow: true, want: 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			y := newNamespace(t)
			y.machine("web", both, instancetype, preference)
			reads := &seen{pick: readsARevision}
			u := y.watched(reads, y.clock)
			if test.slow {
				u = y.watched(reads, slowClock{y.clock})
			}
			results := y.pass(u)
			y.mustBe(results, instancetype.RevisionName("web"), revision.Retained, revision.ReasonRetained)
			y.mustBe(results, preference.RevisionName("web"), revision.Retained, revision.ReasonRetained)
			if reads.count != test.want {
				t.Errorf("%d live reads of revisions, want %d", reads.count, test.want)
			}
		})
	}
}

// TestOneAmongManyRevisionsIsReadLive: a list would read revisions of others that are not upgraded.
func TestOneAmongManyRevisionsIsReadLive(t *testing.T) {
	t.Parallel()
	y := newNamespace(t)
	y.machine("web", both, instancetype, preference)
	for i := range 20 {
		y.createRevision(&appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("of-a-statefulset-%d", i)}, Data: runtime.RawExtension{Raw: []byte("{}")}})
	}
	reads := &seen{pick: readsARevision}
	y.mustBe(y.pass(y.watched(reads, y.clock)), instancetype.RevisionName("web"), revision.Retained, revision.ReasonRetained)
	if reads.count != 2 {
		t.Errorf("%d live reads of revisions, want 2", reads.count)
	}
}

// TestUpgradedAndRolledBackSinceTheList by another client, before our first write: the rollback stays. What our list has says
// nothing of it.
func TestUpgradedAndRolledBackSinceTheList(t *testing.T) {
	t.Parallel()
	y := newNamespace(t)
	y.machine("web", both, instancetype, preference)
	source := instancetype.RevisionName("web")
	requests := []revision.Request{{Name: source}, {Name: preference.RevisionName("web")}}
	w := &fault.Transport{Before: func(n int) {
		if n > 0 {
			return
		}
		y.run(revision.Policy{})
		for _, r := range requests {
			r.Rollback = true
			if got := y.advance(revision.Policy{}, r); got.Phase != revision.RolledBack {
				t.Errorf("the rollback of %s is %s (%s: %s)", r.Name, got.Phase, got.Reason, got.Message)
			}
		}
	}}
	results, err := y.disturbed(w, revision.Policy{}).Advance(t.Context(), y.namespace, requests)
	y.must(results, err)
	for _, r := range results {
		if r.Phase != revision.RolledBack || y.revisions()[r.Name].Annotations[revision.RolledBackAnnotation] == "" {
			t.Errorf("%s is %s (%s: %s), and has annotations %v", r.Name, r.Phase, r.Reason, r.Message, y.revisions()[r.Name].Annotations)
		}
	}
	if got := y.refers(machines, "web")[inSpec]; got != source {
		t.Errorf("the machine refers to %s, want %s", got, source)
	}
	y.mustResolve()
}

// TestSourceIsMadeAgainMidway of other data, before the machine is repointed, as a restore makes a revision again and then
// writes the machine: the machine gets the replacement of what it was restored to.
func TestSourceIsMadeAgainMidway(t *testing.T) {
	t.Parallel()
	source, guests := instancetype.RevisionName("web"), regexp.MustCompile(`"guest":\d+`)
	const restored = `"guest":17`
	for at := range 3 {
		y := newNamespace(t)
		y.machine("web", both, instancetype, preference)
		w := &fault.Transport{Before: func(n int) {
			if n != at {
				return
			}
			again := y.revisions()[source]
			y.removeRevision(source)
			again.ResourceVersion, again.UID = "", ""
			again.Data.Raw = guests.ReplaceAll(again.Data.Raw, []byte(restored))
			y.createRevision(again)
			y.change(machines, "web", "", set("yes", "metadata", "labels", "restored"))
		}}
		y.mustBe(y.pass(y.disturbed(w, revision.Policy{})), source, revision.InUse, revision.ReasonReferenced)
		y.mustRefer(machines, "web", map[string]string{
			inSpec: source, inStatus: source, "/spec/preference/revisionName": "web" + preferenceTail, "/status/preferenceRef/controllerRevisionRef/name": "web" + preferenceTail,
		})
		y.retire()
		y.mustResolve()
		name := y.refers(machines, "web")[inSpec]
		if data := string(y.revisions()[name].Data.Raw); name == source || !strings.Contains(data, restored) {
			t.Errorf("made again before write %d: the machine refers to %s, which holds %s, want a new revision with %s", at, name, data, restored)
		}
	}
}

// TestSourceIsGoneBeforeItIsRetained, as KubeVirt's own upgrade deletes it: nothing is left to do, now and later.
func TestSourceIsGoneBeforeItIsRetained(t *testing.T) {
	t.Parallel()
	y := newNamespace(t)
	y.machine("web", both, instancetype)
	source := instancetype.RevisionName("web")
	w := &fault.Transport{Before: func(n int) {
		if n == 3 { // after the creation, the spec and the status
			y.removeRevision(source)
		}
	}}
	y.mustBe(y.pass(y.disturbed(w, revision.Policy{})), source, revision.Succeeded, "")
	if left := y.plan(revision.Policy{}); left[source].Name != "" {
		t.Errorf("the plan has %+v", left[source])
	}
	y.mustResolve()
}
