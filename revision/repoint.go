package revision

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"maps"

	"github.com/godwit-dev/godwit/internal/apierror"
	"github.com/godwit-dev/godwit/revision/internal/cluster"
	"github.com/godwit-dev/godwit/revision/internal/lineage"
	"github.com/godwit-dev/godwit/revision/internal/refindex"
	"github.com/godwit-dev/godwit/revision/reference"
	"github.com/godwit-dev/godwit/walk"
)

// repoint is the stage that changes each reference from the old revision to its target. It
// writes a referrer once, also if the referrer names several revisions.
type repoint struct {
	worker worker
	client *cluster.Client
}

// Apply leaves an upgrade at stepRelease, also where a reference could not be written: the
// scan that follows shows which references are left.
func (p *repoint) Apply(ctx context.Context, s *snapshot, upgrades []*upgrade) error {
	byOldName := map[string]*upgrade{}
	for _, u := range dueFor(upgrades, stepRepoint) {
		byOldName[u.repointing.from], u.next = u, stepRelease
	}
	referrers, byReferrer := s.byReferrer(maps.Keys(byOldName))
	w := referrerWriter{client: p.client, types: s.types, upgrades: byOldName}
	return visit(ctx, p.worker.limiter, referrers, func(ctx context.Context, r *reference.Referrer) error {
		if err := w.repoint(ctx, r, byReferrer[r]); err != nil {
			if apierror.IsEndOfRun(err) {
				return err
			}
			w.recordError(byReferrer[r], err)
			if _, transient := walk.Transient(err); transient {
				return err
			}
		}
		return nil
	})
}

// byReferrer are the references to revisions that can be written, by the objects that have them.
func (s *snapshot) byReferrer(revisions iter.Seq[string]) ([]*reference.Referrer, map[*reference.Referrer][]reference.Reference) {
	all := map[*reference.Referrer][]reference.Reference{}
	var referrers []*reference.Referrer
	for name := range revisions {
		for _, ref := range s.Of(name) {
			if !ref.Writable() {
				continue
			}
			if all[ref.Referrer] == nil {
				referrers = append(referrers, ref.Referrer)
			}
			all[ref.Referrer] = append(all[ref.Referrer], ref)
		}
	}
	return referrers, all
}

// subresources are what references are written through, in the order of the writes.
var subresources = []string{"", "status"}

// maxRepointAttempts bounds the writes of a referrer that other clients write, too. The next
// pass tries again.
const maxRepointAttempts = 3

// referrerWriter writes the references of one referrer.
type referrerWriter struct {
	client   *cluster.Client
	types    []refindex.Source
	upgrades map[string]*upgrade // by the name of the old revision
}

// recordError keeps why references were not written. An upgrade reports it if the reference
// is still there in the end.
func (w referrerWriter) recordError(references []reference.Reference, err error) {
	for _, ref := range references {
		w.upgrades[ref.Revision].recordError(err)
	}
}

// repoint writes the object before its status: what the user wrote before what a controller
// derives from it.
func (w referrerWriter) repoint(ctx context.Context, r *reference.Referrer, references []reference.Reference) error {
	for attempt := 0; ; attempt++ {
		err := w.write(ctx, r, references)
		if !apierror.IsConflictOrNotFound(err) || attempt == maxRepointAttempts {
			return err
		}
		if r, references, err = w.reread(ctx, r); err != nil || r == nil {
			return err
		}
	}
}

// reread reads a referrer that another client wrote.
func (w referrerWriter) reread(ctx context.Context, r *reference.Referrer) (*reference.Referrer, []reference.Reference, error) {
	now, all, err := refindex.Reread(ctx, w.client, w.types, r)
	if now != nil {
		now.Controlled = r.Controlled
	}
	var left []reference.Reference
	stays := map[*upgrade]bool{}
	for _, ref := range all {
		u := w.upgrades[ref.Revision]
		if u == nil || ref.Fixed {
			continue
		}
		if _, known := stays[u]; !known {
			if stays[u], err = w.stays(ctx, u); err != nil {
				return nil, nil, err
			}
		}
		if stays[u] {
			ref.Referrer = now
			left = append(left, ref)
		}
	}
	return now, left, err
}

// stays reports whether references to the name are still to be repointed: it means no other revision than the one that was
// read, and no other client has rolled the upgrade back. A restore makes a revision of the same name again, of the data of
// a snapshot, and then writes the referrer.
func (w referrerWriter) stays(ctx context.Context, u *upgrade) (bool, error) {
	live, err := w.client.Revision(ctx, u.GetNamespace(), u.repointing.from)
	if err != nil || live == nil {
		return err == nil, err
	}
	return live.UID == u.repointing.fromUID && (u.request.Rollback || lineage.RolledBackAt(live).IsZero()), nil
}

func (w referrerWriter) write(ctx context.Context, r *reference.Referrer, references []reference.Reference) error {
	version := r.ResourceVersion
	for _, subresource := range subresources {
		fields, path := map[string]string{}, ""
		for _, ref := range references {
			u := w.upgrades[ref.Revision]
			if ref.Subresource != subresource || !u.mayWrite(r) {
				continue
			}
			fields[ref.Path] = u.repointing.to
			path = cmp.Or(path, ref.Path)
		}
		if len(fields) == 0 {
			continue
		}
		var err error
		if version, err = w.client.Patch(ctx, r, subresource, version, fields); err != nil {
			return fmt.Errorf("write %s of %s %s: %w", path, r.Kind, r.Name, err)
		}
	}
	return nil
}
