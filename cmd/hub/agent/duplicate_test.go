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

// reports is a transport that passes on what an agent reports.
type reports chan message.StatusBundle

func (r reports) Send(_ context.Context, _, _ string, e message.Envelope) error {
	b, err := message.Decode[message.StatusBundle](e.Value)
	r <- b
	return err
}

func (r reports) Receive(ctx context.Context, _ string, _ []string, _ func(context.Context, string, message.Envelope) error) error {
	<-ctx.Done()
	return ctx.Err()
}

// TestDuplicateCommand: a command that arrives twice is executed once. While it is executed,
// the repetition is answered with what is done until then; afterwards, with the final report,
// so that one that was lost arrives in the end.
//
// Matrix: H28, H29.
func TestDuplicateCommand(t *testing.T) {
	manager := newIdentity(t)
	got := make(reports, 100)
	a := New(Options{
		Client: fake.NewClientBuilder().Build(), Hub: "hub1", Namespace: "godwit", Manager: manager.Key(), Identity: newIdentity(t), Transport: got,
		Poll: time.Millisecond,
	})
	command := hub.Command{Stage: api.PhaseRegistering, Attempt: 7, Orders: []hub.Order{{Action: hub.ReleaseClusters, Clusters: []string{"c1"}}}}
	data, err := message.Encode(message.SourceBundle{Command: command, ToHub: "hub2"})
	if err != nil {
		t.Fatal(err)
	}
	e, err := message.Write(message.Header{
		Type: message.TypeSource, Migration: "uid", From: message.ManagerName, To: "hub1", Stage: command.Stage, Attempt: command.Attempt, ValidFor: time.Minute,
	}, data, manager, nil)
	if err != nil {
		t.Fatal(err)
	}
	released, executions := make(chan struct{}), 0
	var group sync.WaitGroup
	start := func(m *migration, _ func(context.Context)) {
		executions++
		w := a.newWork(m)
		w.passOf = func(hub.Action) (pass, bool) {
			return func(_ context.Context, names []string) (cluster.Result, error) {
				select {
				case <-released:
					return cluster.Result{Done: names}, nil
				default:
					return cluster.Result{Waiting: map[string]string{"c1": "the test"}}, nil
				}
			}, true
		}
		m.start(logr.NewContext(t.Context(), logr.Discard()), &group, w.execute)
	}
	deliver := func() {
		t.Helper()
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
	deliver()
	mustReport("the agent has the command", false)
	deliver()
	mustReport("the command arrives again while it is executed", false)
	close(released)
	mustReport("the command is finished", true, "c1")
	group.Wait()
	deliver()
	mustReport("the command arrives again afterwards", true, "c1")
	if executions != 1 {
		t.Errorf("the command was executed %d times", executions)
	}
}

// TestSourceKeyReplaced: a target takes the new key of the source from a repeated command, and never goes back to the one before, though the
// broker sends the command of before again.
//
// Matrix: H114.
func TestSourceKeyReplaced(t *testing.T) {
	manager, first, second := newIdentity(t), newIdentity(t), newIdentity(t)
	c := fake.NewClientBuilder().Build()
	a := New(Options{Client: c, Hub: "hub2", Namespace: "godwit", Manager: manager.Key(), Identity: newIdentity(t), Transport: make(reports, 100)})
	ctx := logr.NewContext(t.Context(), logr.Discard())
	command := hub.Command{Stage: api.PhaseDeploying, Attempt: 7, Orders: []hub.Order{{Action: hub.ReceiveResources, Clusters: []string{"c1"}}}}
	for i, step := range []struct {
		key    message.Identity
		number int32
		want   message.Identity
		reason string
	}{
		{first, 1, first, "the first key"},
		{first, 1, first, "the command again"},
		{second, 2, second, "a new key"},
		{first, 1, second, "the command of before, sent by the broker"},
		{first, 2, second, "the same number with another key"},
		{first, 0, second, "a command of an earlier release"},
	} {
		data, err := message.Encode(message.TargetBundle{Command: command, FromHub: "hub1", SourceIdentity: step.key.Key().Bytes(), SourceKeyNumber: step.number})
		if err != nil {
			t.Fatal(err)
		}
		e, err := message.Write(message.Header{
			Type: message.TypeTarget, Migration: "uid", From: message.ManagerName, To: "hub2", Stage: command.Stage, Attempt: command.Attempt, ValidFor: time.Minute,
		}, data, manager, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := a.receiveCommand(ctx, message.SpecTopic("hub2"), e, func(*migration, func(context.Context)) {}); err != nil {
			t.Fatal(err)
		}
		stored, _, err := store{c, "godwit", ""}.list(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if got := stored["uid"].task.Target.SourceIdentity; !slices.Equal(got, step.want.Key().Bytes()) {
			t.Errorf("step %d, %s: the target has another key than it should", i, step.reason)
		}
	}
}
