package revisionupgrade

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/api/v1alpha1"
	"github.com/godwit-dev/godwit/cmd/internal/status"
	"github.com/godwit-dev/godwit/revision"
)

// TriggerLabel holds, on an upgrade, the UID of the trigger that made it.
const TriggerLabel = "godwit.dev/trigger-uid"

// finding is what a scan of a trigger's scope comes to.
type finding struct {
	counts   v1alpha1.RevisionCounts
	failures []godwit.Failure
	// wanted are the revisions that need an upgrade each.
	wanted []wanted
	// unseen upgrades exist, and were not in the cache.
	unseen int
	// others are upgrades of these revisions that another trigger or somebody has made.
	others ledger
	// byTarget are the upgrades of the namespace that is looked at, by the names of their
	// revisions.
	byTarget  map[string][]*v1alpha1.ControllerRevisionUpgrade
	namespace string
}

// wanted is a revision that needs an upgrade.
type wanted struct {
	namespace, name string
	uid             types.UID
	retained        bool // only the end of an upgrade is left
	rolledBack      bool
	pending         string // why a rollback has not ended; empty where it has
	outlived        *v1alpha1.ControllerRevisionUpgrade
}

func wantedFor(i revision.Item) wanted {
	w := wanted{namespace: i.Namespace, name: i.Name, uid: i.UID, retained: i.Reason == revision.ReasonRetained, rolledBack: !i.RolledBack.IsZero()}
	if i.Reason == revision.ReasonRollbackPending {
		w.pending = i.Message
	}
	return w
}

// foreign tells whether something is to be waited for of which no event tells.
func (f *finding) foreign() bool { return f != nil && f.others.counts != (v1alpha1.RevisionCounts{}) }

// scan looks at every revision of the scope, and says at which versions anything is left
// in the cluster. A scope that is the whole cluster is read once for both.
func (t *Triggers) scan(ctx context.Context, trigger *v1alpha1.ControllerRevisionUpgradeTrigger) (*finding, error) {
	spec := trigger.Spec
	scope, err := scopeOf(spec)
	if err != nil {
		return nil, err
	}
	u := t.Upgrader.WithPolicy(policy(spec.TargetVersion, spec.OnRunning, spec.LossPolicy, spec.Retention))
	if err := installed(ctx, u); err != nil {
		return nil, err
	}
	f := &finding{}
	asked := t.Clock.Now()
	take := func(i revision.Item) error {
		if t.Clock.Since(asked) >= countEvery {
			if err := t.isWanted(ctx, trigger); err != nil {
				return err
			}
			asked = t.Clock.Now()
		}
		if f.add(i) && upgrades(spec.Mode) {
			f.wanted = append(f.wanted, wantedFor(i))
		}
		return nil
	}
	each := take
	if scope.Namespace != "" || scope.Selector != nil {
		each = nil
		for i, err := range u.Plan(ctx, scope) {
			if err != nil {
				return nil, fmt.Errorf("look for revisions: %w", err)
			}
			if err := take(i); err != nil {
				return nil, err
			}
		}
	}
	survey, err := u.InventoryEach(ctx, each)
	if err != nil {
		return nil, fmt.Errorf("survey all revisions of the cluster: %w", err)
	}
	s := &trigger.Status
	s.VersionCounts, s.DroppableVersions = nil, survey.Droppable
	for _, v := range survey.VersionCounts {
		s.VersionCounts = append(s.VersionCounts, v1alpha1.RevisionVersionCount(v))
	}
	setInventory(trigger, survey)
	return f, nil
}

// installed is an error where none of the stashed kinds is defined: that nothing is left
// of them would be no proof.
func installed(ctx context.Context, u *revision.Upgrader) error {
	definitions, err := u.CRDs(ctx)
	if err != nil {
		return err
	}
	names := []string{}
	for resource, d := range definitions {
		if d.Found {
			return nil
		}
		names = append(names, resource.String())
	}
	slices.Sort(names)
	return status.NewStalledError(revision.ReasonCRDNotFound, "there is none of the customresourcedefinitions "+strings.Join(names, ", ")+": install KubeVirt's, or delete the trigger")
}

// errUnwanted ends a scan that nobody wants any more.
var errUnwanted = &status.Error{Summary: suspended}

// isWanted looks whether the trigger is still there and not suspended: to look at many
// revisions and to make many upgrades takes long.
func (t *Triggers) isWanted(ctx context.Context, trigger *v1alpha1.ControllerRevisionUpgradeTrigger) error {
	now := &v1alpha1.ControllerRevisionUpgradeTrigger{}
	err := t.Reader.Get(ctx, client.ObjectKeyFromObject(trigger), now)
	if apierrors.IsNotFound(err) || err == nil && (now.UID != trigger.UID || now.DeletionTimestamp != nil || now.Spec.Suspend) {
		return errUnwanted
	}
	return err
}

func scopeOf(spec v1alpha1.ControllerRevisionUpgradeTriggerSpec) (revision.Scope, error) {
	scope := revision.Scope{Namespace: spec.Namespace}
	if spec.LabelSelector == nil {
		return scope, nil
	}
	selector, err := metav1.LabelSelectorAsSelector(spec.LabelSelector.Selector())
	if err != nil {
		return scope, status.NewStalledError(ReasonInvalidSelector, fmt.Sprintf("read spec.labelSelector: %v; make another trigger", err))
	}
	scope.Selector = selector
	return scope, nil
}

// add counts a revision, and tells whether there is anything to upgrade. A source
// that is kept is no discovery: its successor is counted.
func (f *finding) add(i revision.Item) bool {
	switch i.Action {
	case revision.Unreferenced, revision.Unmanaged:
		return false
	case revision.UpToDate:
		f.counts.Discovered++
		f.counts.UpToDate++
		return false
	case revision.Deferred:
		f.counts.Deferred++
	case revision.Blocked:
		f.counts.Blocked++
		f.failures = fail(f.failures, i.Namespace, i.Name, i.Reason+": "+i.Message)
	default:
		if i.Reason == revision.ReasonRetained {
			return true
		}
		if !i.RolledBack.IsZero() {
			f.counts.Discovered++
			return true
		}
		f.counts.Pending++
	}
	f.counts.Discovered++
	return true
}

func fail(all []godwit.Failure, namespace, name, reason string) []godwit.Failure {
	if len(all) == maxSamples {
		return all
	}
	return append(all, godwit.Failure{Namespace: namespace, Name: name, Reason: reason})
}

// makeAll makes an upgrade for each revision that needs one and has none. The status says
// before the first of them what was found, and from time to time how far it is. Where none is
// missing, it says nothing.
func (t *Triggers) makeAll(ctx context.Context, w *statusWriter, f *finding) error {
	if err := t.keepMissing(ctx, w.trigger, f); err != nil {
		return err
	}
	var said time.Time
	for ; len(f.wanted) > 0; f.wanted = f.wanted[1:] {
		if t.Clock.Since(said) >= countEvery {
			if err := t.say(ctx, w, f, said.IsZero()); err != nil {
				return err
			}
			said = t.Clock.Now()
		}
		if err := t.make(ctx, w.trigger, f.wanted[0], f); err != nil {
			return err
		}
	}
	return nil
}

// keepMissing leaves in wanted the revisions whose upgrade is missing or is to be made again.
// The others are counted.
func (t *Triggers) keepMissing(ctx context.Context, trigger *v1alpha1.ControllerRevisionUpgradeTrigger, f *finding) error {
	missing := f.wanted[:0]
	for _, i := range f.wanted {
		there, err := t.upgradeOf(ctx, i, f)
		if err != nil {
			return err
		}
		switch {
		case there == nil && i.rolledBack:
			f.others.rolledBack(i.namespace, i.name, i.pending)
		case there == nil:
			missing = append(missing, i)
		case !i.retained && !i.rolledBack && outlived(there):
			i.outlived = there
			missing = append(missing, i)
		case there.Labels[TriggerLabel] != string(trigger.UID):
			f.others.add(there)
		}
	}
	f.wanted = missing
	return nil
}

// say writes what was found, and later on how far the upgrades are that have been made.
func (t *Triggers) say(ctx context.Context, w *statusWriter, f *finding, first bool) error {
	if err := t.isWanted(ctx, w.trigger); err != nil {
		return err
	}
	if !first {
		if _, err := t.stand(ctx, w.trigger, f); err != nil {
			return err
		}
		w.trigger.Status.Counts.Pending += int64(len(f.wanted))
	}
	return w.write(ctx, t.upgrading(w.trigger.Spec))
}

// make makes an upgrade. One that came to its end is deleted first, and the next scan makes
// another.
func (t *Triggers) make(ctx context.Context, trigger *v1alpha1.ControllerRevisionUpgradeTrigger, i wanted, f *finding) error {
	if i.outlived == nil {
		return t.create(ctx, upgradeFor(trigger, i), f)
	}
	f.unseen++
	return client.IgnoreNotFound(t.Client.Delete(ctx, i.outlived, client.Preconditions{UID: &i.outlived.UID}))
}

// upgradeOf finds the upgrade of a revision by what it is about, whatever it is called: a
// person may have made it. It is nil if there is none. A scan goes namespace by namespace,
// and the upgrades of one are listed once.
func (t *Triggers) upgradeOf(ctx context.Context, i wanted, f *finding) (*v1alpha1.ControllerRevisionUpgrade, error) {
	if f.byTarget == nil || f.namespace != i.namespace {
		list := &v1alpha1.ControllerRevisionUpgradeList{}
		if err := t.Client.List(ctx, list, client.InNamespace(i.namespace), client.UnsafeDisableDeepCopy); err != nil {
			return nil, fmt.Errorf("list the controllerrevisionupgrades of namespace %s: %w", i.namespace, err)
		}
		f.namespace, f.byTarget = i.namespace, map[string][]*v1alpha1.ControllerRevisionUpgrade{}
		for n := range list.Items {
			name := list.Items[n].Spec.TargetName
			f.byTarget[name] = append(f.byTarget[name], &list.Items[n])
		}
	}
	for _, one := range f.byTarget[i.name] {
		if uid := about(one); !spent(one) && (uid == i.uid || uid == "" && !ended(one)) {
			return one, nil
		}
	}
	return nil, nil
}

// spent tells an upgrade that a person made and that came to its end: nobody makes it again
// for its revision, so that a trigger makes one of its own.
func spent(one *v1alpha1.ControllerRevisionUpgrade) bool {
	return one.Labels[TriggerLabel] == "" && ended(one) && revision.Phase(one.Status.Phase) != revision.RolledBack
}

// about is the UID of the revision that an upgrade is about; empty where it is asked for by
// name alone, and none was found yet.
func about(one *v1alpha1.ControllerRevisionUpgrade) types.UID {
	if one.Spec.TargetUID == "" && one.Status.Source != nil {
		return one.Status.Source.UID
	}
	return types.UID(one.Spec.TargetUID)
}

func upgradeFor(trigger *v1alpha1.ControllerRevisionUpgradeTrigger, i wanted) *v1alpha1.ControllerRevisionUpgrade {
	spec := trigger.Spec
	return &v1alpha1.ControllerRevisionUpgrade{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: i.namespace, Name: UpgradeName(i.name, i.uid),
			Labels:          map[string]string{TriggerLabel: string(trigger.UID)},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(trigger, triggerKind)},
		},
		Spec: v1alpha1.ControllerRevisionUpgradeSpec{
			TargetName: i.name, TargetUID: string(i.uid), Family: spec.Family, TargetVersion: spec.TargetVersion,
			OnRunning: spec.OnRunning, LossPolicy: spec.LossPolicy, Retention: spec.Retention,
		},
	}
}

// create makes an upgrade. One that has the name is either this one, which the cache does
// not have yet, or about another revision: then the whole UID tells them apart.
func (t *Triggers) create(ctx context.Context, upgrade *v1alpha1.ControllerRevisionUpgrade, f *finding) error {
	f.unseen++
	err := t.Client.Create(ctx, upgrade)
	if apierrors.IsAlreadyExists(err) {
		there := &v1alpha1.ControllerRevisionUpgrade{}
		if err := t.Reader.Get(ctx, client.ObjectKeyFromObject(upgrade), there); err != nil {
			return client.IgnoreNotFound(err) // the next scan makes it
		}
		if there.Spec.TargetName == upgrade.Spec.TargetName && about(there) == about(upgrade) && !spent(there) {
			return nil
		}
		upgrade.Name = revision.WithSuffix(upgrade.Spec.TargetName, cmp.Or(upgrade.Spec.TargetUID, "gone-"+upgrade.Labels[TriggerLabel]), validation.DNS1123SubdomainMaxLength)
		err = t.Client.Create(ctx, upgrade)
	}
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create controllerrevisionupgrade %s/%s: %w", upgrade.Namespace, upgrade.Name, err)
	}
	return nil
}

// outlived tells an upgrade that a trigger made, and that came to its end, from one that
// somebody has rolled back: its revision has to be upgraded again, as where an old name
// came back by a restore or by GitOps.
func outlived(one *v1alpha1.ControllerRevisionUpgrade) bool {
	return one.Labels[TriggerLabel] != "" && one.DeletionTimestamp == nil && ended(one) && revision.Phase(one.Status.Phase) != revision.RolledBack
}

// UpgradeName is what a trigger calls the upgrade of a revision. A revision
// that is only referred to, and is gone, has no UID.
func UpgradeName(name string, uid types.UID) string {
	tail := "gone"
	if uid != "" {
		tail = string(uid[:min(len(uid), 8)])
	}
	return revision.WithSuffix(name, tail, validation.DNS1123SubdomainMaxLength)
}
