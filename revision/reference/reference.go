// Package reference has the words for who refers to which ControllerRevision: the objects that
// refer, the references in them, and what a restore computes from a reference. A family of
// stored objects finds references; package revision repoints them.
package reference

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Type is a resource whose objects refer to revisions of their own namespace.
type Type struct {
	Resource schema.GroupResource
	// Versions of the resource that Read understands, the best one first.
	Versions []string
	// Subresources through which references are written, beside the object itself.
	Subresources []string
	// Read finds the references of an object. It leaves their Referrer empty.
	Read func(*unstructured.Unstructured) Usage
	// Mentions, if given, reports of the data of a ControllerRevision, as JSON, whether they may
	// hold a reference. A revision of whose data it is false is not read: most revisions of a
	// cluster refer to nothing.
	Mentions func(data []byte) bool
}

// Usage is what one object says about revisions.
type Usage struct {
	References []Reference
	// Running means that something runs with the revisions, and may read them again.
	Running bool
	// NotReady says why the object is to be left alone for now; empty if it is not.
	NotReady string
	// Reads are the objects of the same namespace whose revisions this one may be about to
	// read, as a restore reads those of its snapshot. They are kept while NotReady says why.
	Reads []Owner
}

// Owner is a revision's controller.
type Owner struct {
	Kind string `json:"kind"`
	Name string `json:"name"`
}

// Reference is one field that names a revision.
type Reference struct {
	Referrer *Referrer
	// Path is a JSON pointer to the name.
	Path string
	// Subresource that the field is written through: "status" or nothing.
	Subresource string
	// Revision is the name.
	Revision string
	Expected ExpectedType
	// Pin means that a user may have written the name, in a spec. Software that repoints its own
	// record of it leaves the pin as it is.
	Pin bool
	// Recorded is the name that the status of the same object records in place of this one; empty
	// if it records none.
	Recorded string
	// Fixed means that the field can't be written. The reference counts for as long as the
	// referrer exists or, where the referrer is a revision that a VirtualMachine or the like
	// was started with, for as long as its controller runs.
	Fixed bool
	// Counterpart is the revision that must exist beside the one that the field names; nil
	// where there is none.
	Counterpart *Counterpart
	// ImpliedBy is the name in the field, where Revision is the counterpart of that name. A
	// reference index adds such references; a family leaves it empty.
	ImpliedBy string
}

// ExpectedType is the type of the stored object that a reference expects.
type ExpectedType struct {
	// Kind of the stored object. Two references that expect different kinds of one revision
	// can't both be right.
	Kind string
	// Name of the stored object, which may be empty.
	Name string
}

// Counterpart is a revision whose name a restore computes from the name that a reference
// has: the first occurrence of Part, which is the name of the snapshot, is replaced by Owner,
// which is the name of the object that the snapshot is of. A restore onto an object that
// exists looks the name up, and fails for as long as no such revision exists.
type Counterpart struct {
	// Resource and Owner are the object's. No restore looks up a name for an object that
	// does not exist.
	Resource schema.GroupResource
	Owner    string
	Part     string
}

// Revision is the name of the counterpart of a revision.
func (c Counterpart) Revision(name string) string { return strings.Replace(name, c.Part, c.Owner, 1) }

// Implied is the reference to the counterpart; false where there is none.
func (r Reference) Implied() (Reference, bool) {
	if r.Counterpart == nil {
		return Reference{}, false
	}
	r.ImpliedBy, r.Revision = r.Revision, r.Counterpart.Revision(r.Revision)
	return r, r.ImpliedBy != r.Revision
}

// Writable reports whether a reference can be written.
func (r Reference) Writable() bool { return !r.Fixed && r.ImpliedBy == "" }

// Explicit are the references without those that are implied.
func Explicit(references []Reference) []Reference {
	return slices.DeleteFunc(slices.Clone(references), func(r Reference) bool { return r.ImpliedBy != "" })
}

// Referrer is an object that refers to revisions.
type Referrer struct {
	Resource        schema.GroupVersionResource
	Kind            string
	Namespace, Name string
	UID             types.UID
	ResourceVersion string
	// Controller is the UID of the object's controller, if it has one.
	Controller types.UID
	// ControllerResource is the resource of the controller, as its kind tells it.
	ControllerResource schema.GroupResource
	Running            bool
	NotReady           string
	// Selected means that the object is in the scope of the scan.
	Selected bool
	// Terminating means that the object is being deleted.
	Terminating bool
	// Controlled is an object that this one controls and that is running or not ready: what is
	// written here is written there, too. Nil where there is none.
	Controlled *Referrer
	// Reads is as in Usage.
	Reads []Owner
}

// ControllerRef makes the object a revision's controller.
func (r *Referrer) ControllerRef() *metav1.OwnerReference {
	return metav1.NewControllerRef(&metav1.ObjectMeta{Name: r.Name, UID: r.UID}, r.Resource.GroupVersion().WithKind(r.Kind))
}

// WhyNotReady says why the object, which it names, is to be left alone for now; empty if it is
// not.
func (r *Referrer) WhyNotReady() string {
	if r.NotReady == "" {
		return ""
	}
	return r.Kind + " " + r.Name + ": " + r.NotReady
}

// GetNamespace and GetName make a referrer an object that a walk visits.
func (r *Referrer) GetNamespace() string { return r.Namespace }

// GetName is the object's name.
func (r *Referrer) GetName() string { return r.Name }
