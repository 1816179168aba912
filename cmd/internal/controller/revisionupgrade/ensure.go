package revisionupgrade

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-dev/godwit/api/v1alpha1"
	"github.com/godwit-dev/godwit/revision"
	"github.com/godwit-dev/godwit/revision/decision"
)

// ensurer creates the upgrades that candidates need and do not have.
type ensurer struct {
	client  client.Client // reads the cache
	reader  client.Reader // asks the API server
	trigger *v1alpha1.ControllerRevisionUpgradeTrigger

	// upgrades of one namespace, by the names of their revisions. A scan goes namespace by namespace, so that each is listed once.
	namespace string
	byTarget  map[string][]*v1alpha1.ControllerRevisionUpgrade
}

// existing are the existing upgrades of candidates.
type existing struct {
	// missing are the candidates without an upgrade.
	missing []missing
	// others counts the upgrades of other triggers and of users, and revisions that were rolled back.
	others tally
}

// missing is a candidate without an upgrade, or with one that ended and is created again.
type missing struct {
	candidate
	ended *v1alpha1.ControllerRevisionUpgrade
}

// find separates the candidates with an upgrade from those without one, of which those come first that KubeVirt may delete at any
// time.
func (e *ensurer) find(ctx context.Context, candidates []candidate) (existing, error) {
	var x existing
	for _, c := range candidates {
		one, err := e.upgradeOf(ctx, c)
		if err != nil {
			return existing{}, err
		}
		switch {
		case one == nil && c.rolledBack:
			x.others.addRolledBack(c.namespace, c.name, c.pending)
		case one == nil:
			x.missing = append(x.missing, missing{candidate: c})
		case !c.retained && !c.rolledBack && isRepeatable(one):
			x.missing = append(x.missing, missing{c, one})
		case one.Labels[TriggerLabel] != string(e.trigger.UID):
			x.others.add(one)
		}
	}
	slices.SortStableFunc(x.missing, func(a, b missing) int {
		switch {
		case a.atRisk == b.atRisk:
			return 0
		case a.atRisk:
			return -1
		}
		return 1
	})
	return x, nil
}

// upgradeOf returns the upgrade of a revision, or nil. It compares the spec: a user may have chosen any name.
func (e *ensurer) upgradeOf(ctx context.Context, c candidate) (*v1alpha1.ControllerRevisionUpgrade, error) {
	if e.byTarget == nil || e.namespace != c.namespace {
		list := &v1alpha1.ControllerRevisionUpgradeList{}
		if err := e.client.List(ctx, list, client.InNamespace(c.namespace), client.UnsafeDisableDeepCopy); err != nil {
			return nil, fmt.Errorf("list the controllerrevisionupgrades of namespace %s: %w", c.namespace, err)
		}
		e.namespace, e.byTarget = c.namespace, map[string][]*v1alpha1.ControllerRevisionUpgrade{}
		for i := range list.Items {
			name := list.Items[i].Spec.TargetName
			e.byTarget[name] = append(e.byTarget[name], &list.Items[i])
		}
	}
	for _, one := range e.byTarget[c.name] {
		if uid := sourceUID(one); !isUsedUp(one) && (uid == c.uid || uid == "" && !isFinished(one)) {
			return one, nil
		}
	}
	return nil, nil
}

// isUsedUp reports whether an upgrade of a user has ended. It is not created again; the trigger creates its own.
func isUsedUp(one *v1alpha1.ControllerRevisionUpgrade) bool {
	return one.Labels[TriggerLabel] == "" && isFinished(one) && phaseOf(one) != revision.RolledBack
}

// isRepeatable reports whether an upgrade of a trigger has ended without a rollback. Its revision may need another
// upgrade, for example after a restore, or if GitOps sets an old name again.
func isRepeatable(one *v1alpha1.ControllerRevisionUpgrade) bool {
	return one.Labels[TriggerLabel] != "" && one.DeletionTimestamp == nil && isFinished(one) && phaseOf(one) != revision.RolledBack
}

// ensure creates an upgrade. It deletes one that ended; the next scan creates another.
func (e *ensurer) ensure(ctx context.Context, m missing) error {
	if m.ended != nil {
		return client.IgnoreNotFound(e.client.Delete(ctx, m.ended, client.Preconditions{UID: &m.ended.UID}))
	}
	return e.create(ctx, upgradeFor(e.trigger, m.candidate))
}

// create creates an upgrade. If the name is taken, the existing upgrade is either the same one, which the cache does
// not have yet, or is about another revision: then create uses the whole UID in the name.
func (e *ensurer) create(ctx context.Context, upgrade *v1alpha1.ControllerRevisionUpgrade) error {
	err := e.client.Create(ctx, upgrade)
	if apierrors.IsAlreadyExists(err) {
		other := &v1alpha1.ControllerRevisionUpgrade{}
		if err := e.reader.Get(ctx, client.ObjectKeyFromObject(upgrade), other); err != nil {
			return client.IgnoreNotFound(err) // the next scan creates it
		}
		if other.Spec.TargetName == upgrade.Spec.TargetName && sourceUID(other) == sourceUID(upgrade) && !isUsedUp(other) {
			return nil
		}
		upgrade.Name = decision.WithSuffix(upgrade.Spec.TargetName, cmp.Or(upgrade.Spec.TargetUID, "gone-"+upgrade.Labels[TriggerLabel]), validation.DNS1123SubdomainMaxLength)
		err = e.client.Create(ctx, upgrade)
	}
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create controllerrevisionupgrade %s/%s: %w", upgrade.Namespace, upgrade.Name, err)
	}
	return nil
}

func upgradeFor(trigger *v1alpha1.ControllerRevisionUpgradeTrigger, c candidate) *v1alpha1.ControllerRevisionUpgrade {
	spec := trigger.Spec
	return &v1alpha1.ControllerRevisionUpgrade{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: c.namespace, Name: UpgradeName(c.name, c.uid),
			Labels:          map[string]string{TriggerLabel: string(trigger.UID)},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(trigger, triggerKind)},
		},
		Spec: v1alpha1.ControllerRevisionUpgradeSpec{
			TargetName: c.name, TargetUID: string(c.uid), Family: spec.Family, TargetVersion: spec.TargetVersion,
			Retention: spec.Retention, // it has the settings of the trigger without a copy
		},
	}
}

// UpgradeName returns the name that a trigger gives to the upgrade of a revision. A missing revision has no UID.
func UpgradeName(name string, uid types.UID) string {
	tail := "gone"
	if uid != "" {
		tail = string(uid[:min(len(uid), 8)])
	}
	return decision.WithSuffix(name, tail, validation.DNS1123SubdomainMaxLength)
}
