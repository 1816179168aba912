package revision

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/godwit-dev/godwit/internal/apierror"
	"github.com/godwit-dev/godwit/revision/internal/cluster"
	"github.com/godwit-dev/godwit/revision/internal/lineage"
	"github.com/godwit-dev/godwit/revision/reference"
	"github.com/godwit-dev/godwit/walk"
)

// absence is what live reads say about a revision that references name and that a scan did
// not find. Lists are read one after the other: an object that is deleted meanwhile takes its
// revisions along, and in a namespace that is being deleted revisions may go first.
type absence struct {
	found       bool   // the revision exists now
	named       bool   // an object that stays refers to it
	terminating string // the object that referred to it and is being deleted
}

// decide corrects an item that says that a revision is missing; false means that nothing is
// left to say.
func (a absence) decide(i Item) (Item, bool) {
	switch {
	case a.found:
		i.Action, i.Reason, i.Message = Deferred, ReasonChanged, "it was made while the others were read: run again"
	case a.named:
	case a.terminating != "":
		i.Action, i.Reason, i.Message = Deferred, ReasonTerminating, "it is gone, and "+a.terminating+" is being deleted"
	default:
		return i, false
	}
	return i, true
}

// missing is a revision that is referred to and does not exist.
func missing(namespace, name string, references []reference.Reference, replacements []lineage.Replacement) Item {
	i := Item{Namespace: namespace, Name: name, References: referenceStatuses(references, "")}
	if len(replacements) == 1 {
		i.Action, i.Reason, i.Message = Upgrade, ReasonSourceGone, "it is gone, and "+replacements[0].Name+" has replaced it"
		return i
	}
	i.Action, i.Reason = Blocked, ReasonSourceGone
	i.Message = "it is gone, and nothing says what it held: restore it from a backup, or change the references to it"
	return i
}

// confirmMissing asks again about each revision that is missing, so that no user is told to
// restore what is going anyway. An item stays as it is where the permission for that is
// missing.
func (s *snapshot) confirmMissing(ctx context.Context, c *cluster.Client) error {
	kept := s.items[:0]
	for _, i := range s.items {
		if i.Action == Blocked && i.Reason == ReasonSourceGone {
			a, err := s.absence(ctx, c, i.Name)
			if err != nil {
				return err
			}
			said, more := a.decide(i)
			if !more {
				continue
			}
			i = said
		}
		kept = append(kept, i)
	}
	s.items = kept
	return nil
}

// absence asks about one name.
func (s *snapshot) absence(ctx context.Context, c *cluster.Client, name string) (a absence, err error) {
	err = walk.Retry(ctx, walk.DefaultAttempts, func(ctx context.Context) error {
		a = absence{}
		existing, err := c.Find(ctx, cluster.Revisions, s.Namespace, name)
		if err != nil || existing != nil {
			a.found = existing != nil
			return err
		}
		for _, ref := range reference.Explicit(s.Of(name)) {
			if err := s.askReferrer(ctx, c, ref, &a); err != nil {
				return err
			}
		}
		if !a.named {
			return nil
		}
		terminating, err := c.NamespaceTerminating(ctx, s.Namespace)
		if terminating {
			a.named, a.terminating = false, "namespace "+s.Namespace
		}
		return err
	})
	if apierror.IsForbidden(err) {
		return absence{named: true}, nil
	}
	return a, err
}

// askReferrer reads an object that referred to a missing revision. What a VirtualMachine was
// started with counts for as long as the VirtualMachine exists.
func (s *snapshot) askReferrer(ctx context.Context, c *cluster.Client, ref reference.Reference, a *absence) error {
	objects := []*reference.Referrer{ref.Referrer}
	if by := s.Referrer(ref.Referrer.Controller); ref.Fixed && by != nil {
		objects = append(objects, by)
	}
	for _, r := range objects {
		now, err := c.Find(ctx, r.Resource, r.Namespace, r.Name)
		if err != nil {
			return err
		}
		switch {
		case now == nil || now.GetUID() != r.UID || r == ref.Referrer && !s.stillNames(now, ref):
			return nil
		case now.GetDeletionTimestamp() != nil:
			a.terminating = fmt.Sprintf("%s %s", r.Kind, r.Name)
			return nil
		}
	}
	a.named = true
	return nil
}

// stillNames reports whether an object still has a reference.
func (s *snapshot) stillNames(u *unstructured.Unstructured, ref reference.Reference) bool {
	for _, one := range s.types {
		if one.Served != ref.Referrer.Resource {
			continue
		}
		_, references := one.Find(u)
		return slices.ContainsFunc(references, func(now reference.Reference) bool { return now.Path == ref.Path && now.Revision == ref.Revision })
	}
	return false
}

// conflict reports whether an error says that an object is not as it was read.
func conflict(err error) bool { return apierrors.IsConflict(err) || apierrors.IsNotFound(err) }

// terminatingNamespace tells the error of a create in a namespace that is being deleted from
// other errors.
func terminatingNamespace(err error) bool {
	return apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
}

// withoutSource handles an upgrade whose source is gone: another client deleted it, or this is
// another pass over an upgrade that has ended.
func (c *create) withoutSource(ctx context.Context, s *snapshot, u *upgrade) error {
	replacements, all := s.lineage.Replacements(u.GetName()), s.Of(u.GetName())
	references := reference.Explicit(all)
	switch {
	case len(references) == 0 && len(all) > 0 && len(replacements) == 0:
		return c.counterparts.makeLookedUp(ctx, s, u, all)
	case len(replacements) == 1:
		replacement, err := c.client.Revision(ctx, u.GetNamespace(), replacements[0].Name)
		if err != nil {
			return err
		}
		switch {
		case replacement != nil && len(references) > 0 && s.OwnerGone(replacement):
			u.setStatus(Failed, ReasonOwnerGone, "it is gone, and "+replacement.Name+", which has replaced it, has a controller that is gone, too")
			return nil
		case replacement != nil:
			u.setReplacement(replacement)
			return c.created(ctx, s, u)
		}
	case len(references) == 0 && u.request.UID == "": // no pass has ever seen it
		u.setStatus(Failed, ReasonSourceGone, fmt.Sprintf("there is no controllerrevision %s/%s, and no object refers to one: see kubectl get controllerrevisions -n %s",
			u.GetNamespace(), u.GetName(), u.GetNamespace()))
		return nil
	case len(references) == 0:
		u.setStatus(Skipped, ReasonSourceGone, "it is gone, and no object refers to it")
		return nil
	}
	return c.absent(ctx, s, u, references)
}

// absent asks again which objects refer to a revision that is gone: its owner may be gone as
// well.
func (c *create) absent(ctx context.Context, s *snapshot, u *upgrade, references []reference.Reference) error {
	a, err := s.absence(ctx, c.client, u.GetName())
	if err != nil {
		return err
	}
	i, more := a.decide(missing(u.GetNamespace(), u.GetName(), references, nil))
	switch {
	case !more:
		u.setStatus(Skipped, ReasonSourceGone, "it is gone, and no object refers to it")
	case i.Reason == ReasonTerminating:
		u.setStatus(Skipped, i.Reason, i.Message)
	case i.Action == Deferred:
		u.setStatus(Pending, i.Reason, i.Message)
	default:
		u.setStatus(Failed, i.Reason, i.Message)
	}
	return nil
}
