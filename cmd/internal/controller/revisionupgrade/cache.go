package revisionupgrade

import (
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/godwit-dev/godwit/api/v1alpha1"
	"github.com/godwit-dev/godwit/internal/format"
	"github.com/godwit-dev/godwit/revision"
)

// NewCacheTransform returns the transform of the manager's cache. It drops the managedFields of all objects, which are
// half of a small object. A cluster has an upgrade for each revision, even long after its end. So the cache keeps only
// the fields of an upgrade that the controllers use for decisions, and stores values that many upgrades share only
// once. The rest of the status is read from the API server before it is written.
//
// The cache keeps these fields of an upgrade: the metadata that identifies the upgrade and its trigger, and the format
// of its state; the spec; in the status, the observed generation and the phase, the UID of the source if the spec has
// none, whether a replacement exists, and whether a rolled-back upgrade retains its new revision; of the condition
// Ready, the status and the reason, and the message if the upgrade failed.
func NewCacheTransform() cache.TransformFunc {
	s := &sharedValues{
		texts: map[string]string{}, labels: map[string]map[string]string{}, owners: map[types.UID][]metav1.OwnerReference{},
		retentions: map[retentionKey]*v1alpha1.Retention{}, conditions: map[metav1.Condition][]metav1.Condition{},
	}
	strip := ctrlcache.TransformStripManagedFields()
	return func(o any) (any, error) {
		if upgrade, is := o.(*v1alpha1.ControllerRevisionUpgrade); is {
			s.mu.Lock()
			defer s.mu.Unlock()
			return s.reduce(upgrade), nil
		}
		return strip(o)
	}
}

// sharedValues has the values that many upgrades share: namespaces, triggers, versions, policies and reasons.
type sharedValues struct {
	mu         sync.Mutex
	texts      map[string]string
	labels     map[string]map[string]string          // by the UID of the trigger
	owners     map[types.UID][]metav1.OwnerReference // by the UID of the trigger
	retentions map[retentionKey]*v1alpha1.Retention
	conditions map[metav1.Condition][]metav1.Condition
}

// replaced is a placeholder for any replacement.
var replaced = &v1alpha1.RevisionReplacement{}

func (s *sharedValues) reduce(full *v1alpha1.ControllerRevisionUpgrade) *v1alpha1.ControllerRevisionUpgrade {
	out := &v1alpha1.ControllerRevisionUpgrade{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: s.text(full.Namespace), Name: full.Name, UID: full.UID, ResourceVersion: full.ResourceVersion,
			Generation: full.Generation, DeletionTimestamp: full.DeletionTimestamp, Labels: s.labelsOf(full), OwnerReferences: s.ownersOf(full),
		},
		Spec: full.Spec,
	}
	if of, ok := full.Annotations[format.Annotation]; ok {
		out.Annotations = map[string]string{format.Annotation: of}
	}
	if target := full.Spec.TargetName; strings.HasPrefix(out.Name, target) {
		out.Spec.TargetName = out.Name[:len(target)] // one string in memory
	}
	out.Spec.Family = v1alpha1.RevisionFamily(s.text(string(full.Spec.Family)))
	out.Spec.TargetVersion = s.text(full.Spec.TargetVersion)
	out.Spec.OnRunning = v1alpha1.OnRunning(s.text(string(full.Spec.OnRunning)))
	out.Spec.LossPolicy = v1alpha1.LossPolicy(s.text(string(full.Spec.LossPolicy)))
	out.Spec.Retention = s.retention(full.Spec.Retention)
	s.reduceStatus(&out.Status, full)
	return out
}

func (s *sharedValues) reduceStatus(out *v1alpha1.ControllerRevisionUpgradeStatus, full *v1alpha1.ControllerRevisionUpgrade) {
	in := &full.Status
	out.ObservedGeneration, out.Phase = in.ObservedGeneration, v1alpha1.UpgradePhase(s.text(string(in.Phase)))
	if full.Spec.TargetUID == "" && in.Source != nil {
		out.Source = &v1alpha1.RevisionSource{UID: in.Source.UID}
	}
	if in.Replacement != nil {
		out.Replacement = replaced
	}
	if phaseOf(full) == revision.RolledBack {
		out.RetainedUntil = in.RetainedUntil
	}
	ready := meta.FindStatusCondition(in.Conditions, v1alpha1.ConditionReady)
	if ready == nil {
		return
	}
	kept := metav1.Condition{Type: v1alpha1.ConditionReady, Status: metav1.ConditionStatus(s.text(string(ready.Status))), Reason: s.text(ready.Reason)}
	if phaseOf(full) == revision.Failed {
		kept.Message = ready.Message
		out.Conditions = []metav1.Condition{kept}
		return
	}
	out.Conditions = shared(s.conditions, kept, []metav1.Condition{kept})
}

func (s *sharedValues) text(of string) string { return shared(s.texts, of, of) }

func (s *sharedValues) labelsOf(full *v1alpha1.ControllerRevisionUpgrade) map[string]string {
	uid, labelled := full.Labels[TriggerLabel]
	if !labelled {
		return nil
	}
	return shared(s.labels, uid, map[string]string{TriggerLabel: uid})
}

func (s *sharedValues) ownersOf(full *v1alpha1.ControllerRevisionUpgrade) []metav1.OwnerReference {
	owner := triggerOf(full)
	if owner.UID == "" {
		return nil
	}
	return shared(s.owners, owner.UID, []metav1.OwnerReference{owner})
}

func (s *sharedValues) retention(of *v1alpha1.Retention) *v1alpha1.Retention {
	if of == nil {
		return nil
	}
	key := retentionKey{policy: of.Policy}
	if of.TTL != nil {
		key.limited, key.ttl = true, of.TTL.Duration
	}
	return shared(s.retentions, key, of)
}

// retentionKey is a Retention by value.
type retentionKey struct {
	policy  v1alpha1.RetentionPolicy
	limited bool
	ttl     time.Duration
}

// shared returns the first value that was passed for a key.
func shared[K comparable, V any](values map[K]V, key K, value V) V {
	if known, found := values[key]; found {
		return known
	}
	values[key] = value
	return value
}
