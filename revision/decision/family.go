package decision

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/godwit-dev/godwit/revision/reference"
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

// Family is one kind of stored objects: which objects refer to them, how their data is
// read and converted, how their revisions are named, and what the software that they belong to
// does with them. It does no I/O and decides nothing about upgrades.
type Family interface {
	Codec
	// Describe returns the facts that need no cluster.
	Describe() Description
	// Software is the release that the CRDs of the stored objects tell of.
	Software(crds map[schema.GroupResource]CRD) Software
}

// Codec reads, converts, names and compares stored objects.
type Codec interface {
	// Decode reads a revision. Where its data does not say its type, the type that a
	// reference expects does; that is empty where no object refers to the revision, and the
	// object may be without a kind then. It returns ErrNotInFamily where the revision is none of
	// the family's; any other error where it is, and can't be read.
	Decode(r *appsv1.ControllerRevision, expected reference.ExpectedType) (StoredObject, error)
	// Convert converts an object to a version, or returns a ConversionError. Fields that the
	// version does not know are kept and are among the losses, beside those of the given object,
	// which is not changed.
	Convert(s StoredObject, version string) (StoredObject, error)
	// Compose is the revision that stores an object in place of old: its name, labels
	// and data as the software that the family belongs to writes them, and nothing
	// else. Its name begins with the name of old's controller, as old's does.
	Compose(old *appsv1.ControllerRevision, s StoredObject) (*appsv1.ControllerRevision, error)
	// Equal reports whether two objects at one version mean the same to the software that the
	// family belongs to. Metadata mean nothing to it.
	Equal(a, b StoredObject) bool
	// Holds returns how it is known that a revision holds the object that another one held, of
	// which only the name is left; empty if nothing proves it.
	Holds(r *appsv1.ControllerRevision, gone string) (proof string)
}

// Description is what a family is.
type Description struct {
	// Name is what specs and flags call it.
	Name string
	// Versions that objects may be stored at, oldest first.
	Versions []string
	// Targets are the versions that objects at older ones can be converted to, oldest first.
	Targets []string
	// Resources of the stored kinds.
	Resources []schema.GroupResource
	// Referrers are all resources whose objects refer to revisions: Godwit does not
	// repoint the references of another resource.
	Referrers []reference.Type
	// Readers are the resources whose objects name no revision, and may be about to read
	// those of other objects.
	Readers []reference.Type
	// Owners are the kinds whose objects own revisions.
	Owners []OwnerType
}

// OwnerType is a kind whose objects own revisions. A revision blocks the deletion of its owner
// in the foreground.
type OwnerType struct {
	// GroupVersionKind has the best of the versions.
	schema.GroupVersionKind
	// Resource is the plural that the API serves the kind by.
	Resource string
	// Versions of the resource at which Read understands its objects, the best one first.
	Versions []string
}

// GroupResource is the resource of the type.
func (o OwnerType) GroupResource() schema.GroupResource {
	return schema.GroupResource{Group: o.Group, Resource: o.Resource}
}

// AllTypes are the types of objects that a scan reads.
func (d Description) AllTypes() []reference.Type { return slices.Concat(d.Referrers, d.Readers) }

// StoredObject is an object in a revision.
type StoredObject struct {
	// Form is how the data is laid out, in the family's words.
	Form string
	// Version of the API that the object is stored at, without its group.
	Version string
	// Resource is the object's resource, whose storage version upgrades aim at.
	Resource schema.GroupResource
	// Object is all of it, with apiVersion and kind, as decoded JSON. Revisions with the same data
	// may share it: copy it before you change it.
	Object map[string]any
	// Losses are the paths of what Version does not know.
	Losses []string
	// Current means that the software that the family belongs to takes the revision for one at its
	// newest version, as the labels say, and does not upgrade it itself.
	Current bool
	// Data is what Object was decoded from; empty where Object was converted, or is not all
	// that the data says.
	Data []byte
}
