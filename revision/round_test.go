package revision

import (
	"context"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/godwit-dev/godwit/walk"
)

// Tasks are kept until their namespace is done, and it may have tens of thousands: what
// the steps of a batch read must not be kept along, however the batch ended.
func TestTasksKeepNoData(t *testing.T) {
	t.Parallel()
	r := &pass{Upgrader: &Upgrader{options: Options{Limiter: walk.NewLimiter(walk.Limits{})}}, namespace: &namespace{ReferenceIndex: newReferenceIndex("shop")}}
	read := func(name string) *appsv1.ControllerRevision {
		return &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: "1"}}
	}
	r.tasks = []*upgrade{
		{request: Request{Name: "web"}, source: read("web"), replacement: read("web-v2")},
		{request: Request{Name: "db"}, source: read("db"), replacement: read("db-v2"), copy: read("db"), gone: true},
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := r.advance(ctx); err == nil {
		t.Error("an interrupted batch ends without an error")
	}
	if one := r.tasks[0]; one.source != nil || one.replacement != nil {
		t.Errorf("the task keeps %v and %v", one.source, one.replacement)
	}
	if gone := r.tasks[1]; gone.copy != nil || gone.from() != "db" || gone.to() != "db-v2" || gone.replacement.ResourceVersion != "" {
		t.Errorf("of what is removed nothing but the names is kept: %+v", gone)
	}
}
