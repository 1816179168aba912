package revision

import (
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Action is what is to be done about one revision.
type Action string

const (
	// UpToDate: it is at the target version, and labelled so.
	UpToDate Action = "UpToDate"
	// Relabel: its data is at the target version, its labels say something else.
	Relabel Action = "Relabel"
	// Upgrade: a revision at the target version is to take its place, or has taken
	// it and this one is kept for a while.
	Upgrade Action = "Upgrade"
	// Deferred: not now; time or somebody's doing cures it.
	Deferred Action = "Deferred"
	// Blocked: somebody has to decide or to repair something.
	Blocked Action = "Blocked"
	// Orphan: nobody refers to it.
	Orphan Action = "Orphan"
	// NotMine: it is none of the family.
	NotMine Action = "NotMine"
)

// Reasons of items.
const (
	// ReasonRunning: something runs by it, and the policy is to wait.
	ReasonRunning = "Running"
	// ReasonUnready: a holder is not to be touched yet, as a snapshot being taken.
	ReasonUnready = "HolderUnready"
	// ReasonConflictingClaims: holders take it for different kinds.
	ReasonConflictingClaims = "ConflictingClaims"
	// ReasonUndecodable: the data can't be read.
	ReasonUndecodable = "Undecodable"
	// ReasonUnknownVersion means that the data is at a version which this release does not
	// convert.
	ReasonUnknownVersion = "UnknownVersion"
	// ReasonLabelsMissing means that nothing says of which object the data is a copy.
	ReasonLabelsMissing = "LabelsMissing"
	// ReasonForeignOwner means that the controller is of a kind that owns no stashes.
	ReasonForeignOwner = "ForeignOwner"
	// ReasonUnconvertible: the data can be read, but not carried to the target.
	ReasonUnconvertible = "Unconvertible"
	// ReasonLossy: the target version does not know some of its fields.
	ReasonLossy = "Lossy"
	// ReasonTargetNotServed means that no data can be converted to the target version, or
	// that the API server does not serve it.
	ReasonTargetNotServed = "TargetNotServed"
	// ReasonDefinitionNotFound: the stashed object's kind is not installed.
	ReasonDefinitionNotFound = "DefinitionNotFound"
	// ReasonRetained: another has taken its place, and it is kept for a while.
	ReasonRetained = "Retained"
	// ReasonTerminating: it is being deleted.
	ReasonTerminating = "Terminating"
	// ReasonSourceGone: references name it, and there is no such revision.
	ReasonSourceGone = "SourceGone"
	// ReasonSuccessorGone: what took its place is gone.
	ReasonSuccessorGone = "SuccessorGone"
	// ReasonReplaced: another revision has its name now.
	ReasonReplaced = "Replaced"
	// ReasonNameTaken: a revision of the successor's name holds something else.
	ReasonNameTaken = "NameTaken"
	// ReasonChanged: something was written by somebody else in between.
	ReasonChanged = "Changed"
	// ReasonDangling: a reference names a revision that is gone, and could not be
	// repointed.
	ReasonDangling = "DanglingReference"
	// ReasonReferenced: somebody refers to the source.
	ReasonReferenced = "Referenced"
	// ReasonRefused means that the API server refuses a write, and would refuse it again:
	// an admission policy or a webhook denies it, or a permission is missing.
	ReasonRefused = "Refused"
	// ReasonUnanswered: the API server could not be asked.
	ReasonUnanswered = "Unanswered"
	// ReasonForbidden: a right is missing without which nobody can say who refers to what.
	ReasonForbidden = "Forbidden"
	// ReasonKept: the policy is to keep sources.
	ReasonKept = "Kept"
	// ReasonIrreversible: the source is gone, so that nothing can be rolled back.
	ReasonIrreversible = "Irreversible"
	// ReasonRolledBack: references were repointed to the revision by a rollback, and no
	// trigger upgrades it again.
	ReasonRolledBack = "RolledBack"
	// ReasonNoController: nobody owns it, so that nobody would own its successor.
	ReasonNoController = "NoController"
	// ReasonOwnerGone: its controller is gone, and takes it along, and its successor.
	ReasonOwnerGone = "OwnerGone"
	// ReasonForeign: it holds nothing of the family.
	ReasonForeign = "Foreign"
	// ReasonNeededForRestore: a restore looks the revision up by a name that it computes.
	ReasonNeededForRestore = "NeededForRestore"
	// ReasonRestoreConflict: a restore would look up a revision that can't be made, since
	// another one has its name or no API server takes the name.
	ReasonRestoreConflict = "RestoreConflict"
)

// OnRunning says what becomes of a revision that something runs by.
type OnRunning string

const (
	// Defer leaves it as it is until nothing runs by it.
	Defer OnRunning = "Defer"
	// Hold upgrades it, and keeps the source until nothing runs by it.
	Hold OnRunning = "Hold"
)

// MinRetention is the least time that a source is kept after the last reference to
// it is gone: what a controller's stale cache may still want.
const MinRetention = 10 * time.Minute

// DefaultRetention is how long a source is kept unless a policy says otherwise.
const DefaultRetention = time.Hour

// Policy is what people decide about upgrades. The zero value works.
type Policy struct {
	// Target is a version; empty means the storage version of the definition.
	Target string
	// OnRunning defaults to [Defer].
	OnRunning OnRunning
	// AllowLosses goes on where the target version does not know some fields. They
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

// Definition is what the API server says about a stashed object's resource.
type Definition struct {
	Found   bool
	Storage string
	Served  []string
	// Stored are status.storedVersions.
	Stored []string
}

// Owner is a revision's controller.
type Owner struct {
	Kind string `json:"kind"`
	Name string `json:"name"`
}

// Place is a reference, for people.
type Place struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Path      string `json:"path"`
	// State is New where the place names what it is to name: a revision at the target
	// version. Old where it does not yet, Fixed where it can't be written, Implied where
	// it names another revision, for which a restore looks up this one.
	State string `json:"state"`
}

// States of places.
const (
	PlaceOld     = "Old"
	PlaceNew     = "New"
	PlaceFixed   = "Fixed"
	PlaceImplied = "Implied"
)

// Item is what is to be done about one revision, and why.
type Item struct {
	Namespace string    `json:"namespace"`
	Name      string    `json:"name"`
	UID       types.UID `json:"uid"`
	Owner     Owner     `json:"owner"`
	Version   string    `json:"version,omitempty"`
	Form      string    `json:"form,omitempty"`
	Target    string    `json:"target,omitempty"`
	Action    Action    `json:"action"`
	Referrers []Place   `json:"referrers,omitempty"`
	Losses    []string  `json:"losses,omitempty"`
	Reason    string    `json:"reason,omitempty"`
	Message   string    `json:"message,omitempty"`
	// Successor is the name of the revision that is to take its place, once there is
	// one.
	Successor string `json:"newName,omitempty"`
	// Until is when a source that is retained may go; zero where it is not, or where
	// nothing says since when nobody refers to it.
	Until time.Time `json:"until,omitzero"`
	// Fix says of a revision that is Blocked what a user needs to know to repair it.
	Fix Fix `json:"-"`
	// RolledBack is when a rollback to it was asked for; zero if none was.
	RolledBack time.Time `json:"rolledBack,omitzero"`
}

// facts are all that decide about one revision.
type facts struct {
	family      Family
	policy      Policy
	definitions map[schema.GroupResource]Definition
	revision    *appsv1.ControllerRevision
	// references to it that count.
	references []Reference
	// ownerGone: the revision's controller would have been found, and was not.
	ownerGone bool
	// successor that says it comes from this revision; empty if there is none.
	successor string
}

// judgement is an item with what an upgrade needs to go on.
type judgement struct {
	Item
	converted Stash
	successor *appsv1.ControllerRevision // as it is to be created, or as labels are to be
	adopter   *Holder                    // who is to own the successor of a revision that nobody owns
}

// judge decides about one revision. It asks nobody and changes nothing.
func judge(f facts) judgement {
	r := f.revision
	j := judgement{Item: Item{Namespace: r.Namespace, Name: r.Name, UID: r.UID, Referrers: places(f.references, ""), Successor: f.successor, RolledBack: rolledBack(r)}}
	if owner := metav1.GetControllerOfNoCopy(r); owner != nil {
		j.Owner = Owner{Kind: owner.Kind, Name: owner.Name}
	}
	claim, contradiction := claimOf(f.references)
	stash, err := f.family.Decode(r, claim)
	var foreign *ForeignOwnerError
	j.Version, j.Form, j.Losses = stash.Version, stash.Form, stash.Losses
	switch {
	case errors.Is(err, ErrForeign) && len(direct(f.references)) == 0:
		return j.as(NotMine, ReasonForeign, fmt.Sprintf("it holds nothing of the family %s: name one that does, as `godwit revision plan -n %s` shows them",
			f.family.Describe().Name, r.Namespace))
	case errors.Is(err, ErrForeign):
		by := f.references[0]
		return j.as(Blocked, ReasonForeign, fmt.Sprintf("%s %s names it at %s, and it holds nothing of the family %s: correct the reference",
			by.Holder.Kind, by.Holder.Name, by.Path, f.family.Describe().Name))
	case contradiction != "":
		return j.as(Blocked, ReasonConflictingClaims, contradiction)
	case err != nil && f.givenUp(): // perhaps only a reference told what it is
		return j.retained(f)
	case errors.As(err, &foreign):
		j.Fix.Owners = f.owners()
		return j.as(Blocked, ReasonForeignOwner, foreign.Error()+"; "+named(f.references))
	case err != nil:
		return j.as(Blocked, ReasonUndecodable, err.Error())
	}
	if j = j.aim(f.definitions[stash.Definition], stash, f); j.Action != "" {
		return j
	}
	return j.convert(f, stash)
}

func (j judgement) as(a Action, reason, message string) judgement {
	j.Action, j.Reason, j.Message = a, reason, message
	return j
}

// convert compares what is there with what is to be there.
func (j judgement) convert(f facts, s Stash) judgement {
	var err error
	j.converted, err = f.family.Convert(s, j.Target)
	atTarget := s.Version == j.Target
	switch {
	case f.givenUp():
		return j.retained(f)
	case len(f.references) == 0 && !atTarget:
		return j.as(Orphan, "", "nobody refers to it, so that nobody misses it, and yet it speaks "+s.Version+": delete it if nobody is to restore it")
	case len(f.references) == 0:
		return j.as(Orphan, "", "nobody refers to it")
	case len(direct(f.references)) == 0 && (f.ownerGone || j.Owner == Owner{}):
		// What a restore looks up besides is made of the copy, for an owner that is there.
		return j.as(Orphan, "", "no object names it, and it has no owner: delete it if no backup needs it")
	case err != nil:
		return j.unconvertible(f, s, err)
	}
	j.successor, err = f.family.Compose(f.revision, j.converted)
	switch {
	case err != nil && atTarget: // there is nothing to make
		return j.as(UpToDate, "", "")
	case err != nil:
		return j.unconvertible(f, s, err)
	}
	if atTarget {
		j.Referrers = places(f.references, f.revision.Name)
		if labelled(f.revision, j.successor.Labels) {
			return j.as(UpToDate, "", "")
		}
		return j.as(Relabel, "", "its data is at "+j.Target+", its labels say something else")
	}
	return j.allow(f)
}

// givenUp: a successor has taken its place.
func (f facts) givenUp() bool {
	return len(f.references) == 0 && f.successor != "" && rolledBack(f.revision).IsZero()
}

// retained: an upgrade of which only the end is left.
func (j judgement) retained(f facts) judgement {
	if since := unreferencedSince(f.revision); !since.IsZero() && !f.policy.Retain {
		j.Until = since.Add(f.policy.retention())
	}
	j.successor = &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Name: f.successor}}
	j.Item = j.takenOver(f.successor)
	return j
}

// takenOver is what there is to say of a source that nobody refers to.
func (i Item) takenOver(successor string) Item {
	i.Action, i.Reason, i.Successor = Upgrade, ReasonRetained, successor
	i.Message = "nobody refers to it any more; " + successor + " has taken its place"
	return i
}

// allow says whether an upgrade may begin now.
func (j judgement) allow(f facts) judgement {
	j.Losses, j.adopter = j.converted.Losses, adopter(f.revision, f.references, f.family.Describe().Owners)
	switch running, unready := busy(f.references, "it"); {
	case f.revision.DeletionTimestamp != nil:
		return j.as(Deferred, ReasonTerminating, "it is being deleted")
	case f.ownerGone:
		return j.as(Blocked, ReasonOwnerGone, fmt.Sprintf(
			"its controller, %s %s, is gone, and it goes along: have %s %s refer to a revision of its own", j.Owner.Kind, j.Owner.Name, j.Referrers[0].Kind, j.Referrers[0].Name))
	case j.Owner == (Owner{}) && j.adopter == nil:
		return j.unowned(f)
	case len(j.Losses) > 0 && !f.policy.AllowLosses:
		return j.as(Blocked, ReasonLossy, fmt.Sprintf("%s does not know %v; they would be carried along unread", j.Target, j.Losses))
	case unready != "":
		return j.as(Deferred, ReasonUnready, unready)
	case running != "" && f.policy.OnRunning != Hold:
		return j.as(Deferred, ReasonRunning, running+": stop it first, or upgrade with Hold")
	}
	j.Item = j.orAgain()
	return j
}

// orAgain is an upgrade, which somebody has to ask for again where it was rolled back.
func (i Item) orAgain() Item {
	i.Action, i.Reason, i.Message = Upgrade, "", ""
	if !i.RolledBack.IsZero() {
		i.Reason = ReasonRolledBack
		i.Message = "it was rolled back at " + i.RolledBack.UTC().Format(time.RFC3339) + ": a run that is asked for upgrades it again, a trigger does not"
	}
	return i
}

// labelled reports whether a revision has all of these labels.
func labelled(r *appsv1.ControllerRevision, want map[string]string) bool {
	for k, v := range want {
		if r.Labels[k] != v {
			return false
		}
	}
	return true
}
