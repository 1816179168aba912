package crdmigration

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/api/v1alpha1"
	"github.com/godwit-dev/godwit/crdmigrator"
)

// verdict is what a pass, or the lack of one, amounts to.
type verdict struct {
	ready   bool
	working bool // goes on by itself
	stalled bool // somebody has to do something
	reason  string
	message string
	blocked []godwit.Blocker
}

// notConverging is the number of passes in a row that met writes by others after
// which somebody is told.
const notConverging = 5

// judge decides what the end of a pass means. Times and counts are in the status
// beside the conditions, so that a message changes only with its meaning.
func judge(spec v1alpha1.CRDMigrationSpec, report crdmigrator.Report, err error, conflicted int) verdict {
	var unsettled *crdmigrator.NotSettledError
	var blocked *crdmigrator.BlockedError
	var unlisted *crdmigrator.UnlistedError
	left := report.Err()
	switch {
	case errors.As(err, &unsettled):
		return settling(unsettled)
	case errors.As(err, &blocked):
		return blockedBy(blocked)
	case errors.As(err, &unlisted):
		return unlistedBy(unlisted)
	case errors.Is(err, crdmigrator.ErrNotFound):
		return verdict{stalled: true, reason: v1alpha1.ReasonCRDNotFound, message: err.Error() + "; a CRDMigration is named after its CustomResourceDefinition: kubectl get crd"}
	case errors.Is(err, errSuspended):
		return suspended()
	case errors.Is(err, crdmigrator.ErrChanged), errors.Is(err, errSpecChanged), errors.Is(err, errLeftScope):
		return verdict{working: true, reason: v1alpha1.ReasonRetrying, message: err.Error()}
	case err != nil:
		return verdict{working: true, reason: v1alpha1.ReasonFailed, message: err.Error()}
	case errors.Is(left, crdmigrator.ErrConflicts) && conflicted >= notConverging:
		return verdict{stalled: true, reason: v1alpha1.ReasonNotConverging, message: "pass after pass meets writes by others; the failures name the objects"}
	case errors.Is(left, crdmigrator.ErrConflicts):
		return verdict{working: true, reason: v1alpha1.ReasonRetrying, message: "others wrote objects at the same moment; another pass follows"}
	case report.Storage.Counts.Failed > 0:
		return verdict{stalled: true, reason: v1alpha1.ReasonObjectsFailed, message: "the API server refuses to write some objects" + becauseOf(report.Storage.Failures) + "; the failures name them, and they are tried again"}
	case left != nil:
		return verdict{stalled: true, reason: v1alpha1.ReasonPartial, message: fmt.Sprintf("every object is stored at the storage version %s, but some managedFields could not be cleaned%s",
			report.Checkpoint.StorageVersion, becauseOf(report.ManagedFields.Failures))}
	}
	return succeeded(spec, report.Checkpoint.StorageVersion)
}

// becauseOf names the webhooks and policies that failures come from, sorted, so that
// the message stays the same from pass to pass.
func becauseOf(failures []godwit.Failure) string {
	causes := crdmigrator.Causes(failures)
	if len(causes) == 0 {
		return ""
	}
	return " because of " + strings.Join(causes, ", ")
}

// succeeded names the version: whoever reads the event later may find another one
// in the CRD.
func succeeded(spec v1alpha1.CRDMigrationSpec, version string) verdict {
	stored := "every object is stored at the storage version " + version
	if !runs(spec, crdmigrator.StorageVersionMigrationPhase) {
		return verdict{ready: true, reason: v1alpha1.ReasonNotTrimmed, message: "managedFields are clean; spec.phases leaves objects, and status.storedVersions, as they are stored"}
	}
	if !trims(spec) {
		return verdict{ready: true, reason: v1alpha1.ReasonNotTrimmed, message: stored + "; spec.trim leaves the old versions in status.storedVersions"}
	}
	return verdict{ready: true, reason: v1alpha1.ReasonSucceeded, message: stored}
}

func migrating() verdict {
	return verdict{working: true, reason: v1alpha1.ReasonMigrating, message: "objects are being written"}
}

// trims: without the rewrite nobody knows at which version objects are stored.
func trims(spec v1alpha1.CRDMigrationSpec) bool {
	return (spec.Trim == nil || *spec.Trim) && runs(spec, crdmigrator.StorageVersionMigrationPhase)
}

func suspended() verdict {
	return verdict{reason: v1alpha1.ReasonSuspended, message: "spec.suspend is set; it goes on where it stopped once that is removed"}
}

func settling(e *crdmigrator.NotSettledError) verdict {
	v := verdict{working: true, reason: v1alpha1.ReasonSettling, message: "requests begun before the storage version changed may still be under way"}
	switch {
	case len(e.Silent) > 0:
		v.message = "API servers are silent and may still write the old version: " + names(e.Silent)
		for _, s := range e.Silent {
			v.blocked = append(v.blocked, godwit.Blocker{
				Reason: crdmigrator.ReasonServerSilent, Message: fmt.Sprintf("API server %s is silent", s),
				Remedy: "bring it back, or, if it is gone for good, remove its lease: kubectl delete lease -n kube-system " + s.Name,
			})
		}
	case len(e.Servers) > 0:
		v.message = "API servers have not shown yet that they use the storage version: " + names(e.Servers)
	}
	return v
}

func names(servers []crdmigrator.Server) string {
	texts := make([]string, len(servers))
	for i, s := range servers {
		texts[i] = s.String()
	}
	slices.Sort(texts)
	return strings.Join(texts, ", ")
}

// blockedBy: another migrator ends by itself, what else is in the way does not.
func blockedBy(e *crdmigrator.BlockedError) verdict {
	v := verdict{reason: v1alpha1.ReasonBlocked, blocked: e.Blockers, message: e.Error()}
	v.working = !slices.ContainsFunc(e.Blockers, func(b godwit.Blocker) bool { return b.Reason != crdmigrator.ReasonMigrationInProgress })
	v.stalled = !v.working
	return v
}

// unlistedBy: what may end by itself is waited for, what else is in the way of a list
// is in the way of the migration.
func unlistedBy(e *crdmigrator.UnlistedError) verdict {
	if e.Starting {
		return verdict{working: true, reason: v1alpha1.ReasonRetrying, message: "the API server does not serve the CRD yet"}
	}
	if !e.Transient() {
		return blockedBy(&crdmigrator.BlockedError{CRD: e.CRD, Blockers: []godwit.Blocker{e.Blocker()}})
	}
	return verdict{working: true, reason: v1alpha1.ReasonObjectsUnlisted, message: e.Error()}
}

// apply writes a verdict into the conditions.
func (v verdict) apply(m *v1alpha1.CRDMigration) {
	status := map[bool]metav1.ConditionStatus{true: metav1.ConditionTrue, false: metav1.ConditionFalse}
	set := func(kind string, is bool, reason, message string) {
		meta.SetStatusCondition(&m.Status.Conditions, metav1.Condition{
			Type: kind, Status: status[is], Reason: reason, Message: strings.ToValidUTF8(message[:min(len(message), maxMessage)], ""), ObservedGeneration: m.Generation,
		})
	}
	set(v1alpha1.ConditionReady, v.ready, v.reason, v.message)
	set(v1alpha1.ConditionReconciling, v.working, v.reason, v.message)
	set(v1alpha1.ConditionStalled, v.stalled, v.reason, v.message)
	if len(v.blocked) > 0 {
		set(v1alpha1.ConditionBlocked, true, v.blocked[0].Reason, v.blocked[0].Message)
	} else {
		set(v1alpha1.ConditionBlocked, false, v1alpha1.ReasonNotBlocked, "nothing keeps the migration from starting")
	}
	m.Status.ObservedGeneration = m.Generation
	m.Status.Blockers = v.blocked[:min(len(v.blocked), maxSamples)]
}

// maxMessage is what a condition takes; a longer one would have the API server refuse
// the status.
const maxMessage = 32768

// maxSamples is what the kind allows for failures and for blockers.
const maxSamples = 20
