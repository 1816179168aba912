package revision

import (
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/godwit-dev/godwit/revision/internal/lineage"
	"github.com/godwit-dev/godwit/revision/internal/refindex"
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
	// ReasonNeededForRestore: a restore looks the revision up by a name that it computes.
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

// ReferenceStatus is a reference, as reports print it.
type ReferenceStatus struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Path      string `json:"path"`
	// State is New where the field names what it is to name: a revision at the target
	// version. Old where it does not yet, Fixed where it can't be written, Implied where
	// it names another revision, for which a restore looks up this one.
	State string `json:"state"`
}

// States of references.
const (
	ReferenceOld     = "Old"
	ReferenceNew     = "New"
	ReferenceFixed   = "Fixed"
	ReferenceImplied = "Implied"
)

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
	// Fix says of a revision that is Blocked what a user needs to know to fix it.
	Fix Fix `json:"-"`
	// RolledBack is when a rollback to it was asked for; zero if none was.
	RolledBack time.Time `json:"rolledBack,omitzero"`
}

// facts are all that decide about one revision.
type facts struct {
	family   Family
	policy   Policy
	crds     map[schema.GroupResource]CRD
	revision *appsv1.ControllerRevision
	// references to it that count.
	references []reference.Reference
	// ownerGone: the revision's controller would have been found, and was not.
	ownerGone bool
	// replacement that says it comes from this revision; empty if there is none.
	replacement string
}

// decision is an item with what an upgrade needs to continue.
type decision struct {
	Item
	converted     StoredObject
	replacement   *appsv1.ControllerRevision // as it is to be created, or as labels are to be
	newController *reference.Referrer        // to own the replacement of a revision without a controller
}

// decide decides about one revision. It sends nothing and changes nothing.
func decide(f facts) decision {
	r := f.revision
	j := decision{Item: Item{Namespace: r.Namespace, Name: r.Name, UID: r.UID, References: referenceStatuses(f.references, ""), Replacement: f.replacement, RolledBack: lineage.RolledBackAt(r)}}
	if owner := metav1.GetControllerOfNoCopy(r); owner != nil {
		j.Owner = reference.Owner{Kind: owner.Kind, Name: owner.Name}
	}
	expected, contradiction := refindex.ExpectedType(f.references)
	stored, err := f.family.Decode(r, expected)
	var unexpected *UnexpectedOwnerError
	j.Version, j.Form, j.Losses = stored.Version, stored.Form, stored.Losses
	switch {
	case errors.Is(err, ErrNotInFamily) && len(reference.Explicit(f.references)) == 0:
		return j.with(Unmanaged, ReasonNotInFamily, fmt.Sprintf("it holds nothing of the family %s: name one that does, as `godwit revision plan -n %s` shows them",
			f.family.Describe().Name, r.Namespace))
	case errors.Is(err, ErrNotInFamily):
		by := f.references[0]
		return j.with(Blocked, ReasonNotInFamily, fmt.Sprintf("%s %s names it at %s, and it holds nothing of the family %s: correct the reference",
			by.Referrer.Kind, by.Referrer.Name, by.Path, f.family.Describe().Name))
	case contradiction != "":
		return j.with(Blocked, ReasonConflictingTypes, contradiction)
	case err != nil && f.superseded(): // perhaps only a reference told what it is
		return j.retained(f)
	case errors.As(err, &unexpected):
		j.Fix.Owners = f.owners()
		return j.with(Blocked, ReasonUnexpectedOwner, unexpected.Error()+"; "+named(f.references))
	case err != nil:
		return j.with(Blocked, ReasonUndecodable, err.Error())
	}
	if j = j.aim(f.crds[stored.Resource], stored, f); j.Action != "" {
		return j
	}
	return j.convert(f, stored)
}

func (j decision) with(a Action, reason, message string) decision {
	j.Action, j.Reason, j.Message = a, reason, message
	return j
}

// convert compares what is there with what is to be there.
func (j decision) convert(f facts, s StoredObject) decision {
	if f.superseded() {
		return j.retained(f)
	}
	var err error
	j.converted, err = f.family.Convert(s, j.Target)
	atTarget := s.Version == j.Target
	switch {
	case len(f.references) == 0 && !atTarget:
		return j.with(Unreferenced, "", "no object refers to it, and it is stored at "+s.Version+": delete it unless a backup restore needs it")
	case len(f.references) == 0:
		return j.with(Unreferenced, "", "no object refers to it")
	case len(reference.Explicit(f.references)) == 0 && (f.ownerGone || j.Owner == reference.Owner{}):
		// What a restore looks up besides is made of the copy, for an owner that is there.
		return j.with(Unreferenced, "", "no object names it, and it has no owner: delete it if no backup needs it")
	case err != nil:
		return j.unconvertible(f, s, err)
	}
	j.replacement, err = f.family.Compose(f.revision, j.converted)
	switch {
	case err != nil && atTarget: // there is nothing to make
		return j.with(UpToDate, "", "")
	case err != nil:
		return j.unconvertible(f, s, err)
	}
	if atTarget {
		j.References = referenceStatuses(f.references, f.revision.Name)
		if lineage.HasLabels(f.revision, j.replacement.Labels) {
			return j.with(UpToDate, "", "")
		}
		return j.with(Relabel, "", "its data is at "+j.Target+", its labels say something else")
	}
	return j.allow(f)
}

// superseded reports whether all references name a replacement.
func (f facts) superseded() bool {
	return len(f.references) == 0 && f.replacement != "" && lineage.RolledBackAt(f.revision).IsZero()
}

// retained: an upgrade of which only the end is left.
func (j decision) retained(f facts) decision {
	if since := lineage.UnreferencedSince(f.revision); !since.IsZero() && !f.policy.Retain {
		j.Until = since.Add(f.policy.retention())
	}
	j.replacement = &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Name: f.replacement}}
	j.Item = j.markSuperseded(f.replacement)
	return j
}

// markSuperseded is the item of a source that no object refers to, since it was replaced.
func (i Item) markSuperseded(replacement string) Item {
	i.Action, i.Reason, i.Replacement = Upgrade, ReasonRetained, replacement
	i.Message = "no object refers to it any more; " + replacement + " has replaced it"
	return i
}

// allow says whether an upgrade may begin now.
func (j decision) allow(f facts) decision {
	j.Losses, j.newController = j.converted.Losses, controllerFor(f.revision, f.references, f.family.Describe().Owners)
	switch running, unready := refindex.InUse(f.references, "it"); {
	case f.revision.DeletionTimestamp != nil:
		return j.with(Deferred, ReasonTerminating, "it is being deleted")
	case f.ownerGone:
		return j.with(Blocked, ReasonOwnerGone, fmt.Sprintf(
			"its controller, %s %s, is gone, and it goes along: have %s %s refer to a revision of its own", j.Owner.Kind, j.Owner.Name, j.References[0].Kind, j.References[0].Name))
	case j.Owner == (reference.Owner{}) && j.newController == nil:
		return j.unowned(f)
	case len(j.Losses) > 0 && !f.policy.AllowLosses:
		return j.with(Blocked, ReasonLossy, fmt.Sprintf("%s does not know %v; they would be carried along unread", j.Target, j.Losses))
	case unready != "":
		return j.with(Deferred, ReasonReferrerNotReady, unready)
	case running != "" && f.policy.OnRunning != Hold:
		return j.with(Deferred, ReasonRunning, running+": stop it first, or upgrade with Hold")
	}
	j.Item = j.upgradeOrRedo()
	return j
}

// upgradeOrRedo is an upgrade, which a user has to ask for again where it was rolled back.
func (i Item) upgradeOrRedo() Item {
	i.Action, i.Reason, i.Message = Upgrade, "", ""
	if !i.RolledBack.IsZero() {
		i.Reason = ReasonRolledBack
		i.Message = "it was rolled back at " + i.RolledBack.UTC().Format(time.RFC3339) + ": a run that is asked for upgrades it again, a trigger does not"
	}
	return i
}

// rollbackPending is an upgrade whose rollback has not ended: references still name the new
// revision.
func (i Item) rollbackPending(left []reference.Reference) Item {
	i.Action, i.Reason = Upgrade, ReasonRollbackPending
	i.Message = "a rollback to it was asked for at " + i.RolledBack.UTC().Format(time.RFC3339) + ", and " + describe(left)
	return i
}
