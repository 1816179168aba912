package revision

import (
	"context"
	"testing"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/godwit-dev/godwit/walk"
)

// Tasks are kept until their namespace is done, and it may have tens of thousands: what
// the steps of a batch read must not be kept along, however the batch ended.
func TestTasksKeepNoData(t *testing.T) {
	t.Parallel()
	r := &round{Upgrader: &Upgrader{options: Options{Limiter: walk.NewLimiter(walk.Limits{})}}, namespace: &namespace{Census: newCensus("shop")}}
	r.tasks = []*task{{wish: Wish{Name: "web"}, source: &appsv1.ControllerRevision{}, successor: &appsv1.ControllerRevision{}}}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := r.advance(ctx); err == nil {
		t.Error("an interrupted batch ends without an error")
	}
	if one := r.tasks[0]; one.source != nil || one.successor != nil {
		t.Errorf("the task keeps %v and %v", one.source, one.successor)
	}
}
