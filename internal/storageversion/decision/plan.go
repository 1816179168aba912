package decision

import (
	"fmt"
	"slices"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/internal/format"
	"github.com/godwit-dev/godwit/internal/kube"
	"github.com/godwit-dev/godwit/internal/storageversion/evidence"
	"github.com/godwit-dev/godwit/internal/storageversion/internal/settle"
)

// State says what a plan amounts to.
type State string

const (
	// Clean means that storedVersions is the storage version alone, that the API
	// server lists the objects, and that managedFields are not known to be stale.
	Clean State = "Clean"
	// Ready means that there is work, and nothing in its way.
	Ready State = "Ready"
	// Blocked means that there is work and something in its way, or that objects can't be read.
	Blocked State = "Blocked"
	// StateUnknown means that the API server did not list the objects, so that
	// nothing is known about them; Plan.Unlisted has the reason.
	StateUnknown State = "Unknown"
)

// Plan is what is to be done about one CRD. It is a value, decided by
// [PlanFor].
type Plan struct {
	Name           string
	UID            types.UID
	Generation     int64
	Resource       schema.GroupVersionResource
	State          State
	StorageVersion string
	ServedVersions []string
	StoredVersions []string
	// ServersUnread says why nothing is known about the API servers.
	ServersUnread string
	// Trimmed means that status.storedVersions is the storage version alone, and no condition
	// of the CRD contradicts it.
	Trimmed bool
	// Objects is nil when they were not counted.
	Objects *int64
	// Unlisted says why the objects could not be counted, or not be scanned; nil
	// when they were listed.
	Unlisted      *UnlistedError
	ManagedFields ManagedFields
	Blockers      []godwit.Finding
	// Warnings do not keep a run from starting.
	Warnings []godwit.Finding
	// Preflight counts what a preflight has tried; nil without one.
	Preflight *PreflightSummary
	// Resumes means that an earlier run left a checkpoint that still holds.
	Resumes bool
	// SkipPhases are those that the policy skips.
	SkipPhases []Phase
}

// PlanFor decides what is to be done. It is pure: equal facts and policy give
// equal plans.
func PlanFor(f Facts, p Policy) Plan {
	crd := f.CRD
	plan := Plan{
		Name:           crd.Name,
		UID:            crd.UID,
		Generation:     crd.Generation,
		Resource:       kube.ResourceOf(crd),
		State:          Clean,
		StorageVersion: kube.StorageVersion(crd),
		ServedVersions: kube.ServedVersions(crd),
		StoredVersions: slices.Clone(crd.Status.StoredVersions),
		Objects:        f.Objects,
		ManagedFields:  f.ManagedFields,
		Resumes:        f.Checkpoint.Holds(crd, p.Terms()),
		Trimmed:        kube.Trimmed(crd) && kube.StorageVersion(crd) != "",
		Unlisted:       f.Unlisted,
		ServersUnread:  f.ServersUnread,
		SkipPhases:     slices.Clone(p.SkipPhases),
	}
	switch {
	case f.Objects != nil && *f.Objects == 0:
		plan.ManagedFields = ManagedFieldsClean
	case f.ManagedFields == "":
		plan.ManagedFields = ManagedFieldsUnknown
	}
	plan.Warnings = warnings(f, p)
	if f.Preflight != nil {
		plan.Preflight = f.Preflight.Summary
	}
	switch {
	case plan.Trimmed:
		plan.Blockers = checkTrimmed(f, p)
	case p.Skips(StorageVersionMigrationPhase) && plan.StorageVersion != "":
		plan.Blockers = checkObjectsRead(f, p) // the other blockers are about a rewrite, not about a cleanup
	default:
		for _, check := range checks {
			plan.Blockers = append(plan.Blockers, check(f, p)...)
		}
	}
	plan.Blockers = slices.Concat(checkFormat(f), checkRescue(f, p), plan.Blockers)
	plan.Warnings = requireBlockersFixed(plan.Warnings, plan.Blockers)
	plan.State = plan.stateFor(f, p)
	return plan
}

// stateFor decides the state of the plan, the gravest first. A plan is not Clean if the
// API server did not list the objects, unless the CRD is trimmed and the policy skips the
// cleanup: then no object needs a write.
func (plan Plan) stateFor(f Facts, p Policy) State {
	unlisted := f.Unlisted != nil && f.CRD.DeletionTimestamp == nil && !(plan.Trimmed && p.Skips(CleanupManagedFieldsPhase))
	switch {
	case len(plan.Blockers) > 0:
		return Blocked
	case unlisted:
		return StateUnknown
	case plan.ManagedFields == ManagedFieldsStale && f.CRD.DeletionTimestamp == nil:
		return Ready
	case plan.Trimmed, p.Skips(StorageVersionMigrationPhase) && plan.StorageVersion != "" && plan.ManagedFields == ManagedFieldsClean:
		return Clean
	}
	return Ready
}

// checkTrimmed returns the blockers of a trimmed CRD. If the API server can't read the objects,
// status.storedVersions does not prove that they are at the storage version. If the CRD is being
// deleted, its objects are deleted, too.
func checkTrimmed(f Facts, p Policy) []godwit.Finding {
	if f.CRD.DeletionTimestamp != nil {
		return nil
	}
	return checkObjectsRead(f, p)
}

// HardBlockers are the blockers that do not end by waiting.
func (plan Plan) HardBlockers() []godwit.Finding {
	return slices.DeleteFunc(slices.Clone(plan.Blockers), func(b godwit.Finding) bool {
		return b.Reason == ReasonServerLeaseStale
	})
}

// checks run in the order in which a user would fix what they find.
var checks = []func(Facts, Policy) []godwit.Finding{
	checkServing, checkVersions, checkAnswering, checkObjectsRead, checkScope, checkPermissions, checkPreflight, CheckValues, CheckOthers, checkChanges, checkServers, checkEndpoints,
}

// checkFormat blocks a run that would overwrite the checkpoint of a newer release.
func checkFormat(f Facts) []godwit.Finding {
	if f.Newer == nil || f.CRD.DeletionTimestamp != nil {
		return nil
	}
	fix := format.UseNewerRelease()
	if _, ok := f.CRD.Annotations[evidence.CheckpointAnnotation]; ok {
		fix = fix.Or(removeCheckpoint(f.CRD.Name, evidence.CheckpointAnnotation))
	}
	return blocker(ReasonNewerFormat, f.Newer.Error(), fix)
}

// checkRescue blocks other runs during a rescue. They would write the objects without a check of the fields that these lose; the
// rescue makes that check. It ends after its last write to the objects, when it has given the fields of the CRD back to their owners.
func checkRescue(f Facts, p Policy) []godwit.Finding {
	if p.InRescue || f.CRD.DeletionTimestamp != nil || !rescueUnfinished(f.CRD) {
		return nil
	}
	return []godwit.Finding{rescueInterrupted(f.CRD)}
}

func checkServing(f Facts, _ Policy) []godwit.Finding {
	crd := f.CRD
	switch {
	case crd.DeletionTimestamp != nil:
		return []godwit.Finding{BeingDeleted(crd)}
	case !kube.Established(crd):
		return []godwit.Finding{notEstablished(crd)}
	}
	return nil
}

func checkVersions(f Facts, p Policy) []godwit.Finding {
	crd := f.CRD
	version := kube.StorageVersion(crd)
	if version == "" {
		return []godwit.Finding{noStorageVersion(crd)}
	}
	var blockers []godwit.Finding
	if !kube.Serves(crd, version) {
		blockers = append(blockers, storageNotServed(crd))
	}
	if w := p.Write.OrDefault(); w.Subresource() != "" && !kube.HasStatus(crd) {
		blockers = append(blockers, godwit.Finding{
			Reason:  ReasonStatusSubresourceMissing,
			Message: fmt.Sprintf("the write %s goes to /status, which version %s of %s does not have", w, version, crd.Name),
			Fix:     writeObject(crd.Name, w.onObject(), version),
		})
	}
	for _, stored := range crd.Status.StoredVersions {
		if !slices.ContainsFunc(crd.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name == stored }) {
			blockers = append(blockers, godwit.Finding{
				Reason: ReasonStoredVersionNotInSpec,
				Message: fmt.Sprintf("status.storedVersions of %s names %s, which spec.versions does not have: objects stored at it can't be read",
					crd.Name, stored),
				Fix: restoreVersion(crd, stored),
			})
		}
	}
	return blockers
}

// checkScope blocks if objects have another scope than the CRD, since a run can't write them.
func checkScope(f Facts, _ Policy) []godwit.Finding {
	if f.Unreachable.Objects == 0 {
		return nil
	}
	return []godwit.Finding{OtherScope(f.CRD, f.Unreachable)}
}

// checkObjectsRead blocks if the API server can't read the objects, because it can't write
// them either. Other reasons why a list fails have a check of their own, or may end by
// themselves.
func checkObjectsRead(f Facts, _ Policy) []godwit.Finding {
	u := f.Unlisted
	forbidden := u != nil && u.Reason == ReasonForbidden && !kube.Trimmed(f.CRD) && !f.Lacks(kube.ResourceOf(f.CRD).GroupResource())
	if u == nil || !u.Blocks() && !forbidden || u.Reason == ReasonOtherServerAnswers && len(checkAnswering(f, Policy{})) > 0 {
		return nil
	}
	return []godwit.Finding{u.Finding}
}

func checkPermissions(f Facts, _ Policy) []godwit.Finding {
	var blockers []godwit.Finding
	for _, g := range f.Denied {
		blockers = append(blockers, Forbidden(f.User, g))
	}
	return blockers
}

// checkPreflight blocks if the API server refused the dry run of a write, because it will refuse that write in a run as well, and if
// it stored other objects than those that it was sent.
func checkPreflight(f Facts, p Policy) []godwit.Finding {
	switch {
	case f.Preflight == nil:
		return nil
	case f.DenialsAccepted(p):
		return slices.Concat(f.Preflight.CRDDenials, f.Preflight.Changes)
	}
	return slices.Concat(f.Preflight.CRDDenials, f.Preflight.Denials, f.Preflight.Changes)
}

// CheckOthers blocks while another migrator migrates the objects: two do no harm, but both write every object.
func CheckOthers(f Facts, _ Policy) []godwit.Finding {
	if len(f.Migrations) == 0 {
		return nil
	}
	names := make([]string, len(f.Migrations))
	for i, o := range f.Migrations {
		names[i] = o.Name
	}
	message := fmt.Sprintf("%s is being migrated by %s", f.CRD.Name, strings.Join(names, ", "))
	fix := awaitMigration(names[0])
	if i := slices.IndexFunc(f.Migrations, func(o OtherMigration) bool { return o.idle(f.Now) }); i >= 0 {
		idle := f.Migrations[i]
		message += fmt.Sprintf("; no controller has begun %s in %s, possibly because the feature gate StorageVersionMigrator of kube-controller-manager is disabled",
			idle.Name, f.Now.Sub(idle.Created).Round(time.Minute))
		fix = deleteMigration(idle.Name).Or(fix)
	}
	return blocker(ReasonMigrationInProgress, message, fix)
}

func checkChanges(f Facts, _ Policy) []godwit.Finding {
	recent := f.Checkpoint.RecentRestarts(f.Now)
	if f.Checkpoint.CRDUID != f.CRD.UID || recent < evidence.MaxRestarts { // the restarts of another CRD with this name do not count
		return nil
	}
	annotation := ""
	if _, ok := f.CRD.Annotations[evidence.CheckpointAnnotation]; ok { // a user can't edit another journal
		annotation = evidence.CheckpointAnnotation
	}
	return blocker(ReasonCRDKeepsChanging,
		fmt.Sprintf("%s changed under %d runs within an hour; its spec is written by %s",
			f.CRD.Name, recent, orElse(strings.Join(settle.SpecManagers(f.CRD), ", "), "managers that managedFields do not name")),
		agree(f.CRD.Name, annotation))
}

// warnings are findings that do not keep a run from starting.
func warnings(f Facts, p Policy) []godwit.Finding {
	var list []godwit.Finding
	if kube.FailedMigration(f.CRD) >= 0 {
		list = append(list, godwit.Finding{Severity: godwit.Warns,
			Reason:  ReasonStoredVersionsDoubtful,
			Message: fmt.Sprintf("a StorageVersionMigration of %s failed, and status.storedVersions was trimmed all the same: objects may be stored at any version", f.CRD.Name),
			Fix:     MigrateDoubtful(f.CRD.Name),
		})
	}
	list = slices.Concat(list, untrimmed(f), trimmedEarly(f, p), leaseless(f, p))
	if g := f.CleanupDenied; g != nil {
		list = append(list, godwit.Finding{Severity: godwit.Warns,
			Reason:  ReasonCleanupForbidden,
			Message: fmt.Sprintf("%s may not %s, without which stale managedFields stay", orElse(f.User, "the current user"), g),
			Fix:     g.Fix(f.User),
		})
	}
	if largest, size, crowded := evidence.Crowded(f.CRD); crowded && !kube.Trimmed(f.CRD) {
		list = append(list, godwit.Finding{Severity: godwit.Warns,
			Reason: ReasonAnnotationsFull,
			Message: fmt.Sprintf("the annotations of %s leave no room for a checkpoint, the largest is %s with %d bytes: an interrupted run begins again",
				f.CRD.Name, largest, size),
			Fix: dropAnnotation(f.CRD.Name, largest),
		})
	}
	if f.Preflight == nil {
		return list
	}
	if f.DenialsAccepted(p) {
		for _, b := range f.Preflight.Denials {
			b.Severity = godwit.Warns
			list = append(list, b)
		}
	}
	return append(list, f.Preflight.Warnings...)
}

// untrimmed warns of a StorageVersionMigration that began after the last change of the CRD, succeeded, and
// left old versions in status.storedVersions. Kubernetes' own migrator trims since 1.36, unless the CRD was
// edited meanwhile; kube-storage-version-migrator does not trim.
func untrimmed(f Facts) []godwit.Finding {
	changed, ok := settle.ChangedBefore(f.CRD)
	if !ok || kube.Trimmed(f.CRD) {
		return nil
	}
	var list []godwit.Finding
	for _, o := range f.Succeeded {
		if !o.Created.After(changed) {
			continue // it may have written objects at the former storage version
		}
		list = append(list, godwit.Finding{Severity: godwit.Warns,
			Reason: ReasonMigrationDidNotTrim,
			Message: fmt.Sprintf("%s has succeeded, and status.storedVersions of %s is still %s: this migrator leaves old versions in it, or the CRD was edited meanwhile",
				o.Name, f.CRD.Name, strings.Join(f.CRD.Status.StoredVersions, ", ")),
			Fix: migrateUntrimmed(f.CRD.Name),
		})
	}
	return list
}

// trimmedEarly warns if Kubernetes' own migrator trimmed status.storedVersions before the settle time was
// over. That migrator does not wait for API servers: one of them may have stored an old version afterwards.
func trimmedEarly(f Facts, p Policy) []godwit.Finding {
	changed, ok := settle.ChangedBefore(f.CRD)
	if !ok || !kube.Trimmed(f.CRD) || len(f.CRD.Spec.Versions) < 2 {
		return nil
	}
	i := slices.IndexFunc(f.CRD.Status.Conditions, func(c apiextensionsv1.CustomResourceDefinitionCondition) bool {
		return c.Type == apiextensionsv1.StorageMigrating && c.Reason == kube.MigrationSucceeded && c.ObservedGeneration == f.CRD.Generation
	})
	if i < 0 {
		return nil
	}
	ended := f.CRD.Status.Conditions[i].LastTransitionTime.Time
	if !ended.Before(changed.Add(p.Terms().Time())) {
		return nil
	}
	versions := make([]string, len(f.CRD.Spec.Versions))
	for i, v := range f.CRD.Spec.Versions {
		versions[i] = v.Name
	}
	return []godwit.Finding{{
		Severity: godwit.Warns,
		Reason:   ReasonTrimmedBeforeSettled,
		Message: fmt.Sprintf("a StorageVersionMigration trimmed status.storedVersions of %s within %s of the change of the CRD: an API server that had not adopted the change may have stored an old version since",
			f.CRD.Name, p.Terms().Time()),
		Fix: proveTrimmed(f.CRD.Name, versions...),
	}}
}

// requireBlockersFixed adds to the fix of an incomplete preflight, which is a run that tries
// every object, that the blockers have to be fixed first: they keep this run from starting, too.
// The blockers of a preflight do not, since a dry run makes no preflight.
func requireBlockersFixed(list []godwit.Finding, blockers []godwit.Finding) []godwit.Finding {
	var first []string
	for _, b := range blockers {
		switch b.Reason {
		case ReasonAdmissionDenied, ReasonAdmissionMutates, ReasonWebhookUnavailable, ReasonObjectInvalid, ReasonServerLeaseStale:
		default:
			first = append(first, b.Reason.Name)
		}
	}
	if len(first) == 0 {
		return list
	}
	slices.Sort(first)
	list = slices.Clone(list)
	for i := range list {
		if list[i].Reason == ReasonPreflightIncomplete {
			list[i].Fix = list[i].Fix.After("first do what " + strings.Join(slices.Compact(first), " and ") + " asks for")
		}
	}
	return list
}
