package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// RevisionFamily names a family of objects that ControllerRevisions store.
//
// +kubebuilder:validation:Enum=KubeVirtInstancetype
type RevisionFamily string

// FamilyKubeVirtInstancetype is the family of KubeVirt's instance types and preferences.
const FamilyKubeVirtInstancetype RevisionFamily = "KubeVirtInstancetype"

// UpgradeMode says what a trigger does with the revisions that it finds.
//
// +kubebuilder:validation:Enum=Upgrade;DryRun;Verify
type UpgradeMode string

const (
	// ModeUpgrade creates upgrades.
	ModeUpgrade UpgradeMode = "Upgrade"
	// ModeDryRun counts what would be upgraded, and creates no upgrade.
	ModeDryRun UpgradeMode = "DryRun"
	// ModeVerify counts the revisions at each version. The trigger is Ready when nothing is left to
	// upgrade, and Stalled otherwise.
	ModeVerify UpgradeMode = "Verify"
)

// OnRunning says what happens to a revision that a running virtual machine uses.
//
// +kubebuilder:validation:Enum=Defer;Hold
type OnRunning string

// LossPolicy says what happens to a revision with fields that the target version does not
// know.
//
// +kubebuilder:validation:Enum=Fail;Allow
type LossPolicy string

// RetentionPolicy says what happens to a source that no object refers to any more.
//
// +kubebuilder:validation:Enum=Delete;Retain
type RetentionPolicy string

// RunPolicy says how often a trigger scans for revisions.
//
// +kubebuilder:validation:Enum=Once;Continuous
type RunPolicy string

// Policies. Defer leaves a revision that a running virtual machine uses as it is. Hold upgrades it,
// and keeps the source until the virtual machine stops. Fail refuses to upgrade a revision with
// losses, Allow upgrades it. Delete removes sources after the retention, Retain keeps them.
const (
	OnRunningDefer  OnRunning       = "Defer"
	OnRunningHold   OnRunning       = "Hold"
	LossFail        LossPolicy      = "Fail"
	LossAllow       LossPolicy      = "Allow"
	RetentionDelete RetentionPolicy = "Delete"
	RetentionRetain RetentionPolicy = "Retain"
	RunOnce         RunPolicy       = "Once"
	RunContinuous   RunPolicy       = "Continuous"
)

// Retention says how long a source is kept after the last reference to it is repointed. Until then
// the upgrade can be rolled back.
type Retention struct {
	// Policy is Delete unless set.
	// +optional
	Policy RetentionPolicy `json:"policy,omitempty"`
	// TTL is 1h unless set.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('10m')",message="retention.ttl is at least 10m: a controller with a stale cache may still read the source"
	TTL *metav1.Duration `json:"ttl,omitempty"`
}

// LabelValue is the value of a label.
//
// +kubebuilder:validation:MaxLength=63
type LabelValue string

// Selector is a label selector of bounded size. Without the bounds, the API server refuses the rule
// that compares the selector with its former value, because the rule could cost too much.
type Selector struct {
	// MatchLabels are labels that an object must have with these values.
	// +optional
	// +kubebuilder:validation:MaxProperties=20
	MatchLabels map[string]LabelValue `json:"matchLabels,omitempty"`
	// MatchExpressions are requirements that an object must meet, all of them.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=20
	MatchExpressions []SelectorRequirement `json:"matchExpressions,omitempty"`
}

// SelectorRequirement is a requirement for one label.
type SelectorRequirement struct {
	// Key of the label.
	// +kubebuilder:validation:MaxLength=317
	Key string `json:"key"`
	// Operator compares the label with the values.
	// +kubebuilder:validation:Enum=In;NotIn;Exists;DoesNotExist
	Operator metav1.LabelSelectorOperator `json:"operator"`
	// Values of the label. In and NotIn need at least one.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=50
	Values []LabelValue `json:"values,omitempty"`
}

// Selector returns the selector as the type that package metav1 evaluates.
func (s *Selector) Selector() *metav1.LabelSelector {
	if s == nil {
		return nil
	}
	out := &metav1.LabelSelector{}
	for k, v := range s.MatchLabels {
		if out.MatchLabels == nil {
			out.MatchLabels = map[string]string{}
		}
		out.MatchLabels[k] = string(v)
	}
	for _, r := range s.MatchExpressions {
		one := metav1.LabelSelectorRequirement{Key: r.Key, Operator: r.Operator}
		for _, v := range r.Values {
			one.Values = append(one.Values, string(v))
		}
		out.MatchExpressions = append(out.MatchExpressions, one)
	}
	return out
}
