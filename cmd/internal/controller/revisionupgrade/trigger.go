package revisionupgrade

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/api/v1alpha1"
	"github.com/godwit-dev/godwit/revision"
)

// TriggerLabel holds, on an upgrade, the UID of the trigger that made it.
const TriggerLabel = "godwit.dev/trigger-uid"

// defaultScanEvery is how often a continuous trigger looks for revisions. A look
// reads every virtual machine and revision of its scope.
const defaultScanEvery = 10 * time.Minute

// countEvery bounds how often a trigger counts its upgrades: each count is a write
// to whoever watches.
const countEvery = 5 * time.Second

// Triggers makes upgrades and keeps count of them.
type Triggers struct {
	Client   client.Client
	Recorder events.EventRecorder
	Upgrader *revision.Upgrader
	Clock    clock.PassiveClock
	// ScanEvery is how often a continuous trigger looks; 0 means ten minutes.
	ScanEvery time.Duration
}

func (t *Triggers) scanEvery() time.Duration {
	if t.ScanEvery > 0 {
		return t.ScanEvery
	}
	return defaultScanEvery
}

// What it needs to look, and to make upgrades and remove what is done.
// +kubebuilder:rbac:groups=godwit.dev,resources=controllerrevisionupgradetriggers,verbs=get;list;watch;delete
// +kubebuilder:rbac:groups=godwit.dev,resources=controllerrevisionupgradetriggers/status,verbs=patch
// +kubebuilder:rbac:groups=godwit.dev,resources=controllerrevisionupgrades,verbs=get;list;watch;create
// Clusters that guard owner references ask for this of whoever names an owner.
// +kubebuilder:rbac:groups=godwit.dev,resources=controllerrevisionupgradetriggers/finalizers,verbs=update
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch,namespace=default

// SetupWithManager registers the reconciler. What happens to an upgrade is counted
// by its trigger.
func (t *Triggers) SetupWithManager(mgr manager.Manager) error {
	return builder.ControllerManagedBy(mgr).
		Named("revisionupgradetrigger").
		For(&v1alpha1.ControllerRevisionUpgradeTrigger{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&v1alpha1.ControllerRevisionUpgrade{}, handler.EnqueueRequestForOwner(mgr.GetScheme(), mgr.GetRESTMapper(), &v1alpha1.ControllerRevisionUpgradeTrigger{})).
		Complete(t)
}

// Reconcile scans when it is time to, counts, and says where everything stands.
func (t *Triggers) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	trigger := &v1alpha1.ControllerRevisionUpgradeTrigger{}
	if err := t.Client.Get(ctx, req.NamespacedName, trigger); err != nil || trigger.DeletionTimestamp != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	before := trigger.DeepCopy()
	v, pause, err := t.advance(ctx, trigger)
	if ctx.Err() != nil {
		return reconcile.Result{}, nil //nolint:nilerr // the manager stops; the next one begins with a scan
	}
	if err != nil {
		v = verdict{working: true, reason: revision.ReasonUnanswered, message: err.Error()}
	}
	trigger.Status.ObservedGeneration = trigger.Generation
	setConditions(&trigger.Status.Conditions, trigger.Generation, v)
	if failed := t.write(ctx, before, trigger); failed != nil {
		return reconcile.Result{}, errors.Join(err, failed)
	}
	if changed(before.Status.Conditions, v) {
		v.announce(t.Recorder, trigger, "UpgradeRevisions")
	}
	return reconcile.Result{RequeueAfter: pause}, err
}

func (t *Triggers) advance(ctx context.Context, trigger *v1alpha1.ControllerRevisionUpgradeTrigger) (verdict, time.Duration, error) {
	s := &trigger.Status
	if trigger.Spec.Suspend {
		return verdict{stalled: true, reason: ReasonSuspended, message: "spec.suspend says so; set it to false to go on"}, 0, nil
	}
	if s.CompletionTime != nil && trigger.Spec.Run != v1alpha1.RunContinuous {
		return t.finished(ctx, trigger)
	}
	if s.LastScanTime == nil || t.Clock.Since(s.LastScanTime.Time) >= t.scanEvery() {
		if err := t.scan(ctx, trigger); err != nil {
			return verdict{}, 0, err
		}
	}
	return t.count(ctx, trigger)
}

// finished waits for the end of its time, and leaves.
func (t *Triggers) finished(ctx context.Context, trigger *v1alpha1.ControllerRevisionUpgradeTrigger) (verdict, time.Duration, error) {
	done := verdict{ready: true, reason: ReasonSucceeded, message: "nothing is left to upgrade"}
	if m := trigger.Spec.Mode; m == v1alpha1.ModeDryRun || m == v1alpha1.ModeVerify {
		done = looked(m, *trigger.Status.Counts)
	}
	if trigger.Spec.TTLSecondsAfterFinished == nil {
		return done, 0, nil
	}
	left := time.Duration(*trigger.Spec.TTLSecondsAfterFinished)*time.Second - t.Clock.Since(trigger.Status.CompletionTime.Time)
	if left > 0 {
		return done, left, nil
	}
	return done, 0, client.IgnoreNotFound(t.Client.Delete(ctx, trigger, client.Preconditions{UID: &trigger.UID}))
}

// scan looks at every revision of the scope, and makes an upgrade for each that
// needs one and has none.
func (t *Triggers) scan(ctx context.Context, trigger *v1alpha1.ControllerRevisionUpgradeTrigger) error {
	spec := trigger.Spec
	scope := revision.Scope{Namespace: spec.Namespace}
	if spec.LabelSelector != nil {
		selector, err := metav1.LabelSelectorAsSelector(spec.LabelSelector.Selector())
		if err != nil {
			return fmt.Errorf("read spec.labelSelector: %w", err)
		}
		scope.Selector = selector
	}
	u := t.Upgrader.With(policy(spec.TargetVersion, spec.OnRunning, spec.LossPolicy, spec.Retention))
	counts := &v1alpha1.RevisionCounts{}
	for i, err := range u.Plan(ctx, scope) {
		if err != nil {
			return fmt.Errorf("look for revisions: %w", err)
		}
		counts.Discovered++
		switch i.Action {
		case revision.UpToDate:
			counts.UpToDate++
		case revision.Orphan, revision.NotMine:
		default:
			counts.Pending++
			if err := t.make(ctx, trigger, i); err != nil {
				return err
			}
		}
	}
	trigger.Status.Counts = counts
	trigger.Status.LastScanTime = &metav1.Time{Time: t.Clock.Now()}
	return t.survey(ctx, trigger, u)
}

// survey says which versions can be dropped.
func (t *Triggers) survey(ctx context.Context, trigger *v1alpha1.ControllerRevisionUpgradeTrigger, u *revision.Upgrader) error {
	survey, err := u.Survey(ctx)
	if err != nil {
		return fmt.Errorf("survey all revisions of the cluster: %w", err)
	}
	s := &trigger.Status
	s.Census, s.DroppableVersions = nil, survey.Droppable
	for _, v := range survey.Census {
		s.Census = append(s.Census, v1alpha1.RevisionVersionCount(v))
	}
	setSurvey(&s.Conditions, trigger.Generation, survey)
	return nil
}

// make makes an upgrade, unless the revision has one.
func (t *Triggers) make(ctx context.Context, trigger *v1alpha1.ControllerRevisionUpgradeTrigger, i revision.Item) error {
	if m := trigger.Spec.Mode; m != "" && m != v1alpha1.ModeUpgrade || i.UID == "" {
		return nil
	}
	spec := trigger.Spec
	upgrade := &v1alpha1.ControllerRevisionUpgrade{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: i.Namespace, Name: UpgradeName(i.Name, i.UID),
			Labels:          map[string]string{TriggerLabel: string(trigger.UID)},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(trigger, v1alpha1.GroupVersion.WithKind("ControllerRevisionUpgradeTrigger"))},
		},
		Spec: v1alpha1.ControllerRevisionUpgradeSpec{
			TargetName: i.Name, TargetUID: string(i.UID), Family: spec.Family, TargetVersion: spec.TargetVersion,
			OnRunning: spec.OnRunning, LossPolicy: spec.LossPolicy, Retention: spec.Retention,
		},
	}
	if t.Client.Get(ctx, client.ObjectKeyFromObject(upgrade), &v1alpha1.ControllerRevisionUpgrade{}) == nil {
		return nil
	}
	if err := t.Client.Create(ctx, upgrade); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create controllerrevisionupgrade %s/%s: %w", upgrade.Namespace, upgrade.Name, err)
	}
	return nil
}

// UpgradeName is the name of a revision's upgrade: one revision has one.
func UpgradeName(name string, uid types.UID) string {
	return revision.EndIn(name, string(uid[:min(len(uid), 8)]), validation.DNS1123SubdomainMaxLength)
}

// count sums up what became of the upgrades.
func (t *Triggers) count(ctx context.Context, trigger *v1alpha1.ControllerRevisionUpgradeTrigger) (verdict, time.Duration, error) {
	list := &v1alpha1.ControllerRevisionUpgradeList{}
	mine := labels.SelectorFromSet(labels.Set{TriggerLabel: string(trigger.UID)})
	if err := t.Client.List(ctx, list, client.MatchingLabelsSelector{Selector: mine}); err != nil {
		return verdict{}, 0, fmt.Errorf("list controllerrevisionupgrades: %w", err)
	}
	s := &trigger.Status
	counts := v1alpha1.RevisionCounts{}
	if s.Counts != nil {
		counts.Discovered, counts.UpToDate = s.Counts.Discovered, s.Counts.UpToDate
	}
	if m := trigger.Spec.Mode; m == v1alpha1.ModeDryRun || m == v1alpha1.ModeVerify {
		if s.CompletionTime == nil {
			s.CompletionTime = &metav1.Time{Time: t.Clock.Now().Truncate(time.Second)}
		}
		return looked(m, *s.Counts), 0, nil
	}
	s.Failures = nil
	for _, one := range list.Items {
		tally(&counts, one)
		if revision.Phase(one.Status.Phase) == revision.Failed && len(s.Failures) < maxSamples {
			s.Failures = append(s.Failures, godwit.Failure{Namespace: one.Namespace, Name: one.Spec.TargetName, Reason: why(one)})
		}
	}
	s.Counts = &counts
	return t.conclude(ctx, trigger, counts)
}

func (t *Triggers) write(ctx context.Context, before, after *v1alpha1.ControllerRevisionUpgradeTrigger) error {
	patch := client.MergeFrom(before)
	if data, err := patch.Data(after); err != nil || string(data) == "{}" {
		return err
	}
	err := client.IgnoreNotFound(t.Client.Status().Patch(ctx, after, patch, client.FieldOwner(fieldManager)))
	if err != nil {
		return fmt.Errorf("write the status of controllerrevisionupgradetrigger %s: %w", after.Name, err)
	}
	return nil
}
