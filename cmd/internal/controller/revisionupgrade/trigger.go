package revisionupgrade

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/godwit-dev/godwit/api/v1alpha1"
	"github.com/godwit-dev/godwit/cmd/internal/status"
	"github.com/godwit-dev/godwit/revision"
)

var triggerKind = v1alpha1.GroupVersion.WithKind("ControllerRevisionUpgradeTrigger")

// defaultScanEvery is how often a continuous trigger looks for revisions. A look
// reads every virtual machine and revision of its scope.
const defaultScanEvery = 10 * time.Minute

// countEvery bounds how often a trigger counts its upgrades: each count is a write
// to whoever watches.
const countEvery = 5 * time.Second

// Triggers makes upgrades and keeps count of them.
type Triggers struct {
	Client client.Client
	// Reader asks the API server itself: a trigger whose scan has just been written
	// down must not be taken from a cache for one that nobody has looked at.
	Reader   client.Reader
	Recorder events.EventRecorder
	Upgrader *revision.Upgrader
	Clock    clock.PassiveClock
	// ScanEvery is how often a continuous trigger looks; 0 means ten minutes.
	ScanEvery time.Duration
	// MaxWritesPerSecond is the limit that upgrades keep to; 0 means none. It is only told.
	MaxWritesPerSecond float64
}

// What it needs to look, and to make upgrades and remove what is done.
// +kubebuilder:rbac:groups=godwit.dev,resources=controllerrevisionupgradetriggers,verbs=get;list;watch;delete
// +kubebuilder:rbac:groups=godwit.dev,resources=controllerrevisionupgradetriggers/status,verbs=patch
// +kubebuilder:rbac:groups=godwit.dev,resources=controllerrevisionupgrades,verbs=get;list;watch;create;delete
// Clusters that guard owner references ask for this of whoever names an owner.
// +kubebuilder:rbac:groups=godwit.dev,resources=controllerrevisionupgradetriggers/finalizers,verbs=update
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch,namespace=default

// SetupWithManager registers the reconciler. What happens to an upgrade is counted
// by its trigger.
func (t *Triggers) SetupWithManager(mgr manager.Manager) error {
	return builder.ControllerManagedBy(mgr).
		Named("revisionupgradetrigger").
		For(&v1alpha1.ControllerRevisionUpgradeTrigger{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&v1alpha1.ControllerRevisionUpgrade{}, counted()).
		Complete(t)
}

// counted has the trigger of an upgrade look a while after the upgrade has changed:
// what changes until then waits for the same look.
func counted() handler.EventHandler {
	wait := func(o client.Object, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
		if by := triggerOf(o); by.Name != "" {
			q.AddAfter(reconcile.Request{NamespacedName: types.NamespacedName{Name: by.Name}}, countEvery)
		}
	}
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			wait(e.Object, q)
		},
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			wait(e.ObjectNew, q)
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			wait(e.Object, q)
		},
	}
}

// Reconcile scans when it is time to, counts, and writes how far the upgrades are.
func (t *Triggers) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	trigger := &v1alpha1.ControllerRevisionUpgradeTrigger{}
	if err := t.Reader.Get(ctx, req.NamespacedName, trigger); err != nil || trigger.DeletionTimestamp != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	w := t.writerFor(trigger)
	s, pause, err := t.advance(ctx, w)
	if ctx.Err() != nil {
		return reconcile.Result{}, nil //nolint:nilerr // the manager stops; the next one begins with a scan
	}
	if err != nil {
		s = errorSummary(err)
	}
	if _, found := status.FromError(err); found {
		err, pause = nil, rare
	}
	if failed := w.write(ctx, s); failed != nil {
		return reconcile.Result{}, errors.Join(err, failed)
	}
	return reconcile.Result{RequeueAfter: pause}, err
}

// statusWriter writes the status of a trigger that is being reconciled.
type statusWriter struct {
	*status.Writer[*v1alpha1.ControllerRevisionUpgradeTrigger]
	*Triggers
	trigger *v1alpha1.ControllerRevisionUpgradeTrigger // with the status to write
}

func (t *Triggers) writerFor(trigger *v1alpha1.ControllerRevisionUpgradeTrigger) *statusWriter {
	return &statusWriter{Writer: status.NewWriter(t.Client, t.Reader, trigger), Triggers: t, trigger: trigger}
}

// write sends the status as it is now, and an event if the reason is another one.
func (w *statusWriter) write(ctx context.Context, s status.Summary) error {
	known := w.Known().Status.Conditions
	s.Apply(w.trigger)
	next := w.trigger.Status.DeepCopy()
	if err := w.Write(ctx, func(now *v1alpha1.ControllerRevisionUpgradeTrigger) { now.Status = *next }); err != nil {
		return err
	}
	if !s.SameReason(known) {
		s.Announce(w.Recorder, w.trigger, "UpgradeRevisions")
	}
	return nil
}

// advance takes a trigger as far as it can go now, and says when to come back if
// nothing happens; zero is never.
func (t *Triggers) advance(ctx context.Context, w *statusWriter) (status.Summary, time.Duration, error) {
	trigger := w.trigger
	s, spec := &trigger.Status, trigger.Spec
	switch {
	case spec.Suspend:
		return suspended, 0, nil
	case s.CompletionTime != nil && !continuous(spec):
		return t.finished(ctx, trigger)
	}
	var f *finding
	var err error
	if t.due(trigger) {
		if f, err = t.discover(ctx, w); err != nil {
			return status.Summary{}, 0, err
		}
	}
	v, err := t.stand(ctx, trigger, f)
	if err == nil && f == nil && v.State == status.StateReady && news(trigger, v) {
		if f, err = t.discover(ctx, w); err == nil {
			v, err = t.stand(ctx, trigger, f)
		}
	}
	switch {
	case err != nil:
		return status.Summary{}, 0, err
	case f != nil && f.unseen > 0: // nobody can count them yet
		s.CompletionTime = nil
		return t.upgrading(spec), countEvery, nil
	case upgrades(spec.Mode) && (v.State != status.StateReady || v.Reason == ReasonSourcesRetained):
		s.CompletionTime = nil
		return v, t.untilScan(trigger, f), nil
	}
	return t.complete(ctx, trigger, v)
}

// discover scans, and makes the upgrades that are missing. Only then the scan is over: a
// manager that ends before that scans again. One that only confirms that nothing is left
// does not count: what has been upgraded is up to date by then.
func (t *Triggers) discover(ctx context.Context, w *statusWriter) (*finding, error) {
	f, err := t.scan(ctx, w.trigger)
	if err != nil {
		return nil, err
	}
	s, at := &w.trigger.Status, metav1.Time{Time: t.Clock.Now()}
	if t.due(w.trigger) {
		s.Counts, s.Failures = &f.counts, f.failures
	}
	if err := t.makeAll(ctx, w, f); err != nil {
		return nil, err
	}
	s.LastScanTime = &at
	return f, nil
}

// news tells whether a Summary is to be confirmed by a scan. All that was found is led
// to its successor, and is that all there is? The last source is gone, and at which
// versions is anything left?
func news(trigger *v1alpha1.ControllerRevisionUpgradeTrigger, v status.Summary) bool {
	known := meta.FindStatusCondition(trigger.Status.Conditions, v1alpha1.ConditionReady)
	return known == nil || known.Status != metav1.ConditionTrue || known.Reason != v.Reason
}

func continuous(spec v1alpha1.ControllerRevisionUpgradeTriggerSpec) bool {
	return spec.Run == v1alpha1.RunContinuous
}

// upgrades tells the mode that does from those that only look.
func upgrades(m v1alpha1.UpgradeMode) bool { return m == "" || m == v1alpha1.ModeUpgrade }

// due tells whether it is time to look for revisions: once, or again and again.
func (t *Triggers) due(trigger *v1alpha1.ControllerRevisionUpgradeTrigger) bool {
	last := trigger.Status.LastScanTime
	return last == nil || continuous(trigger.Spec) && t.Clock.Since(last.Time) >= t.scanEvery()
}

// untilScan is how long until the next look; zero where events will tell.
func (t *Triggers) untilScan(trigger *v1alpha1.ControllerRevisionUpgradeTrigger, f *finding) time.Duration {
	if !continuous(trigger.Spec) && !f.foreign() {
		return 0
	}
	return max(t.scanEvery()-t.Clock.Since(trigger.Status.LastScanTime.Time), time.Second)
}

func (t *Triggers) scanEvery() time.Duration {
	if t.ScanEvery > 0 {
		return t.ScanEvery
	}
	return defaultScanEvery
}

// complete notes that nothing is left to do.
func (t *Triggers) complete(ctx context.Context, trigger *v1alpha1.ControllerRevisionUpgradeTrigger, v status.Summary) (status.Summary, time.Duration, error) {
	if trigger.Status.CompletionTime == nil {
		trigger.Status.CompletionTime = &metav1.Time{Time: t.Clock.Now().Truncate(time.Second)}
	}
	if continuous(trigger.Spec) {
		return v, t.untilScan(trigger, nil), nil
	}
	return t.finished(ctx, trigger)
}

// finished waits for the end of its time, and leaves.
func (t *Triggers) finished(ctx context.Context, trigger *v1alpha1.ControllerRevisionUpgradeTrigger) (status.Summary, time.Duration, error) {
	done := t.summaryOf(trigger.Spec, *trigger.Status.Counts)
	if trigger.Spec.TTLSecondsAfterFinished == nil {
		return done, 0, nil
	}
	left := time.Duration(*trigger.Spec.TTLSecondsAfterFinished)*time.Second - t.Clock.Since(trigger.Status.CompletionTime.Time)
	if left > 0 {
		return done, left, nil
	}
	return done, 0, client.IgnoreNotFound(t.Client.Delete(ctx, trigger, client.Preconditions{UID: &trigger.UID}))
}
