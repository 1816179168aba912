package revision

import (
	"context"
	"slices"

	"github.com/godwit-dev/godwit/revision/reference"
)

// Apply ends the upgrades of a batch.
func (l *release) Apply(ctx context.Context, s *snapshot, upgrades []*upgrade) error {
	open := at(upgrades, stepRelease)
	if len(open) == 0 && len(l.deletedSoFar) == 0 {
		return nil
	}
	s, err := l.scan(ctx, s)
	if err != nil {
		return err
	}
	err = l.worker.each(ctx, open, func(ctx context.Context, u *upgrade) error {
		u.next = stepDone
		references := s.Of(u.move.from)
		u.result.References = referenceStatuses(slices.Concat(references, s.Of(u.move.to)), u.result.Replacement)
		switch {
		case len(reference.Explicit(references)) > 0:
			return l.hold(ctx, u, reference.Explicit(references))
		case u.move.old == nil:
			u.setDeleted()
			return nil
		case len(references) > 0:
			return l.holdForRestore(ctx, s, u, references[0])
		}
		return l.retain(ctx, u)
	})
	if err != nil {
		return err
	}
	return l.delete(ctx, s, at(upgrades, stepDelete))
}
