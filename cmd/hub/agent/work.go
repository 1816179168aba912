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

// firstPause between two passes; it grows up to Options.Poll.
const firstPause = 100 * time.Millisecond

// whole stands for the migration as a whole in a result, where an action is not for clusters.
const whole = ""

// notArrived is what a cluster waits for whose objects have not arrived.
const notArrived = "its objects have not arrived from the source hub"

// pass is one pass of an action over clusters, of which there are none if the action is for
// the migration as a whole.
type pass func(ctx context.Context, clusters []string) (cluster.Result, error)

// work is the execution of one command.
type work struct {
	*Agent
	migration *migration
	task      task
	key       *message.OpeningKey
	// passOf returns the pass of an action, or false if the role does not have it.
	passOf func(hub.Action) (pass, bool)
	// last is the index of the last order that names a cluster, and done are the clusters of the
	// report.
	last map[string]int
	done map[string]bool
	// leases are those seen since the command was executed first by this process.
	leases cluster.Leases
	// kinds are those that the hub serves while the command is executed.
	kinds   cluster.Kinds
	emptied cluster.Emptied
	// confirmations are of what the API server denies while the command is executed.
	confirmations cluster.Confirmations
	progress      progress
}

// newWork is the execution of what is stored.
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

// execute executes all orders, one after another, and reports. When its context ends,
// another command has superseded this one, or the agent ends.
func (w *work) execute(ctx context.Context) {
	last := w.task.Inbox.Last
	logr.FromContextOrDiscard(ctx).Info("Execute a command", "migration", w.migration.uid, "stage", last.Stage, "attempt", last.Attempt, "actions", actions(last))
	w.publish(ctx)
	for i := range last.Orders {
		err := w.order(ctx, i)
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

// order executes an order for the clusters for which no earlier one has failed. It returns
// an error that keeps the agent from doing anything for any cluster. After a pass it pauses
// for at least as long as the pass took: controllers that it waits for need the API server.
func (w *work) order(ctx context.Context, i int) error {
	order := w.task.Inbox.Last.Orders[i]
	left := w.sound(order.Clusters)
	if len(order.Clusters) > 0 && len(left) == 0 {
		return nil
	}
	act, ok := w.passOf(order.Action)
	if !ok {
		return cluster.Fail(cluster.ReasonUnknownAction, "the agent of hub %s has no action %s as %s: upgrade the agent", w.Hub, order.Action, w.task.Role)
	}
	until := w.until(order.Action)
	for pause := firstPause; ; {
		began := w.Clock.Now()
		r, err := act(ctx, left)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil && w.hubOf().Final(ctx, err):
			return err
		case err == nil:
			w.take(ctx, i, r)
			if len(r.Waiting) == 0 {
				return nil
			}
			left = slices.DeleteFunc(left, func(name string) bool { return r.Waiting[name] == "" })
		}
		if !w.Clock.Now().Before(until) {
			return w.late(order.Action, left, r, err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-w.Clock.After(max(pause, w.Clock.Since(began))):
		}
		pause = min(pause*3/2, w.Poll)
	}
}

// sound returns the clusters for which nothing has failed.
func (w *work) sound(names []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { _, failed := w.progress.report.ClusterErrors[name]; return failed })
}

// until is when an action is late.
func (w *work) until(action hub.Action) time.Time {
	until := w.task.Until
	if b := w.task.Target; action == hub.AwaitRegistration && b != nil && b.RegisteringTimeoutSeconds > 0 {
		// Of the time that the manager gives, the report takes a part.
		if own := ends(w.Clock.Now(), time.Duration(b.RegisteringTimeoutSeconds)*time.Second); own.Before(until) {
			until = own
		}
	}
	return until
}

// take adds the result of a pass to the progress, and reports it. A cluster is done when
// the last order for it is.
func (w *work) take(ctx context.Context, i int, r cluster.Result) {
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

// late fails what is not done when the command ends.
func (w *work) late(action hub.Action, left []string, r cluster.Result, err error) error {
	if err != nil {
		return cluster.Fail(cluster.ReasonTimeout, "%s: %v", action, err)
	}
	if waits, ok := r.Waiting[whole]; ok {
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

// failureOf is a failure as it is reported.
func failureOf(err *cluster.Error) hub.Failure {
	return hub.Failure{Reason: err.Reason.Name, Message: err.Message}
}

// publish says what the execution has come to. A report that is lost is repeated by the next.
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

// forAll is the pass of an action for the migration as a whole.
func forAll(act func(ctx context.Context) (waits string, err error)) pass {
	return func(ctx context.Context, _ []string) (cluster.Result, error) {
		waits, err := act(ctx)
		if err != nil || waits == "" {
			return cluster.Result{}, err
		}
		return cluster.Result{Waiting: map[string]string{whole: waits}}, nil
	}
}

// hubOf is the hub of the agent in this migration.
func (w *work) hubOf() cluster.Hub {
	return cluster.Hub{Client: w.Client, UID: w.migration.uid, Rules: w.Rules, BootstrapNamespace: w.BootstrapNamespace, Kinds: &w.kinds, Emptied: &w.emptied, Confirmations: &w.confirmations}
}

// reconnect is the time of a command, or the default for one that has none.
func reconnect(seconds int64) time.Duration {
	return cmp.Or(time.Duration(seconds)*time.Second, hub.DefaultReconnect)
}

// keyOf reads the key of the other hub.
func keyOf(public []byte, hubName string) (message.SealingKey, error) {
	key, err := message.ReadSealingKey(public)
	if err != nil {
		return key, cluster.Fail(cluster.ReasonKey, "the command has no key of hub %s to seal to: %v", hubName, err)
	}
	return key, nil
}
