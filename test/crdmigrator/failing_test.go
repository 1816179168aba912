package crdmigrator_test

import (
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/internal/storageversion"
)

const (
	// failing is more than the objects that a walk keeps for another attempt.
	failing = 320
	// later is the number of objects after them in key order.
	later = 60
)

// brokenIn breaks the webhook of this group for the objects of one namespace.
func (w *widgets) brokenIn(namespace string) *webhook {
	w.t.Helper()
	h := w.newReviewer(func(r *admissionv1.AdmissionRequest) string {
		if r.Namespace == namespace {
			return answers500
		}
		return ""
	})
	await(w.t, "updates of w-0000 to fail", func() bool {
		_, err := w.at("v2").Patch(w.t.Context(), "w-0000", types.MergePatchType, []byte("{}"), metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
		return apierrors.IsInternalError(err)
	})
	return h
}

// TestFailingNamespaceDoesNotBlockOthers: the first namespace in key order has more
// objects than may wait, and a webhook that answers 500 for each of them. The run
// migrates and cleans the objects of the next namespace. It names the webhook with the
// failed objects, and migrates them once the webhook is back.
func TestFailingNamespaceDoesNotBlockOthers(t *testing.T) {
	t.Parallel()
	w := newWidgets(t, shared)
	w.fill("v1", failing)
	w.namespace("later", later)
	w.flip()
	w.setVersions(version("v1", false, false), version("v2", true, true))
	h := w.brokenIn(metav1.NamespaceDefault)
	m := newMigrator(t, w.withoutLeases(), storageversion.Options{Policy: quickSettle, Attempts: 3, PageObjects: 100})

	report := w.mustMigrate(m)
	if want := (godwit.Counts{Migrated: later, Failed: failing}); report.Storage.Counts != want || !report.Storage.Complete || report.Trimmed {
		t.Errorf("storage %+v, complete %v, trimmed %v; want %+v, complete and not trimmed", report.Storage.Counts, report.Storage.Complete, report.Trimmed, want)
	}
	if want := (godwit.Counts{Migrated: later, Deferred: failing}); report.ManagedFields.Counts != want {
		t.Errorf("managedFields %+v, want %+v", report.ManagedFields.Counts, want)
	}
	if err := report.Err(); err == nil || !strings.Contains(err.Error(), h.name) {
		t.Errorf("report.Err() = %v, want it to name webhook %s", err, h.name)
	}
	w.mustBeStored("with one webhook broken", map[string]int{"v1": failing, "v2": later})

	h.setDecide(allow)
	report = w.mustMigrate(m)
	if want := (godwit.Counts{Migrated: failing, Skipped: later}); report.Storage.Counts != want || !report.Trimmed {
		t.Errorf("once the webhook is back: %+v, trimmed %v; want %+v and trimmed", report.Storage.Counts, report.Trimmed, want)
	}
	w.mustBeStored("once the webhook is back", map[string]int{"v2": failing + later})
}

// TestFailingNamespaceDoesNotBlockCleanups: every object is at the storage version
// already, and only managedFields are left to clean.
func TestFailingNamespaceDoesNotBlockCleanups(t *testing.T) {
	t.Parallel()
	w := newWidgets(t, shared)
	w.fill("v1", failing)
	w.namespace("later", later)
	w.flip()
	w.mustMigrate(newMigrator(t, w.withoutLeases(), storageversion.Options{Policy: quickSettle}))
	w.setVersions(version("v1", false, false), version("v2", true, true))
	h := w.brokenIn(metav1.NamespaceDefault)
	m := newMigrator(t, w.withoutLeases(), storageversion.Options{Policy: quickSettle, Attempts: 3, PageObjects: 100})

	report := w.mustMigrate(m)
	if want := (godwit.Counts{Skipped: failing + later}); report.Storage.Counts != want || !report.Storage.Complete {
		t.Errorf("storage %+v, complete %v; want %+v and complete", report.Storage.Counts, report.Storage.Complete, want)
	}
	if want := (godwit.Counts{Migrated: later, Deferred: failing}); report.ManagedFields.Counts != want {
		t.Errorf("managedFields %+v, want %+v", report.ManagedFields.Counts, want)
	}
	if err := report.Err(); err == nil || !strings.Contains(err.Error(), h.name) {
		t.Errorf("report.Err() = %v, want it to name webhook %s", err, h.name)
	}
	h.setDecide(allow)
	w.mustClean(m, failing)
}
