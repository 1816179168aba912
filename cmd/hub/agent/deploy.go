package agent

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/go-logr/logr"

	"github.com/godwit-dev/godwit/cmd/hub"
	api "github.com/godwit-dev/godwit/cmd/hub/api/v1alpha1"
	"github.com/godwit-dev/godwit/cmd/hub/cluster"
	"github.com/godwit-dev/godwit/cmd/hub/message"
	"github.com/godwit-dev/godwit/cmd/hub/source"
)

// sendResources sends all objects of clusters, or what is missing of them.
func (w *work) sendResources(missing []message.Gap) pass {
	return func(ctx context.Context, names []string) (cluster.Result, error) {
		b := w.task.Source
		key, err := sealingKeyOf(b.TargetSealingKey, b.ToHub)
		if err != nil {
			return cluster.Result{}, err
		}
		parcel := source.Parcel{Clusters: names, Total: w.total(), Missing: missing}
		return w.sourceHub().SendResources(ctx, parcel, func(ctx context.Context, bundle message.ResourceBundle) error {
			return w.sendBundle(ctx, bundle, key)
		})
	}
}

// total returns the number of clusters whose resources the command sends.
func (w *work) total() int {
	for _, o := range w.task.Inbox.Last.Orders {
		if o.Action == hub.SendResources {
			return len(o.Clusters)
		}
	}
	return 0
}

func (w *work) sendBundle(ctx context.Context, bundle message.ResourceBundle, key message.SealingKey) error {
	data, err := message.Encode(bundle)
	if err != nil {
		return err
	}
	last, to := w.task.Inbox.Last, w.task.Source.ToHub
	e, err := message.Write(message.Header{
		Type: message.TypeResource, Migration: w.migration.uid, From: w.Hub, To: to, Stage: last.Stage, Attempt: last.Attempt,
		Batch: w.migration.nextBatch(), ValidFor: max(w.task.Until.Sub(w.Clock.Now()), minCommandTime), TotalClusters: bundle.TotalClusters,
	}, data, w.Identity, &key)
	if err != nil {
		return err
	}
	w.Metrics.bundles.WithLabelValues("sent").Add(float64(e.Size()))
	return w.Transport.Send(ctx, message.MigrationTopic(to), w.migration.uid, e)
}

// sendMissing sends the objects that the target reports as missing. It stores nothing: the target repeats its report
// until it has them.
func (w *work) sendMissing(ctx context.Context, missing []message.Gap) {
	log := logr.FromContextOrDiscard(ctx).WithValues("migration", w.migration.uid)
	names := map[string]bool{}
	for _, gap := range missing {
		names[gap.ClusterName] = true
	}
	for _, o := range w.task.Inbox.Last.Orders {
		if o.Action != hub.SendResources {
			continue
		}
		clusters := slices.DeleteFunc(slices.Clone(o.Clusters), func(name string) bool { return !names[name] })
		log.Info("Send again what the target has not got", "clusters", len(clusters))
		if r, err := w.sendResources(missing)(ctx, clusters); err != nil || len(r.Failed)+len(r.Waiting) > 0 {
			log.Info("Could not send all that the target has not got; it asks again", "error", err, "failed", fmt.Sprint(r.Failed), "waiting", r.Waiting)
		}
	}
}

// receiver applies what arrives, over the passes of one order.
type receiver struct {
	*work
	arrivals *arrivals
	// pending are the clusters that have arrived and are not applied yet.
	pending map[string]message.Resources
}

// receiveResources returns a pass that waits for arrivals, and a function to call at the end of the execution.
func (w *work) receiveResources(ctx context.Context) (p pass, end func()) {
	r := &receiver{work: w, pending: map[string]message.Resources{}}
	var clusters []string
	for _, o := range w.task.Inbox.Last.Orders {
		if o.Action == hub.ReceiveResources {
			clusters = o.Clusters
		}
	}
	began := w.Clock.Now()
	if w.migration.resumed {
		began = time.Time{} // request at once what the previous process had in memory
	}
	r.arrivals = newArrivals(clusters, began)
	w.Agent.mutex.Lock()
	w.migration.mutex.Lock()
	w.migration.arrivals = r.arrivals
	w.migration.mutex.Unlock()
	early := w.held.take(w.migration.uid)
	w.Agent.mutex.Unlock()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for _, e := range early {
			if ctx.Err() == nil {
				w.open(ctx, w.migration, r.arrivals, e)
			}
		}
	}()
	return r.pass, func() {
		w.migration.mutex.Lock()
		w.migration.arrivals = nil
		w.migration.mutex.Unlock()
		close(r.arrivals.ended)
		<-ended
	}
}

func (r *receiver) pass(ctx context.Context, names []string) (cluster.Result, error) {
	var applied chan struct{}
	select {
	case <-ctx.Done():
		return cluster.Result{}, ctx.Err()
	case d := <-r.arrivals.deliveries:
		for _, c := range d.clusters {
			r.pending[c.Cluster] = c
		}
		applied = d.applied
	case <-r.Clock.After(r.Poll):
	}
	result, err := r.targetHub().ReceiveResources(ctx, slices.Collect(maps.Values(r.pending)))
	if applied != nil {
		close(applied)
	}
	if err != nil {
		return result, err
	}
	for name := range r.pending {
		if _, waits := result.Waiting[name]; !waits {
			delete(r.pending, name)
		}
	}
	for _, name := range names {
		if _, failed := result.Failed[name]; !failed && result.Waiting[name] == "" && !slices.Contains(result.Done, name) {
			result.Waiting[name] = notArrived
		}
	}
	if missing := r.arrivals.missing(r.Clock.Now(), r.Quiet); len(missing) > 0 {
		r.Metrics.missing.Inc()
		r.progress.missing = missing
		r.publish(ctx)
		r.progress.missing = nil
	}
	return result, nil
}

// open decrypts a bundle with the keys of the running command, and adds it to the arrivals.
func (a *Agent) open(ctx context.Context, m *migration, into *arrivals, e message.Envelope) {
	s := m.get()
	topic := message.MigrationTopic(a.Hub)
	if s.task.Target == nil {
		a.refuse(ctx, topic, e, refusedNotExpected, "the hub is not the target of the migration")
		return
	}
	identity, err := message.ReadIdentityKey(s.task.Target.SourceIdentity)
	if err != nil {
		a.refuse(ctx, topic, e, refusedForged, "the command has no identity of the source hub: "+err.Error())
		return
	}
	h, data, err := message.Read(e, a.Hub, identity, s.key)
	if err != nil {
		a.refuse(ctx, topic, e, reasonOf(err), err.Error())
		return
	}
	if h.Type != message.TypeResource || h.From != s.task.Target.FromHub || h.Stage != api.PhaseDeploying || h.Attempt != s.task.Inbox.Last.Attempt {
		a.refuse(ctx, topic, e, refusedNotExpected, "the hub expects resources of attempt "+strconv.FormatInt(s.task.Inbox.Last.Attempt, 10)+" from hub "+s.task.Target.FromHub)
		return
	}
	bundle, err := message.Decode[message.ResourceBundle](data)
	if err != nil {
		a.refuse(ctx, topic, e, refusedMalformed, err.Error())
		return
	}
	a.Metrics.bundles.WithLabelValues("received").Add(float64(e.Size()))
	if err := into.add(ctx, bundle, a.Clock.Now()); err != nil && ctx.Err() == nil {
		a.refuse(ctx, topic, e, refusedMalformed, err.Error())
	}
}
