package crdmigrator_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/godwit-dev/godwit/crdmigrator"
	"github.com/godwit-dev/godwit/internal/storageversion/decision"
)

// The storage version migration of Cluster API's crdmigrator as a table, a test
// for each row, in its order:
//
//	observed                           action                          test TestStorage_…
//	storedVersions == [storageVersion] skip                            SkipsCleanStoredVersions
//	no objects                         no write                        NeedsNoObjects
//	object in cache                    refresh the entry, no write     DoesNotRepeatWhatItRemembers
//	object not in cache                write                           WritesWhatItDoesNotRemember
//	write answers NotFound             next object                     SkipsADeletedObject
//	write answers Conflict             next object                     LetsANewerObjectSettleAConflict
//	write fails otherwise              gather the errors, next object  ContinuesAfterAFailure
//	all objects migrated               trim under optimistic locking   TrimsUnderPreconditions

func TestStorage_SkipsCleanStoredVersions(t *testing.T) {
	t.Parallel()
	w := newWidgets(t, shared)
	w.fill("v1", 5)
	c := w.embed(embedding{})
	if writes := w.writesIn(c.mustReconcile()); len(writes) > 0 {
		t.Errorf("writes = %q, want none with clean storedVersions", writes)
	}
	w.mustLeave("storedVersions are clean", outcome{Stored: map[string]int{"v1": 5}, StoredVersions: "v1", Observed: true})
}

func TestStorage_NeedsNoObjects(t *testing.T) {
	t.Parallel()
	w := newWidgets(t, shared)
	w.flip()
	c := w.embed(embedding{})
	if writes := w.writesIn(c.mustReconcile()); len(writes) > 0 {
		t.Errorf("writes = %q, want none without objects", writes)
	}
	w.mustLeave("a CRD without objects", outcome{Stored: map[string]int{}, StoredVersions: "v2", Observed: true})
}

// The difference: the migrator remembers an object's UID and resourceVersion for one UID and
// generation of the CRD, not kind and name. TestRecentWritesLastAnHourFromTheirLastUse shows
// that a hit refreshes the entry.
func TestStorage_DoesNotRepeatWhatItRemembers(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason  string
		between func(*widgets)
	}{
		"where GitOps removes the checkpoint": {
			reason:  "without C resourceVersions prove nothing",
			between: func(w *widgets) { w.annotate(nil) },
		},
		"where the server elided the write": {
			reason:  "an object that was already at v2 keeps a resourceVersion older than C",
			between: func(*widgets) {},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWidgets(t, shared)
			w.fill("v1", 5)
			w.flip()
			w.create(w.config, "v2", "w-at-v2")
			h := w.newWebhook(deny("w-0003"))
			w.awaitRefused("w-0003", denied)
			c := w.embed(embedding{})
			sent, _ := c.mustFail()
			if writes := w.writesIn(sent); len(writes) != 6 {
				t.Fatalf("the first pass wrote %q, want each of 6 objects once", writes)
			}
			tc.between(w)
			h.setDecide(allow)
			if writes := w.writesIn(c.mustReconcile()); len(writes) != 1 || !with("/w-0003?")(writes[0]) {
				t.Errorf("%s: writes of the second pass = %q, want the remaining object", tc.reason, writes)
			}
			w.mustLeave("after the second pass", outcome{Stored: map[string]int{"v2": 6}, StoredVersions: "v2", Observed: true})
		})
	}
}

// The difference: the default is an empty merge patch; the server-side apply of
// the document is Policy.Write.
func TestStorage_WritesWhatItDoesNotRemember(t *testing.T) {
	t.Parallel()
	const merge, apply = "application/merge-patch+json", "application/apply-patch+yaml"
	cases := map[string]struct {
		write       crdmigrator.Write
		by          crdmigrator.ByObjectConfig
		subresource string
		contentType string
		manager     string
	}{
		"patch":           {contentType: merge, manager: "godwit"},
		"apply":           {write: crdmigrator.WriteApply, contentType: apply, manager: "crdmigrator"},
		"patch of status": {by: byStatus, subresource: "/status", contentType: merge, manager: "godwit"},
		"apply of status": {write: crdmigrator.WriteApply, by: byStatus, subresource: "/status", contentType: apply, manager: "crdmigrator"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWidgets(t, shared)
			w.fill("v1", 1)
			w.flip()
			o, err := w.at("v1").Get(t.Context(), "w-0000", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			var contentType string
			var locked bool
			c := w.embed(embedding{
				by: tc.by, policy: decision.Policy{Settle: -1, Write: tc.write},
				wire: before(func(r *http.Request) {
					if r.Method == http.MethodPatch && strings.Contains(r.URL.Path, "/w-0000") {
						contentType = r.Header.Get("Content-Type")
						locked = contains(t, r, string(o.GetUID())) && contains(t, r, fmt.Sprintf(`"resourceVersion":%q`, o.GetResourceVersion()))
					}
				}),
			})
			writes := w.writesIn(c.mustReconcile())
			want := []string{fmt.Sprintf("PATCH /apis/%s/v2/namespaces/default/widgets/w-0000%s?fieldManager=%s&fieldValidation=Ignore", w.group, tc.subresource, tc.manager)}
			if diff := cmp.Diff(want, writes); diff != "" {
				t.Errorf("writes (-want +got):\n%s", diff)
			}
			if contentType != tc.contentType {
				t.Errorf("the patch is %q, want %q", contentType, tc.contentType)
			}
			if applied := tc.contentType == apply; locked != applied {
				t.Errorf("carries UID and resourceVersion: %v, want %v", locked, applied)
			}
			w.mustLeave("after the write", outcome{Stored: map[string]int{"v2": 1}, StoredVersions: "v2", Observed: true})
		})
	}
}

// The difference: a 404 may also mean that the version or its /status is not served, so a
// list of the collection confirms that the object is gone.
func TestStorage_SkipsADeletedObject(t *testing.T) {
	t.Parallel()
	for name, write := range map[string]crdmigrator.Write{"patch": crdmigrator.WritePatch, "apply": crdmigrator.WriteApply} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWidgets(t, shared)
			w.fill("v1", 5)
			w.flip()
			other := w.otherClient("v2")
			c := w.embed(embedding{
				policy: decision.Policy{Settle: -1, Write: write},
				wire: before(func(r *http.Request) {
					if patches(r, "w-0003") {
						other.deletes("w-0003")
					}
				}),
			})
			sent := c.mustReconcile()
			if !slices.ContainsFunc(w.readsIn(sent), with("fieldSelector=metadata.name%3Dw-0003")) {
				t.Errorf("sent %q, want a list to confirm that w-0003 is gone", sent)
			}
			w.mustLeave("one object was deleted meanwhile", outcome{Stored: map[string]int{"v2": 4}, StoredVersions: "v2", Observed: true})
		})
	}
}

// The difference: a conflict alone proves nothing, because its resourceVersion may be an old
// one; the live object must be newer than C. TestUseCache_ConflictOverAStaleObjectProvesNothing
// shows how an older one is migrated.
func TestStorage_LetsANewerObjectSettleAConflict(t *testing.T) {
	t.Parallel()
	cases := map[crdmigrator.Write]struct {
		reason string
		writes int64 // of the object: its creation, another client's, ours
	}{
		crdmigrator.WriteApply: {reason: "the other writer stored it at v2", writes: 2},
		crdmigrator.WritePatch: {reason: "a patch has the listed resourceVersion, too", writes: 2},
	}
	for write, tc := range cases {
		t.Run(string(write), func(t *testing.T) {
			t.Parallel()
			w := newWidgets(t, shared)
			w.fill("v1", 5)
			w.flip()
			other := w.otherClient("v2")
			c := w.embed(embedding{
				policy: decision.Policy{Settle: -1, Write: write},
				wire: before(func(r *http.Request) {
					if patches(r, "w-0003") {
						other.paints("w-0003", "red")
					}
				}),
			})
			sent := c.mustReconcile()
			looked := slices.ContainsFunc(w.readsIn(sent), with("fieldSelector=metadata.name%3Dw-0003"))
			if !looked {
				t.Errorf("%s: the live object was not read after the conflict", tc.reason)
			}
			if got := w.writes()[w.key("w-0003")]; got != tc.writes {
				t.Errorf("%s: w-0003 was written %d times, want %d", tc.reason, got, tc.writes)
			}
			if spec, ok := w.specs("v2")["w-0003"].(map[string]any); !ok || spec["color"] != "red" {
				t.Errorf("w-0003 is %v: the other writer's color was lost", spec)
			}
			w.mustLeave(tc.reason, outcome{Stored: map[string]int{"v2": 5}, StoredVersions: "v2", Observed: true})
		})
	}
}

// The difference: the error counts the failed objects, whose number has no bound, and names
// only the first.
func TestStorage_ContinuesAfterAFailure(t *testing.T) {
	t.Parallel()
	w := newWidgets(t, shared)
	w.fill("v1", 10)
	w.flip()
	h := w.newWebhook(func(name string) string {
		if name == "w-0000" || name == "w-0005" {
			return "frozen"
		}
		return ""
	})
	w.awaitRefused("w-0000", denied)
	c := w.embed(embedding{})
	sent, err := c.mustFail()
	if writes := w.writesIn(sent); len(writes) != 10 {
		t.Errorf("writes = %q, want one for each of 10 objects", writes)
	}
	for _, part := range []string{w.name, "2 of 10", "default/w-000", h.name, "frozen"} {
		if err != nil && !strings.Contains(err.Error(), part) {
			t.Errorf("the error is %q, want it to say %q", err, part)
		}
	}
	w.mustLeave("two objects were denied", outcome{Stored: map[string]int{"v1": 2, "v2": 8}, StoredVersions: "v1,v2"})
}

// The difference: the patch tests UID, generation and storedVersions, not the
// resourceVersion, which changes with every annotation and condition.
// TestErrors_ReadAgainACRDThatChangedBeforeTheTrim shows what follows when a test fails.
func TestStorage_TrimsUnderPreconditions(t *testing.T) {
	t.Parallel()
	w := newWidgets(t, shared)
	w.fill("v1", 5)
	w.flip()
	crd := w.crd()
	var tests []bool
	c := w.embed(embedding{wire: before(func(r *http.Request) {
		if !patches(r, "status") {
			return
		}
		for _, test := range []string{
			fmt.Sprintf(`{"op":"test","path":"/metadata/uid","value":%q}`, crd.UID),
			fmt.Sprintf(`{"op":"test","path":"/metadata/generation","value":%d}`, crd.Generation),
			`{"op":"test","path":"/status/storedVersions","value":["v1","v2"]}`,
		} {
			tests = append(tests, contains(t, r, test))
		}
		if got := w.stored(); got["v1"] > 0 {
			t.Errorf("etcd holds %v when storedVersions are trimmed", got)
		}
		w.label("other", "client") // no reason to start over
	})})
	c.mustReconcile()
	if want := []bool{true, true, true}; !slices.Equal(tests, want) {
		t.Errorf("the trim tests UID, generation and storedVersions: %v, want all, once", tests)
	}
	w.mustLeave("all objects are migrated", outcome{Stored: map[string]int{"v2": 5}, StoredVersions: "v2", Observed: true})
}
