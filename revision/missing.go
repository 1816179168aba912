package revision

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/godwit-dev/godwit/revision/internal/absence"
	"github.com/godwit-dev/godwit/revision/internal/lineage"
	"github.com/godwit-dev/godwit/revision/reference"
)

// confirmed corrects an item that says that a revision is missing, by live reads. False means
// that nothing is left to say.
func (i Item) confirmed(a absence.Absence) (Item, bool) {
	switch {
	case a.Found:
		i.Action, i.Reason, i.Message = Deferred, ReasonChanged, "it was made while the others were read: run again"
	case a.Named:
	case a.Unread != "":
		i.Action, i.Reason = Deferred, ReasonUnconfirmed
		i.Message = "it was not found, and it is not known whether an object still refers to it: " + a.Unread
	case a.Terminating != "":
		i.Action, i.Reason, i.Message = Deferred, ReasonTerminating, "it is gone, and "+a.Terminating+" is being deleted"
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

// confirmMissing reads each revision again that is missing, so that no user is told to restore
// what is going anyway.
func (s *snapshot) confirmMissing(ctx context.Context, r *absence.Reader) error {
	isMissing := func(i Item) bool { return i.Action == Blocked && i.Reason == ReasonSourceGone }
	var names []string
	for _, i := range s.items {
		if isMissing(i) {
			names = append(names, i.Name)
		}
	}
	absences, err := r.Read(ctx, s.Index, names)
	if err != nil {
		return err
	}
	kept := s.items[:0]
	for _, i := range s.items {
		stays := true
		if isMissing(i) {
			i, stays = i.confirmed(absences[0])
			absences = absences[1:]
		}
		if stays {
			kept = append(kept, i)
		}
	}
	s.items = kept
	return nil
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
	a, err := absence.Of(ctx, c.client, s.types, s.Index, u.GetName())
	if err != nil {
		return err
	}
	i, more := missing(u.GetNamespace(), u.GetName(), references, nil).confirmed(a)
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
