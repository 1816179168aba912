package revision

import (
	"slices"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/godwit-dev/godwit/internal/kube"
	"github.com/godwit-dev/godwit/revision/reference"
)

// Action is what is to be done about one revision.
type Action string

const (
	// UpToDate means that data and labels are at the target version.
	UpToDate Action = "UpToDate"
	// Relabel means that the data is at the target version, and the labels are not.
	Relabel Action = "Relabel"
	// Upgrade means that a revision at the target version is to replace it, or has replaced it
	// and this one is retained.
	Upgrade Action = "Upgrade"
	// Deferred means that the upgrade waits for a referrer or for another client.
	Deferred Action = "Deferred"
	// Blocked means that user action is required.
	Blocked Action = "Blocked"
	// Unreferenced means that no object refers to it.
	Unreferenced Action = "Unreferenced"
	// Unmanaged: it is none of the family.
	Unmanaged Action = "Unmanaged"
)

// Reasons of items.
const (
	// ReasonRunning means that a running object uses the revision, and that the policy is to wait.
	ReasonRunning = "Running"
	// ReasonReferrerNotReady means that a referrer must not be written yet, such as a snapshot that is being taken.
	ReasonReferrerNotReady = "ReferrerNotReady"
	// ReasonConflictingTypes means that references expect different kinds of object in it.
	ReasonConflictingTypes = "ConflictingTypes"
	// ReasonNewerFormat means that a newer release of Godwit wrote its annotations, or the object
	// that asks for its upgrade.
	ReasonNewerFormat = "NewerFormat"
	// ReasonUndecodable: the data can't be read.
	ReasonUndecodable = "Undecodable"
	// ReasonUnknownVersion means that the data is at a version which this release does not
	// convert.
	ReasonUnknownVersion = "UnknownVersion"
	// ReasonLabelsMissing means that nothing says of which object the data is a copy.
	ReasonLabelsMissing = "LabelsMissing"
	// ReasonUnexpectedOwner means that the controller is of a kind that owns no revisions of the family.
	ReasonUnexpectedOwner = "UnexpectedOwner"
	// ReasonUnconvertible: the data can be read, but not carried to the target.
	ReasonUnconvertible = "Unconvertible"
	// ReasonLossy: the target version does not know some of its fields.
	ReasonLossy = "Lossy"
	// ReasonTargetNotServed means that no data can be converted to the target version, or
	// that the API server does not serve it.
	ReasonTargetNotServed = "TargetNotServed"
	// ReasonCRDNotFound means that the CRD of the stored object is not installed.
	ReasonCRDNotFound = "CRDNotFound"
	// ReasonRetained means that another revision has replaced it, and that it is kept for the retention.
	ReasonRetained = "Retained"
	// ReasonTerminating: it is being deleted.
	ReasonTerminating = "Terminating"
	// ReasonSourceGone: references name it, and there is no such revision.
	ReasonSourceGone = "SourceGone"
	// ReasonUnconfirmed means that a scan did not find a revision that references name, and did
	// not read again whether it is missing: the scan is incomplete.
	ReasonUnconfirmed = "Unconfirmed"
	// ReasonReplacementGone means that the revision which replaced it is gone.
	ReasonReplacementGone = "ReplacementGone"
	// ReasonReplaced: another revision has its name now.
	ReasonReplaced = "Replaced"
	// ReasonNameTaken means that a revision of the replacement's name holds something else.
	ReasonNameTaken = "NameTaken"
	// ReasonChanged means that another client wrote an object in between.
	ReasonChanged = "Changed"
	// ReasonDangling: a reference names a revision that is gone, and could not be
	// repointed.
	ReasonDangling = "DanglingReference"
	// ReasonReferenced means that an object refers to the source.
	ReasonReferenced = "Referenced"
	// ReasonRefused means that the API server refuses a write, and would refuse it again:
	// an admission policy or a webhook denies it, or a permission is missing.
	ReasonRefused = "Refused"
	// ReasonUnanswered: the API server could not be asked.
	ReasonUnanswered = "Unanswered"
	// ReasonForbidden means that a permission to read is missing, so that references may be unknown.
	ReasonForbidden = "Forbidden"
	// ReasonKept: the policy is to keep sources.
	ReasonKept = "Kept"
	// ReasonIrreversible: the source is gone, so that nothing can be rolled back.
	ReasonIrreversible = "Irreversible"
	// ReasonRolledBack: references were repointed to the revision by a rollback, and no
	// trigger upgrades it again.
	ReasonRolledBack = "RolledBack"
	// ReasonRateLimited means that the retention of the revision is over, and that its deletion
	// had no turn while a scan was young enough to delete by.
	ReasonRateLimited = "RateLimited"
	// ReasonRollbackPending means that a rollback to the revision was asked for, and that
	// references still name the new revision. No trigger upgrades it again.
	ReasonRollbackPending = "RollbackPending"
	// ReasonNoController means that it has no controller, so that its replacement would have none.
	ReasonNoController = "NoController"
	// ReasonOwnerGone means that its controller is deleted: both revisions will be garbage-collected.
	ReasonOwnerGone = "OwnerGone"
	// ReasonNotInFamily: it holds nothing of the family.
	ReasonNotInFamily = "NotInFamily"
	// ReasonNeededForRestore: a restore needs the revision, by a name that it computes.
	ReasonNeededForRestore = "NeededForRestore"
	// ReasonRestoreConflict: a restore would look up a revision that can't be made, since
	// another one has its name or no API server takes the name.
	ReasonRestoreConflict = "RestoreConflict"
)

// OnRunning says what happens to a revision that a running object uses.
type OnRunning string

const (
	// Defer leaves it as it is until no running object uses it.
	Defer OnRunning = "Defer"
	// Hold upgrades it, and keeps the source until no running object uses it.
	Hold OnRunning = "Hold"
)

// MinRetention is the least time that a source is kept after the last reference to
// it is gone: what a controller's stale cache may still want.
const MinRetention = 10 * time.Minute

// DefaultRetention is how long a source is kept unless a policy says otherwise.
const DefaultRetention = time.Hour

// Policy is what people decide about upgrades. The zero value works.
type Policy struct {
	// Target is a version; empty means the storage version of the CRD.
	Target string
	// OnRunning defaults to [Defer].
	OnRunning OnRunning
	// AllowLosses continues where the target version does not have some fields. They
	// are carried through, but nothing reads them there.
	AllowLosses bool
	// Retain keeps sources for good.
	Retain bool
	// Retention is how long sources are kept otherwise; 0 means DefaultRetention, and
	// less than MinRetention means that.
	Retention time.Duration
}

func (p Policy) retention() time.Duration {
	if p.Retention == 0 {
		return DefaultRetention
	}
	return max(p.Retention, MinRetention)
}

// CRD is what the API server says about the CRD of a stored object.
type CRD struct {
	Found          bool
	StorageVersion string
	ServedVersions []string
	// StoredVersions are status.storedVersions.
	StoredVersions []string
}

// crdOf says what upgrades need to know of a CRD; nil is one that is not installed.
func crdOf(crd *apiextensionsv1.CustomResourceDefinition) CRD {
	if crd == nil {
		return CRD{}
	}
	return CRD{Found: true, StorageVersion: kube.StorageVersion(crd), ServedVersions: kube.ServedVersions(crd), StoredVersions: crd.Status.StoredVersions}
}

// target of an object at a version: the one that is asked for, or else the storage version.
// Where that is a later one than the family knows, an object that is not at it goes to the
// newest version that is served and that it can be converted to.
func (d CRD) target(asked, version string, known Description) string {
	if asked != "" {
		return asked
	}
	later := version != d.StorageVersion && !slices.Contains(known.Versions, d.StorageVersion)
	if reachable := d.Reachable(known.Targets); later && len(reachable) > 0 {
		return reachable[len(reachable)-1]
	}
	return d.StorageVersion
}

// Reachable are the versions that are served and that objects can be converted to.
func (d CRD) Reachable(targets []string) []string {
	var all []string
	for _, v := range targets {
		if slices.Contains(d.ServedVersions, v) {
			all = append(all, v)
		}
	}
	return all
}

// ReferenceStatus is a reference, as reports print it.
type ReferenceStatus struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Path      string `json:"path"`
	// State is New where the field names what it is to name: a revision at the target
	// version. Old where it does not yet, Fixed where it can't be written, Implied where
	// it names another revision, for which a restore needs this one.
	State string `json:"state"`
}

// States of references.
const (
	ReferenceOld     = "Old"
	ReferenceNew     = "New"
	ReferenceFixed   = "Fixed"
	ReferenceImplied = "Implied"
)

// referenceStatuses are references for people, of which target is what they are to name.
func referenceStatuses(references []reference.Reference, target string) []ReferenceStatus {
	var all []ReferenceStatus
	for _, r := range references {
		state := ReferenceOld
		switch {
		case r.ImpliedBy != "":
			state = ReferenceImplied
		case r.Fixed:
			state = ReferenceFixed
		case r.Revision == target:
			state = ReferenceNew
		}
		all = append(all, ReferenceStatus{Kind: r.Referrer.Kind, Namespace: r.Referrer.Namespace, Name: r.Referrer.Name, Path: r.Path, State: state})
	}
	return all
}

// candidates are what a user chooses from to fix a blocked revision. What is not needed is empty.
type candidates struct {
	// owners refer to the revision. One of them should be its controller.
	owners []reference.Owner
	// labels are missing. Each needs a value that only the user knows.
	labels []string
	// targets are served, and objects at older versions can be converted to them.
	targets []string
}

// Item is what is to be done about one revision, and why.
type Item struct {
	Namespace  string            `json:"namespace"`
	Name       string            `json:"name"`
	UID        types.UID         `json:"uid"`
	Owner      reference.Owner   `json:"owner"`
	Version    string            `json:"version,omitempty"`
	Form       string            `json:"form,omitempty"`
	Target     string            `json:"target,omitempty"`
	Action     Action            `json:"action"`
	References []ReferenceStatus `json:"references,omitempty"`
	Losses     []string          `json:"losses,omitempty"`
	Reason     string            `json:"reason,omitempty"`
	Message    string            `json:"message,omitempty"`
	// Replacement is the name of the revision that replaces it, once there is
	// one.
	Replacement string `json:"replacement,omitempty"`
	// Until is when a source that is retained may go; zero where it is not, or where
	// nothing says since when no object refers to it.
	Until time.Time `json:"until,omitzero"`
	// RolledBack is when a rollback to it was asked for; zero if none was.
	RolledBack time.Time `json:"rolledBack,omitzero"`

	candidates *candidates // of a revision that is Blocked; nil if there are none
}

// superseded is one text for all sources: a cluster has tens of thousands, and what replaced each is in Replacement.
const superseded = "no object refers to it any more, since another revision has replaced it"

// markSuperseded is the item of a source that no object refers to, since it was replaced.
func (i Item) markSuperseded(replacement string) Item {
	i.Action, i.Reason, i.Replacement, i.Message = Upgrade, ReasonRetained, replacement, superseded
	return i
}

func byName(a, b Item) int { return strings.Compare(a.Name, b.Name) }
