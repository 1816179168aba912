package crdmigration

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/api/v1alpha1"
	"github.com/godwit-dev/godwit/cmd/internal/status"
	"github.com/godwit-dev/godwit/internal/storageversion/decision"
)

// describe writes the plan of the CRD to the status. If the CRD was created again or has another generation, it drops
// the earlier progress. The migration is then neither Ready nor complete: a client that waits for Ready must not
// continue before the end of the work, and a killed pass for another spec must not count as done.
func describe(m *v1alpha1.CRDMigration, p decision.Plan) {
	s := &m.Status
	if s.CRDUID != p.UID || s.CRDGeneration != p.Generation {
		*s = v1alpha1.CRDMigrationStatus{Conditions: s.Conditions, Checkpoint: s.Checkpoint, ObservedGeneration: s.ObservedGeneration}
	}
	if meta.IsStatusConditionTrue(s.Conditions, v1alpha1.ConditionReady) {
		migrating().apply(m)
	}
	if s.CompletionTime != nil {
		s.Progress, s.CompletionTime = "", nil
	}
	s.CRDUID, s.CRDGeneration = p.UID, p.Generation
	s.StorageVersion, s.StoredVersions = p.StorageVersion, p.StoredVersions
}

// record writes the progress of a pass to the status.
func record(m *v1alpha1.CRDMigration, report decision.Report, began, now time.Time) {
	storage := report.Storage
	if storage.Counts.Total() == 0 && !storage.Complete {
		return // it ended before the first object: the numbers of the pass before still hold
	}
	if proof := storedProof(report.Checkpoint.Proof); proof != nil {
		m.Status.Values = proof
	}
	m.Status.Storage, m.Status.ManagedFields = &storage.Counts, &report.ManagedFields.Counts
	m.Status.Failures = samples(storage.Failures, report.ManagedFields.Failures)
	m.Status.Progress = progressText(m.Status.Progress, storage.Counts.Total(), storage.Remaining)
	if m.Status.StartTime == nil {
		m.Status.StartTime = &metav1.Time{Time: began}
	}
	m.Status.EstimatedCompletion = estimate(began, now, storage.Counts.Total(), storage.Remaining)
}

// complete writes the result of a pass to the status.
func complete(m *v1alpha1.CRDMigration, report decision.Report, o outcome, now time.Time) {
	if report.Trimmed {
		m.Status.StoredVersions = []string{m.Status.StorageVersion}
	}
	if o.State != status.StateReady {
		m.Status.CompletionTime = nil // of a second manager, which a user started by mistake
		return
	}
	m.Status.EstimatedCompletion = nil
	m.Status.CompletionTime = &metav1.Time{Time: now.Truncate(time.Second)}
}

func samples(lists ...[]godwit.Failure) []v1alpha1.Failure {
	var all []v1alpha1.Failure
	for _, f := range slices.Concat(lists...) {
		if len(all) == maxSamples {
			break
		}
		all = append(all, v1alpha1.Failure{Namespace: f.Namespace, Name: f.Name, Reason: f.Reason.String(), Message: f.Message})
	}
	return all
}

// progressText returns the progress, which never falls while the evidence of a migration holds: a pass that resumes visits every object
// from the first one, but needs no request for those that an earlier pass has written.
func progressText(before string, done, remaining int64) string {
	var visited int64
	_, _ = fmt.Sscanf(before, "%d/", &visited) // there is none before the first pass
	if remaining < 0 {
		return fmt.Sprintf("%d/?", max(done, visited))
	}
	return fmt.Sprintf("%d/%d", min(max(done, visited), done+remaining), done+remaining)
}

// estimate returns the estimated time of completion, or nil if it is not known.
func estimate(began, now time.Time, done, remaining int64) *metav1.Time {
	if done <= 0 || remaining <= 0 {
		return nil
	}
	perObject := now.Sub(began) / time.Duration(done)
	return &metav1.Time{Time: now.Add(perObject * time.Duration(remaining)).Truncate(time.Second)}
}
