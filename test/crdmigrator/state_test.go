package crdmigrator_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/crdmigrator/rescue"
	"github.com/godwit-dev/godwit/internal/format/formattest"
	"github.com/godwit-dev/godwit/internal/storageversion"
	"github.com/godwit-dev/godwit/internal/storageversion/decision"
	"github.com/godwit-dev/godwit/internal/storageversion/evidence"
)

// mustRefuse checks blockers of state that a newer release has stored.
func mustRefuse(t *testing.T, blockers []godwit.Finding, reason *godwit.Reason, annotation string) {
	t.Helper()
	if len(blockers) == 0 || blockers[0].Reason != reason {
		t.Fatalf("the blockers are %+v, want %s first", blockers, reason)
	}
	for _, word := range []string{annotation, "has format 2", "reads format 1", "a newer release wrote it"} {
		if !strings.Contains(blockers[0].Message, word) {
			t.Errorf("%s does not say %q", blockers[0].Message, word)
		}
	}
	if !strings.Contains(blockers[0].Fix.String(), "use the release of Godwit that wrote it") {
		t.Errorf("the fix is %s", blockers[0].Fix)
	}
}

// TestRunOfOldestReleaseIsResumed: an interrupted run leaves what v0.1.0 leaves, byte for byte, and a run resumes from that.
func TestRunOfOldestReleaseIsResumed(t *testing.T) {
	t.Parallel()
	w, left := interrupted(t)
	crd := w.crd()
	var now evidence.Checkpoint
	if err := json.Unmarshal([]byte(crd.Annotations[evidence.CheckpointAnnotation]), &now); err != nil {
		t.Fatal(err)
	}
	settled, err := json.Marshal(now.Settled)
	if err != nil {
		t.Fatal(err)
	}
	frozen := strings.NewReplacer(
		"00000000-0000-4000-8000-000000000001", string(crd.UID), "1000001", fmt.Sprint(crd.Generation), "1000002", now.ResourceVersion,
		`"default/o-039"`, fmt.Sprintf("%q", now.Cursor), `"1m15s"`, string(settled), `,"restarts":["2026-11-01T00:00:00Z"]`, "",
	).Replace(formattest.Frozen(t, "checkpoint.json"))
	frozen = strings.Replace(frozen, `,"acceptedStaleLeases":true`, "", 1)
	newer := fmt.Sprintf(`,"proof":{"provenBy":"Schemas","generation":%d}`, crd.Generation)
	if got := strings.Replace(crd.Annotations[evidence.CheckpointAnnotation], newer, "", 1); got != frozen {
		t.Errorf("the checkpoint is otherwise than that of %s:\n got %s\nwant %s", formattest.Oldest, got, frozen)
	}
	w.annotate(&frozen)
	report := w.mustMigrate(w.quickMigrator(storageversion.Options{}))
	if want := (godwit.Counts{Migrated: left, Skipped: interruptedObjects - left}); report.Storage.Counts != want {
		t.Errorf("resumed: %+v, want %+v", report.Storage.Counts, want)
	}
	w.mustBeMigrated(report, interruptedObjects)
}

// TestRunOfNewerReleaseIsLeftAlone: no object is written, nor what that release has stored.
func TestRunOfNewerReleaseIsLeftAlone(t *testing.T) {
	t.Parallel()
	w := newWidgets(t, shared)
	w.fill("v1", 3)
	w.flip()
	newer := strings.ReplaceAll(formattest.Newer(t, "checkpoint.json"), "00000000-0000-4000-8000-000000000001", string(w.crd().UID))
	w.annotate(&newer)
	before := w.crd().ResourceVersion
	m := w.quickMigrator(storageversion.Options{})
	plan, err := m.Plan(t.Context(), w.name)
	if err != nil || plan.State != decision.Blocked {
		t.Fatalf("the plan is %s: %v", plan.State, err)
	}
	mustRefuse(t, plan.Blockers, decision.ReasonNewerFormat, evidence.CheckpointAnnotation+" of customresourcedefinition "+w.name)
	var blocked *decision.BlockedError
	if _, err := m.Run(t.Context(), plan, nil); !errors.As(err, &blocked) {
		t.Errorf("the run ends with %v", err)
	}
	plan.Blockers, plan.State = nil, decision.Ready // the release began after the plan
	if _, err := m.Run(t.Context(), plan, nil); err == nil || !strings.Contains(err.Error(), "has format 2") {
		t.Errorf("the run that was planned before ends with %v", err)
	}
	w.mustBeStored("after refusals", map[string]int{"v1": 3})
	if crd := w.crd(); crd.ResourceVersion != before || crd.Annotations[evidence.CheckpointAnnotation] != newer {
		t.Errorf("the CRD was written: %v", crd.Annotations)
	}
}

// TestRescueOfOtherReleases: a rescue that was killed leaves what v0.1.0 leaves, field by field, and resumes from it; one of a
// newer release is left alone, also by undo.
func TestRescueOfOtherReleases(t *testing.T) {
	t.Parallel()
	w := unreadable(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	killed, _ := killAt(w.withoutLeases(), 3, func() { cancel(errKilled) })
	if _, _, err := w.rescue(ctx, killed, rescue.Options{}); err == nil {
		t.Fatal("the rescue was not killed")
	}
	ours := w.crd().Annotations[rescue.Annotation]
	var now, frozen map[string]any
	if err := json.Unmarshal([]byte(ours), &now); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(formattest.Frozen(t, "rescue.json")), &frozen); err != nil {
		t.Fatal(err)
	}
	for field := range now {
		if frozen[field] == nil {
			t.Errorf("%s has no field %s in its journal", formattest.Oldest, field)
		}
	}
	set := func(text string) {
		t.Helper()
		w.edit(w.config, func(crd *apiextensionsv1.CustomResourceDefinition) {
			metav1.SetMetaDataAnnotation(&crd.ObjectMeta, rescue.Annotation, text)
		})
	}
	set(strings.ReplaceAll(formattest.Newer(t, "rescue.json"), "00000000-0000-4000-8000-000000000001", string(w.crd().UID)))
	version := w.crd().ResourceVersion
	p, _, err := w.rescue(t.Context(), w.withoutLeases(), rescue.Options{})
	var refused *rescue.BlockedError
	if !errors.As(err, &refused) || p.State != rescue.Blocked {
		t.Fatalf("the plan is %s: %v", p.State, err)
	}
	mustRefuse(t, p.Blockers, rescue.ReasonNewerFormat, rescue.Annotation+" of customresourcedefinition "+w.name)
	if _, err := w.rescuer(w.config, rescue.Options{}).Undo(t.Context(), w.name); !errors.As(err, &refused) || refused.Blocker.Reason != rescue.ReasonNewerFormat {
		t.Errorf("undo ends with %v", err)
	}
	if w.crd().ResourceVersion != version {
		t.Error("the CRD was written")
	}
	set(ours)
	if _, report, err := w.rescue(t.Context(), w.withoutLeases(), rescue.Options{}); err != nil || !report.Restored {
		t.Fatalf("resumed: %+v, %v", report, err)
	}
	w.mustHaveStoredVersions("after the rescue", "v2")
	w.mustBeStored("after the rescue", map[string]int{"v2": 3})
}
