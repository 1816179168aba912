package agent

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/go-logr/logr"

	"github.com/godwit-dev/godwit/cmd/hub"
	"github.com/godwit-dev/godwit/cmd/hub/cluster"
	"github.com/godwit-dev/godwit/cmd/hub/message"
)

// firstPause is the first pause between two passes; pauses grow up to Options.Poll.
const firstPause = 100 * time.Millisecond

// wholeMigration is the name in a result of an action that is not for single clusters.
const wholeMigration = ""

// notArrived is the message of a cluster that waits for its objects.
const notArrived = "its objects have not arrived from the source hub"

// pass is one pass of an action over clusters. It has no clusters if the action is for the migration as a whole.
type pass func(ctx context.Context, clusters []string) (cluster.Result, error)

// work is the execution of one command.
type work struct {
	*Agent
	migration *migration
	task      task
	key       *message.OpeningKey
	// passOf returns the pass of an action, or false if the role does not have it.
	passOf func(hub.Action) (pass, bool)
	// last is the index of the last order that names a cluster. done are the clusters that the report names as done.
	last map[string]int
	done map[string]bool
	// leases are the leases observed since this process started the command.
	leases cluster.Leases
	// kinds caches the kinds that the hub serves during the command.
	kinds   cluster.Kinds
	emptied cluster.Emptied
	// confirmations are the denials of the API server during the command.
	confirmations cluster.Confirmations
	progress      progress
}

// newWork returns the execution of the stored command.
func (a *Agent) newWork(m *migration) *work {
	s := m.get()
	last := s.task.Inbox.Last
	byCluster := map[string]int{}
	for i, o := range last.Orders {
		for _, name := range o.Clusters {
			byCluster[name] = i
		}
	}
	return &work{
		Agent: a, migration: m, task: s.task, key: s.key, last: byCluster, done: map[string]bool{},
		progress: progress{report: hub.Report{Party: s.task.Role, Stage: last.Stage, Attempt: last.Attempt, ClusterErrors: map[string]hub.Failure{}}},
	}
}

// execute executes all orders, one after another, and reports. Its context ends when another command supersedes this
// one, or when the agent ends.
func (w *work) execute(ctx context.Context) {
	last := w.task.Inbox.Last
	logr.FromContextOrDiscard(ctx).Info("Execute a command", "migration", w.migration.uid, "stage", last.Stage, "attempt", last.Attempt, "actions", actions(last))
	w.publish(ctx)
	for i := range last.Orders {
		err := w.executeOrder(ctx, i)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			w.progress.report.Error = failureOf(cluster.Explain(err))
			break
		}
	}
	w.progress.report.Finished, w.progress.missing = true, nil
	w.finish(ctx, w.migration, w.progress)
}

func actions(c hub.Command) []hub.Action {
	var all []hub.Action
	for _, o := range c.Orders {
		all = append(all, o.Action)
	}
	return all
}

// executeOrder executes an order for the clusters that no earlier order has failed for. It returns an error if the
// agent can do nothing for any cluster. After a pass it pauses for at least as long as the pass took, because the
// controllers that it waits for need the API server too.
func (w *work) executeOrder(ctx context.Context, i int) error {
	order := w.task.Inbox.Last.Orders[i]
	left := w.withoutFailure(order.Clusters)
	if len(order.Clusters) > 0 && len(left) == 0 {
		return nil
	}
	act, ok := w.passOf(order.Action)
	if !ok {
		return cluster.Fail(cluster.ReasonUnknownAction, "the agent of hub %s has no action %s as %s: upgrade the agent", w.Hub, order.Action, w.task.Role)
	}
	until := w.deadline(order.Action)
	for pause := firstPause; ; {
		began := w.Clock.Now()
		r, err := act(ctx, left)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil && w.hubOf().Final(ctx, err):
			return err
		case err == nil:
			w.addResult(ctx, i, r)
			if len(r.Waiting) == 0 {
				return nil
			}
			left = slices.DeleteFunc(left, func(name string) bool { return r.Waiting[name] == "" })
		}
		if !w.Clock.Now().Before(until) {
			return w.failUnfinished(order.Action, left, r, err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-w.Clock.After(max(pause, w.Clock.Since(began))):
		}
		pause = min(pause*3/2, w.Poll)
	}
}

// withoutFailure returns the clusters for which nothing has failed.
func (w *work) withoutFailure(names []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { _, failed := w.progress.report.ClusterErrors[name]; return failed })
}

// deadline returns the deadline of an action.
func (w *work) deadline(action hub.Action) time.Time {
	until := w.task.Until
	if b := w.task.Target; action == hub.AwaitRegistration && b != nil && b.RegisteringTimeoutSeconds > 0 {
		// The report needs a part of the time that the manager gives.
		if own := commandDeadline(w.Clock.Now(), time.Duration(b.RegisteringTimeoutSeconds)*time.Second); own.Before(until) {
			until = own
		}
	}
	return until
}

// addResult adds the result of a pass to the progress, and reports it. A cluster is done when
// the last order for it is.
func (w *work) addResult(ctx context.Context, i int, r cluster.Result) {
	report, advanced := &w.progress.report, false
	for _, name := range r.Done {
		if at, named := w.last[name]; named && at == i && !w.done[name] {
			w.done[name] = true
			report.Done = append(report.Done, name)
			advanced = true
		}
	}
	slices.Sort(report.Done)
	for name, why := range r.Failed {
		report.ClusterErrors[name] = failureOf(why)
		advanced = true
	}
	if advanced {
		w.publish(ctx)
	}
}

// failUnfinished records a failure for each cluster that is not done at the deadline.
func (w *work) failUnfinished(action hub.Action, left []string, r cluster.Result, err error) error {
	if err != nil {
		return cluster.Fail(cluster.ReasonTimeout, "%s: %v", action, err)
	}
	if waits, ok := r.Waiting[wholeMigration]; ok {
		return cluster.Fail(cluster.ReasonTimeout, "%s: %s", action, waits)
	}
	for _, name := range left {
		if waits, ok := r.Waiting[name]; ok {
			reason := cluster.ReasonTimeout
			if waits == notArrived {
				reason = cluster.ReasonNotArrived
			}
			w.progress.report.ClusterErrors[name] = hub.Failure{Reason: reason.Name, Message: fmt.Sprintf("%s: %s", action, waits)}
		}
	}
	return nil
}

// failureOf returns the form of an error for a report.
func failureOf(err *cluster.Error) hub.Failure {
	return hub.Failure{Reason: err.Reason.Name, Message: err.Message}
}

// publish reports the progress of the execution. A lost report needs no retry: the next one has the same content and
// more.
func (w *work) publish(ctx context.Context) {
	p := w.progress
	p.report = copyOf(p.report)
	w.migration.mutex.Lock()
	w.migration.progress = p
	w.migration.mutex.Unlock()
	if err := w.send(ctx, w.migration, p); err != nil && ctx.Err() == nil {
		logr.FromContextOrDiscard(ctx).Error(err, "Could not send a report", "migration", w.migration.uid)
	}
}

// passOfMigration returns the pass of an action for the migration as a whole.
func passOfMigration(act func(ctx context.Context) (waits string, err error)) pass {
	return func(ctx context.Context, _ []string) (cluster.Result, error) {
		waits, err := act(ctx)
		if err != nil || waits == "" {
			return cluster.Result{}, err
		}
		return cluster.Result{Waiting: map[string]string{wholeMigration: waits}}, nil
	}
}

// hubOf returns the agent's hub, as a party of this migration.
func (w *work) hubOf() cluster.Hub {
	return cluster.Hub{Client: w.Client, UID: w.migration.uid, Rules: w.Rules, BootstrapNamespace: w.BootstrapNamespace, Kinds: &w.kinds, Emptied: &w.emptied, Confirmations: &w.confirmations}
}

// reconnectTimeout returns the timeout in a command, or the default if the command has none.
func reconnectTimeout(seconds int64) time.Duration {
	return cmp.Or(time.Duration(seconds)*time.Second, hub.DefaultReconnect)
}

// sealingKeyOf parses the key of the other hub.
func sealingKeyOf(public []byte, hubName string) (message.SealingKey, error) {
	key, err := message.ReadSealingKey(public)
	if err != nil {
		return key, cluster.Fail(cluster.ReasonKey, "the command has no key of hub %s to seal to: %v", hubName, err)
	}
	return key, nil
}
