package audit

import (
	"cmp"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/externalname/fleet"
	"github.com/godwit-dev/godwit/externalname/handover"
	"github.com/godwit-dev/godwit/externalname/internal/evidence"
	"github.com/godwit-dev/godwit/internal/kube"
)

// Fact has the facts of one managed resource. [Decide] uses nothing else.
type Fact struct {
	Kind            fleet.Kind
	Namespace, Name string
	UID             types.UID
	ExternalName    string
	// AppliedName is the external name in the manifest of the last client-side apply, or empty.
	AppliedName string
	// Owner is the owner of the external name.
	Owner fleet.Owner
	// InTurns means that the owner is a source, that another client has written the name last, and that both have written the managed
	// resource within minutes, long after its creation.
	InTurns bool
	// NameWritten is when a client that is not the provider has written the external name to a managed resource that existed, and wrote
	// nothing else. NameWriter is its field manager. It is zero if no such client is known.
	NameWritten time.Time
	NameWriter  string

	Paused, Deleting, Observes bool
	// PausedBy is the field manager of the pause, and PausedSince the time of its last write.
	PausedBy    string
	PausedSince time.Time
	// Renaming is the new name of a renaming by Godwit that has not ended, or empty.
	Renaming string
	// Handover is the handover of which the managed resource is a part; nil without one.
	Handover *handover.Part
	// Problem is why the annotations of Godwit can't be read.
	Problem *godwit.Finding
	// Creations counts the events of creations.
	Creations Creations

	creation evidence.Creation
	subject  evidence.Subject
}

// Creations are the events of a managed resource whose external resource was created.
type Creations struct {
	Count int64
	// First is the time of the first event.
	First time.Time
}

// FactOf reads a managed resource.
func FactOf(kind fleet.Kind, o *unstructured.Unstructured) Fact {
	f := Fact{
		Kind: kind, Namespace: o.GetNamespace(), Name: o.GetName(), UID: o.GetUID(),
		ExternalName: o.GetAnnotations()[evidence.AnnotationName], AppliedName: evidence.AppliedName(o), Owner: fleet.OwnerOf(o),
		Paused: o.GetAnnotations()[evidence.AnnotationPaused] == "true", Deleting: o.GetDeletionTimestamp() != nil,
		creation: evidence.CreationOf(o), subject: evidence.SubjectOf(o),
	}
	policies, _, _ := unstructured.NestedStringSlice(o.Object, "spec", "managementPolicies")
	f.Observes = len(policies) == 1 && policies[0] == "Observe"
	f.Renaming, f.Problem = fleet.Unfinished(kind, o)
	if f.Problem == nil {
		f.Handover, f.Problem = handover.PartOf(kind.Resource.GroupResource().String(), o)
	}
	f.readWriters(o)
	return f
}

// settled is how long after its creation a managed resource has what its manifest has.
const settled = time.Minute

func (f *Fact) readWriters(o *unstructured.Unstructured) {
	writers := evidence.WritersOf(o)
	creator := ""
	for _, w := range writers {
		if w.Succeeded {
			creator = w.Manager
		}
		if w.Paused {
			f.PausedBy, f.PausedSince = w.Manager, w.At
		}
	}
	f.InTurns = f.Owner.Source && f.AppliedName == ""
	for _, w := range writers {
		if w.Name && w.Manager == f.Owner.Manager {
			f.InTurns = false
		}
		if w.Name && !w.Spec && w.Manager != creator && creator != "" && w.At.Sub(o.GetCreationTimestamp().Time) > settled {
			f.NameWriter, f.NameWritten = w.Manager, w.At
		}
	}
}

// object names the managed resource for a fix.
func (f Fact) object() godwit.Object {
	return godwit.Object{Resource: f.Kind.Resource.GroupResource().String(), Namespace: f.Namespace, Name: f.Name}
}

// text names the managed resource in a message.
func (f Fact) text() string {
	if f.Namespace == "" {
		return f.object().Resource + " " + f.Name
	}
	return f.object().Resource + " " + f.Namespace + "/" + f.Name
}

// byGodwit reports whether Godwit has paused the managed resource.
func (f Fact) byGodwit() bool { return f.PausedBy == kube.FieldManager }

func compareFacts(a, b Fact) int {
	return cmp.Or(cmp.Compare(a.object().Resource, b.object().Resource), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}
