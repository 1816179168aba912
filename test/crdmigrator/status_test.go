package crdmigrator_test

import (
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/godwit-dev/godwit/internal/storageversion"
	"github.com/godwit-dev/godwit/internal/storageversion/decision"
)

// TestStatusSubresourceRemovedMidRun: without the subresource, the API server answers
// writes to it with 404, as if the objects were gone.
func TestStatusSubresourceRemovedMidRun(t *testing.T) {
	t.Parallel()
	for _, write := range []decision.Write{decision.WriteStatusPatch, decision.WriteStatusApply} {
		for name, pageObjects := range map[string]int64{"pages to come": 20, "on the last page": 500} {
			t.Run(string(write)+" "+name, func(t *testing.T) {
				t.Parallel()
				w := newWidgets(t, shared)
				w.fill("v1", 100)
				w.flip()
				_, config := w.user(w.permissionsOf(write)...)
				policy := decision.Policy{Settle: -1, Write: write}
				m := newMigrator(t, config, storageversion.Options{PageObjects: pageObjects, Attempts: 2, Policy: policy})
				run := w.pauseAfter(t.Context(), m, 30)
				bare := version("v2", true, true)
				bare.Subresources = nil
				w.setVersions(version("v1", true, false), bare)
				w.awaitNoStatus()
				report, err := run.resume()
				mustStopForChange(t, report, err)
				if report.Storage.Counts.Gone != 0 {
					t.Errorf("run: %+v, want no object counted as Gone", report.Storage.Counts)
				}
				w.mustHaveStoredVersions("after the run", "v1,v2")
				plan, err := m.Plan(t.Context(), w.name)
				if err != nil {
					t.Fatal(err)
				}
				mustBeBlocked(t, plan, decision.ReasonStatusSubresourceMissing, 1)

				w.setVersions(version("v1", true, false), version("v2", true, true))
				w.mustBeMigrated(w.mustMigrate(m), 100)
			})
		}
	}
}

// awaitNoStatus waits until the API server has no status subresource for the CRD.
func (w *widgets) awaitNoStatus() {
	w.t.Helper()
	await(w.t, "/status to be gone", func() bool {
		_, err := w.at("v2").Patch(w.t.Context(), "w-0000", types.MergePatchType, []byte("{}"),
			metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}}, "status")
		return apierrors.IsNotFound(err)
	})
}
