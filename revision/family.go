package revision

import (
	"errors"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// ErrNotInFamily says that a revision holds something of another family, or of none: a
// StatefulSet's patch, the specification that a virtual machine was started with.
var ErrNotInFamily = errors.New("the revision is none of this family")

// UnexpectedOwnerError says that a revision holds something of the family and has a
// controller that is none of [Description.Owners].
type UnexpectedOwnerError struct{ Kind, Name string }

func (e *UnexpectedOwnerError) Error() string {
	return fmt.Sprintf("its controller is %s %s, which may remove it", e.Kind, e.Name)
}

// ErrNoOwner says that a revision has no controller, and a name that does not say whose it is.
var ErrNoOwner = errors.New("it has no controller, and its name does not say whose it is")

// MissingLabelsError says that neither the data of a revision nor its name tells of which
// object it is a copy, and which labels would.
type MissingLabelsError struct{ Labels []string }

func (e *MissingLabelsError) Error() string {
	return "neither its data nor its name says of which object it is a copy: it needs the labels " + strings.Join(e.Labels, ", ")
}

// ConversionError says that a family has no conversion from one version to another.
type ConversionError struct{ From, To string }

func (e *ConversionError) Error() string {
	return fmt.Sprintf("there is no conversion from %s to %s", e.From, e.To)
}

// Family is one kind of stashed objects: who refers to them, how their data is
// read and converted, and how their revisions are called. It does no I/O and
// decides nothing about upgrades.
type Family interface {
	// Describe says what is known without looking at a cluster.
	Describe() Description
	// Decode reads a revision. Where its data does not say what it is, claim does,
	// which is what a reference takes it for; it is empty for a revision that nobody
	// refers to, and the object may be without a kind then. ErrForeign where it is
	// none of the family's; any other error where it is, and can't be read.
	Decode(r *appsv1.ControllerRevision, claim ExpectedType) (StoredObject, error)
	// Convert carries a stash to a version, or is a ConversionError. What that version does not know is
	// carried through and is among the losses, beside those of the stash that is
	// given, which is not changed.
	Convert(s StoredObject, version string) (StoredObject, error)
	// Compose is the revision that holds a stash in place of old: its name, labels
	// and data as the software that the family belongs to writes them, and nothing
	// else. Its name begins with the name of old's controller, as old's does.
	Compose(old *appsv1.ControllerRevision, s StoredObject) (*appsv1.ControllerRevision, error)
}

// Description is what a family is.
type Description struct {
	// Name is what specs and flags call it.
	Name string
	// Versions that a stash may speak, oldest first.
	Versions []string
	// Targets are the versions that stashes at older ones can be converted to, oldest first.
	Targets []string
	// Resources of the kinds that are stashed.
	Resources []schema.GroupResource
	// Referrers are the resources whose objects refer to revisions, all of them: a
	// reference that is not looked for can be lost.
	Referrers []ReferrerType
	// Readers are the resources whose objects name no revision, and may be about to read
	// those of other objects.
	Readers []ReferrerType
	// Owners are the kinds whose objects own revisions.
	Owners []OwnerType
}

// OwnerType is a kind whose objects own revisions, and block their deletion while they
// exist.
type OwnerType struct {
	schema.GroupVersionKind
	// Resource is the plural that the API serves the kind by.
	Resource string
}

// ReferrerType is a resource whose objects refer to revisions of their own namespace.
type ReferrerType struct {
	Resource schema.GroupResource
	// Versions of the resource that Read understands, the best one first.
	Versions []string
	// Subresources through which references are written, beside the object itself.
	Subresources []string
	// Read finds the references that an object holds. Their Holder is left empty.
	Read func(*unstructured.Unstructured) Usage
}

// Usage is what one object holds.
type Usage struct {
	References []Reference
	// Running: something runs by what the references say, and may read it again.
	Running bool
	// NotReady says why the object is to be left alone for now; empty if it is not.
	NotReady string
	// Reads are the objects of the same namespace whose revisions this one may be about to
	// read, as a restore reads those of its snapshot: they are kept while Unready says why.
	Reads []Owner
}

// Reference is one place that names a revision.
type Reference struct {
	Referrer *Referrer
	// Path is a JSON pointer to the name.
	Path string
	// Subresource that the place is written through: "status" or nothing.
	Subresource string
	// Revision is the name.
	Revision string
	Expected ExpectedType
	// Fixed: the place can't be written. It counts for as long as the holder is
	// there or, where the holder is a revision that a virtual machine or the like
	// was started with, for as long as its controller runs.
	Fixed bool
	// Counterpart is the revision that has to exist beside the one that the place names;
	// nil where there is none.
	Counterpart *Counterpart
	// ImpliedBy is the name in the place, where Revision is the counterpart of that name.
	// A census adds such references; a family leaves it empty.
	ImpliedBy string
}

// Counterpart is a revision whose name a restore computes from the name that a reference
// has: the first occurrence of Part, which is the name of the copy, is replaced by Owner,
// which is the name of the object that was copied. A restore onto an object that exists
// looks the name up, and fails for as long as no such revision is there.
type Counterpart struct {
	// Resource and Owner are the object's. No restore looks up a name for an object that
	// does not exist.
	Resource schema.GroupResource
	Owner    string
	Part     string
}

// Revision is the name of the counterpart of a revision.
func (c Counterpart) Revision(name string) string { return strings.Replace(name, c.Part, c.Owner, 1) }

// Referrer is an object that refers to revisions.
type Referrer struct {
	Resource        schema.GroupVersionResource
	Kind            string
	Namespace, Name string
	UID             types.UID
	ResourceVersion string
	// Controller is the UID of the object's controller, if it has one.
	Controller types.UID
	Running    bool
	NotReady   string
	// Selected: it is among those that were asked for.
	Selected bool
	// Terminating means that it is being deleted.
	Terminating bool
	// controlled is an object that this one controls and that is running or not ready: what is
	// written here is written there, too. Nil where there is none.
	controlled *Referrer
	// controllerResource is what Controller is one of, as its kind tells it.
	controllerResource schema.GroupResource
	reads              []Owner
}

// controllerRef makes it a revision's controller.
func (h *Referrer) controllerRef() *metav1.OwnerReference {
	return metav1.NewControllerRef(&metav1.ObjectMeta{Name: h.Name, UID: h.UID}, h.Resource.GroupVersion().WithKind(h.Kind))
}

// GetNamespace and GetName make a holder what a walk can visit.
func (h *Referrer) GetNamespace() string { return h.Namespace }

// GetName is the holder's name.
func (h *Referrer) GetName() string { return h.Name }

// ExpectedType is what a reference takes a revision for.
type ExpectedType struct {
	// Kind of the stashed object. Two claims of different kinds on one revision can't
	// both be true.
	Kind string
	// Name of the stashed object, which may be empty.
	Name string
}

// StoredObject is an object in a revision.
type StoredObject struct {
	// Form is how the data is laid out, in the family's words.
	Form string
	// Version of the API that the object speaks, without its group.
	Version string
	// Resource is the object's resource, whose storage version upgrades aim at.
	Resource schema.GroupResource
	// Object is all of it, with apiVersion and kind, as decoded JSON.
	Object map[string]any
	// Losses are the paths of what Version does not know.
	Losses []string
}

// notReady says why an object is to be left alone for now; empty if it is not.
func (r *Referrer) notReady() string {
	if r.NotReady == "" {
		return ""
	}
	return r.Kind + " " + r.Name + ": " + r.NotReady
}
