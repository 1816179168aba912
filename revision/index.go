package revision

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/godwit-dev/godwit/revision/internal/cluster"
)

// referenceIndex says which objects of one namespace refer to which revision, as one scan
// found it. It is complete: a list that the API server refuses makes no index.
type referenceIndex struct {
	Namespace string
	// references by the name of the revision, those that do not count among them.
	references      map[string][]Reference
	referrers       map[types.UID]*Referrer
	owners          map[ownerKey]*Referrer  // what counterparts may be for
	controlledInUse map[types.UID]*Referrer // an object that runs or is not ready, by its controller
	readers         map[Owner]*Referrer     // by the object whose revisions they may be about to read
	filtered        bool                    // a selector left objects out
	scanned         map[schema.GroupResource]bool
}

// ownerKey names an object of the namespace.
type ownerKey struct {
	resource schema.GroupResource
	name     string
}

func newReferenceIndex(namespace string) *referenceIndex {
	return &referenceIndex{
		Namespace: namespace, references: map[string][]Reference{}, referrers: map[types.UID]*Referrer{},
		owners: map[ownerKey]*Referrer{}, controlledInUse: map[types.UID]*Referrer{}, readers: map[Owner]*Referrer{},
	}
}

// Of are the references to a revision that count. A fixed reference counts while the
// controller of the revision that has it runs, and an implied one while the object exists that
// a restore would look the revision up for.
func (x *referenceIndex) Of(revision string) []Reference {
	var all []Reference
	for _, r := range x.references[revision] {
		if r.Fixed && !x.startedBy(r.Referrer) || r.ImpliedBy != "" && x.restoreTarget(r) == nil {
			continue
		}
		all = append(all, r)
	}
	return all
}

// startedBy reports whether the controller of a revision with fixed references runs. A
// controller that the scan would have found, and did not, is gone.
func (x *referenceIndex) startedBy(r *Referrer) bool {
	by := x.referrers[r.Controller]
	if by == nil {
		return !x.scanned[r.controllerResource]
	}
	return by.Running
}

// restoreTarget is the object that the counterpart of a reference is looked up for; nil where
// there is none to restore onto.
func (x *referenceIndex) restoreTarget(r Reference) *Referrer {
	if r.Counterpart == nil {
		return nil
	}
	owner := x.owners[ownerKey{r.Counterpart.Resource, r.Counterpart.Owner}]
	if owner == nil || owner.Terminating {
		return nil
	}
	return owner
}

// selected reports whether a revision is in scope: one of its referrers is or, where it has
// none, its controller. A snapshot is in scope with the object that it is of, and not the
// other way round.
func (x *referenceIndex) selected(r metav1.Object, references []Reference) bool {
	if len(references) > 0 {
		return slices.ContainsFunc(references, func(r Reference) bool {
			owner := x.restoreTarget(r)
			return r.Referrer.Selected && r.ImpliedBy == "" || owner != nil && owner.Selected
		})
	}
	owner := metav1.GetControllerOfNoCopy(r)
	if owner == nil || x.referrers[owner.UID] == nil {
		return !x.filtered
	}
	return x.referrers[owner.UID].Selected
}

// ownerGone reports whether the scan would have found a revision's controller, and did not.
func (x *referenceIndex) ownerGone(r metav1.Object) bool {
	owner := metav1.GetControllerOfNoCopy(r)
	if owner == nil || x.referrers[owner.UID] != nil {
		return false
	}
	return x.scanned[resourceOf(owner)]
}

// notReady says why an object, or one that reads its revisions, is to be left alone for now.
func (x *referenceIndex) notReady(r *Referrer, as Owner) string {
	if r != nil && r.NotReady != "" {
		return r.notReady()
	}
	if by := x.readers[as]; by != nil {
		return by.notReady()
	}
	return ""
}

func resourceOf(owner *metav1.OwnerReference) schema.GroupResource {
	resource, _ := meta.UnsafeGuessKindToResource(schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind))
	return resource.GroupResource()
}

// add adds an object and its references. An object that nothing asks for again is left out:
// most revisions refer to nothing.
func (x *referenceIndex) add(r *Referrer, references []Reference) {
	if resource := r.Resource.GroupResource(); resource != cluster.Revisions.GroupResource() {
		x.owners[ownerKey{resource, r.Name}] = r
		if r.UID != "" {
			x.referrers[r.UID] = r
		}
	}
	x.linkControlled(r)
	for _, o := range r.reads {
		x.readers[o] = r
	}
	for _, ref := range references {
		ref.Referrer = r
		x.references[ref.Revision] = append(x.references[ref.Revision], ref)
		if implied, is := ref.implied(); is {
			x.references[implied.Revision] = append(x.references[implied.Revision], implied)
		}
	}
}

// linkControlled tells a controller about an object that is not to be disturbed, whichever of
// the two the scan finds first.
func (x *referenceIndex) linkControlled(r *Referrer) {
	r.controlled = x.controlledInUse[r.UID]
	if r.Controller == "" || !r.Running && r.NotReady == "" || x.controlledInUse[r.Controller] != nil {
		return
	}
	x.controlledInUse[r.Controller] = r
	if by := x.referrers[r.Controller]; by != nil {
		by.controlled = r
	}
}

// implied is the reference to the counterpart.
func (r Reference) implied() (Reference, bool) {
	if r.Counterpart == nil {
		return Reference{}, false
	}
	r.ImpliedBy, r.Revision = r.Revision, r.Counterpart.Revision(r.Revision)
	return r, r.ImpliedBy != r.Revision
}

// explicit are the references without those that are implied.
func explicit(references []Reference) []Reference {
	return slices.DeleteFunc(slices.Clone(references), func(r Reference) bool { return r.ImpliedBy != "" })
}

// writable reports whether a reference can be written.
func (r Reference) writable() bool { return !r.Fixed && r.ImpliedBy == "" }
