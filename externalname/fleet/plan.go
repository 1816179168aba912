package fleet

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/externalname"
	"github.com/godwit-dev/godwit/externalname/internal/evidence"
	"github.com/godwit-dev/godwit/externalname/internal/managed"
	"github.com/godwit-dev/godwit/internal/format"
	"github.com/godwit-dev/godwit/internal/placeholder"
	"github.com/godwit-dev/godwit/internal/quote"
)

// Class is the state of the name of a managed resource.
type Class string

const (
	// Canonical means that the name is the proposed one.
	Canonical Class = "Canonical"
	// Legacy means that the name has another form, which is in Item.Form.
	Legacy Class = "Legacy"
	// Empty means that the object has no external name.
	Empty Class = "Empty"
	// Invalid means that the name can't be parsed, or that no name can be proposed.
	Invalid Class = "Invalid"
	// Duplicate means that another managed resource of the kind has the name, or would have it.
	Duplicate Class = "Duplicate"
	// CreateIncomplete means that the outcome of a creation is not known.
	CreateIncomplete Class = "CreateIncomplete"
	// Deleting means that the managed resource is being deleted.
	Deleting Class = "Deleting"
	// Lost means that an external resource was created or observed, and that the object has no external name.
	Lost Class = "Lost"
	// NotOurs means that the object is not a managed resource, or that Upjet determines its name.
	NotOurs Class = "NotOurs"
)

// Action is what Apply does with a managed resource.
type Action string

const (
	// None means that the managed resource needs no action.
	None Action = "None"
	// Rename means that Apply writes the proposed name.
	Rename Action = "Rename"
	// Resume means that an earlier Apply was interrupted, and that Apply resumes it.
	Resume Action = "Resume"
	// Skip means that Apply does not change the managed resource, and that user action is required.
	Skip Action = "Skip"
)

// Reasons has the reasons of a plan and of a run.
var Reasons godwit.Catalog

// Reasons of an [Item] whose action is None or Skip. An invalid name has the reason of its
// [externalname.InvalidError].
var (
	ReasonNotManaged = Reasons.Declare(godwit.Reason{
		Name:    "NotManaged",
		Meaning: "The object has no spec.forProvider, so that it is not a managed resource.",
		Fix:     godwit.Do("nothing is left to do: its name does not identify an external resource"),
	})
	ReasonUpjet = Reasons.Declare(godwit.Reason{
		Name:    "Upjet",
		Meaning: "A provider that Upjet generates manages the object, and decides how its name is written. While it runs, it ignores a changed name, and writes the old one back.",
		Fix:     godwit.Do("configure the name in the provider: `externalname.ForUpjet` makes the two functions, and the next observation writes the new name").Or(godwit.Do("have the provider follow the contract, with `existing.WrapConnector`")),
	})
	ReasonTerminating = Reasons.Declare(godwit.Reason{
		Name:    "Terminating",
		Meaning: "The managed resource is being deleted.",
		Fix:     godwit.Do("wait. If it hangs, see which finalizer holds it"),
	})
	ReasonCreateIncomplete = Reasons.Declare(godwit.Reason{
		Name: "CreateIncomplete", UserAction: true,
		Meaning: "A creation was begun, and its outcome is not recorded: the external resource may exist under a name that is not known.",
		Fix:     evidence.EndCreation(placeholder.Object()),
	})
	ReasonNameLost = Reasons.Declare(godwit.Reason{
		Name: "NameLost", UserAction: true,
		Meaning: "An external resource was created or observed, and the managed resource has no external name any more. The provider would create another one, unless it finds external resources by spec.forProvider.",
		Fix:     evidence.WriteName(placeholder.Object(), "", false),
	})
	ReasonNoName = Reasons.Declare(godwit.Reason{
		Name:    "NoName",
		Meaning: "The managed resource has no external name, and none is proposed.",
		Fix:     godwit.Do("nothing is left to do: nothing was created yet, and the provider writes the name when it has created the external resource"),
	})
	ReasonNoProposal = Reasons.Declare(godwit.Reason{
		Name: "NoProposal", UserAction: true,
		Meaning: "The name is of a former form that does not contain the key, or the expression has an error for this managed resource.",
		Fix:     godwit.Do("correct the expression; or let the provider look the key up, with a `fleet.Lookup`"),
	})
	ReasonDuplicate = Reasons.Declare(godwit.Reason{
		Name: "Duplicate", UserAction: true,
		Meaning: "Several managed resources have the name, or would have it, so that all of them write one external resource.",
		Fix:     evidence.StopSharing(placeholder.Object()),
	})
	ReasonNotDistinct = Reasons.Declare(godwit.Reason{
		Name: "NotDistinct", UserAction: true,
		Meaning: "The expression gives several managed resources one name, or the name of another one. Their external resources are different ones now.",
		Fix:     godwit.Do("correct the expression, so that it gives each managed resource a name of its own"),
	})
	ReasonSourceOwned = Reasons.Declare(godwit.Reason{
		Name: "SourceOwned", UserAction: true,
		Meaning: "A GitOps tool or a Composition applies the name from a source, and would restore the old one.",
		Fix:     changeSource("MANIFEST"),
	})
	ReasonPaused = Reasons.Declare(godwit.Reason{
		Name: "Paused", UserAction: true,
		Meaning: "A user has paused the managed resource, so that the provider would not prove the new name.",
		Fix:     endPause(placeholder.Object()),
	})
	ReasonNotObserved = Reasons.Declare(godwit.Reason{
		Name: "NotObserved", UserAction: true,
		Meaning: "status.atProvider has no field that identifies the external resource, so that nothing would prove that it is the same.",
		Fix:     seeObservation(placeholder.Object()),
	})
	ReasonNoIdentity = Reasons.Declare(godwit.Reason{
		Name: "NoIdentity", UserAction: true,
		Meaning: "Each field of status.atProvider is also a field of the spec. The provider writes the spec to whatever resource a name identifies, so that such a field does not prove that it is the same one.",
		Fix:     chooseIdentity(),
	})
	ReasonMayCreate = Reasons.Declare(godwit.Reason{
		Name: "MayCreate", UserAction: true,
		Meaning: "Nothing keeps the provider from creating a second external resource if it finds none under the new name: the kind has no spec.managementPolicies, or another manager applies the field.",
		Fix: godwit.Do("if the kind has spec.managementPolicies, let its owner leave the field out for the time of the renaming").
			Or(godwit.Do("accept that: --accept-unsafe. The first managed resource that the provider creates for stops the run")),
	})
	ReasonOthersNotRead = Reasons.Declare(godwit.Reason{
		Name: "OthersNotRead", UserAction: true,
		Meaning: "Managed resources outside the scope share the external system, and can't be read. One of them may have the new name.",
		Fix: godwit.Do("with the permission to list the managed resources in all namespaces, plan again").
			Or(godwit.Do("accept that: --accept-unsafe")),
	})
	ReasonSecondResource = Reasons.Declare(godwit.Reason{
		Name: "SecondResource", UserAction: true,
		Meaning: "At an earlier renaming the provider created a second external resource. The managed resource has its old name again.",
		Fix:     accountFor(placeholder.Object()),
	})
	ReasonStaleStatus = Reasons.Declare(godwit.Reason{
		Name: "StaleStatus", UserAction: true,
		Meaning: "The condition says ReconcilePaused and the managed resource is not paused: the provider has not reconciled it since.",
		Fix:     seeObservation(placeholder.Object()),
	})
	ReasonAbsenceHidden = Reasons.Declare(godwit.Reason{
		Name: "AbsenceHidden", UserAction: true,
		Meaning: "The management policies allow more than Observe and not Create. crossplane-runtime then reports success for an external resource that does not exist, so that nothing is proven.",
		Fix:     godwit.Do("set spec.managementPolicies to Observe alone, or allow Create, for the time of the renaming"),
	})
	ReasonJournalUnreadable = Reasons.Declare(godwit.Reason{
		Name: "JournalUnreadable", UserAction: true,
		Meaning: "The journal of a renaming can't be read. Another client has changed the annotation.",
		Fix:     removeJournal(placeholder.Object()),
	})
	ReasonNewerFormat = format.DeclareNewer(&Reasons, "wrote annotations of the managed resource",
		"The managed resource is left alone.", format.UseNewerRelease())
)

// Item is the plan for one managed resource.
type Item struct {
	Namespace, Name string
	UID             types.UID
	Class           Class
	// Form is the form of a Legacy name.
	Form string
	// Current and Proposed are the names; the latter is empty if none is proposed.
	Current, Proposed string
	// Owner is the field manager of the current name.
	Owner  Owner
	Action Action
	// trial means that the provider may observe the new name before it may write.
	trial bool
	// Finding says why the managed resource is not renamed. It is empty for one that is.
	godwit.Finding
	// SourcePatch is the patch for the source of a name that a GitOps tool or a Composition owns: a
	// manifest with the new name and no other field.
	SourcePatch string

	// resourceVersion is that of the plan. A managed resource with a journal has none: the next journal contains it.
	resourceVersion string
}

// GetNamespace makes an Item an object of package walk.
func (i Item) GetNamespace() string { return i.Namespace }

// GetName makes an Item an object of package walk.
func (i Item) GetName() string { return i.Name }

// Scan is what a plan is made of.
type Scan struct {
	Kind  Kind
	Facts []Fact
	// Unread is why managed resources outside the scope could not be read; empty if they were.
	Unread string
	// AcceptUnsafe is as in [Options].
	AcceptUnsafe bool
}

// PlanFor decides what to do with each managed resource in scope. It is pure. Items are sorted by namespace and name.
func PlanFor(s Scan) []Item {
	facts := s.Facts
	order := func(a, b Fact) int { return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name)) }
	if !slices.IsSortedFunc(facts, order) { // the API server lists a namespace in this order
		facts = slices.SortedFunc(slices.Values(facts), order)
	}
	u := usersOf(facts)
	items := make([]Item, 0, len(facts))
	for _, f := range facts {
		if !f.Outside {
			items = append(items, s.plan(f, u))
		}
	}
	return items
}

func (s Scan) plan(f Fact, u users) Item {
	i := Item{
		Namespace: f.Namespace, Name: f.Name, UID: f.UID, Current: f.current(), Proposed: f.Proposal.Name, Owner: f.Owner,
		Class: Canonical, Action: None, resourceVersion: f.resourceVersion, trial: f.HasPolicies && !f.PoliciesOwner.Source,
	}
	classify(&i, f, u)
	switch {
	case !f.Managed:
		i.Proposed = ""
	case f.JournalErr != nil:
		i.Action = Skip
		i.Reason, i.Message = unreadable(f.JournalErr)
	case f.Second != "":
		i.Action, i.Reason, i.Message = Skip, ReasonSecondResource, f.Second
	case f.RenamingTo != "":
		i.Action, i.Reason, i.Message, i.Proposed = Resume, nil, "an earlier renaming was interrupted", f.RenamingTo
		if f.Unwritten && s.skipUnsafe(&i, f) {
			i.Message += ". An interrupted run has paused it: a rollback ends the pause"
		}
	case i.Class == NotOurs:
		i.Proposed = ""
	case i.Action == None && i.Proposed != i.Current && i.Proposed != "" && (i.Class == Legacy || i.Class == Empty):
		i.Action = Rename
		unprovable(&i, f)
		if i.Action == Rename {
			s.skipUnsafe(&i, f)
		}
	}
	i.Fix = fixOf(s.Kind, i, f)
	if i.Reason == ReasonSourceOwned {
		i.SourcePatch = sourcePatch(s.Kind, i)
	}
	return i
}

// unreadable returns why a journal can't be read.
func unreadable(err error) (reason *godwit.Reason, message string) {
	if errors.As(err, new(*format.NewerError)) {
		return ReasonNewerFormat, err.Error()
	}
	return ReasonJournalUnreadable, fmt.Sprintf("the annotation %s can't be read: %s", AnnotationJournal, quote.Line(err.Error()))
}

// classify sets the class of an item, and the reason if it is not renamed.
func classify(i *Item, f Fact, u users) {
	var invalid *externalname.InvalidError
	set := func(c Class, a Action, reason *godwit.Reason, format string, args ...any) {
		i.Class, i.Action, i.Reason, i.Message = c, a, reason, fmt.Sprintf(format, args...)
	}
	reason, message := u.conflict(f)
	switch {
	case !f.Managed:
		set(NotOurs, None, ReasonNotManaged, "the object has no spec.forProvider")
	case f.NameLost && !f.Deleting && !f.CreateIncomplete && f.RenamingTo == "":
		set(Lost, Skip, ReasonNameLost, "%s", lostMessage(f.Bound))
	case f.Upjet:
		set(NotOurs, None, ReasonUpjet, "a provider of Upjet decides about the name")
	case f.Deleting:
		set(Deleting, None, ReasonTerminating, "the managed resource is being deleted")
	case f.CreateIncomplete:
		set(CreateIncomplete, Skip, ReasonCreateIncomplete, "a creation was begun, and its outcome is not recorded")
	case errors.As(f.Proposal.Err, &invalid):
		set(Invalid, Skip, invalid.Reason, "%s", quote.Line(invalid.Error()))
	case f.Proposal.Err != nil:
		set(Invalid, Skip, ReasonNoProposal, "%s", quote.Line(f.Proposal.Err.Error()))
	case reason != nil:
		set(Duplicate, Skip, reason, "%s", message)
	case i.Current == "" && i.Proposed == "":
		set(Empty, None, ReasonNoName, "the managed resource has no external name, and none is proposed")
	case i.Current == "":
		i.Class = Empty
	case i.Proposed == "":
		set(Legacy, Skip, ReasonNoProposal, "the name does not contain the key, and no other name is proposed")
		i.Form = f.Proposal.Form
	case i.Current != i.Proposed:
		i.Class, i.Form = Legacy, f.Proposal.Form
	}
}

// lostMessage says what is known about an external resource whose name is lost.
func lostMessage(bound string) string {
	if bound != "" {
		return fmt.Sprintf("the external resource %q was observed, and the managed resource has no external name any more", quote.Clip(bound, nameBytes))
	}
	return "an external resource was created, and the managed resource has no external name"
}

// conflict returns why a managed resource can't have its name, or the proposed one, for itself; nil if it can.
func (u users) conflict(f Fact) (reason *godwit.Reason, message string) {
	current, proposed := claim{f.Account, f.current()}, claim{f.Account, f.Proposal.Name}
	sharing := func(c claim, format string) string {
		return fmt.Sprintf(format, listed(u.share(c)), quote.Clip(c.name, nameBytes))
	}
	switch others := u.others[key(f.Namespace, f.Name)]; {
	case u.shared(current):
		return ReasonDuplicate, sharing(current, "%s have the external name %q")
	case u.shared(proposed):
		return ReasonDuplicate, sharing(proposed, "%s have the external name %q, in different spellings")
	case u.all[current] != nil:
		return ReasonNotDistinct, sharing(current, "%s would have the external name %q, and one has it")
	case u.all[proposed] != nil:
		return ReasonNotDistinct, sharing(proposed, "%s would have the external name %q")
	case others != nil:
		return ReasonDuplicate, fmt.Sprintf("%s have one external resource, by their names in other spellings or by status.atProvider", listed(others))
	}
	return nil, ""
}

// listed returns the names of at most three objects.
func listed(objects []string) string {
	const most = 3
	text := strings.Join(objects[:min(len(objects), most)], ", ")
	if more := len(objects) - most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// unprovable skips items whose renaming can't be proven or would not last.
func unprovable(i *Item, f Fact) {
	switch {
	case f.Owner.Source && f.Owner.Composite != "":
		i.Reason, i.Message = ReasonSourceOwned, fmt.Sprintf("the Composition of %s (field manager %s) writes the external name", f.Owner.Composite, f.Owner.Manager)
	case f.Owner.Source:
		i.Reason, i.Message = ReasonSourceOwned, f.Owner.Manager+" applies the external name from a source, and would restore the old one"
	case f.Paused:
		i.Reason, i.Message = ReasonPaused, "the managed resource is paused, so that the provider would not prove the name"
	case !f.Observed && len(f.Mirrored) > 0:
		i.Reason, i.Message = ReasonNoIdentity, fmt.Sprintf("status.atProvider has no field that the spec lacks: %s", strings.Join(f.Mirrored, ", "))
	case !f.Observed:
		i.Reason, i.Message = ReasonNotObserved, "status.atProvider has no identity that the renaming could compare"
	case f.Stale:
		i.Reason, i.Message = ReasonStaleStatus, "the provider has not reconciled the managed resource since it was paused"
	case f.HidesAbsence && !i.trial:
		i.Reason, i.Message = ReasonAbsenceHidden, "under its management policies crossplane-runtime reports success for an external resource that does not exist"
	default:
		return
	}
	i.Action = Skip
}

// skipUnsafe skips an item whose renaming may make a second external resource, unless the user accepts that.
func (s Scan) skipUnsafe(i *Item, f Fact) (skipped bool) {
	switch {
	case s.AcceptUnsafe:
		return false
	case !f.HasPolicies:
		i.Reason, i.Message = ReasonMayCreate, fmt.Sprintf("%s has no spec.managementPolicies: if the provider finds no external resource under the new name, it creates a second one", s.Kind.Kind)
	case f.PoliciesOwner.Source:
		i.Reason, i.Message = ReasonMayCreate, fmt.Sprintf("%s applies spec.managementPolicies, and may set them back before the new name is proven", f.PoliciesOwner.Manager)
	case s.Unread != "":
		i.Reason, i.Message = ReasonOthersNotRead, "managed resources outside the scope can't be read, and one may have the new name: "+s.Unread
	default:
		return false
	}
	i.Action = Skip
	return true
}

// fixOf returns the fix of a skipped item.
func fixOf(kind Kind, i Item, f Fact) godwit.Fix {
	object := godwit.Object{Resource: kind.Resource.GroupResource().String(), Namespace: i.Namespace, Name: i.Name}
	switch i.Reason {
	case ReasonPaused:
		return endPause(object)
	case ReasonCreateIncomplete:
		return evidence.EndCreation(object)
	case ReasonDuplicate:
		return evidence.StopSharing(object)
	case ReasonNameLost:
		return evidence.WriteName(object, f.Bound, f.Paused)
	case ReasonSourceOwned:
		return changeSource(sourcePatch(kind, i))
	case ReasonNewerFormat:
		return format.UseNewerRelease()
	case ReasonJournalUnreadable:
		return removeJournal(object)
	case ReasonNotObserved, ReasonStaleStatus:
		return seeObservation(object)
	case ReasonSecondResource:
		return accountFor(object)
	}
	return nil
}

// sourcePatch returns a manifest with the new name and no other field: kustomize accepts it as a patch.
func sourcePatch(kind Kind, i Item) string {
	type metadata struct {
		Name        string            `json:"name"`
		Namespace   string            `json:"namespace,omitempty"`
		Annotations map[string]string `json:"annotations"`
	}
	text, err := json.Marshal(struct {
		APIVersion string   `json:"apiVersion"`
		Kind       string   `json:"kind"`
		Metadata   metadata `json:"metadata"`
	}{
		kind.Resource.GroupVersion().String(), kind.Kind,
		metadata{i.Name, i.Namespace, map[string]string{managed.AnnotationName: i.Proposed}},
	})
	if err != nil {
		return ""
	}
	return string(text)
}
