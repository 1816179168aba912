package agent

import (
	"context"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/godwit-dev/godwit/cmd/hub"
	api "github.com/godwit-dev/godwit/cmd/hub/api/v1alpha1"
	"github.com/godwit-dev/godwit/cmd/hub/cluster"
	"github.com/godwit-dev/godwit/cmd/hub/message"
)

type result = cluster.Result

func newResult() result {
	return result{Waiting: map[string]string{}, Failed: map[string]*cluster.Error{}}
}

// scripted is the execution of a command whose passes a test plays. Its client has no objects,
// and keeps the Secret.
func scripted(t *testing.T, role hub.Party, orders []hub.Order, act func(hub.Action, []string) result) *work {
	t.Helper()
	a := New(Options{Client: fake.NewClientBuilder().Build(), Hub: "hub1", Namespace: "godwit", Identity: newIdentity(t), Transport: &sink{}, Poll: time.Millisecond})
	m := a.migration("uid")
	one := task{Role: role, Inbox: hub.Inbox{Last: hub.Command{Stage: api.PhaseCleaning, Attempt: 7, Orders: orders}}, Until: time.Now().Add(time.Minute)}
	if role == hub.Source {
		one.Source = &message.SourceBundle{}
	}
	if err := a.update(t.Context(), m, func(s *stored) bool {
		s.task = one
		return true
	}); err != nil {
		t.Fatal(err)
	}
	w := a.newWork(m)
	w.passOf = func(action hub.Action) (pass, bool) {
		return func(_ context.Context, names []string) (cluster.Result, error) { return act(action, names), nil }, true
	}
	return w
}
