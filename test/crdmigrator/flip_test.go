package crdmigrator_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/internal/storageversion"
	"github.com/godwit-dev/godwit/internal/storageversion/decision"
	"github.com/godwit-dev/godwit/internal/storageversion/evidence"
	"github.com/godwit-dev/godwit/test/controlplane"
)

// store makes one version the storage version, beside all others.
func (w *widgets) store(name string) {
	w.t.Helper()
	w.storeThrough(w.config, name)
	w.awaitStoring(name)
}

func (w *widgets) storeThrough(config *rest.Config, name string) {
	w.t.Helper()
	w.edit(config, func(crd *apiextensionsv1.CustomResourceDefinition) {
		found := false
		for i := range crd.Spec.Versions {
			v := &crd.Spec.Versions[i]
			v.Storage = v.Name == name
			found = found || v.Storage
		}
		if !found {
			crd.Spec.Versions = append(crd.Spec.Versions, version(name, true, true))
		}
	})
}

func (w *widgets) edit(config *rest.Config, change func(*apiextensionsv1.CustomResourceDefinition)) {
	w.t.Helper()
	if _, err := controlplane.UpdateCRD(w.t.Context(), config, w.name, change); err != nil {
		w.t.Fatal(err)
	}
}

func mustStopForChange(t *testing.T, report decision.Report, err error) {
	t.Helper()
	if !errors.Is(err, decision.ErrChanged) || report.Trimmed {
		t.Errorf("run: %v, trimmed %v, want ErrChanged and not trimmed", err, report.Trimmed)
	}
}

// TestStorageVersionMovesMidRun: a run must notice that the storage version changed,
// also when it changed back meanwhile. It must not skip an object that was written in
// between, which is newer than the checkpoint but at another version.
func TestStorageVersionMovesMidRun(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		moves  []string
		stored string // status.storedVersions after them
	}{
		"back to v1":     {moves: []string{"v1"}, stored: "v1,v2"},
		"to v3":          {moves: []string{"v3"}, stored: "v1,v2,v3"},
		"there and back": {moves: []string{"v1", "v2"}, stored: "v1,v2"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWidgets(t, shared)
			m := w.quickMigrator(storageversion.Options{PageObjects: 20})
			w.fill("v1", 100)
			w.flip()

			run := w.pauseAfter(t.Context(), m, 30)
			for _, v := range tc.moves {
				w.store(v)
				w.create(w.config, "v1", "a-written-while-"+v) // before the cursor
			}
			report, err := run.resume()
			mustStopForChange(t, report, err)
			final := tc.moves[len(tc.moves)-1]
			if text := fmt.Sprintf("stores %q instead of", final); strings.Contains(err.Error(), text) != (final != "v2") {
				t.Errorf("run: %q, want it to name the new storage version where that is another", err)
			}
			if n := report.Storage.Counts.Total(); n == 100 {
				t.Error("the run reached its end before it noticed the change")
			}
			w.mustHaveStoredVersions("after the interrupted run", tc.stored)

			report = w.mustMigrate(m)
			if !report.Trimmed {
				t.Errorf("second run: %+v, want trimmed", report)
			}
			w.mustBeStored("after the second run", map[string]int{final: 100 + len(tc.moves)})
			w.mustHaveStoredVersions("after the second run", final)
		})
	}
}

// TestSchemaChangeMidRunIsSurvived: one change of the CRD that does not change the
// storage version does not disturb the run.
func TestSchemaChangeMidRunIsSurvived(t *testing.T) {
	t.Parallel()
	w := newWidgets(t, shared)
	m := w.quickMigrator(storageversion.Options{PageObjects: 20})
	w.fill("v1", 100)
	w.flip()
	before := w.crd().Generation

	run := w.pauseAfter(t.Context(), m, 30)
	w.edit(w.config, func(crd *apiextensionsv1.CustomResourceDefinition) {
		crd.Spec.Versions[1].Schema.OpenAPIV3Schema.Description = "a widget"
	})
	report, err := run.resume()
	if err != nil {
		t.Fatal(err)
	}
	if after := w.crd().Generation; after != before+1 {
		t.Fatalf("generation went from %d to %d, want one more", before, after)
	}
	if want := (godwit.Counts{Migrated: 100}); report.Storage.Counts != want || !report.Trimmed {
		t.Errorf("run: %+v, trimmed %v, want %+v and trimmed", report.Storage.Counts, report.Trimmed, want)
	}
	w.mustBeStored("after the run", map[string]int{"v2": 100})
	w.mustHaveStoredVersions("after the run", "v2")
}

// TestCRDWithTwoWritersIsBlocked: two teams set the storage version in turn. After
// three restarts the plan is Blocked and names the manager that writes the CRD.
func TestCRDWithTwoWritersIsBlocked(t *testing.T) {
	t.Parallel()
	w := newWidgets(t, shared)
	m := w.quickMigrator(storageversion.Options{PageObjects: 5})
	w.fill("v1", 60)
	w.flip()
	ours, theirs := rest.CopyConfig(w.config), rest.CopyConfig(w.config)
	ours.UserAgent, theirs.UserAgent = "our-team/1", "their-team/1"

	for restarts := range 4 {
		plan, err := m.Plan(t.Context(), w.name)
		if err != nil {
			t.Fatal(err)
		}
		if plan.State != decision.Ready {
			t.Fatalf("after %d restarts the plan is %s by %+v, want Ready", restarts, plan.State, plan.Blockers)
		}
		run := w.pauseAfter(t.Context(), m, 5)
		w.storeThrough(theirs, "v1")
		w.storeThrough(ours, "v2")
		report, err := run.resume()
		mustStopForChange(t, report, err)
	}

	plan, err := m.Plan(t.Context(), w.name)
	if err != nil {
		t.Fatal(err)
	}
	mustBeBlocked(t, plan, decision.ReasonCRDKeepsChanging, 1)
	if message := plan.Blockers[0].Message; !strings.Contains(message, "our-team (Update)") {
		t.Errorf("blocker = %q, want it to name the manager that wrote last", message)
	}
	w.mustHaveStoredVersions("in the end", "v1,v2")

	// The remedy: when the teams agree, they remove the checkpoint.
	w.annotate(nil)
	w.mustMigrate(m)
	w.mustBeStored("after the remedy", map[string]int{"v2": 60})
}

// annotate replaces the checkpoint on the CRD; nil removes it.
func (w *widgets) annotate(checkpoint *string) {
	w.t.Helper()
	w.edit(w.config, func(crd *apiextensionsv1.CustomResourceDefinition) {
		delete(crd.Annotations, evidence.CheckpointAnnotation)
		if checkpoint != nil {
			metav1.SetMetaDataAnnotation(&crd.ObjectMeta, evidence.CheckpointAnnotation, *checkpoint)
		}
	})
}
