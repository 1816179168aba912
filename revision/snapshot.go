package revision

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/godwit-dev/godwit/revision/decision"
	"github.com/godwit-dev/godwit/revision/internal/absence"
	"github.com/godwit-dev/godwit/revision/internal/cluster"
	"github.com/godwit-dev/godwit/revision/internal/lineage"
	"github.com/godwit-dev/godwit/revision/internal/refindex"
	"github.com/godwit-dev/godwit/revision/reference"
)

// snapshot is what one scan found in one namespace. It does not change: what a stage writes is
// seen by the next scan, which is another snapshot.
type snapshot struct {
	*refindex.Index
	lineage   *lineage.Index
	types     []refindex.Source
	crds      map[schema.GroupResource]decision.CRD
	software  decision.Software
	items     []decision.Item // in the order of their names
	taken     time.Time       // when the scan ended; zero where revisions were planned by it
	revisions int             // of the namespace, of any kind
}

// with returns the snapshot with the references that a later scan found.
func (s *snapshot) with(index *refindex.Index, types []refindex.Source, taken time.Time) *snapshot {
	later := *s
	later.Index, later.types, later.taken = index, types, taken
	return &later
}

// item returns what the scan found of a request, without a reason: the read of the source has it.
func (s *snapshot) item(r Request) decision.Item {
	if found := s.itemOf(r.Name); found != nil && (r.UID == "" || r.UID == found.UID) {
		i := *found
		i.Reason, i.Message = nil, ""
		return i
	}
	return decision.Item{Namespace: s.Namespace, Name: r.Name, UID: r.UID}
}

// itemOf finds an item by name; nil if there is none.
func (s *snapshot) itemOf(name string) *decision.Item {
	at, found := slices.BinarySearchFunc(s.items, name, func(i decision.Item, name string) int { return strings.Compare(i.Name, name) })
	if !found {
		return nil
	}
	return &s.items[at]
}

// requests returns a request for each revision that a plan would upgrade. A run follows a user's command, so that it also upgrades
// revisions that were rolled back before its scan.
func (s *snapshot) requests() []Request {
	var all []Request
	for _, i := range s.items {
		if i.Action == decision.Upgrade || i.Action == decision.Relabel {
			all = append(all, Request{Name: i.Name, UID: i.UID, AfterRollback: !i.RolledBack.IsZero()})
		}
	}
	return all
}

// inDangerFirst returns the order in which requests are due: first those whose revision other software may delete at any time.
func (s *snapshot) inDangerFirst(requests []Request) []int {
	var first, then []int
	for n, r := range requests {
		if i := s.itemOf(r.Name); i != nil && i.InDanger() {
			first = append(first, n)
		} else {
			then = append(then, n)
		}
	}
	return append(first, then...)
}

// snapshots scans a scope, namespace by namespace.
func (u *Upgrader) snapshots(ctx context.Context, scope Scope) iter.Seq2[*snapshot, error] {
	return func(yield func(*snapshot, error) bool) {
		types, err := refindex.Served(ctx, u.client, u.family.Describe().AllTypes())
		if err != nil {
			yield(nil, cluster.Forbidden(err))
			return
		}
		crds, err := u.CRDs(ctx)
		if err != nil {
			yield(nil, cluster.Forbidden(err))
			return
		}
		sc := &scanner{family: u.family, policy: u.options.Policy, types: types, crds: crds, software: u.family.Software(crds)}
		missing := absence.NewReader(absence.Access{Client: u.client, Holds: u.family.Holds, Types: types}, u.options.Limiter)
		sc.begin()
		for index, err := range refindex.Scan(ctx, u.client, refindex.Scope{Types: types, Namespace: scope.Namespace, Selector: scope.Selector}, sc.see) {
			if err != nil {
				yield(nil, cluster.Forbidden(err))
				return
			}
			s := sc.end(index)
			if err := s.confirmMissing(ctx, missing); err != nil {
				yield(nil, cluster.Forbidden(err))
				return
			}
			if !yield(s, nil) {
				return
			}
			sc.begin()
		}
	}
}

// scanner gathers what a scan of one namespace shows.
type scanner struct {
	family   decision.Family
	policy   decision.Policy
	types    []refindex.Source
	crds     map[schema.GroupResource]decision.CRD
	software decision.Software
	found    *snapshot
	seen     map[string]bool
}

func (sc *scanner) begin() {
	sc.found = &snapshot{types: sc.types, crds: sc.crds, software: sc.software, lineage: lineage.NewIndex()}
	sc.seen = map[string]bool{}
}

// see decides about one revision, and keeps its item.
func (sc *scanner) see(index *refindex.Index, r *appsv1.ControllerRevision) {
	sc.seen[r.Name] = true
	references := index.Of(r.Name)
	sc.found.lineage.Add(r)
	i := decision.For(decision.Facts{Family: sc.family, Policy: sc.policy, CRDs: sc.crds, Software: sc.software, Revision: r,
		References: references, OwnerGone: index.OwnerGone(r), Replacement: lineage.NotedReplacement(r)}).Item
	if i.Action == decision.Unmanaged || !index.Selected(r, references) {
		return
	}
	sc.found.items = append(sc.found.items, i)
}

// end adds the references to revisions that do not exist.
func (sc *scanner) end(index *refindex.Index) *snapshot {
	s := sc.found
	s.Index, s.revisions = index, len(sc.seen)
	s.lineage.AddRollbacks()
	for i, item := range s.items {
		replacement := s.lineage.ReplacementFor(item.Name, item.UID, item.Replacement)
		item.Replacement = replacement
		if !item.RolledBack.IsZero() {
			s.items[i] = sc.rolledBackItem(item)
			continue
		}
		if replacement != "" && (item.Action == decision.Unreferenced || item.Reason == decision.ReasonUndecodable && len(item.References) == 0) {
			item = item.MarkSuperseded(replacement)
		}
		if item.Reason == decision.ReasonRetained && !sc.seen[replacement] && len(s.Of(replacement)) == 0 {
			item = item.MarkAbandoned(replacement)
		}
		s.items[i] = item
	}
	slices.SortFunc(s.items, decision.ByName)
	s.items = append(s.items, sc.missing()...)
	slices.SortFunc(s.items, decision.ByName)
	return s
}

// missing returns the items of revisions that objects refer to and that do not exist.
func (sc *scanner) missing() []decision.Item {
	s := sc.found
	var gone []decision.Item
	for name := range s.Names() {
		references := s.Of(name)
		switch {
		case sc.seen[name] || len(references) == 0 || !s.Selected(&metav1.ObjectMeta{}, references):
		case len(reference.Explicit(references)) == 0:
			if i, needed := s.lookedUp(name, references); needed && s.lineage.NotedBy(name) == "" {
				gone = append(gone, i)
			}
		default:
			references = reference.Explicit(references)
			i := absence.Missing(s.Namespace, name, references, s.lineage.Replacements(name))
			if source := s.lineage.NotedBy(name); source != "" && i.Action == decision.Blocked {
				i.Action, i.Message = decision.Deferred, "the revision does not exist: a run creates it again from "+source+", which it had replaced"
			}
			gone = append(gone, i)
		}
	}
	return gone
}

// rolledBackItem is an item of a source that has the annotation of a rollback. Where
// references to the replacement are left, the rollback waits for an object that runs, or was
// interrupted.
func (sc *scanner) rolledBackItem(i decision.Item) decision.Item {
	left := reference.Explicit(sc.found.Of(i.Replacement))
	switch {
	case !sc.seen[i.Replacement]:
		i.Replacement = ""
	case len(left) > 0 && i.Action != decision.Blocked:
		return i.RollbackPending(left)
	}
	return i
}

// confirmMissing reads each missing revision again, so that no plan asks for the restore of a
// revision that is being deleted with its owner.
func (s *snapshot) confirmMissing(ctx context.Context, r *absence.Reader) error {
	isMissing := func(i decision.Item) bool {
		return i.Action == decision.Blocked && i.Reason == decision.ReasonSourceGone
	}
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
			i, stays = absences[0].Confirm(i)
			absences = absences[1:]
		}
		if stays {
			kept = append(kept, i)
		}
	}
	s.items = kept
	return nil
}

// lookedUp is the item of a missing revision that no object names and that a restore looks up. A run creates it from the
// revision of the snapshot, if that is at the target. Otherwise the upgrade of that revision creates it.
func (s *snapshot) lookedUp(name string, references []reference.Reference) (decision.Item, bool) {
	for _, ref := range references {
		of := s.itemOf(ref.ImpliedBy)
		if of == nil || of.Action != decision.UpToDate && of.Action != decision.Relabel {
			continue
		}
		return decision.Item{
			Namespace: s.Namespace, Name: name, Action: decision.Upgrade, Reason: decision.ReasonNeededForRestore, Target: of.Target, References: decision.ReferenceStatuses(references, ""),
			Message: fmt.Sprintf("%s %s names %s, so that a restore needs this revision, which does not exist: a run creates it again", ref.Referrer.Kind, ref.Referrer.Name, of.Name),
		}, true
	}
	return decision.Item{}, false
}
