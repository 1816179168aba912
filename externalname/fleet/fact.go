package fleet

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/godwit-dev/godwit/externalname/internal/evidence"
	"github.com/godwit-dev/godwit/externalname/internal/managed"
)

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
	// NameLost means that an external resource was created or observed, and that the name is missing.
	NameLost bool
	// Bound is the name under which package crossplane has last seen the external resource.
	Bound string
	// Observed means that status.atProvider has fields that identify the external resource.
	Observed bool
	// Stale means that the condition Synced has the reason ReconcilePaused although the object is not paused.
	Stale bool
	// Mirrored are the fields of status.atProvider that the spec has, too, if there are no others.
	Mirrored []string
	// HasPolicies means that the kind has spec.managementPolicies. PoliciesOwner is who has written them.
	HasPolicies   bool
	PoliciesOwner Owner
	// Outside means that the managed resource is not in scope. It counts for duplicates alone.
	Outside bool
	// Second has both external names after a creation at an earlier renaming.
	Second string
	// HidesAbsence means that the provider reports success even if the external resource does not exist.
	HidesAbsence bool
	// Unwritten means that such a renaming has only paused the managed resource.
	Unwritten bool
	// RenamingTo is the new name in the journal of a renaming that has not ended.
	RenamingTo string
	// JournalErr is set if the journal can't be read.
	JournalErr error

	subject         evidence.Subject
	resourceVersion string // empty with a journal
}

// factOf reads a managed resource.
func factOf(kind Kind, o *unstructured.Unstructured, p Proposal, identity Identity, sources []string) Fact {
	m := managed.Of(o)
	j, err := readJournal(m)
	creation := evidence.CreationOf(o)
	f := Fact{
		Namespace: o.GetNamespace(), Name: o.GetName(), UID: o.GetUID(), ExternalName: m.ExternalName(), Proposal: p,
		Owner: ownerOf(o, sources), Account: m.Account(), HasPolicies: m.Policies() != nil, PoliciesOwner: policiesOwner(o, sources),
		Managed: m.IsManaged(), Upjet: m.Upjet(kind.Upjet), Deleting: o.GetDeletionTimestamp() != nil, CreateIncomplete: creation.Incomplete,
		Paused: m.Paused() || m.Policies() != nil && len(m.Policies()) == 0, Observed: len(identity.of(kind).Hashes(m)) > 0,
		Stale:        !m.Paused() && m.Synced().Reason == managed.ReconcilePaused,
		HidesAbsence: m.HidesAbsence(), RenamingTo: j.unfinished(), JournalErr: err, resourceVersion: o.GetResourceVersion(),
		NameLost: creation.NameLost(o.GetAnnotations()[managed.AnnotationName]), Bound: creation.Bound, subject: evidence.SubjectOf(o),
	}
	if _, has := o.GetAnnotations()[AnnotationJournal]; has {
		f.resourceVersion = ""
	}
	f.Unwritten = j != nil && j.Phase == phasePausing
	if !f.Observed {
		f.Mirrored = identity.of(kind).Mirrored(m)
	}
	if j != nil && j.Phase == phaseDoubled {
		f.Second = j.doubled()
	}
	return f
}

// outside reads a managed resource that is not in scope.
func outside(o *unstructured.Unstructured) Fact {
	m := managed.Of(o)
	return Fact{
		Namespace: o.GetNamespace(), Name: o.GetName(), ExternalName: m.ExternalName(), Account: m.Account(), Managed: m.IsManaged(), Outside: true,
		NameLost: evidence.CreationOf(o).NameLost(o.GetAnnotations()[managed.AnnotationName]), subject: evidence.SubjectOf(o),
	}
}

func (f Fact) current() string {
	if f.ExternalName == nil {
		return ""
	}
	return *f.ExternalName
}
