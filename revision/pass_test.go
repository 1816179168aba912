package revision

import (
	"context"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/godwit-dev/godwit/revision/decision"
	"github.com/godwit-dev/godwit/revision/internal/lineage"
	"github.com/godwit-dev/godwit/revision/internal/refindex"
	"github.com/godwit-dev/godwit/walk"
)

// Upgrades are kept until their namespace is done, and it may have tens of thousands: what the
// steps of a batch read must not be kept along, however the batch ended.
func TestUpgradesKeepNoData(t *testing.T) {
	t.Parallel()
	read := func(name string) *appsv1.ControllerRevision {
		return &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: "1"}}
	}
	batch := []*upgrade{
		{request: Request{Name: "web"}, listed: read("web"), source: read("web"), replacement: read("web-v2"), next: stepCreate},
		{request: Request{Name: "db"}, source: read("db"), replacement: read("db-v2"), backup: read("db"), deleted: true},
	}
	for _, u := range batch {
		u.repointing = u.forward()
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	u := &Upgrader{options: Options{Limiter: walk.NewLimiter(walk.Limits{})}}
	if err := u.stages().apply(ctx, &snapshot{Index: refindex.New("shop"), lineage: lineage.NewIndex()}, batch); err == nil {
		t.Error("an interrupted batch ends without an error")
	}
	for _, u := range batch {
		if u.listed != nil || u.source != nil || u.replacement != nil || u.backup != nil || u.repointing.old != nil || u.repointing.target != nil {
			t.Errorf("the upgrade of %s keeps data: %+v", u.GetName(), u)
		}
		if u.repointing.from != u.GetName() || u.repointing.to != u.GetName()+"-v2" {
			t.Errorf("later batches look for references to %q, to repoint them to %q", u.repointing.from, u.repointing.to)
		}
	}
}

// Each stage takes the upgrades whose next step is its own, and leaves the others as they are.
func TestStagesTakeTheirOwn(t *testing.T) {
	t.Parallel()
	u := &Upgrader{options: Options{Limiter: walk.NewLimiter(walk.Limits{})}}
	s := &snapshot{Index: refindex.New("shop"), lineage: lineage.NewIndex()}
	for i, one := range append(u.stages().each, u.stages().release) {
		batch := []*upgrade{{request: Request{Name: "done"}, result: Result{Phase: Succeeded}}}
		if err := one.Apply(t.Context(), s, batch); err != nil || batch[0].next != stepDone || batch[0].result.Phase != Succeeded {
			t.Errorf("stage %d changes an upgrade that is done: %v, %+v", i, err, batch[0].result)
		}
	}
}

// TestInDangerFirst: what other software may delete at any time is upgraded before all else. Each request keeps its place in the
// results.
func TestInDangerFirst(t *testing.T) {
	t.Parallel()
	s := &snapshot{items: []decision.Item{{Name: "a"}, {Name: "b", AtRisk: true}, {Name: "c"}, {Name: "d", Unreadable: true}}}
	order := s.inDangerFirst([]Request{{Name: "a"}, {Name: "d"}, {Name: "unknown"}, {Name: "b"}})
	if want := []int{1, 3, 0, 2}; !slices.Equal(order, want) {
		t.Errorf("%v, want %v", order, want)
	}
}
