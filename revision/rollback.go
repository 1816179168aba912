package revision

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// A rollback writes the source first: a removal that is under way then fails, since it
// names the resourceVersion, and whoever comes next knows what was asked for. Then it
// repoints references to the source, and keeps the new revision for the retention, as an
// upgrade keeps the old one. Both say where they come from, so that a reference to the new
// revision that turns up late is repointed, too.

// rolledBack is when a rollback to a source was asked for; zero if none was.
func rolledBack(r *appsv1.ControllerRevision) time.Time {
	t, err := time.Parse(time.RFC3339, r.Annotations[RolledBackAnnotation])
	if err != nil {
		return time.Time{}
	}
	return t
}

// beginRollback marks the source, and finds the revision that references lead away from.
func (r *pass) beginRollback(ctx context.Context, t *upgrade) error {
	if t.source == nil && len(r.replacements[t.GetName()]) == 0 {
		t.setStatus(Failed, ReasonSourceGone, "there is no such revision, and none that has taken its place")
		return nil
	}
	if t.source == nil {
		t.irreversible()
		return nil
	}
	name := r.replacementOf(t.source)
	if name == "" {
		t.setStatus(Skipped, "", "it was not upgraded")
		return nil
	}
	successor, err := r.client.revision(ctx, t.GetNamespace(), name)
	if err != nil {
		return err
	}
	if successor == nil && rolledBack(t.source).IsZero() {
		t.setStatus(Failed, ReasonReplacementGone, name+" took its place, and is gone: have its holders refer to "+t.GetName()+" by hand")
		return nil
	}
	if err := r.markRolledBack(ctx, t, name); err != nil {
		if apierrors.IsNotFound(err) {
			t.irreversible()
			return nil
		}
		return r.changed(t, err)
	}
	if successor == nil {
		t.setStatus(RolledBack, "", "")
		return nil
	}
	t.setReplacement(successor)
	references := r.Of(name)
	if len(references) > 0 {
		if err := r.clearReplacementUnreferenced(ctx, t); err != nil {
			return err
		}
	}
	switch running, unready := inUse(references, "its successor"); {
	case unready != "":
		t.setStatus(Pending, ReasonReferrerNotReady, unready)
	case running != "" && t.policy.OnRunning != Hold:
		t.setStatus(Pending, ReasonRunning, running+": stop it first, or roll back with Hold")
	default:
		t.setStatus(Created, "", "")
	}
	return nil
}

// irreversible says that there is no revision to roll back to.
func (t *upgrade) irreversible() {
	t.setStatus(Failed, ReasonIrreversible, fmt.Sprintf(
		"the revision is gone, for its retention is over (%s, unless a run was told another): there is nothing to go back to", t.policy.retention()))
}

// markRolledBack writes the source before anything else: it is not to be removed, and no
// trigger is to upgrade it again.
func (r *pass) markRolledBack(ctx context.Context, t *upgrade, successor string) error {
	at := rolledBack(t.source)
	if !at.IsZero() && unreferencedSince(t.source).IsZero() && notedReplacement(t.source) == successor {
		return nil
	}
	if at.IsZero() {
		at = r.clock.Now()
	}
	marked := at.UTC().Format(time.RFC3339)
	source, err := r.client.metadata(ctx, t.source, nil, map[string]*string{RolledBackAnnotation: &marked, ToAnnotation: &successor, UnreferencedAnnotation: nil})
	if err == nil {
		t.source = source
	}
	return err
}

// heed says whether an upgrade may go on with a source that was rolled back. Only one that
// was asked for again may, and then the mark goes before anything else is written.
func (r *pass) heed(ctx context.Context, t *upgrade) (bool, error) {
	at := rolledBack(t.source)
	switch {
	case at.IsZero():
		return true, nil
	case !t.request.AfterRollback:
		t.setStatus(RolledBack, ReasonRolledBack, "it was rolled back at "+at.UTC().Format(time.RFC3339))
		return false, nil
	}
	source, err := r.client.metadata(ctx, t.source, nil, map[string]*string{RolledBackAnnotation: nil})
	if err != nil {
		return false, r.changed(t, err)
	}
	t.source = source
	return true, nil
}

// neededBy names a source that late references to the new revision's other sources need
// it for: one that is gone, or that was not rolled back.
func (r *pass) neededBy(ctx context.Context, t *upgrade) (string, error) {
	for uid, name := range sourcesOf(t.replacement) {
		if uid == t.source.UID {
			continue
		}
		other, err := r.client.revision(ctx, t.GetNamespace(), name)
		switch {
		case err != nil:
			return "", err
		case other == nil, other.UID == uid && rolledBack(other).IsZero():
			return name, nil
		}
	}
	return "", nil
}

// noteUnreferenced writes down since when a revision is not referred to. Two rollbacks may
// share a new revision: one of them writes it.
func (r *pass) noteUnreferenced(ctx context.Context, t *upgrade) error {
	noted := r.clock.Now().UTC().Format(time.RFC3339)
	annotations := map[string]*string{UnreferencedAnnotation: &noted}
	if !t.request.Rollback {
		annotations[ToAnnotation] = &t.replacement.Name
	}
	old, err := r.client.metadata(ctx, t.old(), nil, annotations)
	if t.request.Rollback && apierrors.IsConflict(err) {
		live, lookErr := r.client.revision(ctx, t.GetNamespace(), t.from())
		if lookErr == nil && live != nil && !unreferencedSince(live).IsZero() {
			old, err = live, nil
		}
	}
	if err == nil {
		t.setOld(old)
	}
	return err
}
