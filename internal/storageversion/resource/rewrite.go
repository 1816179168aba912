package resource

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/internal/storageversion"
	"github.com/godwit-dev/godwit/internal/storageversion/decision"
	"github.com/godwit-dev/godwit/internal/storageversion/evidence"
	"github.com/godwit-dev/godwit/internal/storageversion/listing"
	"github.com/godwit-dev/godwit/walk"
)

const (
	// saveEvery bounds how often the cursor is saved.
	saveEvery = 10 * time.Second
	// saveTimeout is for the last save of a run whose context has ended.
	saveTimeout = 5 * time.Second
)

// Begin reads the journal, and reports whether an earlier run left one, and whether this one resumes it.
func (r *Rewriter) Begin(ctx context.Context) (left, resumes bool, err error) {
	if r.options.DryRun {
		return false, false, nil
	}
	earlier, err := r.journal.load(ctx)
	if err != nil || len(earlier.Resources) == 0 {
		return false, false, err
	}
	if !r.options.Resume {
		return true, false, nil
	}
	f, err := r.fleet(ctx)
	if err != nil || !earlier.holds(f.processes, r.options.Configuration) {
		return true, false, err
	}
	r.earlier, r.journal.record = earlier, earlier
	return true, true, nil
}

// Interrupted reads which resources an interrupted run has begun to rewrite; none without such a run.
func (r *Rewriter) Interrupted(ctx context.Context) ([]Left, error) {
	earlier, err := r.journal.load(ctx)
	if err != nil {
		return nil, err
	}
	var all []Left
	for _, key := range slices.Sorted(maps.Keys(earlier.Resources)) {
		name, namespace, _ := strings.Cut(key, within)
		all = append(all, Left{Name: name, Namespace: namespace, Complete: earlier.Resources[key].Complete})
	}
	return all, nil
}

// Rewrite writes the objects of a planned resource. It returns a true report in every case, and an error if
// the pass did not reach its end. Objects that failed are counted, and named, in the report. onObject may be
// nil; it is called after each object, one call at a time, and must be quick.
func (r *Rewriter) Rewrite(ctx context.Context, p Plan, onObject func(walk.Report)) (walk.Report, error) {
	if refusals := p.Refusals(); len(refusals) > 0 {
		return walk.Report{}, &decision.BlockedError{CRD: p.Resource.Name(), Blockers: refusals}
	}
	key := r.key(p.Resource)
	done := r.journal.record.Resources[key]
	if done.Complete {
		return walk.Report{Complete: true, Counts: skipped(p)}, nil
	}
	saved := r.client.Clock.Now()
	report, err := storageversion.Objects{
		Client: r.client, Limiter: r.options.Limiter, Resource: p.Resource.GroupVersionResource, CRD: p.crd,
		List: listing.Lister(r.list), DryRun: r.options.DryRun, MaxFailures: r.options.MaxFailures, PageObjects: r.options.PageObjects,
		Resume:   evidence.Baseline{Since: done.ResourceVersion, Cursor: done.Cursor},
		OnObject: onObject,
		OnPage: func(ctx context.Context, now walk.Report) error {
			first := done.ResourceVersion == ""
			if first {
				done.ResourceVersion = now.ResourceVersion
			}
			done.Cursor = max(done.Cursor, now.Cursor)
			if !first && r.client.Clock.Now().Sub(saved) < saveEvery {
				return nil
			}
			saved = r.client.Clock.Now()
			return r.save(ctx, key, done)
		},
	}.Rewrite(ctx)
	done.Cursor = max(done.Cursor, report.Cursor)
	done.Complete = err == nil && report.Counts.Settled()
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), saveTimeout)
	defer cancel()
	if saveErr := r.save(last, key, done); err == nil && saveErr != nil {
		return report, saveErr
	}
	return report, err
}

// skipped counts the objects of a resource that an interrupted run has done.
func skipped(p Plan) godwit.Counts {
	if p.Objects == nil {
		return godwit.Counts{}
	}
	return godwit.Counts{Skipped: *p.Objects}
}

func (r *Rewriter) save(ctx context.Context, key string, c checkpoint) error {
	if r.options.DryRun || c.ResourceVersion == "" {
		return nil
	}
	r.journal.record.Resources[key] = c
	return r.journal.save(ctx)
}

// within separates the resource from the namespace in a key.
const within = " in "

// key of a resource in the journal.
func (r *Rewriter) key(resource Resource) string {
	if namespace := r.options.namespaceOf(resource); namespace != "" {
		return resource.Name() + within + namespace
	}
	return resource.Name()
}

// End removes the journal of a run that has rewritten everything.
func (r *Rewriter) End(ctx context.Context) error {
	if r.options.DryRun {
		return nil
	}
	return r.journal.remove(ctx)
}
