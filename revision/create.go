package revision

import (
	"cmp"
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"

	"github.com/godwit-dev/godwit/revision/decision"
	"github.com/godwit-dev/godwit/revision/internal/absence"
	"github.com/godwit-dev/godwit/revision/internal/cluster"
	"github.com/godwit-dev/godwit/revision/internal/lineage"
	"github.com/godwit-dev/godwit/revision/reference"
)

// create is the stage that creates the replacement of each source, and what a restore needs
// beside it.
type create struct {
	worker       worker
	client       *cluster.Client
	family       decision.Family
	counterparts counterparts
	local        clock.PassiveClock // for the age of a list
}

// Apply leaves an upgrade at stepRepoint if the replacement exists.
func (c *create) Apply(ctx context.Context, s *snapshot, upgrades []*upgrade) error {
	return c.worker.prepare(ctx, dueFor(upgrades, stepCreate), func(ctx context.Context, u *upgrade) error { return c.prepare(ctx, s, u) })
}

// revisionsPerSource bounds what the list of a batch reads for each source. A revision in a list costs the API server far less
// than a request of its own.
const revisionsPerSource = 10

// listSources reads the sources of a batch by one list of the namespace, unless that has many other revisions. What it does not
// find, also because the list fails, each upgrade reads live.
func (c *create) listSources(ctx context.Context, s *snapshot, batch []*upgrade) {
	if len(batch) < 2 || s.revisions > revisionsPerSource*len(batch) {
		return
	}
	wanted := make(map[string]*upgrade, len(batch))
	for _, u := range batch {
		wanted[u.GetName()] = u
	}
	begun := c.local.Now()
	for r, err := range c.client.Revisions(ctx, s.Namespace) {
		if err != nil {
			return
		}
		if u := wanted[r.Name]; u != nil {
			u.listed, u.listBegun = new(*r), begun // a copy, which does not keep its page in memory
		}
	}
}

// prepare finds the source, and makes its replacement.
func (c *create) prepare(ctx context.Context, s *snapshot, u *upgrade) error {
	if again, err := c.findSource(ctx, u); err != nil || !again {
		return err
	}
	if u.source == nil {
		return c.withoutSource(ctx, s, u)
	}
	if allowed, err := c.afterRollback(ctx, s, u); err != nil || !allowed {
		return err
	}
	d := decision.For(decision.Facts{Family: c.family, Policy: u.policy, CRDs: s.crds, Software: s.software, Revision: u.source,
		References: s.Of(u.GetName()), OwnerGone: s.OwnerGone(u.source), Replacement: s.lineage.ReplacementOf(u.source)})
	u.result.Item, u.unreadable = d.Item, d.Unreadable
	switch d.Action {
	case decision.Upgrade:
		if d.Reason == decision.ReasonRetained {
			return c.findReplacement(ctx, s, u, d.Composed.Name)
		}
		u.result.Phase = waiting(d)
		return c.makeReplacement(ctx, s, u, d)
	case decision.Relabel:
		u.result.Phase = Pending
		return c.relabel(ctx, u, d)
	case decision.UpToDate:
		u.setStatus(Succeeded, d.Reason, d.Message)
	case decision.Unreferenced: // an upgrade has nothing to do; a plan says what holds the version
		u.setStatus(Skipped, nil, d.Message)
	case decision.Deferred:
		u.setStatus(waiting(d), d.Reason, d.Message)
	default:
		u.setStatus(Failed, d.Reason, d.Message)
	}
	return nil
}

// findSource takes the source as the list of the batch has it, or reads it live: where the list is older than MaxScanAge, and
// for each attempt after the first.
func (c *create) findSource(ctx context.Context, u *upgrade) (bool, error) {
	listed := u.listed
	u.listed = nil
	if listed != nil && c.local.Now().Before(u.listBegun.Add(MaxScanAge)) {
		return u.setSource(listed), nil
	}
	return readSource(ctx, c.client, u)
}

// readSource reads the source live. It returns what setSource does.
func readSource(ctx context.Context, c *cluster.Client, u *upgrade) (bool, error) {
	source, err := c.Revision(ctx, u.GetNamespace(), u.GetName())
	if err != nil {
		return false, err
	}
	return u.setSource(source), nil
}

// setSource sets the revision that is upgraded; nil if it is gone. It returns false if another revision has the name, or
// if a newer release wrote its annotations.
func (u *upgrade) setSource(source *appsv1.ControllerRevision) bool {
	u.source = source
	if source == nil {
		return true
	}
	if u.request.UID != "" && u.source.UID != u.request.UID {
		u.setStatus(Skipped, decision.ReasonReplaced, "another revision has this name now: it takes another upgrade")
		return false
	}
	u.result.UID, u.result.ResourceVersion, u.result.Hash = u.source.UID, u.source.ResourceVersion, decision.Hash(u.source)
	if err := lineage.CheckFormat(u.source); err != nil {
		u.setStatus(Failed, decision.ReasonNewerFormat, err.Error())
		return false
	}
	return true
}

// waiting is the phase of an upgrade that can't continue: its data can be converted, and a
// replacement from an earlier pass may exist.
func waiting(d decision.Decision) Phase {
	if d.Replacement != "" {
		return InUse
	}
	return Converted
}

// afterRollback reports whether an upgrade may continue with a source that was rolled back.
// Only a request with AfterRollback may; it removes the annotation before any other write.
func (c *create) afterRollback(ctx context.Context, s *snapshot, u *upgrade) (bool, error) {
	at := lineage.RolledBackAt(u.source)
	switch {
	case at.IsZero():
		return true, nil
	case !u.request.AfterRollback:
		if left := reference.Explicit(s.Of(s.lineage.ReplacementOf(u.source))); len(left) > 0 {
			u.result.RolledBack = at
			u.result.Item = u.result.RollbackPending(left)
			u.result.Phase = InUse
			return false, nil
		}
		u.setStatus(RolledBack, decision.ReasonRolledBack, rolledBackMessage(at))
		return false, nil
	}
	source, err := c.client.Annotate(ctx, u.source, nil, decision.RolledBackAnnotation)
	if err != nil {
		return false, u.setChanged(err)
	}
	u.source = source
	return true, nil
}

// findReplacement continues an upgrade of which only the end is left.
func (c *create) findReplacement(ctx context.Context, s *snapshot, u *upgrade, name string) error {
	replacement, err := c.client.Revision(ctx, u.GetNamespace(), name)
	switch {
	case err != nil:
		return err
	case replacement == nil && len(s.Of(name)) > 0:
		return c.recreateReplacement(ctx, s, u, name)
	case replacement == nil:
		u.setStatus(Skipped, decision.ReasonReplacementGone, name+" replaced it, and is gone, and no object refers to either: this revision is kept, and can be deleted unless the restore of a backup needs it")
		return nil
	}
	u.setReplacement(replacement)
	u.result.Phase = InUse
	if err := clearReplacement(ctx, c.client, u); err != nil {
		return err
	}
	return c.created(ctx, s, u)
}

// makeReplacement creates the replacement, or finds the one that exists.
func (c *create) makeReplacement(ctx context.Context, s *snapshot, u *upgrade, d decision.Decision) error {
	if !lineage.UnreferencedSince(u.source).IsZero() {
		source, err := c.client.Annotate(ctx, u.source, nil, decision.UnreferencedAnnotation, decision.ToAnnotation)
		if err != nil {
			return err
		}
		u.source = source
	}
	want := lineage.NewReplacement(d.Composed, u.source, d.NewController)
	names := []string{restorable(s, u, want.Name), restorable(s, u, lineage.SuffixedName(want))}
	if existing := s.lineage.ReplacementOf(u.source); existing != "" && existing == names[1] {
		names = names[1:] // created earlier, when another revision had the name
	}
	for _, name := range names {
		want.Name = name
		replacement, err := c.client.Create(ctx, want)
		if apierrors.IsAlreadyExists(err) {
			if changed, err := c.sourceChanged(ctx, u); err != nil || changed {
				return err
			}
			replacement, err = c.adopt(ctx, want)
		}
		if err != nil {
			return fmt.Errorf("create controllerrevision %s/%s: %w", want.Namespace, name, err)
		}
		if replacement != nil {
			u.setReplacement(replacement)
			u.result.Phase = InUse
			if err := c.recordLineage(ctx, u); err != nil {
				return err
			}
			return c.created(ctx, s, u)
		}
	}
	u.setStatus(Failed, decision.ReasonNameTaken, fmt.Sprintf("controllerrevision %s/%s exists and holds something else", want.Namespace, want.Name))
	return nil
}

// sourceChanged reports whether another client has written the source since it was read: it may have upgraded it, and
// rolled it back. The next attempt reads it live. Of a source that is gone by now, nothing but that read says what it held.
func (c *create) sourceChanged(ctx context.Context, u *upgrade) (bool, error) {
	live, err := c.client.Revision(ctx, u.GetNamespace(), u.GetName())
	if err != nil || live == nil || live.ResourceVersion == u.source.ResourceVersion {
		return false, err
	}
	u.setStatus(u.result.Phase, decision.ReasonChanged, changedMessage)
	return true, nil
}

// recreateReplacement creates a replacement again that is gone and referred to. Its source is kept for that.
func (c *create) recreateReplacement(ctx context.Context, s *snapshot, u *upgrade, name string) error {
	d := decision.For(decision.Facts{Family: c.family, Policy: u.policy, CRDs: s.crds, Software: s.software, Revision: u.source, References: s.Of(name)})
	if d.Composed == nil {
		u.setStatus(Failed, d.Reason, name+" replaced it, and is gone: "+d.Message)
		return nil
	}
	u.result.Phase = Converted
	want := lineage.NewReplacement(d.Composed, u.source, d.NewController)
	want.Name = name
	replacement, err := c.client.Create(ctx, want)
	if err != nil {
		return fmt.Errorf("create controllerrevision %s/%s: %w", want.Namespace, name, err)
	}
	u.setReplacement(replacement)
	return c.created(ctx, s, u)
}

// created hands an upgrade to the stage that repoints, once the revision that a restore needs exists.
func (c *create) created(ctx context.Context, s *snapshot, u *upgrade) error {
	u.repointing = u.forward()
	return c.counterparts.ensure(ctx, s, u)
}

// recordLineage notes on a replacement which has another source that this source is replaced by it as well: the name may
// come back when the source is gone. It notes the same on the source.
func (c *create) recordLineage(ctx context.Context, u *upgrade) error {
	if err := clearReplacement(ctx, c.client, u); err != nil {
		return err
	}
	if _, known := lineage.SourcesOf(u.replacement)[u.source.UID]; !known {
		replacement, err := c.client.Annotate(ctx, u.replacement, map[string]string{decision.AlsoFromPrefix + string(u.source.UID): u.source.Name})
		if err != nil {
			return err
		}
		u.replacement = replacement
	}
	if _, first := lineage.SourceOf(u.replacement); first == u.source.UID || lineage.NotedReplacement(u.source) == u.replacement.Name {
		return nil
	}
	source, err := c.client.Annotate(ctx, u.source, map[string]string{decision.ToAnnotation: u.replacement.Name})
	if err != nil {
		return err
	}
	u.source = source
	return nil
}

// clearReplacement removes from a replacement the time since which no object refers to it, which a rollback left.
func clearReplacement(ctx context.Context, c *cluster.Client, u *upgrade) error {
	if lineage.UnreferencedSince(u.replacement).IsZero() {
		return nil
	}
	written, err := c.Annotate(ctx, u.replacement, nil, decision.UnreferencedAnnotation)
	if err == nil {
		u.replacement = written
	}
	return err
}

// adopt takes an existing revision for the one to create if it is the same: created before an
// interruption, or by the family's own software. It returns nil if it is not.
func (c *create) adopt(ctx context.Context, want *appsv1.ControllerRevision) (*appsv1.ControllerRevision, error) {
	existing, err := c.client.Revision(ctx, want.Namespace, want.Name)
	switch {
	case err != nil:
		return nil, err
	case existing == nil:
		return nil, errDeletedMeanwhile // a suffix would give one source two replacements
	case !lineage.Replaces(existing, want), !holdSame(c.family, existing, want, reference.ExpectedType{}):
		return nil, nil
	}
	// A source of the same name and another UID is gone: a restore brought it back.
	from, uid := lineage.SourceOf(existing)
	if source, current := lineage.SourceOf(want); from != "" && (from != source || uid == current) {
		return existing, nil
	}
	return c.client.Annotate(ctx, existing, want.Annotations)
}

func (c *create) relabel(ctx context.Context, u *upgrade, d decision.Decision) error {
	if _, err := c.client.Label(ctx, u.source, d.Composed.Labels); err != nil {
		return u.setChanged(err)
	}
	u.setStatus(Succeeded, nil, "")
	return nil
}

// withoutSource handles an upgrade whose source is gone: another client deleted it, or this is
// another pass over an upgrade that has ended.
func (c *create) withoutSource(ctx context.Context, s *snapshot, u *upgrade) error {
	if u.replacement != nil { // which an earlier attempt of this pass has made
		return c.created(ctx, s, u)
	}
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
			u.setStatus(Failed, decision.ReasonOwnerGone, "it is gone, and "+replacement.Name+", which has replaced it, has a controller that is gone, too")
			return nil
		case replacement != nil:
			u.setReplacement(replacement)
			return c.created(ctx, s, u)
		}
	case len(references) == 0 && u.request.UID == "" && !u.request.Seen:
		u.setStatus(Failed, decision.ReasonSourceGone, fmt.Sprintf("controllerrevision %s/%s not found, and no object refers to one: see kubectl get controllerrevisions -n %s",
			u.GetNamespace(), u.GetName(), u.GetNamespace()))
		return nil
	case len(references) == 0:
		u.setStatus(Skipped, decision.ReasonSourceGone, "it is gone, and no object refers to it")
		return nil
	}
	return c.absent(ctx, s, u, references)
}

// absent reads again which objects refer to a revision that is gone: its owner may be gone as
// well, or other software upgraded the revision and left a pin.
func (c *create) absent(ctx context.Context, s *snapshot, u *upgrade, references []reference.Reference) error {
	a, err := absence.Of(ctx, absence.Access{Client: c.client, Holds: c.family.Holds, Types: s.types}, s.Index, u.GetName())
	if err != nil {
		return err
	}
	if a.Proof != "" {
		copied, err := c.client.Revision(ctx, u.GetNamespace(), a.Copy)
		if err != nil || copied == nil {
			return cmp.Or(err, errDeletedMeanwhile)
		}
		u.setReplacement(copied)
		return c.created(ctx, s, u)
	}
	i, more := a.Confirm(absence.Missing(u.GetNamespace(), u.GetName(), references, nil))
	switch {
	case !more:
		u.setStatus(Skipped, decision.ReasonSourceGone, "it is gone, and no object refers to it")
	case i.Reason == decision.ReasonTerminating:
		u.setStatus(Skipped, i.Reason, i.Message)
	case i.Action == decision.Deferred:
		u.setStatus(Pending, i.Reason, i.Message)
	default:
		u.setStatus(Failed, i.Reason, i.Message)
	}
	return nil
}
