package fleet

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/externalname"
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
		Fix:     godwit.Do("see in the external system whether the resource exists. If it does, write its external name, and remove the annotation crossplane.io/external-create-pending"),
	})
	ReasonNoName = Reasons.Declare(godwit.Reason{
		Name:    "NoName",
		Meaning: "The managed resource has no external name, and none is proposed.",
		Fix:     godwit.Do("nothing is left to do: the provider writes the name when it has created the external resource"),
	})
	ReasonNoProposal = Reasons.Declare(godwit.Reason{
		Name: "NoProposal", UserAction: true,
		Meaning: "The name is of a former form that does not contain the key, or the expression has an error for this managed resource.",
		Fix:     godwit.Do("correct the expression; or let the provider look the key up, with a `fleet.Lookup`"),
	})
	ReasonDuplicate = Reasons.Declare(godwit.Reason{
		Name: "Duplicate", UserAction: true,
		Meaning: "Several managed resources have the name, or would have it, so that all of them write one external resource.",
		Fix:     godwit.Do("delete all but one, or correct the names. Set spec.managementPolicies to Observe first, so that the external resource stays"),
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

// Kind is the kind of the managed resources.
type Kind struct {
	Resource schema.GroupVersionResource
	Kind     string
	// Upjet means that Upjet has generated the CRD: see [UpjetCRD].
	Upjet bool
}

// Fact has the facts of one managed resource. [PlanFor] uses nothing else.
type Fact struct {
	Namespace, Name string
	UID             types.UID
	// ExternalName is nil without the annotation.
	ExternalName *string
	Proposal     Proposal
	Owner        Owner
	// Account is the provider's configuration.
	Account string

	Managed, Upjet, Deleting, CreateIncomplete, Paused bool
	// Observed means that status.atProvider has fields that identify the external resource.
	Observed bool
	// Stale means that the condition Synced has the reason ReconcilePaused although the object is not paused.
	Stale bool
	// HidesAbsence means that the provider reports success even if the external resource does not exist.
	HidesAbsence bool
	// RenamingTo is the new name in the journal of a renaming that has not ended.
	RenamingTo string
	// JournalErr is set if the journal can't be read.
	JournalErr error

	resourceVersion string // empty with a journal
}

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

// factOf reads a managed resource.
func factOf(kind Kind, o *unstructured.Unstructured, p Proposal, identity Identity, sources []string) Fact {
	m := managed{o}
	j, err := readJournal(m)
	resourceVersion := o.GetResourceVersion()
	if _, has := o.GetAnnotations()[AnnotationJournal]; has {
		resourceVersion = ""
	}
	return Fact{
		Namespace: o.GetNamespace(), Name: o.GetName(), UID: o.GetUID(), ExternalName: m.externalName(), Proposal: p,
		Owner: ownerOf(o, sources), Account: m.account(),
		Managed: m.isManaged(), Upjet: m.upjet(kind.Upjet), Deleting: o.GetDeletionTimestamp() != nil, CreateIncomplete: m.creationUnknown(),
		Paused: m.paused(), Observed: len(identity.hashes(m)) > 0, Stale: !m.paused() && m.synced().reason == reconcilePaused,
		HidesAbsence: m.hidesAbsence(), RenamingTo: j.unfinished(), JournalErr: err, resourceVersion: resourceVersion,
	}
}

func (f Fact) current() string {
	if f.ExternalName == nil {
		return ""
	}
	return *f.ExternalName
}

// PlanFor decides what to do with each managed resource. It is pure. Items are sorted by namespace and name.
func PlanFor(kind Kind, facts []Fact) []Item {
	order := func(a, b Fact) int { return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name)) }
	if !slices.IsSortedFunc(facts, order) { // the API server lists a namespace in this order
		facts = slices.SortedFunc(slices.Values(facts), order)
	}
	u := usersOf(facts)
	items := make([]Item, len(facts))
	for i, f := range facts {
		items[i] = plan(kind, f, u)
	}
	return items
}

// claim is a name in an account.
type claim struct{ account, name string }

// users has, for each name, the managed resources that have it now or would have it. Nearly every name has one user,
// which needs no list.
type users struct {
	facts []Fact
	first map[claim]int // index of a fact
	all   map[claim][]int
}

func usersOf(facts []Fact) users {
	u := users{facts: facts, first: make(map[claim]int, len(facts)), all: map[claim][]int{}}
	for i, f := range facts {
		if !f.Managed {
			continue
		}
		for _, name := range []string{f.current(), f.Proposal.Name} {
			if name != "" {
				u.add(claim{f.Account, name}, i)
			}
		}
	}
	return u
}

func (u users) add(c claim, i int) {
	first, has := u.first[c]
	switch {
	case !has:
		u.first[c] = i
	case first == i: // both its names are the same
	case u.all[c] == nil:
		u.all[c] = []int{first, i}
	case u.all[c][len(u.all[c])-1] != i:
		u.all[c] = append(u.all[c], i)
	}
}

// share returns the users of a name if it has several.
func (u users) share(c claim) []string {
	var objects []string
	for _, i := range u.all[c] {
		objects = append(objects, key(u.facts[i].Namespace, u.facts[i].Name))
	}
	return objects
}

func key(namespace, name string) string {
	if namespace == "" {
		return name
	}
	return namespace + "/" + name
}

func plan(kind Kind, f Fact, u users) Item {
	i := Item{
		Namespace: f.Namespace, Name: f.Name, UID: f.UID, Current: f.current(), Proposed: f.Proposal.Name, Owner: f.Owner,
		Class: Canonical, Action: None, resourceVersion: f.resourceVersion,
	}
	classify(&i, f, u)
	switch {
	case !f.Managed:
		i.Proposed = ""
	case f.JournalErr != nil:
		i.Action = Skip
		i.Reason, i.Message = unreadable(f.JournalErr)
	case f.RenamingTo != "":
		i.Action, i.Reason, i.Message, i.Proposed = Resume, nil, "an earlier renaming was interrupted", f.RenamingTo
	case i.Class == NotOurs:
		i.Proposed = ""
	case i.Action == None && i.Proposed != i.Current && i.Proposed != "" && (i.Class == Legacy || i.Class == Empty):
		i.Action = Rename
		unprovable(&i, f)
	}
	i.Fix = fixOf(kind, i)
	if i.Reason == ReasonSourceOwned {
		i.SourcePatch = sourcePatch(kind, i)
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
	duplicate := func(name string) {
		objects := listed(u.share(claim{f.Account, name}))
		set(Duplicate, Skip, ReasonDuplicate, "%s have the external name %q, or would have it", objects, quote.Clip(name, nameBytes))
	}
	switch {
	case !f.Managed:
		set(NotOurs, None, ReasonNotManaged, "the object has no spec.forProvider")
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
	case u.all[claim{f.Account, i.Current}] != nil:
		duplicate(i.Current)
	case u.all[claim{f.Account, i.Proposed}] != nil:
		duplicate(i.Proposed)
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

// nameBytes bounds a name in a message.
const nameBytes = 64

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
	case !f.Observed:
		i.Reason, i.Message = ReasonNotObserved, "status.atProvider has no identity that the renaming could compare"
	case f.Stale:
		i.Reason, i.Message = ReasonStaleStatus, "the provider has not reconciled the managed resource since it was paused"
	case f.HidesAbsence:
		i.Reason, i.Message = ReasonAbsenceHidden, "under its management policies crossplane-runtime reports success for an external resource that does not exist"
	default:
		return
	}
	i.Action = Skip
}

// fixOf returns the fix of a skipped item.
func fixOf(kind Kind, i Item) godwit.Fix {
	object := godwit.Object{Resource: kind.Resource.GroupResource().String(), Namespace: i.Namespace, Name: i.Name}
	switch i.Reason {
	case ReasonPaused:
		return endPause(object)
	case ReasonSourceOwned:
		return changeSource(sourcePatch(kind, i))
	case ReasonNewerFormat:
		return format.UseNewerRelease()
	case ReasonJournalUnreadable:
		return removeJournal(object)
	case ReasonNotObserved, ReasonStaleStatus:
		return seeObservation(object)
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
		metadata{i.Name, i.Namespace, map[string]string{annotationName: i.Proposed}},
	})
	if err != nil {
		return ""
	}
	return string(text)
}
