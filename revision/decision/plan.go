package decision

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/revision/internal/lineage"
	"github.com/godwit-dev/godwit/revision/internal/usage"
	"github.com/godwit-dev/godwit/revision/reference"
)

// Facts are all that decide about one revision.
type Facts struct {
	Family Family
	Policy Policy
	// CRDs has those of the stored objects' resources.
	CRDs map[schema.GroupResource]CRD
	// Software is what these tell the family.
	Software Software
	Revision *appsv1.ControllerRevision
	// References are those to the revision that count.
	References []reference.Reference
	// OwnerGone means that the scan would have found the revision's controller, and did not.
	OwnerGone bool
	// Replacement is the revision that says it comes from this one; empty if there is none.
	Replacement string
}

// Decision is an item with what an upgrade needs to continue.
type Decision struct {
	Item
	converted StoredObject
	// Composed is the replacement to be created, or, for Relabel, the revision with the right labels.
	Composed *appsv1.ControllerRevision
	// NewController is to own the replacement of a revision without a controller.
	NewController *reference.Referrer
}

// For decides about one revision. It sends nothing and changes nothing.
func For(f Facts) Decision {
	r := f.Revision
	j := Decision{Item: Item{Namespace: r.Namespace, Name: r.Name, UID: r.UID, References: ReferenceStatuses(f.References, ""), Replacement: f.Replacement, RolledBack: lineage.RolledBackAt(r)}}
	if owner := metav1.GetControllerOfNoCopy(r); owner != nil {
		j.Owner = reference.Owner{Kind: owner.Kind, Name: owner.Name}
		j.SharedBy = f.sharedBy(owner.UID)
	}
	if err := lineage.CheckFormat(r); err != nil {
		return j.with(Blocked, ReasonNewerFormat, err.Error())
	}
	expected, contradiction := usage.ExpectedType(f.References)
	stored, err := f.Family.Decode(r, expected)
	var unexpected *UnexpectedOwnerError
	j.Version, j.Form, j.Losses = stored.Version, stored.Form, stored.Losses
	j.Unreadable = err == nil && !f.Software.CanRead(stored.Version)
	j.AtRisk = err == nil && !j.Unreadable && !stored.Current && f.Software.Upgrades && slices.ContainsFunc(f.References, isPin)
	switch {
	case errors.Is(err, ErrNotInFamily) && len(reference.Explicit(f.References)) == 0:
		return j.with(Unmanaged, ReasonNotInFamily, fmt.Sprintf("it holds nothing of the family %s: name one that does, as `godwit revision plan -n %s` shows them",
			f.Family.Describe().Name, r.Namespace))
	case errors.Is(err, ErrNotInFamily):
		by := f.References[0]
		return j.with(Blocked, ReasonNotInFamily, fmt.Sprintf("%s %s names it at %s, and it holds nothing of the family %s: correct the reference",
			by.Referrer.Kind, by.Referrer.Name, by.Path, f.Family.Describe().Name))
	case contradiction != "":
		return j.with(Blocked, ReasonConflictingTypes, contradiction)
	case err != nil && f.superseded(): // perhaps only a reference told what it is
		return j.retained(f)
	case errors.As(err, &unexpected):
		j.candidates = &candidates{owners: f.owners()}
		return j.with(Blocked, ReasonUnexpectedOwner, unexpected.Error()+"; "+usage.Referrers(f.References))
	case err != nil:
		return j.with(Blocked, ReasonUndecodable, err.Error())
	}
	if j = j.aim(f.CRDs[stored.Resource], stored, f); j.Action != "" {
		return j
	}
	return j.convert(f, stored)
}

func (j Decision) with(a Action, reason *godwit.Reason, message string) Decision {
	j.Action, j.Reason, j.Message = a, reason, message
	return j
}

// convert compares what is there with what is to be there.
func (j Decision) convert(f Facts, s StoredObject) Decision {
	if f.superseded() {
		return j.retained(f)
	}
	var err error
	j.converted, err = f.Family.Convert(s, j.Target)
	atTarget := s.Version == j.Target
	switch {
	case len(f.References) == 0 && !atTarget:
		return j.with(Unreferenced, ReasonUnreferenced, "no object refers to it, and it is stored at "+s.Version)
	case len(f.References) == 0:
		return j.with(Unreferenced, nil, "no object refers to it")
	case len(reference.Explicit(f.References)) == 0 && (f.OwnerGone || j.Owner == reference.Owner{}) && atTarget:
		// What a restore looks up besides is made of the copy, for an owner that is there.
		return j.with(Unreferenced, nil, "no object names it, and it has no owner: delete it if no backup needs it")
	case len(reference.Explicit(f.References)) == 0 && (f.OwnerGone || j.Owner == reference.Owner{}):
		return j.with(Unreferenced, ReasonUnreferenced, "no object names it, it has no owner, and it is stored at "+s.Version)
	case err != nil:
		return j.unconvertible(f, s, err)
	}
	j.Composed, err = f.Family.Compose(f.Revision, j.converted)
	switch {
	case err != nil && atTarget: // there is nothing to make
		return j.with(UpToDate, nil, "")
	case err != nil:
		return j.unconvertible(f, s, err)
	}
	if atTarget {
		j.References = ReferenceStatuses(f.References, f.Revision.Name)
		if lineage.HasLabels(f.Revision, j.Composed.Labels) {
			return j.with(UpToDate, nil, "")
		}
		return j.with(Relabel, nil, "its data is at "+j.Target+", its labels say something else")
	}
	return j.allow(f)
}

// superseded reports whether all references name a replacement.
func (f Facts) superseded() bool {
	return len(f.References) == 0 && f.Replacement != "" && lineage.RolledBackAt(f.Revision).IsZero()
}

// retained: an upgrade of which only the end is left.
func (j Decision) retained(f Facts) Decision {
	if since := lineage.UnreferencedSince(f.Revision); !since.IsZero() && !f.Policy.Retain {
		j.Until = since.Add(f.Policy.EffectiveRetention())
	}
	j.Composed = &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Name: f.Replacement}}
	j.Item = j.MarkSuperseded(f.Replacement)
	return j
}

// allow says whether an upgrade may begin now.
func (j Decision) allow(f Facts) Decision {
	j.Losses, j.NewController = j.converted.Losses, controllerFor(f.Revision, f.References, f.Family.Describe().Owners)
	switch running, unready := usage.InUse(f.References, "this revision"); {
	case f.Revision.DeletionTimestamp != nil:
		return j.with(Deferred, ReasonTerminating, "it is being deleted")
	case f.OwnerGone:
		return j.with(Blocked, ReasonOwnerGone, fmt.Sprintf(
			"its controller, %s %s, is gone, and it goes along: have %s %s refer to a revision of its own", j.Owner.Kind, j.Owner.Name, j.References[0].Kind, j.References[0].Name))
	case j.Owner == (reference.Owner{}) && j.NewController == nil:
		return j.unowned(f)
	case len(j.Losses) > 0 && !f.Policy.AllowLosses:
		return j.with(Blocked, ReasonLossy, fmt.Sprintf("%s does not know %v; they would be carried along unread", j.Target, j.Losses))
	case unready != "":
		return j.with(Deferred, ReasonReferrerNotReady, unready)
	case running != "" && f.Policy.OnRunning != Hold && !j.Unreadable:
		return j.with(Deferred, ReasonRunning, running)
	case running != "" && j.Unreadable:
		return j.with(Upgrade, ReasonUnreadable, fmt.Sprintf("%s, which %s can't read at %s: it can't be stopped until its references name a new revision, so that a run repoints them while it runs",
			running, f.Software.Release, j.Version))
	}
	j.Item = j.upgradeOrRedo()
	return j
}

// sharedBy are the referrers that could own the revision, and do not.
func (f Facts) sharedBy(owner types.UID) []string {
	var all []string
	for _, r := range f.References {
		if r.ImpliedBy != "" || r.Referrer.UID == owner || !owns(f.Family.Describe().Owners, r.Referrer) {
			continue
		}
		if one := r.Referrer.Kind + "/" + r.Referrer.Name; !slices.Contains(all, one) {
			all = append(all, one)
		}
	}
	return all
}

func isPin(r reference.Reference) bool { return r.Pin }

// superseded is one text for all sources: a cluster has tens of thousands, and what replaced each is in Replacement.
const superseded = "no object refers to it any more, since another revision has replaced it"

// MarkSuperseded is the item of a source that no object refers to, since it was replaced.
func (i Item) MarkSuperseded(replacement string) Item {
	i.Action, i.Reason, i.Replacement, i.Message = Upgrade, ReasonRetained, replacement, superseded
	return i
}

// MarkAbandoned is the item of a source whose replacement is gone, and that nothing needs any more: KubeVirt deletes the revision
// of a VirtualMachine that it expands.
func (i Item) MarkAbandoned(replacement string) Item {
	i.Action, i.Reason, i.Replacement, i.Until = Unreferenced, ReasonUnreferenced, "", time.Time{}
	i.Message = "no object refers to it or to " + replacement + ", which has replaced it and is gone, and it is stored at " + i.Version
	return i
}

// upgradeOrRedo is an upgrade, which a user has to ask for again where it was rolled back.
func (i Item) upgradeOrRedo() Item {
	i.Action, i.Reason, i.Message = Upgrade, nil, ""
	if !i.RolledBack.IsZero() {
		i.Reason = ReasonRolledBack
		i.Message = "it was rolled back at " + i.RolledBack.UTC().Format(time.RFC3339) + ": a run upgrades it again, a trigger does not"
	}
	return i
}

// RollbackPending is an upgrade whose rollback has not ended: references still name the new
// revision.
func (i Item) RollbackPending(left []reference.Reference) Item {
	i.Action, i.Reason = Upgrade, ReasonRollbackPending
	i.Message = "a rollback to it was requested at " + i.RolledBack.UTC().Format(time.RFC3339) + ", and " + usage.Describe(left)
	return i
}

// aim finds the target version.
func (j Decision) aim(d CRD, s StoredObject, f Facts) Decision {
	if !d.Found {
		return j.with(Blocked, ReasonCRDNotFound, fmt.Sprintf("CRD %s not found, from which to read a target version", s.Resource))
	}
	known := f.Family.Describe()
	j.Target = d.target(f.Policy.Target, s.Version, known)
	if slices.Contains(d.ServedVersions, j.Target) {
		return j
	}
	j.candidates = &candidates{targets: d.Reachable(known.Targets)}
	helps := "no version that data can be converted to"
	if len(j.candidates.targets) > 0 {
		helps = strings.Join(j.candidates.targets, ", ") + ", to which data can be converted"
	}
	return j.with(Blocked, ReasonTargetNotServed, fmt.Sprintf("customresourcedefinition %s does not serve %s; it serves %s", s.Resource, j.Target, helps))
}

// owners are the referrers of a revision that may be its controller.
func (f Facts) owners() []reference.Owner {
	var all []reference.Owner
	for _, r := range f.References {
		one := reference.Owner{Kind: r.Referrer.Kind, Name: r.Referrer.Name}
		if owns(f.Family.Describe().Owners, r.Referrer) && !slices.Contains(all, one) {
			all = append(all, one)
		}
	}
	return all
}

// unowned asks for a controller: a replacement would belong to nothing, and stay for ever.
func (j Decision) unowned(f Facts) Decision {
	j.candidates = &candidates{owners: f.owners()}
	return j.with(Blocked, ReasonNoController, f.whyUnowned()+"; "+usage.Referrers(f.References))
}

// whyUnowned says why [controllerFor] finds no object.
func (f Facts) whyUnowned() string {
	var named []string
	for _, r := range f.References {
		if one := r.Referrer.Kind + " " + r.Referrer.Name; strings.HasPrefix(f.Revision.Name, r.Referrer.Name+"-") && !slices.Contains(named, one) {
			named = append(named, one)
		}
	}
	switch {
	case len(named) > 1:
		return "it has no controller, and its name begins with those of " + strings.Join(named, " and ")
	case len(named) == 1:
		return "it has no controller, and its name begins with that of " + named[0] + ", which names it only in fields that can't be written, or is of a kind that owns no revisions"
	}
	return ErrNoOwner.Error()
}

// unconvertible says why an object can't be converted.
func (j Decision) unconvertible(f Facts, s StoredObject, err error) Decision {
	var missing *MissingLabelsError
	var none *ConversionError
	known := f.Family.Describe()
	switch {
	case errors.Is(err, ErrNoOwner):
		return j.unowned(f)
	case errors.As(err, &missing):
		j.candidates = &candidates{labels: missing.Labels}
		return j.with(Blocked, ReasonLabelsMissing, missing.Error())
	case errors.As(err, &none) && (!slices.Contains(known.Versions, s.Version) || !slices.Contains(known.Targets, j.Target) && f.Policy.Target == ""):
		return j.with(Blocked, ReasonUnknownVersion, fmt.Sprintf("it is at %s, the CRD stores %s, and this release converts %s to %s",
			s.Version, f.CRDs[s.Resource].StorageVersion, strings.Join(older(known), ", "), strings.Join(known.Targets, ", ")))
	case errors.As(err, &none):
		j.candidates = &candidates{targets: f.CRDs[s.Resource].Reachable(known.Targets)}
	}
	return j.with(Blocked, ReasonUnconvertible, err.Error())
}

// older are the versions that there are conversions from.
func older(d Description) []string {
	return slices.DeleteFunc(slices.Clone(d.Versions), func(v string) bool { return slices.Contains(d.Targets, v) })
}

// controllerFor is the object to own the replacement of a revision without a controller, as
// backups restore them: the one object that refers to it, whose name its name begins with, and
// whose kind owns revisions.
func controllerFor(r *appsv1.ControllerRevision, references []reference.Reference, owners []OwnerType) *reference.Referrer {
	if metav1.GetControllerOfNoCopy(r) != nil {
		return nil
	}
	var found *reference.Referrer
	for _, ref := range references {
		if !ref.Writable() || ref.Referrer == found || !strings.HasPrefix(r.Name, ref.Referrer.Name+"-") || !owns(owners, ref.Referrer) {
			continue
		}
		if found != nil {
			return nil
		}
		found = ref.Referrer
	}
	return found
}

func owns(owners []OwnerType, h *reference.Referrer) bool {
	return slices.ContainsFunc(owners, func(o OwnerType) bool { return o.Kind == h.Kind && o.Group == h.Resource.Group })
}
