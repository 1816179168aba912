package revisionupgrade

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/godwit-dev/godwit/api/v1alpha1"
	"github.com/godwit-dev/godwit/cmd/internal/status"
	"github.com/godwit-dev/godwit/revision"
)

// namespacesAtOnce share one limiter; most of their time is spent waiting for
// answers.
const namespacesAtOnce = 4

// What it needs to know who refers to revisions, to make and remove them, and to
// lead references from one to the other.
// +kubebuilder:rbac:groups=godwit.dev,resources=controllerrevisionupgrades,verbs=get;list;watch
// +kubebuilder:rbac:groups=godwit.dev,resources=controllerrevisionupgrades/status,verbs=patch
// +kubebuilder:rbac:groups=apiextensions.k8s.io,resources=customresourcedefinitions,verbs=get
// +kubebuilder:rbac:groups=apps,resources=controllerrevisions,verbs=get;list;create;update;delete
// +kubebuilder:rbac:groups=kubevirt.io,resources=virtualmachines,verbs=get;list;patch
// +kubebuilder:rbac:groups=kubevirt.io,resources=virtualmachines/status,verbs=patch
// +kubebuilder:rbac:groups=snapshot.kubevirt.io,resources=virtualmachinesnapshotcontents,verbs=get;list;patch
// +kubebuilder:rbac:groups=snapshot.kubevirt.io,resources=virtualmachinerestores,verbs=list
// +kubebuilder:rbac:groups=pool.kubevirt.io,resources=virtualmachinepools,verbs=get;list;patch
// A namespace that is being deleted is no reason to restore anything from a backup.
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=get
// Clusters that guard owner references ask for this of whoever names an owner.
// +kubebuilder:rbac:groups=kubevirt.io,resources=virtualmachines/finalizers,verbs=update
// +kubebuilder:rbac:groups=snapshot.kubevirt.io,resources=virtualmachinesnapshots/finalizers,verbs=update
// Events about upgrades are in their namespaces.
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Upgrades advances the ControllerRevisionUpgrades of one namespace at a time.
type Upgrades struct {
	Client client.Client
	// Reader asks the API server: after a conflict a cache may have the status that conflicts.
	Reader   client.Reader
	Recorder events.EventRecorder
	Upgrader *revision.Upgrader
	Clock    clock.PassiveClock

	mu     sync.Mutex
	atOnce map[int]*revision.Upgrader         // by how many revisions all of its copies write at once
	next   map[string]map[types.UID]time.Time // when upgrades of a namespace are to be looked at again
}

// SetupWithManager registers the reconciler. A request is a namespace. Where a trigger
// is suspended, or no longer is, all namespaces are looked at in which it has upgrades.
func (u *Upgrades) SetupWithManager(mgr manager.Manager) error {
	ofNamespace := handler.EnqueueRequestsFromMapFunc(func(_ context.Context, o client.Object) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: o.GetNamespace()}}}
	})
	changed := builder.WithPredicates(predicate.GenerationChangedPredicate{})
	return builder.ControllerManagedBy(mgr).
		Named("revisionupgrade").
		Watches(&v1alpha1.ControllerRevisionUpgrade{}, ofNamespace, changed).
		Watches(&v1alpha1.ControllerRevisionUpgradeTrigger{}, handler.EnqueueRequestsFromMapFunc(u.namespacesOf), changed).
		WithOptions(controller.Options{MaxConcurrentReconciles: namespacesAtOnce}).
		Complete(u)
}

func (u *Upgrades) namespacesOf(ctx context.Context, trigger client.Object) []reconcile.Request {
	list := &v1alpha1.ControllerRevisionUpgradeList{}
	if err := u.Client.List(ctx, list, client.MatchingLabels{TriggerLabel: string(trigger.GetUID())}, client.UnsafeDisableDeepCopy); err != nil {
		log.FromContext(ctx).Error(err, "List controllerrevisionupgrades", "trigger", trigger.GetName())
		return nil
	}
	found := map[string]bool{}
	for _, one := range list.Items {
		found[one.Namespace] = true
	}
	var all []reconcile.Request
	for name := range found {
		all = append(all, reconcile.Request{NamespacedName: types.NamespacedName{Name: name}})
	}
	return all
}

// Reconcile takes the upgrades of a namespace whose turn it is as far as they can go now.
func (u *Upgrades) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	triggers, err := u.triggers(ctx)
	if err != nil {
		return reconcile.Result{}, err
	}
	open, err := u.open(ctx, req.Name, triggers)
	if err != nil {
		return reconcile.Result{}, err
	}
	turn, pause := u.turn(req.Name, open)
	if len(turn) == 0 {
		return reconcile.Result{RequeueAfter: pause}, nil
	}
	upgrader, err := u.atMost(slowest(turn, triggers))
	if err != nil {
		return reconcile.Result{}, err
	}
	wishes := make([]revision.Request, len(turn))
	for i, one := range turn {
		wishes[i] = wish(one)
	}
	began := u.Clock.Now()
	results, err := upgrader.Advance(ctx, req.Name, wishes)
	if ctx.Err() != nil {
		return reconcile.Result{}, nil //nolint:nilerr // the manager stops; whoever comes next sees in the cluster how far it is
	}
	if err != nil && results == nil {
		results = unread(wishes, err)
	}
	now := u.Clock.Now()
	patience := min(max(later, 10*now.Sub(began)), rare)
	for i, r := range results {
		if r.Phase == revision.Pending && r.ResourceVersion == "" {
			continue // the pass ended before anybody looked
		}
		wait := nextLook(r, now, patience)
		u.lookAgain(turn[i], now.Add(wait))
		pause = sooner(pause, wait)
		err = errors.Join(err, u.record(ctx, turn[i], r))
	}
	return reconcile.Result{RequeueAfter: pause}, err
}

// turnUpgrades bounds how long it takes until somebody who suspends an upgrade or rolls
// it back is heard: at twenty writes a second, about a minute.
const turnUpgrades = 200

// turn are the upgrades to look at now: those that are new or changed, and those whose
// time has come. Those whose write was refused go along with any turn: a webhook may take
// the references of several upgrades only together. Without a turn it is how long until
// there is one; where there are more than one turn takes, the next comes at once.
func (u *Upgrades) turn(namespace string, open []*v1alpha1.ControllerRevisionUpgrade) (turn []*v1alpha1.ControllerRevisionUpgrade, pause time.Duration) {
	u.mu.Lock()
	defer u.mu.Unlock()
	now, known, next := u.Clock.Now(), u.next[namespace], map[types.UID]time.Time{}
	var refused []*v1alpha1.ControllerRevisionUpgrade
	for _, one := range open {
		at := known[one.UID]
		switch {
		case one.Status.ObservedGeneration == one.Generation && at.After(now):
			next[one.UID] = at
			pause = sooner(pause, at.Sub(now))
			if stalledBy(one) == revision.ReasonRefused {
				refused = append(refused, one)
			}
		case len(turn) < turnUpgrades:
			turn = append(turn, one)
		default:
			pause = time.Millisecond
		}
	}
	if len(turn) > 0 {
		turn = append(turn, refused[:min(len(refused), turnUpgrades-len(turn))]...)
	}
	if u.next == nil {
		u.next = map[string]map[types.UID]time.Time{}
	}
	u.next[namespace] = next
	if len(open) == 0 {
		delete(u.next, namespace)
	}
	return turn, pause
}

// stalledBy is the reason of an upgrade that is Stalled; empty if it is not.
func stalledBy(one *v1alpha1.ControllerRevisionUpgrade) string {
	if c := meta.FindStatusCondition(one.Status.Conditions, v1alpha1.ConditionStalled); c != nil && c.Status == metav1.ConditionTrue {
		return c.Reason
	}
	return ""
}

func (u *Upgrades) lookAgain(one *v1alpha1.ControllerRevisionUpgrade, at time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.next[one.Namespace][one.UID] = at
}

// unread is where upgrades stand of whose namespace not everything could be read.
func unread(wishes []revision.Request, err error) []revision.Result {
	why := errorSummary(err)
	all := make([]revision.Result, len(wishes))
	for i, w := range wishes {
		all[i] = revision.Result{Item: revision.Item{Name: w.Name, Reason: why.Reason, Message: why.Message}, Phase: revision.Analyzing}
	}
	return all
}

// triggers are all that are to stay, by UID.
func (u *Upgrades) triggers(ctx context.Context) (map[types.UID]v1alpha1.ControllerRevisionUpgradeTriggerSpec, error) {
	list := &v1alpha1.ControllerRevisionUpgradeTriggerList{}
	if err := u.Client.List(ctx, list); err != nil {
		return nil, fmt.Errorf("list controllerrevisionupgradetriggers: %w", err)
	}
	all := map[types.UID]v1alpha1.ControllerRevisionUpgradeTriggerSpec{}
	for _, t := range list.Items {
		if t.DeletionTimestamp == nil {
			all[t.UID] = t.Spec
		}
	}
	return all, nil
}

// triggerOf an upgrade; one that people made has none, and no UID there.
func triggerOf(upgrade metav1.Object) metav1.OwnerReference {
	by := metav1.GetControllerOfNoCopy(upgrade)
	if by == nil || by.Kind != triggerKind.Kind {
		return metav1.OwnerReference{}
	}
	return *by
}

// defaultAtOnce is how many revisions are upgraded at once where no trigger says.
const defaultAtOnce = 10

// slowest is how many revisions the most careful of the upgrades' triggers has
// upgraded at once.
func slowest(open []*v1alpha1.ControllerRevisionUpgrade, triggers map[types.UID]v1alpha1.ControllerRevisionUpgradeTriggerSpec) int {
	n := 0
	for _, one := range open {
		says := defaultAtOnce
		if said := triggers[triggerOf(one).UID].MaxConcurrent; said != nil {
			says = int(*said)
		}
		if n == 0 || says < n {
			n = says
		}
	}
	return n
}

// atMost is the upgrader that writes no more than n revisions at once, wherever they
// are.
func (u *Upgrades) atMost(n int) (*revision.Upgrader, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.atOnce[n] == nil {
		narrow, err := u.Upgrader.WithMaxInFlight(n)
		if err != nil {
			return nil, err
		}
		if u.atOnce == nil {
			u.atOnce = map[int]*revision.Upgrader{}
		}
		u.atOnce[n] = narrow
	}
	return u.atOnce[n], nil
}

// open are the upgrades of a namespace that are not at an end, and that nobody has told
// to wait. One whose trigger is gone, or going, goes along.
func (u *Upgrades) open(ctx context.Context, namespace string, triggers map[types.UID]v1alpha1.ControllerRevisionUpgradeTriggerSpec) ([]*v1alpha1.ControllerRevisionUpgrade, error) {
	list := &v1alpha1.ControllerRevisionUpgradeList{}
	if err := u.Client.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("list controllerrevisionupgrades of %s: %w", namespace, err)
	}
	var open []*v1alpha1.ControllerRevisionUpgrade
	for i := range list.Items {
		one := &list.Items[i]
		by := triggerOf(one).UID
		trigger, known := triggers[by]
		switch {
		case one.DeletionTimestamp != nil, ended(one), trigger.Suspend, by != "" && !known:
		case one.Spec.Suspend:
			if err := u.suspend(ctx, one); err != nil {
				return nil, err
			}
		default:
			open = append(open, one)
		}
	}
	return open, nil
}

// ended upgrades are left alone, but for one that is to be rolled back, or whose new
// revision is kept after a rollback.
func ended(one *v1alpha1.ControllerRevisionUpgrade) bool {
	phase := revision.Phase(one.Status.Phase)
	keeps := phase == revision.RolledBack && one.Status.RetainedUntil != nil
	return one.Status.ObservedGeneration == one.Generation && phase.Ended() && !keeps
}

// again tells an upgrade that a person has asked for, though its revision was rolled back,
// from one that a trigger has made: it was made by hand, or its spec changed since. It is
// so until the upgrade has begun, which removes the mark from the revision.
func again(one *v1alpha1.ControllerRevisionUpgrade) bool {
	begun := !slices.Contains([]revision.Phase{"", revision.Pending, revision.Analyzing}, revision.Phase(one.Status.Phase))
	asked := one.Labels[TriggerLabel] == "" || one.Generation > 1
	return asked && !one.Spec.Rollback && (!begun || one.Status.ObservedGeneration < one.Generation)
}

// wish is about the one revision that was found first, where the spec names any.
func wish(one *v1alpha1.ControllerRevisionUpgrade) revision.Request {
	spec, uid := one.Spec, types.UID(one.Spec.TargetUID)
	if found := one.Status.Source; uid == "" && found != nil {
		uid = found.UID
	}
	p := policy(spec.TargetVersion, spec.OnRunning, spec.LossPolicy, spec.Retention)
	return revision.Request{Name: spec.TargetName, UID: uid, Policy: &p, Rollback: spec.Rollback, AfterRollback: again(one)}
}

func policy(target string, running v1alpha1.OnRunning, losses v1alpha1.LossPolicy, r *v1alpha1.Retention) revision.Policy {
	p := revision.Policy{Target: target, OnRunning: revision.OnRunning(running), AllowLosses: losses == v1alpha1.LossAllow}
	if r != nil {
		p.Retain = r.Policy == v1alpha1.RetentionRetain
		if r.TTL != nil {
			p.Retention = r.TTL.Duration
		}
	}
	return p
}

func (u *Upgrades) suspend(ctx context.Context, one *v1alpha1.ControllerRevisionUpgrade) error {
	return u.writerFor(one).Write(ctx, func(now *v1alpha1.ControllerRevisionUpgrade) {
		if now.Status.Phase == "" {
			now.Status.Phase = v1alpha1.UpgradePhase(revision.Pending)
		}
		suspended.Apply(now)
	})
}

// record writes what became of an upgrade, and announces a new phase.
func (u *Upgrades) record(ctx context.Context, one *v1alpha1.ControllerRevisionUpgrade, r revision.Result) error {
	s, w := summaryOf(r), u.writerFor(one)
	err := w.Write(ctx, func(now *v1alpha1.ControllerRevisionUpgrade) {
		if again(now) && r.Phase == revision.Analyzing {
			now.Status.Phase = v1alpha1.UpgradePhase(r.Phase) // the mark is still on the revision
		}
		fill(&now.Status, r)
		s.Apply(now)
	})
	if err == nil && w.Known().Status.Phase != one.Status.Phase {
		s.Announce(u.Recorder, one, "UpgradeRevision")
	}
	return err
}

func (u *Upgrades) writerFor(one *v1alpha1.ControllerRevisionUpgrade) *status.Writer[*v1alpha1.ControllerRevisionUpgrade] {
	return status.NewWriter(u.Client, u.Reader, one)
}

const (
	soon  = 15 * time.Second // somebody else wrote, or a server did not answer
	later = time.Minute      // a virtual machine is to stop, a reference to go
	rare  = 10 * time.Minute // somebody is to repair something
)

// dateResolution is that of the Date header, by which the API server's clock is read.
const dateResolution = time.Second

// nextLook is when to look at an upgrade the next time; zero is never. What waits for others
// is looked at with patience, so that looking takes a tenth of the time at most.
func nextLook(r revision.Result, now time.Time, patience time.Duration) time.Duration {
	switch {
	case r.Phase == revision.InUse && r.Reason == revision.ReasonChanged:
		return patience // other clients keep changing it
	case r.Reason == revision.ReasonUnanswered, r.Reason == revision.ReasonChanged:
		return soon
	case r.Reason == revision.ReasonForbidden:
		return rare
	case r.Reason == revision.ReasonDangling:
		return later // the virtual machine may stop
	case r.Reason == revision.ReasonRetained:
		if left := r.Until.Sub(now); left > 0 {
			return left + dateResolution
		}
		return patience // this clock is ahead of the API server's, by which the retention counts
	case r.Phase == revision.RolledBack && !r.Until.IsZero():
		return patience // what keeps its new revision is to go
	case r.Phase.Ended():
		return 0
	case r.Phase == revision.Failed:
		return rare // a repair may be made
	case r.Phase == revision.Retained && r.Until.IsZero():
		return rare // a reference may come back
	}
	return patience
}

// sooner of two pauses, of which zero is none.
func sooner(a, b time.Duration) time.Duration {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}
