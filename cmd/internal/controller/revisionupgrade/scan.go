package revisionupgrade

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-dev/godwit/api/v1alpha1"
	"github.com/godwit-dev/godwit/cmd/internal/status"
	"github.com/godwit-dev/godwit/revision"
	"github.com/godwit-dev/godwit/revision/decision"
)

// findings are the results of a scan of a trigger's scope.
type findings struct {
	counts    v1alpha1.RevisionCounts
	failures  []v1alpha1.Failure
	inventory revision.Inventory
	// unconfirmed counts the revisions that may be missing: the scan is incomplete.
	unconfirmed int64
	// candidates are the revisions that need an upgrade each.
	candidates []candidate
}

// candidate is a revision that needs an upgrade.
type candidate struct {
	namespace, name string
	uid             types.UID
	atRisk          bool // KubeVirt may delete it at any time
	retained        bool // all references name the replacement
	rolledBack      bool
	pending         string // why a rollback has not ended; empty if it has
}

func candidateFor(i decision.Item) candidate {
	c := candidate{namespace: i.Namespace, name: i.Name, uid: i.UID, atRisk: i.InDanger(), retained: i.Reason == decision.ReasonRetained, rolledBack: !i.RolledBack.IsZero()}
	if i.Reason == decision.ReasonRollbackPending {
		c.pending = i.Message
	}
	return c
}

// add counts a revision. It reports whether the revision needs an upgrade. It does not count a retained source, whose
// replacement is counted.
func (f *findings) add(i decision.Item) bool {
	switch i.Action {
	case decision.Unreferenced, decision.Unmanaged:
		return false
	case decision.UpToDate:
		f.counts.Discovered++
		f.counts.UpToDate++
		return false
	case decision.Deferred:
		f.counts.Deferred++
		if i.Reason == decision.ReasonUnconfirmed {
			f.unconfirmed++
		}
	case decision.Blocked:
		f.counts.Blocked++
		f.failures = appendFailure(f.failures, i.Namespace, i.Name, i.Reason.String(), i.Message)
	default:
		if i.Reason == decision.ReasonRetained {
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

// setInventory sets the conditions about the scan and about the versions that can be dropped.
func setInventory(trigger *v1alpha1.ControllerRevisionUpgradeTrigger, f *findings) {
	i := f.inventory
	complete, reason, message := true, ReasonScanned, "every revision in scope was scanned"
	if f.unconfirmed > 0 {
		complete, reason = false, decision.ReasonUnconfirmed
		message = fmt.Sprintf("the scan is incomplete: it did not find %d revisions that references name, and did not read them again", f.unconfirmed)
	}
	if len(i.UnknownStorageVersions) > 0 {
		message += fmt.Sprintf("; the CRDs store %s, to which this release converts nothing: a later release of Godwit may", strings.Join(i.UnknownStorageVersions, ", "))
	}
	status.SetCondition(trigger, v1alpha1.ConditionDiscovered, complete, reason.Name, message)
	if len(i.InUse) > 0 {
		first := i.InUse[0]
		status.SetCondition(trigger, v1alpha1.ConditionVersionsDroppable, false, ReasonVersionsInUse.Name,
			fmt.Sprintf("%s is used by %s", first.Version, strings.Join(first.UsedBy, ", ")))
		return
	}
	status.SetCondition(trigger, v1alpha1.ConditionVersionsDroppable, true, ReasonSucceeded.Name, "nothing is left at "+strings.Join(i.Droppable, ", "))
}

// scan reads every revision in scope, and the versions at which the cluster stores objects. If the scope is the whole
// cluster, one pass reads both.
func (t *Triggers) scan(ctx context.Context, trigger *v1alpha1.ControllerRevisionUpgradeTrigger) (*findings, error) {
	spec := trigger.Spec
	scope, err := scopeOf(spec)
	if err != nil {
		return nil, err
	}
	u := t.Upgrader.WithPolicy(policy(spec.TargetVersion, spec.OnRunning, spec.LossPolicy, spec.Retention))
	if err := requireCRD(ctx, u); err != nil {
		return nil, err
	}
	f := &findings{}
	checked := t.Clock.Now()
	take := func(i decision.Item) error {
		if t.Clock.Since(checked) >= status.Interval {
			if err := t.requireActive(ctx, trigger); err != nil {
				return err
			}
			checked = t.Clock.Now()
		}
		if f.add(i) && createsUpgrades(spec.Mode) {
			f.candidates = append(f.candidates, candidateFor(i))
		}
		return nil
	}
	if scope.Namespace != "" || scope.Selector != nil {
		if err := takeEach(ctx, u, scope, take); err != nil {
			return nil, err
		}
		take = nil // the inventory is of the whole cluster
	}
	if f.inventory, err = u.InventoryEach(ctx, take); err != nil {
		return nil, fmt.Errorf("make an inventory of the cluster's revisions: %w", err)
	}
	return f, nil
}

func takeEach(ctx context.Context, u *revision.Upgrader, scope revision.Scope, take func(decision.Item) error) error {
	for i, err := range u.Plan(ctx, scope) {
		if err != nil {
			return fmt.Errorf("scan for revisions: %w", err)
		}
		if err := take(i); err != nil {
			return err
		}
	}
	return nil
}

// requireCRD returns an error if no CRD of the family is installed: an empty scan would prove nothing.
func requireCRD(ctx context.Context, u *revision.Upgrader) error {
	crds, err := u.CRDs(ctx)
	if err != nil {
		return err
	}
	names := []string{}
	for resource, crd := range crds {
		if crd.Found {
			return nil
		}
		names = append(names, resource.String())
	}
	slices.Sort(names)
	return status.NewStalledError(decision.ReasonCRDNotFound.Name, "the cluster has none of the CRDs "+strings.Join(names, ", ")+": install those of KubeVirt, or delete the trigger")
}

// errInactive ends the pass of a trigger that was suspended or deleted meanwhile.
var errInactive = &status.Error{Summary: suspended}

// requireActive returns an error if the trigger was deleted or suspended: a scan and the creation of upgrades may take minutes.
func (t *Triggers) requireActive(ctx context.Context, trigger *v1alpha1.ControllerRevisionUpgradeTrigger) error {
	now := &v1alpha1.ControllerRevisionUpgradeTrigger{}
	err := t.Reader.Get(ctx, client.ObjectKeyFromObject(trigger), now)
	if apierrors.IsNotFound(err) || err == nil && (now.UID != trigger.UID || now.DeletionTimestamp != nil || now.Spec.Suspend) {
		return errInactive
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
		return scope, status.NewStalledError(ReasonInvalidSelector.Name, fmt.Sprintf("read spec.labelSelector: %v; create another trigger", err))
	}
	scope.Selector = selector
	return scope, nil
}
