package revision

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/godwit-dev/godwit/walk"
)

// absence is what the API server says, when it is asked again, about a revision that
// references name and that was not found. Lists are read one after the other: an object that
// is deleted meanwhile takes its revisions along, and in a namespace that is being deleted
// revisions may go first.
type absence struct {
	found       bool   // the revision is there now
	named       bool   // an object that is to stay names it
	terminating string // what is being deleted and named it
}

// decide what becomes of an item that says that a revision is missing; false means that
// nothing is left to say.
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

// confirm asks again about every revision that is missing, so that no user is told to
// restore what is going anyway. A permission that lacks for that leaves an item as it is.
func (u *Upgrader) confirm(ctx context.Context, n *namespace) error {
	kept := n.items[:0]
	for _, i := range n.items {
		if i.Action == Blocked && i.Reason == ReasonSourceGone {
			a, err := u.absence(ctx, n, i.Name)
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
	n.items = kept
	return nil
}

// absence asks about one name.
func (u *Upgrader) absence(ctx context.Context, n *namespace, name string) (a absence, err error) {
	err = walk.Retry(ctx, walk.DefaultAttempts, func(ctx context.Context) error {
		a = absence{}
		there, err := u.client.find(ctx, controllerRevisions, n.Namespace, name)
		if err != nil || there != nil {
			a.found = there != nil
			return err
		}
		for _, ref := range explicit(n.Of(name)) {
			if err := u.askAgain(ctx, n, ref, &a); err != nil {
				return err
			}
		}
		if !a.named {
			return nil
		}
		deleted, err := u.client.namespaceTerminating(ctx, n.Namespace)
		if deleted {
			a.named, a.terminating = false, "namespace "+n.Namespace
		}
		return err
	})
	if apierrors.IsForbidden(err) {
		return absence{named: true}, nil
	}
	return a, err
}

// askAgain reads an object that named a missing revision. What a machine was started
// with counts for as long as the machine is there.
func (u *Upgrader) askAgain(ctx context.Context, n *namespace, ref Reference, a *absence) error {
	objects := []*Referrer{ref.Referrer}
	if by := n.referrers[ref.Referrer.Controller]; ref.Fixed && by != nil {
		objects = append(objects, by)
	}
	for _, h := range objects {
		now, err := u.client.find(ctx, h.Resource, h.Namespace, h.Name)
		if err != nil {
			return err
		}
		switch {
		case now == nil || now.GetUID() != h.UID || h == ref.Referrer && !n.names(now, ref):
			return nil
		case now.GetDeletionTimestamp() != nil:
			a.terminating = fmt.Sprintf("%s %s", h.Kind, h.Name)
			return nil
		}
	}
	a.named = true
	return nil
}

// names tells whether an object still has a reference.
func (n *namespace) names(u *unstructured.Unstructured, ref Reference) bool {
	for _, s := range n.sources {
		if s.resource != ref.Referrer.Resource {
			continue
		}
		_, references := s.read(u)
		return slices.ContainsFunc(references, func(now Reference) bool { return now.Path == ref.Path && now.Revision == ref.Revision })
	}
	return false
}

// terminatingNamespace tells the answer to who creates something in a namespace that is
// being deleted from other refusals.
func terminatingNamespace(err error) bool {
	return apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
}

// beginAbsent asks again who names a revision that is gone: its owner may be gone as well.
func (r *pass) beginAbsent(ctx context.Context, t *upgrade, references []Reference) error {
	a, err := r.absence(ctx, r.namespace, t.GetName())
	if err != nil {
		return err
	}
	i, more := a.decide(missing(t.GetNamespace(), t.GetName(), references, nil))
	switch {
	case !more:
		t.setStatus(Skipped, ReasonSourceGone, "it is gone, and nobody refers to it")
	case i.Reason == ReasonTerminating:
		t.setStatus(Skipped, i.Reason, i.Message)
	case i.Action == Deferred:
		t.setStatus(Pending, i.Reason, i.Message)
	default:
		t.setStatus(Failed, i.Reason, i.Message)
	}
	return nil
}
