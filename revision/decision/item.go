package decision

import (
	"slices"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/godwit-dev/godwit"
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

// Reasons are those of an item.
var Reasons godwit.Catalog

// Reasons of items.
var (
	ReasonRunning = Reasons.Declare(godwit.Reason{
		Name:    "Running",
		Meaning: "A VirtualMachine is running and uses the revision, and the policy is to wait.",
		Fix:     stopOrUpgrade(placeItem()).Or(stopOrRollBack(placeItem())),
	})
	ReasonReferrerNotReady = Reasons.Declare(godwit.Reason{
		Name:    "ReferrerNotReady",
		Meaning: "A referrer must not change now, for example a snapshot that is being taken.",
		Fix:     awaitReferrer(placeItem()),
	})
	ReasonConflictingTypes = Reasons.Declare(godwit.Reason{
		Name: "ConflictingTypes", UserAction: true,
		Meaning: "Referrers expect objects of different kinds in the revision.",
		Fix:     correctReference(placeItem()),
	})
	ReasonNewerFormat = Reasons.Declare(godwit.Reason{
		Name: "NewerFormat", UserAction: true,
		Meaning: "A newer release of Godwit wrote the annotations of the revision, or the ControllerRevisionUpgrade, in a format that this release does not read. The revision is left alone.",
		Fix:     useNewerRelease(placeItem()),
	})
	ReasonUndecodable = Reasons.Declare(godwit.Reason{
		Name: "Undecodable", UserAction: true,
		Meaning: "The data of the revision can't be read.",
		Fix:     restoreRevision(placeItem()),
	})
	ReasonUnknownVersion = Reasons.Declare(godwit.Reason{
		Name: "UnknownVersion", UserAction: true,
		Meaning: "The data is at a version that this release does not convert.",
		Fix:     convertElsewhere(placeItem()),
	})
	ReasonLabelsMissing = Reasons.Declare(godwit.Reason{
		Name: "LabelsMissing", UserAction: true,
		Meaning: "No label says of which object the data is a copy.",
		Fix:     setLabels(placeItem()),
	})
	ReasonUnexpectedOwner = Reasons.Declare(godwit.Reason{
		Name: "UnexpectedOwner", UserAction: true,
		Meaning: "The controller of the revision is of a kind that owns no such revisions.",
		Fix:     replaceOwner(placeItem()),
	})
	ReasonUnconvertible = Reasons.Declare(godwit.Reason{
		Name: "Unconvertible", UserAction: true,
		Meaning: "The data can be read, and can't be converted to the target version.",
		Fix:     reportUnconvertible(placeItem()),
	})
	ReasonLossy = Reasons.Declare(godwit.Reason{
		Name: "Lossy", UserAction: true,
		Meaning: "The target version does not have some fields of the data.",
		Fix:     allowLosses(placeItem()),
	})
	ReasonTargetNotServed = Reasons.Declare(godwit.Reason{
		Name: "TargetNotServed", UserAction: true,
		Meaning: "No data can be converted to the target version, or the API server does not serve it.",
		Fix:     chooseTarget(placeItem()),
	})
	ReasonCRDNotFound = Reasons.Declare(godwit.Reason{
		Name: "CRDNotFound", UserAction: true,
		Meaning: "The CRD of the stored object is not installed.",
		Fix:     installCRD(placeItem()),
	})
	ReasonRetained = Reasons.Declare(godwit.Reason{
		Name:    "Retained",
		Meaning: "All references name the new revision. The old one is kept for the retention.",
		Fix:     godwit.Do("nothing: the old revision is deleted after the retention. Until then the upgrade can be rolled back"),
	})
	ReasonTerminating = Reasons.Declare(godwit.Reason{
		Name:    "Terminating",
		Meaning: "The revision is being deleted.",
		Fix:     godwit.Do("wait. If it hangs, see which finalizer holds it"),
	})
	ReasonSourceGone = Reasons.Declare(godwit.Reason{
		Name: "SourceGone", UserAction: true,
		Meaning: "References name the revision, and it does not exist.",
		Fix:     restoreRevision(placeItem()),
	})
	ReasonUnconfirmed = Reasons.Declare(godwit.Reason{
		Name:    "Unconfirmed",
		Meaning: "References name the revision and a scan did not find it. The scan did not read again whether it is missing, since it reads a bounded number of missing revisions again. The scan is incomplete.",
		Fix:     scanAlone(placeItem()),
	})
	ReasonReplacementGone = Reasons.Declare(godwit.Reason{
		Name:    "ReplacementGone",
		Meaning: "The new revision does not exist any more.",
		Fix:     godwit.Do("nothing: the old revision is kept. To upgrade it again, delete the upgrade, and a trigger makes another"),
	})
	ReasonReplaced = Reasons.Declare(godwit.Reason{
		Name:    "Replaced",
		Meaning: "Another revision has the name now.",
		Fix:     godwit.Do("delete the upgrade: the revision it was made for is gone. A trigger makes another"),
	})
	ReasonNameTaken = Reasons.Declare(godwit.Reason{
		Name: "NameTaken", UserAction: true,
		Meaning: "A revision that holds something else has the name of the new revision.",
		Fix:     deleteOther(placeItem()),
	})
	ReasonChanged = Reasons.Declare(godwit.Reason{
		Name:    "Changed",
		Meaning: "Another client changed an object in between.",
		Fix:     godwit.Do("nothing: the manager checks again"),
	})
	ReasonDangling = Reasons.Declare(godwit.Reason{
		Name: "DanglingReference", UserAction: true,
		Meaning: "A reference names a revision that does not exist, and could not be repointed.",
		Fix:     repointDangling(placeItem()).Or(godwit.Do("wait until the operation on the virtual machine ends: the manager checks again each minute")),
	})
	ReasonReferenced = Reasons.Declare(godwit.Reason{
		Name:    "Referenced",
		Meaning: "A reference names the old revision.",
		Fix:     nameReplacement(placeItem()),
	})
	ReasonRefused = Reasons.Declare(godwit.Reason{
		Name: "Refused", UserAction: true,
		Meaning: "The API server refuses a write and would refuse it again: an admission policy or a webhook denies it, or a permission is missing.",
		Fix:     changeRefusal(placeItem()),
	})
	ReasonUnanswered = Reasons.Declare(godwit.Reason{
		Name:    "Unanswered",
		Meaning: "The API server did not answer.",
		Fix:     godwit.Do("nothing: the manager retries. If it lasts, see whether the API server and its webhooks answer"),
	})
	ReasonForbidden = Reasons.Declare(godwit.Reason{
		Name:    "Forbidden",
		Meaning: "A permission is missing, without which the references to a revision are not known.",
		Fix:     godwit.Do("grant the permissions: `godwit rbac --controller=revisionUpgrader` prints them"),
	})
	ReasonKept = Reasons.Declare(godwit.Reason{
		Name:    "Kept",
		Meaning: "The policy is to keep old revisions.",
		Fix:     godwit.Do("nothing: the policy keeps the old revision. Delete it when no rollback will be needed"),
	})
	ReasonIrreversible = Reasons.Declare(godwit.Reason{
		Name:    "Irreversible",
		Meaning: "The old revision is deleted, so that nothing can be rolled back.",
		Fix:     godwit.Do("restore the old revision from a backup"),
	})
	ReasonRolledBack = Reasons.Declare(godwit.Reason{
		Name:    "RolledBack",
		Meaning: "A rollback repointed all references to the revision. No trigger upgrades it again.",
		Fix:     upgradeAgain(placeItem()).Or(godwit.Do("if a ControllerRevisionUpgrade names it, set its `spec.rollback` to false; if there is none, create one")),
	})
	ReasonRateLimited = Reasons.Declare(godwit.Reason{
		Name:    "RateLimited",
		Meaning: "The old revision is due, and the rate limit let no deletion through in time. A deletion is sent within seconds of the scan that shows that nothing refers to it.",
		Fix:     raiseRate(placeItem()).Or(godwit.Do("nothing: a later pass of the manager deletes it; if it lasts, raise `limits.maxWritesPerSecond`")),
	})
	ReasonRollbackPending = Reasons.Declare(godwit.Reason{
		Name: "RollbackPending", UserAction: true,
		Meaning: "A rollback was begun, and references still name the new revision.",
		Fix:     rollBackAgain(placeItem()),
	})
	ReasonNoController = Reasons.Declare(godwit.Reason{
		Name: "NoController", UserAction: true,
		Meaning: "The revision has no controller, so that a new one would have none.",
		Fix:     setOwner(placeItem()),
	})
	ReasonOwnerGone = Reasons.Declare(godwit.Reason{
		Name: "OwnerGone", UserAction: true,
		Meaning: "The controller of the revision is deleted. Both revisions will be garbage-collected.",
		Fix:     godwit.Do("have the referrer that is named use a revision of its own before the garbage collector deletes this one"),
	})
	ReasonNotInFamily = Reasons.Declare(godwit.Reason{
		Name: "NotInFamily", UserAction: true,
		Meaning: "The revision holds no object of the family.",
		Fix:     godwit.Do("correct the reference, or the name in the upgrade"),
	})
	ReasonNeededForRestore = Reasons.Declare(godwit.Reason{
		Name:    "NeededForRestore",
		Meaning: "A restore needs the revision, by a name that it computes.",
		Fix:     endSnapshot(placeItem()),
	})
	ReasonRestoreConflict = Reasons.Declare(godwit.Reason{
		Name: "RestoreConflict", UserAction: true,
		Meaning: "A restore would look up a revision that can't be created: another one has its name, or no API server accepts the name.",
		Fix:     godwit.Do("if no object refers to the revision that is in the way, delete it. Else take another snapshot, and delete the one that is named"),
	})
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

// EffectiveRetention is Retention with its default and its minimum.
func (p Policy) EffectiveRetention() time.Duration {
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

// CRDOf says what upgrades need to know of a CRD; nil is one that is not installed.
func CRDOf(crd *apiextensionsv1.CustomResourceDefinition) CRD {
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

// ReferenceStatuses are references as reports print them. A reference that names target needs no write.
func ReferenceStatuses(references []reference.Reference, target string) []ReferenceStatus {
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
	Reason     *godwit.Reason    `json:"reason,omitempty"`
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

// MarkSuperseded is the item of a source that no object refers to, since it was replaced.
func (i Item) MarkSuperseded(replacement string) Item {
	i.Action, i.Reason, i.Replacement, i.Message = Upgrade, ReasonRetained, replacement, superseded
	return i
}

// ByName compares two items by the names of their revisions.
func ByName(a, b Item) int { return strings.Compare(a.Name, b.Name) }
