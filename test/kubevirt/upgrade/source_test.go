package upgrade_test

import (
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	testclock "k8s.io/utils/clock/testing"

	"github.com/godwit-dev/godwit/revision"
	"github.com/godwit-dev/godwit/revision/decision"
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
			lists := 0
			reads := &seen{pick: func(req *http.Request) bool {
				if listsRevisions(req) {
					lists++
				}
				return readsARevision(req)
			}}
			u := y.watched(reads, y.clock)
			if test.slow {
				u = y.watched(reads, slowClock{y.clock})
			}
			results := y.pass(u)
			y.mustBe(results, instancetype.RevisionName("web"), revision.Retained, decision.ReasonRetained)
			y.mustBe(results, preference.RevisionName("web"), revision.Retained, decision.ReasonRetained)
			if reads.count != test.want {
				t.Errorf("%d live reads of revisions, want %d", reads.count, test.want)
			}
			// Two of the scan, one of the batch, one of the scan before they are retained, and two that look
			// for pins which KubeVirt left behind.
			if lists != 6 {
				t.Errorf("%d lists of revisions, want 6", lists)
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
	y.mustBe(y.pass(y.watched(reads, y.clock)), instancetype.RevisionName("web"), revision.Retained, decision.ReasonRetained)
	if reads.count != 2 {
		t.Errorf("%d live reads of revisions, want 2", reads.count)
	}
}

// TestUpgradedAndRolledBackMidway by another client, before the machine is repointed: the rollback stays, in a run as in what a
// trigger asks for. Nothing that was read before says anything of it.
func TestUpgradedAndRolledBackMidway(t *testing.T) {
	t.Parallel()
	source := instancetype.RevisionName("web")
	requests := []revision.Request{{Name: source}, {Name: preference.RevisionName("web")}}
	for name, pass := range map[string]func(*testNamespace, *revision.Upgrader) []revision.Result{
		"run": func(y *testNamespace, u *revision.Upgrader) []revision.Result {
			return slices.Collect(maps.Values(y.pass(u)))
		},
		"trigger": func(y *testNamespace, u *revision.Upgrader) []revision.Result {
			results, err := u.Advance(y.t.Context(), y.namespace, requests)
			y.must(results, err)
			return results
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for at := range 3 { // two creations, and the spec
				y := newNamespace(t)
				y.machine("web", both, instancetype, preference)
				w := &fault.Transport{Before: func(n int) {
					if n != at {
						return
					}
					y.run(decision.Policy{})
					for _, r := range requests {
						r.Rollback = true
						if got := y.advance(decision.Policy{}, r); got.Phase != revision.RolledBack {
							t.Errorf("the rollback of %s is %s (%s: %s)", r.Name, got.Phase, got.Reason, got.Message)
						}
					}
				}}
				for _, r := range pass(y, y.disturbed(w, decision.Policy{})) {
					if y.revisions()[r.Name].Annotations[decision.RolledBackAnnotation] == "" {
						t.Errorf("before write %d: %s is %s (%s: %s), and not rolled back any more", at, r.Name, r.Phase, r.Reason, r.Message)
					}
				}
				if got := y.refers(machines, "web")[inSpec]; got != source {
					t.Errorf("before write %d: the machine refers to %s, want %s", at, got, source)
				}
				y.mustResolve()
			}
		})
	}
}

// guests is what a restore changes in the data of a revision.
var guests = regexp.MustCompile(`"guest":\d+`)

const restored = `"guest":17`

// TestSourceIsMadeAgainMidway of other data, before the machine is repointed, as a restore makes a revision again and then
// writes the machine: the machine gets the replacement of what it was restored to.
func TestSourceIsMadeAgainMidway(t *testing.T) {
	t.Parallel()
	source := instancetype.RevisionName("web")
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
		y.mustBe(y.pass(y.disturbed(w, decision.Policy{})), source, revision.InUse, decision.ReasonReferenced)
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
	y.mustBe(y.pass(y.disturbed(w, decision.Policy{})), source, revision.Succeeded, nil)
	if left := y.plan(decision.Policy{}); left[source].Name != "" {
		t.Errorf("the plan has %+v", left[source])
	}
	y.mustResolve()
}
