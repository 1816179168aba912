package revision

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/utils/clock"

	"github.com/godwit-dev/godwit/internal/apierror"
	"github.com/godwit-dev/godwit/revision/decision"
	"github.com/godwit-dev/godwit/revision/internal/cluster"
	"github.com/godwit-dev/godwit/revision/internal/lineage"
	"github.com/godwit-dev/godwit/revision/internal/refindex"
	"github.com/godwit-dev/godwit/revision/internal/usage"
	"github.com/godwit-dev/godwit/revision/reference"
)

// release is the stage that scans the namespace again, notes since when no object refers to an
// old revision, and deletes the revisions whose retention is over. Between a reference that is
// found gone and the deletion there are always two scans and the retention.
type release struct {
	worker  worker
	client  *cluster.Client
	family  decision.Family
	clock   clock.PassiveClock // for the time since which a revision is kept
	local   clock.PassiveClock // for the age of a scan
	repoint *repoint           // for references that come while revisions are deleted

	deletedSoFar []*upgrade // in all batches of the pass
}

// scan reads the references of the namespace again: of all resources that the cluster serves
// by now, since what is not read may hold one.
func (l *release) scan(ctx context.Context, s *snapshot) (*snapshot, error) {
	types, err := refindex.Served(ctx, l.client, l.family.Describe().AllTypes())
	if err != nil {
		return nil, err
	}
	index := refindex.New(s.Namespace)
	for found, err := range refindex.Scan(ctx, l.client, refindex.Scope{Types: types, Namespace: s.Namespace}, nil) {
		if err != nil {
			return nil, err
		}
		index = found
	}
	return s.with(index, types, l.local.Now()), nil
}

// hold keeps a revision that objects refer to, and removes the time since which none did.
func (l *release) hold(ctx context.Context, u *upgrade, references []reference.Reference) error {
	if u.repointing.old == nil {
		u.setDangling(references)
		return nil
	}
	message := usage.Describe(references)
	if references[0].Fixed {
		message += ": it can't be written, and counts until the VirtualMachine stops"
	}
	switch {
	case permanent(u.repointErr):
		u.setStatus(Failed, decision.ReasonRefused, u.repointErr.Error())
	case u.repointErr != nil && !apierror.IsConflictOrNotFound(u.repointErr):
		u.setStatus(InUse, decision.ReasonUnanswered, message+"; the reference could not be written: "+u.repointErr.Error())
	case u.repointErr != nil:
		u.setStatus(InUse, decision.ReasonChanged, message+"; other clients keep changing it: "+u.repointErr.Error())
	default:
		u.setStatus(InUse, decision.ReasonReferenced, message)
	}
	return l.clearUnreferenced(ctx, u)
}

// holdForRestore keeps a revision that no object refers to, and that a restore needs.
func (l *release) holdForRestore(ctx context.Context, s *snapshot, u *upgrade, ref reference.Reference) error {
	owner := s.RestoreTarget(ref)
	u.setStatus(u.repointing.inUseForRestore.phase, u.repointing.inUseForRestore.reason, fmt.Sprintf("%s %s names %s at %s, so that a restore of it onto %s %s needs %s",
		ref.Referrer.Kind, ref.Referrer.Name, ref.ImpliedBy, ref.Path, owner.Kind, owner.Name, ref.Revision))
	return l.clearUnreferenced(ctx, u)
}

// clearUnreferenced removes from the old revision the time since which no object has referred
// to it. Where another client wrote the revision, the next pass does it.
func (l *release) clearUnreferenced(ctx context.Context, u *upgrade) error {
	if lineage.UnreferencedSince(u.repointing.old).IsZero() {
		return nil
	}
	remove := []string{decision.UnreferencedAnnotation}
	if u.repointing.annotated {
		remove = append(remove, decision.ToAnnotation)
	}
	old, err := l.client.Annotate(ctx, u.repointing.old, nil, remove...)
	switch {
	case apierror.IsConflictOrNotFound(err):
		return nil
	case err == nil:
		u.repointing.old = old
	}
	return err
}

// retain notes that no object refers to a revision and, if the retention is over, has it
// deleted.
func (l *release) retain(ctx context.Context, u *upgrade) error {
	u.result.Phase = Repointed
	if u.repointing.shared {
		other, err := l.otherSource(ctx, u)
		if err != nil {
			return err
		}
		if other != "" {
			u.keepOld(decision.ReasonKept, u.repointing.from+" is kept: "+other+" was upgraded to it as well")
			return nil
		}
	}
	if lineage.UnreferencedSince(u.repointing.old).IsZero() {
		if err := l.noteUnreferenced(ctx, u); err != nil {
			return u.setChanged(err)
		}
		if u.deleted {
			return nil
		}
	}
	now := l.clock.Now()
	u.result.Until = lineage.UnreferencedSince(u.repointing.old).Add(u.policy.EffectiveRetention())
	switch {
	case u.policy.Retain:
		u.result.Until = time.Time{}
		u.keepOld(decision.ReasonKept, "no object refers to "+u.oldName()+", and it is kept for good")
	case now.Before(u.result.Until):
		u.keepOld(decision.ReasonRetained, "no object refers to "+u.oldName()+"; it is kept for "+u.policy.EffectiveRetention().String())
	default:
		u.keepOld(nil, "")
		u.next = stepDelete
	}
	return nil
}

// oldName names the old revision in a message about the upgrade.
func (u *upgrade) oldName() string {
	if u.repointing.from == u.request.Name {
		return "it"
	}
	return u.repointing.from
}

// otherSource names a source for which late references still need the old revision of a
// rollback: one that is gone, or that was not rolled back.
func (l *release) otherSource(ctx context.Context, u *upgrade) (string, error) {
	for uid, name := range lineage.SourcesOf(u.repointing.old) {
		if uid == u.repointing.target.UID {
			continue
		}
		other, err := l.client.Revision(ctx, u.GetNamespace(), name)
		switch {
		case err != nil:
			return "", err
		case other == nil, other.UID == uid && lineage.RolledBackAt(other).IsZero():
			return name, nil
		}
	}
	return "", nil
}

// noteUnreferenced writes since when no object refers to a revision. Several rollbacks may
// share it: one of them writes. One that is gone, as KubeVirt's own upgrade and the garbage collector delete it, has no time.
func (l *release) noteUnreferenced(ctx context.Context, u *upgrade) error {
	annotations := map[string]string{decision.UnreferencedAnnotation: l.clock.Now().UTC().Format(time.RFC3339)}
	if u.repointing.annotated {
		annotations[decision.ToAnnotation] = u.repointing.to
	}
	old, err := l.client.Annotate(ctx, u.repointing.old, annotations)
	if apierror.IsConflictOrNotFound(err) { // an API server before 1.34 answers 409 also where the revision is gone
		live, readErr := l.client.Revision(ctx, u.GetNamespace(), u.repointing.from)
		switch {
		case readErr != nil:
			return readErr
		case live == nil:
			u.setDeleted()
			return nil
		case u.repointing.shared && !lineage.UnreferencedSince(live).IsZero():
			old, err = live, nil
		}
	}
	if err == nil {
		u.repointing.old = old
	}
	return err
}

// setDangling reports that references name a revision that is gone, and could not be repointed.
func (u *upgrade) setDangling(references []reference.Reference) {
	why := ""
	_, notReady := usage.InUse(references, "this revision")
	switch {
	case !slices.ContainsFunc(references, reference.Reference.Writable):
		u.setStatus(InUse, decision.ReasonReferenced, fmt.Sprintf(
			"it is gone, and %s, which can't be written: a snapshot that is taken while the VirtualMachine runs does not complete, and KubeVirt does not stop the VirtualMachine before you delete the snapshot", usage.Describe(references)))
		return
	case u.repointErr != nil:
		why = ": " + u.repointErr.Error()
	case notReady != "":
		why = ", since " + notReady
	}
	u.setStatus(Failed, decision.ReasonDangling, fmt.Sprintf("it is gone, and %s; the reference could not be repointed to %s%s", usage.Describe(references), u.repointing.to, why))
}
