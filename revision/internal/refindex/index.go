package refindex

import (
	"iter"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/godwit-dev/godwit/revision/internal/cluster"
	"github.com/godwit-dev/godwit/revision/reference"
)

// Index says which objects of one namespace refer to which revision, as one scan
// found it. It is complete: a list that the API server refuses makes no index.
type Index struct {
	Namespace string
	// references by the name of the revision, those that do not count among them.
	references      map[string][]reference.Reference
	referrers       map[types.UID]*reference.Referrer
	owners          map[ownerKey]*reference.Referrer        // what counterparts may be for
	controlledInUse map[types.UID]*reference.Referrer       // an object that runs or is not ready, by its controller
	readers         map[reference.Owner]*reference.Referrer // by the object whose revisions they may be about to read
	filtered        bool                                    // a selector left objects out
	scanned         map[schema.GroupResource]bool
}

// ownerKey names an object of the namespace.
type ownerKey struct {
	resource schema.GroupResource
	name     string
}

// New is an index without references.
func New(namespace string) *Index {
	return &Index{
		Namespace: namespace, references: map[string][]reference.Reference{}, referrers: map[types.UID]*reference.Referrer{},
		owners: map[ownerKey]*reference.Referrer{}, controlledInUse: map[types.UID]*reference.Referrer{}, readers: map[reference.Owner]*reference.Referrer{},
	}
}

// Of are the references to a revision that count. A fixed reference counts while the
// controller of the revision that has it runs, and an implied one while the object exists that
// a restore would look the revision up for.
func (x *Index) Of(revision string) []reference.Reference {
	var all []reference.Reference
	for _, r := range x.references[revision] {
		if r.Fixed && !x.startedBy(r.Referrer) || r.ImpliedBy != "" && x.RestoreTarget(r) == nil {
			continue
		}
		all = append(all, r)
	}
	return all
}

// startedBy reports whether the controller of a revision with fixed references runs. A
// controller that the scan would have found, and did not, is gone.
func (x *Index) startedBy(r *reference.Referrer) bool {
	by := x.referrers[r.Controller]
	if by == nil {
		return !x.scanned[r.ControllerResource]
	}
	return by.Running
}

// RestoreTarget is the object that the counterpart of a reference is looked up for; nil where
// there is none to restore onto.
func (x *Index) RestoreTarget(r reference.Reference) *reference.Referrer {
	if r.Counterpart == nil {
		return nil
	}
	owner := x.owners[ownerKey{r.Counterpart.Resource, r.Counterpart.Owner}]
	if owner == nil || owner.Terminating {
		return nil
	}
	return owner
}

// Selected reports whether a revision is in scope: one of its referrers is or, where it has
// none, its controller. A snapshot is in scope with the object that it is of, and not the
// other way round.
func (x *Index) Selected(r metav1.Object, references []reference.Reference) bool {
	if len(references) > 0 {
		return slices.ContainsFunc(references, func(r reference.Reference) bool {
			owner := x.RestoreTarget(r)
			return r.Referrer.Selected && r.ImpliedBy == "" || owner != nil && owner.Selected
		})
	}
	owner := metav1.GetControllerOfNoCopy(r)
	if owner == nil || x.referrers[owner.UID] == nil {
		return !x.filtered
	}
	return x.referrers[owner.UID].Selected
}

// OwnerGone reports whether the scan would have found a revision's controller, and did not.
func (x *Index) OwnerGone(r metav1.Object) bool {
	owner := metav1.GetControllerOfNoCopy(r)
	if owner == nil || x.referrers[owner.UID] != nil {
		return false
	}
	return x.scanned[resourceOf(owner)]
}

// WhyNotReady says why an object, or one that reads its revisions, is to be left alone for now.
func (x *Index) WhyNotReady(r *reference.Referrer, as reference.Owner) string {
	if r != nil && r.NotReady != "" {
		return r.WhyNotReady()
	}
	if by := x.readers[as]; by != nil {
		return by.WhyNotReady()
	}
	return ""
}

func resourceOf(owner *metav1.OwnerReference) schema.GroupResource {
	resource, _ := meta.UnsafeGuessKindToResource(schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind))
	return resource.GroupResource()
}

// add adds an object and its references. An object that nothing asks for again is left out:
// most revisions refer to nothing.
func (x *Index) add(r *reference.Referrer, references []reference.Reference) {
	if resource := r.Resource.GroupResource(); resource != cluster.Revisions.GroupResource() {
		x.owners[ownerKey{resource, r.Name}] = r
		if r.UID != "" {
			x.referrers[r.UID] = r
		}
	}
	x.linkControlled(r)
	for _, o := range r.Reads {
		x.readers[o] = r
	}
	for _, ref := range references {
		ref.Referrer = r
		x.references[ref.Revision] = append(x.references[ref.Revision], ref)
		if implied, is := ref.Implied(); is {
			x.references[implied.Revision] = append(x.references[implied.Revision], implied)
		}
	}
}

// linkControlled tells a controller about an object that is not to be disturbed, whichever of
// the two the scan finds first.
func (x *Index) linkControlled(r *reference.Referrer) {
	r.Controlled = x.controlledInUse[r.UID]
	if r.Controller == "" || !r.Running && r.NotReady == "" || x.controlledInUse[r.Controller] != nil {
		return
	}
	x.controlledInUse[r.Controller] = r
	if by := x.referrers[r.Controller]; by != nil {
		by.Controlled = r
	}
}

// Referrer finds an object by its UID; nil if the scan did not find it.
func (x *Index) Referrer(uid types.UID) *reference.Referrer { return x.referrers[uid] }

// Names are the names of the revisions that references name, in no order.
func (x *Index) Names() iter.Seq[string] { return maps.Keys(x.references) }
