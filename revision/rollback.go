package revision

import (
	"context"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"

	"github.com/godwit-dev/godwit/revision/decision"
	"github.com/godwit-dev/godwit/revision/internal/cluster"
	"github.com/godwit-dev/godwit/revision/internal/lineage"
	"github.com/godwit-dev/godwit/revision/internal/usage"
	"github.com/godwit-dev/godwit/revision/reference"
)

// rollback is the stage that takes the place of create where a request has Rollback. It writes
// the source first: a deletion that is under way then fails, since it names the
// resourceVersion, and the next client knows what was asked for. The stages after it repoint
// references to the source, and keep the replacement for the retention, as an upgrade keeps
// the source. Both revisions say where they come from, so that a late reference to the
// replacement is repointed as well.
type rollback struct {
	worker       worker
	client       *cluster.Client
	family       decision.Family
	clock        clock.PassiveClock
	counterparts counterparts
}

// Apply leaves a rollback at stepRepoint if its source is annotated.
func (b *rollback) Apply(ctx context.Context, s *snapshot, upgrades []*upgrade) error {
	return b.worker.prepare(ctx, dueFor(upgrades, stepRollback), func(ctx context.Context, u *upgrade) error { return b.prepare(ctx, s, u) })
}

// prepare annotates the source, and finds the revision that references are repointed from.
func (b *rollback) prepare(ctx context.Context, s *snapshot, u *upgrade) error {
	if again, err := readSource(ctx, b.client, u); err != nil || !again {
		return err
	}
	if u.source == nil && len(s.lineage.Replacements(u.GetName())) == 0 {
		u.setStatus(Failed, decision.ReasonSourceGone, "there is no such revision, and none that replaced it")
		return nil
	}
	if u.source == nil {
		u.setIrreversible()
		return nil
	}
	name := s.lineage.ReplacementOf(u.source)
	if name == "" {
		u.setStatus(Skipped, nil, "it was not upgraded")
		return nil
	}
	replacement, err := b.client.Revision(ctx, u.GetNamespace(), name)
	if err != nil {
		return err
	}
	if replacement == nil && lineage.RolledBackAt(u.source).IsZero() {
		u.setStatus(Failed, decision.ReasonReplacementGone, name+" replaced it, and is gone: change the references to it to "+u.GetName())
		return nil
	}
	if why := b.unreadable(s, u, s.Of(name)); why != "" {
		u.setStatus(Failed, decision.ReasonUnreadableAfterwards, why)
		return nil
	}
	if err := b.annotate(ctx, u, name); err != nil {
		if apierrors.IsNotFound(err) {
			u.setIrreversible()
			return nil
		}
		return u.setChanged(err)
	}
	if replacement == nil {
		u.setStatus(RolledBack, nil, "")
		return nil
	}
	u.setReplacement(replacement)
	return b.allow(ctx, s, u, s.Of(name))
}

// unreadable says that the installed software can't read the source; empty if it can. A source that was rolled back before, and
// one that can't be decoded, are not its concern.
func (b *rollback) unreadable(s *snapshot, u *upgrade, references []reference.Reference) string {
	expected, _ := usage.ExpectedType(references)
	stored, err := b.family.Decode(u.source, expected)
	if err != nil || s.software.CanRead(stored.Version) {
		return ""
	}
	return fmt.Sprintf("it is stored at %s, and %s reads only %s: objects that name it would neither start nor stop", stored.Version, s.software.Release, strings.Join(s.software.Reads, ", "))
}

// allow hands a rollback to the stage that repoints, unless a referrer is in use.
func (b *rollback) allow(ctx context.Context, s *snapshot, u *upgrade, references []reference.Reference) error {
	if len(references) > 0 {
		if err := clearReplacement(ctx, b.client, u); err != nil {
			return err
		}
	}
	switch running, notReady := usage.InUse(references, "its replacement"); {
	case notReady != "":
		u.setStatus(Pending, decision.ReasonReferrerNotReady, notReady)
		return nil
	case running != "" && u.policy.OnRunning != decision.Hold:
		u.setStatus(Pending, decision.ReasonRunning, running)
		return nil
	}
	u.repointing = u.backward()
	return b.counterparts.ensure(ctx, s, u)
}

// setIrreversible reports that there is no revision to roll back to.
func (u *upgrade) setIrreversible() {
	u.setStatus(Failed, decision.ReasonIrreversible, fmt.Sprintf(
		"the revision is gone, since its retention is over (%s, unless a run had another): there is nothing to roll back to", u.policy.EffectiveRetention()))
}

// annotate writes the source before any other object: it must not be deleted, and no trigger
// may upgrade it again.
func (b *rollback) annotate(ctx context.Context, u *upgrade, replacement string) error {
	at := lineage.RolledBackAt(u.source)
	if !at.IsZero() && lineage.UnreferencedSince(u.source).IsZero() && lineage.NotedReplacement(u.source) == replacement {
		return nil
	}
	if at.IsZero() {
		at = b.clock.Now()
	}
	set := map[string]string{decision.RolledBackAnnotation: at.UTC().Format(time.RFC3339), decision.ToAnnotation: replacement}
	source, err := b.client.Annotate(ctx, u.source, set, decision.UnreferencedAnnotation)
	if err == nil {
		u.source = source
	}
	return err
}
