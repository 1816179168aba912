package agent

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/go-logr/logr"

	"github.com/godwit-dev/godwit/cmd/hub"
	api "github.com/godwit-dev/godwit/cmd/hub/api/v1alpha1"
	"github.com/godwit-dev/godwit/cmd/hub/cluster"
	"github.com/godwit-dev/godwit/cmd/hub/message"
	"github.com/godwit-dev/godwit/cmd/hub/resource"
)

// firstPause is the first pause between two passes; pauses grow up to Options.Poll.
const firstPause = 100 * time.Millisecond

// wholeMigration is the name in a result of an action that is not for single clusters.
const wholeMigration = ""

// notArrived is the message of a cluster that waits for its objects.
const notArrived = "its objects have not arrived from the source hub"

// pass is one pass of an action over clusters. It has no clusters if the action is for the migration as a whole.
type pass func(ctx context.Context, clusters []string) (cluster.Result, error)

// work is the execution of a command. From phase Registering on, it takes over a newer command where it is, so that a
// cluster which waits for its lease does not begin to wait again.
type work struct {
	*Agent
	migration *migration
	task      task
	key       *message.OpeningKey
	// passOf returns the pass of an action, or false if the role does not have it.
	passOf func(hub.Action) (pass, bool)
	// orders are the orders of the command, and left has the indexes of those that are left for a cluster.
	orders []order
	left   map[string][]int
	// leases are the leases observed since this process started the command.
	leases cluster.Leases
	// kinds caches the kinds that the hub serves during the command.
	kinds   cluster.Kinds
	emptied cluster.Emptied
	written cluster.Written
	// confirmations are the denials of the API server during the command.
	confirmations cluster.Confirmations
	progress      progress
	// found is what passes have found, beside their results.
	found findings
	// whileActing adds the result for the first clusters of a pass before the pass has ended; nil between passes.
	whileActing func(done []string, gone map[string]string)
}

// order is an order of the command under way.
type order struct {
	hub.Order
	// act and until are set when the first cluster has come to the order.
	act   pass
	until time.Time
	// isDone means that an order for the migration as a whole is done.
	isDone bool
	// failed is the error of the last pass, which another pass may not have.
	failed string
}

// newWork returns the execution of the stored command.
func (a *Agent) newWork(m *migration) *work {
	w := &work{Agent: a, migration: m}
	w.load()
	return w
}

// load reads the stored command.
func (w *work) load() {
	s := w.migration.get()
	last := s.task.Inbox.Last
	w.task, w.key = s.task, s.key
	w.orders, w.left = make([]order, len(last.Orders)), map[string][]int{}
	for i, o := range last.Orders {
		w.orders[i].Order = o
		for _, name := range o.Clusters {
			w.left[name] = append(w.left[name], i)
		}
	}
	w.progress = progress{report: hub.Report{
		Party: s.task.Role, Stage: last.Stage, Attempt: last.Attempt, ClusterErrors: map[string]hub.Failure{}, Gone: map[string]string{},
	}}
	w.leases.Keep(func(name string) bool { return len(w.left[name]) > 0 })
}

// execute executes the orders of a command, and reports. The orders for one cluster are executed one after another, and
// clusters do not wait for each other. It pauses between passes for at least as long as a pass took, because the
// controllers that it waits for need the API server too. Its context ends when a command supersedes this one that it can't
// take over, or when the agent ends.
func (w *work) execute(ctx context.Context) {
	defer w.migration.takeOver(hub.ByCluster(w.task.Inbox.Last.Stage))()
	for w.executeLast(ctx) {
		w.load()
	}
}

// executeLast executes the last command. It returns true if a newer one has arrived.
func (w *work) executeLast(ctx context.Context) (superseded bool) {
	last := w.task.Inbox.Last
	logr.FromContextOrDiscard(ctx).Info("Execute a command", "migration", w.migration.uid, "stage", last.Stage, "attempt", last.Attempt, "actions", actions(last))
	w.publish(ctx)
	for pause := firstPause; ; pause = min(pause*3/2, w.Poll) {
		began := w.Clock.Now()
		waits, err := w.passOverAll(ctx)
		if ctx.Err() != nil {
			return false
		}
		if w.migration.get().task.Inbox.Last.Attempt != last.Attempt {
			return true
		}
		if err != nil {
			w.progress.report.Error = failureOf(cluster.Explain(err))
		}
		if err != nil || !waits {
			w.progress.report.Finished, w.progress.missing = true, nil
			w.found.addTo(&w.progress.report)
			return w.finish(ctx, w.migration, w.progress) && ctx.Err() == nil
		}
		select {
		case <-ctx.Done():
			return false
		case <-w.migration.arrived:
		case <-w.Clock.After(max(pause, w.Clock.Since(began))):
		}
	}
}

func actions(c hub.Command) []hub.Action {
	var all []hub.Action
	for _, o := range c.Orders {
		all = append(all, o.Action)
	}
	return all
}

// passOverAll makes one pass of each order over the clusters that have come to it. It returns an error if the agent can
// do nothing for any cluster.
func (w *work) passOverAll(ctx context.Context) (waits bool, err error) {
	for i := range w.orders {
		names := w.namesAt(i)
		if o := w.orders[i]; len(o.Clusters) > 0 && len(names) == 0 || o.isDone {
			continue
		}
		waiting, err := w.passOver(ctx, i, names)
		switch {
		case ctx.Err() != nil:
			return false, ctx.Err()
		case err != nil && len(names) > 0 && hub.ByCluster(w.task.Inbox.Last.Stage):
			w.failAll(ctx, names, failureOf(cluster.Explain(err)))
		case err != nil:
			return false, err
		}
		waits = waits || waiting
	}
	return waits, nil
}

// passOver makes one pass of an order. An error is final.
func (w *work) passOver(ctx context.Context, i int, names []string) (waits bool, err error) {
	o := &w.orders[i]
	if o.act == nil {
		act, ok := w.passOf(o.Action)
		if !ok {
			return false, cluster.Fail(cluster.ReasonUnknownAction, "the agent of hub %s has no action %s as %s: upgrade the agent", w.Hub, o.Action, w.task.Role)
		}
		o.act, o.until = act, w.deadline(o.Action)
	}
	if hub.ByCluster(w.task.Inbox.Last.Stage) {
		w.whileActing = func(done []string, gone map[string]string) {
			w.addResult(ctx, i, cluster.Result{Done: done, Gone: gone})
		}
	}
	r, err := o.act(ctx, names)
	w.whileActing = nil
	switch {
	case ctx.Err() != nil:
		return false, ctx.Err()
	case err != nil && w.hubOf().Final(ctx, err):
		return false, err
	case err != nil:
		o.logRetry(ctx, err)
	default:
		w.addResult(ctx, i, r)
		if len(r.Waiting) == 0 {
			o.isDone = len(o.Clusters) == 0
			return false, nil
		}
	}
	if w.Clock.Now().Before(o.until) {
		return true, nil
	}
	return false, w.failUnfinished(o.Action, names, r, err)
}

// logRetry logs an error after which the order is tried again, once.
func (o *order) logRetry(ctx context.Context, err error) {
	if text := err.Error(); text != o.failed {
		o.failed = text
		logr.FromContextOrDiscard(ctx).Error(err, "An action failed, and is tried again", "action", o.Action)
	}
}

// namesAt returns the clusters that have come to an order, and for which nothing has failed.
func (w *work) namesAt(i int) []string {
	var names []string
	for _, name := range w.orders[i].Clusters {
		if _, failed := w.progress.report.ClusterErrors[name]; !failed && len(w.left[name]) > 0 && w.left[name][0] == i {
			names = append(names, name)
		}
	}
	return names
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

// addResult adds the result of a pass to the progress, and reports it. A cluster is done when its last order is.
func (w *work) addResult(ctx context.Context, i int, r cluster.Result) {
	report, advanced := &w.progress.report, false
	maps.Copy(report.Gone, r.Gone)
	for _, name := range r.Done {
		if left := w.left[name]; len(left) == 0 || left[0] != i {
			continue
		}
		if w.left[name] = w.left[name][1:]; len(w.left[name]) == 0 {
			report.Done = append(report.Done, name)
			advanced = true
		}
	}
	slices.Sort(report.Done)
	for name, why := range r.Failed {
		report.ClusterErrors[name] = failureOf(why)
		advanced = true
	}
	if advanced && w.isBusy() { // the final report follows
		w.publish(ctx)
	}
}

// isBusy reports whether an order is left for a cluster, or for the migration as a whole.
func (w *work) isBusy() bool {
	for i, o := range w.orders {
		if len(o.Clusters) == 0 && !o.isDone || len(w.namesAt(i)) > 0 {
			return true
		}
	}
	return false
}

// failAll records and reports the failure of an order for all clusters that have come to it.
func (w *work) failAll(ctx context.Context, names []string, why hub.Failure) {
	for _, name := range names {
		w.progress.report.ClusterErrors[name] = why
	}
	w.publish(ctx)
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
	w.found.addTo(&w.progress.report)
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
	return cluster.Hub{Client: w.Client, UID: w.migration.uid, Rules: w.Rules, BootstrapNamespace: w.BootstrapNamespace, Kinds: &w.kinds, Emptied: &w.emptied, Written: &w.written, Confirmations: &w.confirmations, Progress: w.advance}
}

// advance adds the result for the first clusters of the pass that runs.
func (w *work) advance(done []string, gone map[string]string) {
	if w.whileActing != nil {
		w.whileActing(done, gone)
	}
}

// hubWith returns the agent's hub, with the rules for objects of users if the user has chosen that they move.
func (w *work) hubWith(users api.UserObjectsPolicy) cluster.Hub {
	h := w.hubOf()
	if users == api.UserObjectsMove {
		h.Rules = resource.WithUserObjects(h.MigrationRules())
	}
	return h
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
