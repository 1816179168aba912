package agent

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/godwit-dev/godwit/cmd/hub"
	api "github.com/godwit-dev/godwit/cmd/hub/api/v1alpha1"
	"github.com/godwit-dev/godwit/cmd/hub/cluster"
	"github.com/godwit-dev/godwit/cmd/hub/message"
)

// TestTakesOver: the execution that waits for one cluster takes a newer command over, which has the orders of another one. The other
// one does not wait, and the first one does not begin again.
func TestTakesOver(t *testing.T) {
	manager := newIdentity(t)
	got := make(reports, 100)
	a := New(Options{
		Client: fake.NewClientBuilder().Build(), Hub: "hub1", Namespace: "godwit", Manager: manager.Key(), Identity: newIdentity(t), Transport: got,
		Poll: time.Millisecond,
	})
	executions, returned := 0, make(chan struct{})
	var group sync.WaitGroup
	start := func(m *migration, _ func(context.Context)) {
		executions++
		w := a.newWork(m)
		w.passOf = func(action hub.Action) (pass, bool) {
			return func(_ context.Context, names []string) (cluster.Result, error) {
				if action != hub.AwaitReturn {
					return cluster.Result{Done: names}, nil
				}
				select {
				case <-returned:
					return cluster.Result{Done: names}, nil
				default:
					return cluster.Result{Waiting: map[string]string{"c1": "the test"}}, nil
				}
			}, true
		}
		m.start(logr.NewContext(t.Context(), logr.Discard()), &group, w.execute)
	}
	deliver := func(attempt int64, orders ...hub.Order) {
		t.Helper()
		command := hub.Command{Stage: api.PhaseCleaning, Attempt: attempt, Orders: orders}
		data, err := message.Encode(message.SourceBundle{Command: command, ToHub: "hub2"})
		if err != nil {
			t.Fatal(err)
		}
		e, err := message.Write(message.Header{
			Type: message.TypeSource, Migration: "uid", From: message.ManagerName, To: "hub1", Stage: command.Stage, Attempt: attempt, ValidFor: time.Hour,
		}, data, manager, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := a.receiveCommand(logr.NewContext(t.Context(), logr.Discard()), message.SpecTopic("hub1"), e, start); err != nil {
			t.Fatal(err)
		}
	}
	mustReport := func(when string, finished bool, done ...string) {
		t.Helper()
		if r := <-got; r.Finished != finished || !slices.Equal(r.Done, done) {
			t.Errorf("%s: the report is %+v, want finished %v, done %v", when, r, finished, done)
		}
	}
	wait := hub.Order{Action: hub.AwaitReturn, Clusters: []string{"c1"}}
	deliver(7, wait)
	mustReport("the agent has the first command", false)
	deliver(8, wait, hub.Order{Action: hub.DeleteMoved, Clusters: []string{"c2"}})
	mustReport("the agent has the second command", false)
	mustReport("c2 is deleted, and c1 waits", false, "c2")
	close(returned)
	mustReport("c1 has returned", true, "c1", "c2")
	group.Wait()
	if executions != 1 {
		t.Errorf("%d executions, want one that takes the second command over", executions)
	}
}
