package storageversion

import (
	"fmt"
	"slices"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/internal/kube"
	"github.com/godwit-dev/godwit/internal/storageversion/internal/settle"
)

// State says what a plan amounts to.
type State string

const (
	// Clean means that storedVersions is the storage version alone, that the API
	// server lists the objects, and that managedFields are not known to be stale.
	Clean State = "Clean"
	// Ready: there is work, and nothing in its way.
	Ready State = "Ready"
	// Blocked: there is work, and something in its way; or objects can't be read.
	Blocked State = "Blocked"
	// StateUnknown means that the API server did not list the objects, so that
	// nothing is known about them; Plan.Unlisted has the reason.
	StateUnknown State = "Unknown"
)

// ManagedFields says whether managedFields of the objects name versions that
// are no longer served.
type ManagedFields string

const (
	// ManagedFieldsUnknown: telling takes reading every object.
	ManagedFieldsUnknown ManagedFields = "Unknown"
	// ManagedFieldsStale: some object names one; a run cleans it.
	ManagedFieldsStale ManagedFields = "Stale"
	// ManagedFieldsClean: no object names a version that is not served.
	ManagedFieldsClean ManagedFields = "Clean"
)

// Reasons of blockers.
const (
	// ReasonNotEstablished: the API server does not serve the CRD.
	ReasonNotEstablished = "NotEstablished"
	// ReasonTerminating: the CRD is being deleted.
	ReasonTerminating = "Terminating"
	// ReasonNoStorageVersion: no version is marked as the storage version.
	ReasonNoStorageVersion = "NoStorageVersion"
	// ReasonStorageVersionNotServed: objects can't be written at the storage
	// version, and writing them through another one can lose fields.
	ReasonStorageVersionNotServed = "StorageVersionNotServed"
	// ReasonStatusSubresourceMissing: the policy writes to /status, and the
	// storage version has none.
	ReasonStatusSubresourceMissing = "StatusSubresourceMissing"
	// ReasonStoredVersionNotInSpec: objects may be stored at a version that
	// the server no longer knows how to read.
	ReasonStoredVersionNotInSpec = "StoredVersionNotInSpec"
	// ReasonForbidden: a right is missing.
	ReasonForbidden = "Forbidden"
	// ReasonMigrationInProgress: another migrator is at work on the resource.
	ReasonMigrationInProgress = "MigrationInProgress"
	// ReasonCRDKeepsChanging: the CRD changed under several runs.
	ReasonCRDKeepsChanging = "CRDKeepsChanging"
	// ReasonServerLeaseStale: an API server has not shown a sign of life since
	// the storage version changed and may still write the old one.
	ReasonServerLeaseStale = "ServerLeaseStale"
	// ReasonAdmissionDenied: a webhook or a policy refuses the policy's write of
	// some object, as a preflight has shown.
	ReasonAdmissionDenied = "AdmissionDenied"
	// ReasonWebhookUnavailable: a webhook without which the API server writes or
	// reads no object does not answer it.
	ReasonWebhookUnavailable = "WebhookUnavailable"
	// ReasonConversionFailed: the conversion webhook answers, and does not convert
	// some object, so that the API server reads none.
	ReasonConversionFailed = "ConversionFailed"
	// ReasonUnreadableObjects: the API server can't read some object from etcd,
	// because its bytes are damaged or its version is not in spec.versions.
	ReasonUnreadableObjects = "UnreadableObjects"
	// ReasonObjectInvalid: the API server itself refuses some object as it is.
	ReasonObjectInvalid = "ObjectInvalid"
)

// Reasons of warnings, beside those of blockers that are accepted.
const (
	// ReasonStoredVersionsDoubtful means that status.storedVersions proves nothing, because
	// a StorageVersionMigration that failed has trimmed it.
	ReasonStoredVersionsDoubtful = "StoredVersionsDoubtful"
	// ReasonAdmissionMutates: something in the API server changes objects that
	// are written as they are, and a run would store the change.
	ReasonAdmissionMutates = "AdmissionMutates"
	// ReasonCleanupForbidden: the write goes to /status or is an update, and the
	// right to patch objects is missing, which the cleanup of managedFields needs.
	ReasonCleanupForbidden = "CleanupForbidden"
	// ReasonPreflightIncomplete means that what admission makes of the write is not
	// known for every namespace.
	ReasonPreflightIncomplete = "PreflightIncomplete"
)

// Reasons of failures of objects, beside those of blockers and of an [UnlistedError].
const (
	// ReasonConflict means that other clients kept writing the object.
	ReasonConflict = "Conflict"
	// ReasonUnanswered means that the API server did not answer the write.
	ReasonUnanswered = "Unanswered"
	// ReasonObjectTooLarge means that the API server dropped the managedFields of an
	// object that is too large with them.
	ReasonObjectTooLarge = "ObjectTooLarge"
	// ReasonManagedFieldsKept means that the API server answered a cleanup with the
	// managedFields of before.
	ReasonManagedFieldsKept = "ManagedFieldsKept"
)

// Policy is what the user decides. The zero value is the safe default.
type Policy struct {
	// Settle is how long after a change of the storage version the first write
	// may be sent; 0 means DefaultSettle. A fifth of it is given to the servers'
	// watches, the rest to requests under way. Negative means no time at all;
	// each server must still have renewed its lease since the change, which
	// takes up to 10 s.
	Settle time.Duration
	// SettleFromSight counts the settle time from the first sight of every
	// server having adopted the change, instead of from the change itself. It
	// also covers a server that came back a moment ago; for processes that run
	// all the time.
	SettleFromSight bool
	// Write is how objects are written; empty means WritePatch.
	Write Write
	// SkipPhases are not run.
	SkipPhases []Phase
	// AcceptStaleLeases does not wait for API servers whose lease is stale.
	AcceptStaleLeases bool
	// AcceptDenials goes on although a preflight has shown that the API server
	// refuses to write some object: a run leaves such objects at the old version,
	// and then does not trim. A run that resumes goes on in any case.
	AcceptDenials bool
}

func (p Policy) skips(phase Phase) bool { return slices.Contains(p.SkipPhases, phase) }

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
	// Trimmed: status.storedVersions is the storage version alone, and no condition
	// of the CRD contradicts it.
	Trimmed bool
	// Objects is nil when they were not counted.
	Objects *int64
	// Unlisted says why the objects could not be counted, or not be scanned; nil
	// when they were listed.
	Unlisted      *UnlistedError
	ManagedFields ManagedFields
	Blockers      []godwit.Blocker
	// Warnings do not keep a run from starting.
	Warnings []godwit.Warning
	// Preflight counts what a preflight has tried; nil without one.
	Preflight *PreflightSummary
	// Resumes: an earlier run left a checkpoint that still holds.
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
		Resumes:        f.Checkpoint.holds(crd, p),
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
		plan.Blockers = trimmedChecks(f, p)
	case p.skips(StorageVersionMigrationPhase) && plan.StorageVersion != "":
		plan.Blockers = checkObjectsRead(f, p) // nothing else that keeps a rewrite from starting matters to a cleanup
	default:
		for _, check := range checks {
			plan.Blockers = append(plan.Blockers, check(f, p)...)
		}
	}
	plan.Warnings = afterBlockers(plan.Warnings, plan.Blockers)
	plan.State = plan.stateFor(f, p)
	return plan
}

// stateFor decides what the plan amounts to, the gravest first: what the API server
// did not list is never called clean, unless nothing was to be done about the
// objects themselves.
func (plan Plan) stateFor(f Facts, p Policy) State {
	unlisted := f.Unlisted != nil && f.CRD.DeletionTimestamp == nil && !(plan.Trimmed && p.skips(CleanupManagedFieldsPhase))
	switch {
	case len(plan.Blockers) > 0:
		return Blocked
	case unlisted:
		return StateUnknown
	case plan.ManagedFields == ManagedFieldsStale && f.CRD.DeletionTimestamp == nil:
		return Ready
	case plan.Trimmed, p.skips(StorageVersionMigrationPhase) && plan.StorageVersion != "" && plan.ManagedFields == ManagedFieldsClean:
		return Clean
	}
	return Ready
}

// trimmedChecks: what status.storedVersions promises is not believed where the API
// server can't read the objects. A CRD that is being deleted takes them along.
func trimmedChecks(f Facts, p Policy) []godwit.Blocker {
	if f.CRD.DeletionTimestamp != nil {
		return nil
	}
	return checkObjectsRead(f, p)
}

// HardBlockers are the blockers that do not end by waiting.
func (plan Plan) HardBlockers() []godwit.Blocker {
	return slices.DeleteFunc(slices.Clone(plan.Blockers), func(b godwit.Blocker) bool {
		return b.Reason == ReasonServerLeaseStale
	})
}

// checks run in the order in which a person would mend what they find.
var checks = []func(Facts, Policy) []godwit.Blocker{
	checkServing, checkVersions, checkObjectsRead, checkRights, checkPreflight, checkOthers, checkChanges, checkServers,
}

func checkServing(f Facts, _ Policy) []godwit.Blocker {
	crd := f.CRD
	switch {
	case crd.DeletionTimestamp != nil:
		return blocker(ReasonTerminating,
			fmt.Sprintf("customresourcedefinition %s is being deleted, with all its objects", crd.Name),
			godwit.Do("nothing is left to migrate; if the deletion hangs, see which finalizer or which objects it waits for", godwit.Show{
				Object: kube.CRDObject(crd.Name), Output: `jsonpath={.metadata.finalizers} {.status.conditions[?(@.type=="Terminating")].message}`,
			}))
	case !kube.Established(crd):
		return []godwit.Blocker{notEstablished(crd)}
	}
	return nil
}

func notEstablished(crd *apiextensionsv1.CustomResourceDefinition) godwit.Blocker {
	return godwit.Blocker{
		Reason:  ReasonNotEstablished,
		Message: fmt.Sprintf("customresourcedefinition %s is not served: %s", crd.Name, whyNotEstablished(crd)),
		Fix:     establish(crd),
	}
}

func checkVersions(f Facts, p Policy) []godwit.Blocker {
	crd := f.CRD
	version := kube.StorageVersion(crd)
	if version == "" {
		return []godwit.Blocker{noStorageVersion(crd)}
	}
	var blockers []godwit.Blocker
	if !kube.Serves(crd, version) {
		blockers = append(blockers, storageNotServed(crd))
	}
	if w := p.Write.orDefault(); w.Subresource() != "" && !kube.HasStatus(crd) {
		blockers = append(blockers, godwit.Blocker{
			Reason:  ReasonStatusSubresourceMissing,
			Message: fmt.Sprintf("the write %s goes to /status, which version %s of %s does not have", w, version, crd.Name),
			Fix: godwit.Do(fmt.Sprintf("use the write %s", w.onObject()), godwit.RunMigration{CRD: crd.Name, Write: string(w.onObject())}).
				Or(godwit.Do("add subresources.status to version "+version, godwit.Edit{Object: kube.CRDObject(crd.Name)})),
		})
	}
	for _, stored := range crd.Status.StoredVersions {
		if !slices.ContainsFunc(crd.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name == stored }) {
			blockers = append(blockers, godwit.Blocker{
				Reason: ReasonStoredVersionNotInSpec,
				Message: fmt.Sprintf("status.storedVersions of %s names %s, which spec.versions does not have: objects stored at it can't be read",
					crd.Name, stored),
				Fix: godwit.Do(fmt.Sprintf("bring version %s back with served: false, then run again", stored), kube.AddVersions(crd.Name, stored)).
					Or(godwit.Do("prove that no object is at it", godwit.VerifyMigration{CRD: crd.Name})),
			})
		}
	}
	return blockers
}

func noStorageVersion(crd *apiextensionsv1.CustomResourceDefinition) godwit.Blocker {
	return godwit.Blocker{
		Reason:  ReasonNoStorageVersion,
		Message: fmt.Sprintf("no version of %s is marked as the storage version", crd.Name),
		Fix:     godwit.Do("set storage: true on one entry of spec.versions", godwit.Edit{Object: kube.CRDObject(crd.Name)}),
	}
}

func storageNotServed(crd *apiextensionsv1.CustomResourceDefinition) godwit.Blocker {
	version := kube.StorageVersion(crd)
	return godwit.Blocker{
		Reason:  ReasonStorageVersionNotServed,
		Message: fmt.Sprintf("storage version %s of %s is not served, and writing through another version can lose fields", version, crd.Name),
		Fix:     godwit.Do(fmt.Sprintf("serve version %s for the time of the run", version), kube.SetServed(crd, true, version)),
	}
}

// checkObjectsRead: what the API server can't read it can't write again either. The
// other reasons of a list that failed have a check of their own, or may end.
func checkObjectsRead(f Facts, _ Policy) []godwit.Blocker {
	u := f.Unlisted
	forbidden := u != nil && u.Reason == ReasonForbidden && !kube.Trimmed(f.CRD) && !f.lacks(kube.ResourceOf(f.CRD).GroupResource())
	if u == nil || !u.Blocks() && !forbidden {
		return nil
	}
	return []godwit.Blocker{u.Blocker()}
}

func checkRights(f Facts, _ Policy) []godwit.Blocker {
	var blockers []godwit.Blocker
	for _, g := range f.Denied {
		blockers = append(blockers, forbidden(f.User, g))
	}
	return blockers
}

// forbidden names the permission that is missing.
func forbidden(user string, g Grant) godwit.Blocker {
	return godwit.Blocker{
		Reason:  ReasonForbidden,
		Message: fmt.Sprintf("%s may not %s", orElse(user, "the current user"), g),
		Fix:     g.Fix(user),
	}
}

// checkPreflight: what the API server refused of one object it will refuse of
// that object in a run.
func checkPreflight(f Facts, p Policy) []godwit.Blocker {
	if f.Preflight == nil || f.DenialsAccepted(p) {
		return nil
	}
	return f.Preflight.Denials
}

func checkOthers(f Facts, _ Policy) []godwit.Blocker {
	if len(f.Migrations) == 0 {
		return nil
	}
	return blocker(ReasonMigrationInProgress,
		fmt.Sprintf("%s is being migrated by %s", f.CRD.Name, strings.Join(f.Migrations, ", ")),
		godwit.Do("wait until it ends, or delete it", godwit.Show{Object: godwit.Object{Resource: f.Migrations[0]}}))
}

func checkChanges(f Facts, _ Policy) []godwit.Blocker {
	recent := f.Checkpoint.restartsSince(f.Now.Add(-restartWindow))
	if f.Checkpoint.CRDUID != f.CRD.UID || recent < maxRestarts { // another CRD's are not this one's
		return nil
	}
	fix := godwit.Do("let these managers agree on one spec; the migration resumes within an hour of the last of these changes")
	if _, ok := f.CRD.Annotations[CheckpointAnnotation]; ok { // another journal is not a user's to edit
		fix = godwit.Do("let these managers agree on one spec").
			Then("remove the record of the changes", kube.RemoveAnnotation(f.CRD.Name, CheckpointAnnotation))
	}
	return blocker(ReasonCRDKeepsChanging,
		fmt.Sprintf("%s changed under %d runs within an hour; its spec is written by %s",
			f.CRD.Name, recent, orElse(strings.Join(settle.SpecManagers(f.CRD), ", "), "managers that managedFields do not name")),
		fix)
}

func checkServers(f Facts, p Policy) []godwit.Blocker {
	if f.Checkpoint.holds(f.CRD, p) {
		return nil
	}
	var blockers []godwit.Blocker
	for _, s := range new(settle.History).Look(f.CRD, f.Servers, f.Now, p.terms()).Stale {
		blockers = append(blockers, godwit.Blocker{
			Reason: ReasonServerLeaseStale,
			Message: fmt.Sprintf("API server %s has a stale lease, renewed %s ago, and may still have requests under way that store the old version",
				s, f.Now.Sub(s.Renewed).Round(time.Second)),
			Fix: replaceServer(s, fmt.Sprintf("bring it back and wait %s before the next run", p.terms().Time())),
		})
	}
	return blockers
}

// replaceServer is what to do about an API server with a stale lease.
func replaceServer(s Server, bringBack string) godwit.Fix {
	lease := godwit.Object{Resource: "lease", Namespace: metav1.NamespaceSystem, Name: s.Name}
	return godwit.Do(bringBack).Or(godwit.Do("if it is gone for good, delete its lease", godwit.Delete{Object: lease}))
}

func blocker(reason, message string, fix godwit.Fix) []godwit.Blocker {
	return []godwit.Blocker{{Reason: reason, Message: message, Fix: fix}}
}

func orElse(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

// warnings are what a user should know and what does not keep a run from
// starting.
func warnings(f Facts, p Policy) []godwit.Warning {
	var list []godwit.Warning
	if kube.FailedMigration(f.CRD) >= 0 {
		list = append(list, godwit.Warning{
			Reason:  ReasonStoredVersionsDoubtful,
			Message: fmt.Sprintf("a StorageVersionMigration of %s failed, and status.storedVersions was trimmed all the same: objects may be stored at any version", f.CRD.Name),
			Fix:     godwit.Do("migrate them, which also removes that doubt", godwit.RunMigration{CRD: f.CRD.Name}),
		})
	}
	if g := f.CleanupDenied; g != nil {
		list = append(list, godwit.Warning{
			Reason:  ReasonCleanupForbidden,
			Message: fmt.Sprintf("%s may not %s, without which stale managedFields stay", orElse(f.User, "the current user"), g),
			Fix:     g.Fix(f.User),
		})
	}
	if f.Preflight == nil {
		return list
	}
	if f.DenialsAccepted(p) {
		for _, b := range f.Preflight.Denials {
			list = append(list, godwit.Warning(b))
		}
	}
	return append(list, f.Preflight.Warnings...)
}

// afterBlockers puts what has to be done first in front of the remedies that a
// blocker stands in the way of: a run that tries every object is refused as any
// other. What admission refuses is not asked for then.
func afterBlockers(list []godwit.Warning, blockers []godwit.Blocker) []godwit.Warning {
	var first []string
	for _, b := range blockers {
		switch b.Reason {
		case ReasonAdmissionDenied, ReasonWebhookUnavailable, ReasonObjectInvalid, ReasonServerLeaseStale:
		default:
			first = append(first, b.Reason)
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
