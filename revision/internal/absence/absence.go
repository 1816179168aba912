package absence

import (
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/godwit-dev/godwit/internal/apierror"
	"github.com/godwit-dev/godwit/revision/internal/cluster"
	"github.com/godwit-dev/godwit/revision/internal/refindex"
	"github.com/godwit-dev/godwit/revision/reference"
	"github.com/godwit-dev/godwit/walk"
)

// maxReferrers bounds the live reads for one revision. The first referrer that stays ends them,
// so that only a revision whose referrers are deleted all at once meets the bound.
const maxReferrers = 16

// Absence is what live reads say about one revision. The zero value says that no object refers
// to it any more.
type Absence struct {
	Found       bool   // the revision exists now
	Named       bool   // an object that stays refers to it
	Copy        string // the revision that holds the same, as such an object records it; empty if none is known
	Proof       string // how that is known; empty if nothing proves it
	Terminating string // the object that referred to it and is being deleted
	Unread      string // why it is not known whether an object refers to it
}

// Holds returns how it is known that a revision holds the object that another one held, of which
// only the name is left; empty if nothing proves it.
type Holds func(r *appsv1.ControllerRevision, gone string) (proof string)

// Access is what live reads need.
type Access struct {
	Client *cluster.Client
	Holds  Holds
	Types  []refindex.Source // that refer to revisions
}

// Of reads one revision of a namespace again. It retries nothing.
func Of(ctx context.Context, a Access, x *refindex.Index, name string) (Absence, error) {
	terminating, err := terminating(ctx, a.Client, x.Namespace)
	if err != nil || terminating.Terminating != "" {
		return terminating, err
	}
	return lookup{Access: a, index: x}.read(ctx, name)
}

// terminating says of a namespace that is being deleted that everything in it is. Without the
// permission to read namespaces it says nothing.
func terminating(ctx context.Context, c *cluster.Client, namespace string) (Absence, error) {
	is, err := c.NamespaceTerminating(ctx, namespace)
	if is {
		return Absence{Terminating: "namespace " + namespace}, nil
	}
	if denied(err) {
		return Absence{}, nil
	}
	return Absence{}, err
}

// denied reports whether a permission is missing. A 403 of an API server that starts is an error
// to retry.
func denied(err error) bool {
	_, transient := walk.Transient(err)
	return !transient && apierror.IsForbidden(err)
}

// lookup reads revisions that a scan of one namespace did not find.
type lookup struct {
	Access
	index *refindex.Index
}

// read reads one revision and, if there is none, the objects that named it. An object that is
// found not to stay is no reason to stop. One that stays is, unless others may record a revision
// that is proven to hold the same.
func (l lookup) read(ctx context.Context, name string) (Absence, error) {
	a := Absence{}
	existing, err := l.Client.Find(ctx, cluster.Revisions, l.index.Namespace, name)
	if err != nil || existing != nil {
		a.Found = existing != nil
		return a, err
	}
	references := reference.Explicit(l.index.Of(name))
	slices.SortStableFunc(references, pinsFirst)
	for i, ref := range references {
		switch {
		case a.Named && (!ref.Pin || i == maxReferrers):
			return a, nil
		case i == maxReferrers:
			a.Unread = fmt.Sprintf("%d of %d references to it are gone or going, and the others were not read", maxReferrers, len(references))
			return a, nil
		}
		if err := l.readReferrer(ctx, ref, &a); err != nil || a.Proof != "" {
			return a, err
		}
	}
	return a, nil
}

// pinsFirst orders references: only an object with a pin records a revision in place of it.
func pinsFirst(a, b reference.Reference) int {
	switch {
	case a.Pin == b.Pin:
		return 0
	case a.Pin:
		return -1
	}
	return 1
}

// readReferrer reads an object that referred to a missing revision. What a VirtualMachine was
// started with counts for as long as the VirtualMachine exists.
func (l lookup) readReferrer(ctx context.Context, ref reference.Reference, a *Absence) error {
	objects := []*reference.Referrer{ref.Referrer}
	if by := l.index.Referrer(ref.Referrer.Controller); ref.Fixed && by != nil {
		objects = append(objects, by)
	}
	var recorded string
	for _, r := range objects {
		now, err := l.Client.Find(ctx, r.Resource, r.Namespace, r.Name)
		if err != nil {
			return err
		}
		if now == nil || now.GetUID() != r.UID {
			return nil
		}
		if r == ref.Referrer {
			same, stays := l.reread(now, ref)
			if !stays {
				return nil
			}
			recorded = same.Recorded
		}
		if now.GetDeletionTimestamp() != nil {
			a.Terminating = fmt.Sprintf("%s %s", r.Kind, r.Name)
			return nil
		}
	}
	a.Named = true
	return l.findCopy(ctx, ref, recorded, a)
}

// findCopy reads the revision that an object records in place of the one that is missing. It must
// be the object's own.
func (l lookup) findCopy(ctx context.Context, ref reference.Reference, recorded string, a *Absence) error {
	if recorded == "" || recorded == ref.Revision {
		return nil
	}
	r, err := l.Client.FindRevision(ctx, l.index.Namespace, recorded)
	if err != nil || r == nil || r.DeletionTimestamp != nil {
		return err
	}
	if owner := metav1.GetControllerOfNoCopy(r); owner == nil || owner.UID != ref.Referrer.UID {
		return nil
	}
	a.Copy, a.Proof = r.Name, l.Holds(r, ref.Revision)
	return nil
}

// reread returns a reference as an object has it now; false if the object has it no more.
func (l lookup) reread(u *unstructured.Unstructured, ref reference.Reference) (reference.Reference, bool) {
	for _, one := range l.Types {
		if one.Served != ref.Referrer.Resource {
			continue
		}
		_, references := one.Find(u)
		at := slices.IndexFunc(references, func(now reference.Reference) bool { return now.Path == ref.Path && now.Revision == ref.Revision })
		if at >= 0 {
			return references[at], true
		}
	}
	return reference.Reference{}, false
}
