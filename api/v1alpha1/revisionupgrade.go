package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/godwit-dev/godwit"
)

// RevisionFamily is a kind of objects that are stashed in ControllerRevisions.
//
// +kubebuilder:validation:Enum=kubevirt-instancetype
type RevisionFamily string

// FamilyKubeVirtInstancetype are KubeVirt's instance types and preferences.
const FamilyKubeVirtInstancetype RevisionFamily = "kubevirt-instancetype"

// UpgradeMode is how much a trigger does.
//
// +kubebuilder:validation:Enum=Upgrade;DryRun;Verify
type UpgradeMode string

const (
	// ModeUpgrade makes upgrades.
	ModeUpgrade UpgradeMode = "Upgrade"
	// ModeDryRun counts what would be upgraded, and makes nothing.
	ModeDryRun UpgradeMode = "DryRun"
	// ModeVerify counts what is at which version, and is Ready when nothing is left
	// to upgrade.
	ModeVerify UpgradeMode = "Verify"
)

// OnRunning is what becomes of a revision that a running virtual machine uses.
//
// +kubebuilder:validation:Enum=Defer;Hold
type OnRunning string

// LossPolicy is what becomes of a revision with fields that the target version
// does not know.
//
// +kubebuilder:validation:Enum=Fail;Allow
type LossPolicy string

// RetentionPolicy is what becomes of a source that nobody refers to any more.
//
// +kubebuilder:validation:Enum=Delete;Retain
type RetentionPolicy string

// RunPolicy is how often a trigger looks for revisions.
//
// +kubebuilder:validation:Enum=Once;Continuous
type RunPolicy string

// Policies.
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

// Retention says how long a source is kept after the last reference to it is gone.
// Until then an upgrade can be rolled back.
type Retention struct {
	// Policy is Delete unless set.
	// +optional
	Policy RetentionPolicy `json:"policy,omitempty"`
	// TTL is 1h unless set.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('10m')",message="retention.ttl is at least 10m: a controller's cache may still want the source for a while"
	TTL *metav1.Duration `json:"ttl,omitempty"`
}

// LabelValue is a label's value.
//
// +kubebuilder:validation:MaxLength=63
type LabelValue string

// Selector is a label selector, with bounds within which the API server can tell
// whether it was changed.
type Selector struct {
	// MatchLabels have all of these values.
	// +optional
	// +kubebuilder:validation:MaxProperties=20
	MatchLabels map[string]LabelValue `json:"matchLabels,omitempty"`
	// MatchExpressions are all true.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=20
	MatchExpressions []SelectorRequirement `json:"matchExpressions,omitempty"`
}

// SelectorRequirement is about the values of one label.
type SelectorRequirement struct {
	// Key of the label.
	// +kubebuilder:validation:MaxLength=317
	Key string `json:"key"`
	// Operator relates it to the values.
	// +kubebuilder:validation:Enum=In;NotIn;Exists;DoesNotExist
	Operator metav1.LabelSelectorOperator `json:"operator"`
	// Values, of which In and NotIn have at least one.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=50
	Values []LabelValue `json:"values,omitempty"`
}

// Selector is the same in the field's own terms.
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

// ControllerRevisionUpgradeTrigger finds the ControllerRevisions of a family that
// hold an object at an old version of its API, and makes a
// ControllerRevisionUpgrade for each.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=crut,categories=godwit
// +kubebuilder:metadata:labels=godwit.dev/auto-migrate-storage-version=true
// +kubebuilder:printcolumn:name=Ready,type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name=Discovered,type=integer,JSONPath=`.status.counts.discovered`
// +kubebuilder:printcolumn:name=Pending,type=integer,JSONPath=`.status.counts.pending`
// +kubebuilder:printcolumn:name=Succeeded,type=integer,JSONPath=`.status.counts.succeeded`
// +kubebuilder:printcolumn:name=Droppable,type=string,JSONPath=`.status.droppableVersions`
// +kubebuilder:printcolumn:name=Reason,type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name=Age,type=date,JSONPath=`.metadata.creationTimestamp`
type ControllerRevisionUpgradeTrigger struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// What can't be changed is compared with what was there: an absent spec would be
	// compared with nothing.

	// +optional
	// +kubebuilder:default:={}
	Spec ControllerRevisionUpgradeTriggerSpec `json:"spec,omitzero"`

	// As with a CRDMigration: what nobody has looked at is not done.

	// +optional
	// +kubebuilder:default:={"observedGeneration":-1}
	Status ControllerRevisionUpgradeTriggerStatus `json:"status,omitzero"`
}

// ControllerRevisionUpgradeTriggerSpec says what to look for and what to do with
// it. Nothing of it is needed. It can't be changed afterwards, but for suspend: a
// second trigger says something else.
//
// +kubebuilder:validation:XValidation:rule="has(oldSelf.namespace) == has(self.namespace) && has(oldSelf.labelSelector) == has(self.labelSelector) && has(oldSelf.family) == has(self.family) && has(oldSelf.targetVersion) == has(self.targetVersion) && has(oldSelf.mode) == has(self.mode) && has(oldSelf.maxConcurrent) == has(self.maxConcurrent) && has(oldSelf.onRunning) == has(self.onRunning) && has(oldSelf.lossPolicy) == has(self.lossPolicy) && has(oldSelf.retention) == has(self.retention) && has(oldSelf.run) == has(self.run) && has(oldSelf.ttlSecondsAfterFinished) == has(self.ttlSecondsAfterFinished)",message="only suspend can be changed: make another trigger for something else"
type ControllerRevisionUpgradeTriggerSpec struct {
	// Namespace to look in; all unless set.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="only suspend can be changed: make another trigger for something else"
	Namespace string `json:"namespace,omitempty"`
	// LabelSelector of the objects that refer to revisions, as virtual machines; all
	// unless set.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="only suspend can be changed: make another trigger for something else"
	LabelSelector *Selector `json:"labelSelector,omitempty"`
	// Family of the stashed objects; kubevirt-instancetype unless set.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="only suspend can be changed: make another trigger for something else"
	Family RevisionFamily `json:"family,omitempty"`
	// TargetVersion to upgrade to; the storage version of the installed definition
	// unless set.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="only suspend can be changed: make another trigger for something else"
	TargetVersion string `json:"targetVersion,omitempty"`
	// Mode is Upgrade unless set.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="only suspend can be changed: make another trigger for something else"
	Mode UpgradeMode `json:"mode,omitempty"`
	// Suspend stops before the next upgrade. Nothing is lost: it goes on where it
	// stopped.
	// +optional
	Suspend bool `json:"suspend,omitempty"`
	// MaxConcurrent bounds the upgrades that are written at once; 10 unless set. Triggers
	// that say the same share it.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="only suspend can be changed: make another trigger for something else"
	MaxConcurrent *int32 `json:"maxConcurrent,omitempty"`
	// OnRunning is Defer unless set: what a running virtual machine uses is left
	// alone. Hold upgrades it, and keeps the source until the machine stops.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="only suspend can be changed: make another trigger for something else"
	OnRunning OnRunning `json:"onRunning,omitempty"`
	// LossPolicy is Fail unless set. Allow carries fields that the target version
	// does not know along, where nothing reads them.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="only suspend can be changed: make another trigger for something else"
	LossPolicy LossPolicy `json:"lossPolicy,omitempty"`
	// Retention of the sources.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="only suspend can be changed: make another trigger for something else"
	Retention *Retention `json:"retention,omitempty"`
	// Run is Once unless set. Continuous looks again and again, as for snapshots
	// that are restored late.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="only suspend can be changed: make another trigger for something else"
	Run RunPolicy `json:"run,omitempty"`
	// TTLSecondsAfterFinished removes the trigger, and the upgrades that it made, so
	// long after it is done and the last source is gone; never unless set. One that is
	// continuous is never done.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="only suspend can be changed: make another trigger for something else"
	TTLSecondsAfterFinished *int32 `json:"ttlSecondsAfterFinished,omitempty"`
}

// ControllerRevisionUpgradeTriggerStatus says what was found and what became of it.
type ControllerRevisionUpgradeTriggerStatus struct {
	// ObservedGeneration is the generation of the spec that the status is about; -1
	// before anybody has looked.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Counts of the revisions in scope.
	// +optional
	Counts *RevisionCounts `json:"counts,omitempty"`
	// VersionCounts counts all stashes of the cluster, by version and form.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=50
	VersionCounts []RevisionVersionCount `json:"versionCounts,omitempty"`
	// DroppableVersions are those at which nothing was left in the whole cluster at
	// lastScanTime. What is restored later brings a version back.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=20
	DroppableVersions []string `json:"droppableVersions,omitempty"`
	// Failures are the first revisions that need somebody.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=20
	Failures []godwit.Failure `json:"failures,omitempty"`
	// LastScanTime is when revisions were last looked for.
	// +optional
	LastScanTime *metav1.Time `json:"lastScanTime,omitempty"`
	// CompletionTime is when nothing was left to do, and no source left to remove; for one
	// that only looks, when it had looked.
	// +optional
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`
	// Conditions are Ready, Reconciling, Stalled, Discovered and VersionsDroppable.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// RevisionCounts is an exact tally of revisions.
type RevisionCounts struct {
	// Discovered are those that something in scope refers to, when it was looked for
	// work.
	Discovered int64 `json:"discovered"`
	// UpToDate are those of them that nothing had to be done about.
	UpToDate int64 `json:"upToDate"`
	// Relabelled were at the target version, with labels that said something else.
	Relabelled int64 `json:"relabelled"`
	// Pending are to be upgraded.
	Pending int64 `json:"pending"`
	// Deferred wait for something that will come, as a virtual machine that stops.
	Deferred int64 `json:"deferred"`
	// Held have a successor, and somebody who still refers to them.
	Held int64 `json:"held"`
	// Blocked are what nobody has tried, since somebody has to decide first.
	Blocked int64 `json:"blocked"`
	// Failed are what somebody has to repair.
	Failed int64 `json:"failed"`
	// Succeeded have a successor that everybody refers to.
	Succeeded int64 `json:"succeeded"`
}

// RevisionVersionCount is how many stashes speak a version, in one form.
type RevisionVersionCount struct {
	Version string `json:"version"`
	Form    string `json:"form"`
	Count   int64  `json:"count"`
}

// ControllerRevisionUpgradeTriggerList is a list of triggers.
//
// +kubebuilder:object:root=true
type ControllerRevisionUpgradeTriggerList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`

	Items []ControllerRevisionUpgradeTrigger `json:"items"`
}

// ControllerRevisionUpgrade upgrades one ControllerRevision: a successor at the
// target version takes its place, everybody who refers to it is led there, and the
// source goes when nobody has referred to it for long enough.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,shortName=cru,categories=godwit
// +kubebuilder:metadata:labels=godwit.dev/auto-migrate-storage-version=true
// +kubebuilder:printcolumn:name=Revision,type=string,JSONPath=`.spec.targetName`,priority=1
// +kubebuilder:printcolumn:name=Phase,type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name=From,type=string,JSONPath=`.status.source.version`
// +kubebuilder:printcolumn:name=To,type=string,JSONPath=`.status.replacement.version`
// +kubebuilder:printcolumn:name=Reason,type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name=Age,type=date,JSONPath=`.metadata.creationTimestamp`
type ControllerRevisionUpgrade struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`

	Spec ControllerRevisionUpgradeSpec `json:"spec"`

	// As with a CRDMigration: what nobody has looked at is not done.

	// +optional
	// +kubebuilder:default:={"observedGeneration":-1}
	Status ControllerRevisionUpgradeStatus `json:"status,omitzero"`
}

// ControllerRevisionUpgradeSpec says which revision to upgrade, and how. The name
// alone is enough. Only suspend and rollback can be changed afterwards.
//
// +kubebuilder:validation:XValidation:rule="has(oldSelf.targetUID) == has(self.targetUID) && has(oldSelf.family) == has(self.family) && has(oldSelf.targetVersion) == has(self.targetVersion) && has(oldSelf.onRunning) == has(self.onRunning) && has(oldSelf.lossPolicy) == has(self.lossPolicy) && has(oldSelf.retention) == has(self.retention)",message="only suspend and rollback can be changed: make another upgrade for something else"
type ControllerRevisionUpgradeSpec struct {
	// TargetName is the name of the ControllerRevision to upgrade.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="only suspend and rollback can be changed: make another upgrade for something else"
	TargetName string `json:"targetName"`
	// TargetUID is its UID; unless set, that of the first revision that is found by the
	// name.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="only suspend and rollback can be changed: make another upgrade for something else"
	TargetUID string `json:"targetUID,omitempty"`
	// Family of the stashed object; kubevirt-instancetype unless set.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="only suspend and rollback can be changed: make another upgrade for something else"
	Family RevisionFamily `json:"family,omitempty"`
	// TargetVersion to upgrade to; the storage version of the installed definition
	// unless set.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="only suspend and rollback can be changed: make another upgrade for something else"
	TargetVersion string `json:"targetVersion,omitempty"`
	// OnRunning is Defer unless set.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="only suspend and rollback can be changed: make another upgrade for something else"
	OnRunning OnRunning `json:"onRunning,omitempty"`
	// LossPolicy is Fail unless set.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="only suspend and rollback can be changed: make another upgrade for something else"
	LossPolicy LossPolicy `json:"lossPolicy,omitempty"`
	// Retention of the source.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="only suspend and rollback can be changed: make another upgrade for something else"
	Retention *Retention `json:"retention,omitempty"`
	// Suspend leaves everything as it is.
	// +optional
	Suspend bool `json:"suspend,omitempty"`
	// Rollback repoints references to the source, and removes the successor after the
	// retention. It is possible until the source is removed. A trigger does not undo it;
	// set it to false to upgrade again.
	// +optional
	Rollback bool `json:"rollback,omitempty"`
}

// UpgradePhase is how far an upgrade is.
//
// +kubebuilder:validation:Enum=Pending;Analyzing;Converted;Created;Repointed;Held;Retained;Succeeded;Skipped;Failed;RolledBack
type UpgradePhase string

// ControllerRevisionUpgradeStatus says how far an upgrade is.
type ControllerRevisionUpgradeStatus struct {
	// ObservedGeneration is the generation of the spec that the status is about; -1
	// before anybody has looked.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Phase for people; the conditions are for programs. Pending: nothing is written; the
	// upgrade is suspended, or waits for labels alone to be written, or for its rollback to
	// begin. Analyzing: the API server did not say what there is. Converted: what is
	// stashed can be carried to the target, and waits for a virtual machine or the like, or
	// for the API server to take it. Created: the result is there, and not everybody was
	// led to it. Repointed: everybody was, and since when could not be noted. Held: the
	// result is there, and somebody still refers to the source. Retained: nobody does, and
	// the source is kept for a while. Succeeded: the source is gone, or was at the target.
	// Skipped: there is nothing to upgrade. Failed: somebody has to do something.
	// RolledBack: everybody refers to the source again.
	// +optional
	Phase UpgradePhase `json:"phase,omitempty"`
	// Source is the revision that is upgraded, as it was found first. It stays when the
	// revision is gone.
	// +optional
	Source *RevisionSource `json:"source,omitempty"`
	// Replacement is the revision that takes its place.
	// +optional
	Replacement *RevisionReplacement `json:"replacement,omitempty"`
	// References are the first places that refer to one or the other.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=20
	References []RevisionReference `json:"references,omitempty"`
	// Losses are the first fields that the target version does not know.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=20
	Losses []string `json:"losses,omitempty"`
	// RetainedUntil is when the source may be removed; after a rollback, when the new
	// revision may be.
	// +optional
	RetainedUntil *metav1.Time `json:"retainedUntil,omitempty"`
	// Conditions are Ready, Reconciling and Stalled.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// RevisionSource is a revision as it was found.
type RevisionSource struct {
	// UID of the revision. The upgrade is about this one from then on, also where the
	// spec has its name alone.
	// +optional
	UID types.UID `json:"uid,omitempty"`
	// Version of the API that the stashed object speaks.
	// +optional
	Version string `json:"version,omitempty"`
	// Form of the data, in the family's words.
	// +optional
	Form string `json:"form,omitempty"`
	// Hash of the data: the SHA-256, in hex, of what `jq -jcS .data` prints of the
	// revision, which is its data as JSON without white space, the keys of each object in
	// order. So a backup can prove what was converted.
	// +optional
	Hash string `json:"hash,omitempty"`
	// ResourceVersion that the revision had when it was found first, before the upgrade
	// wrote anything.
	// +optional
	ResourceVersion string `json:"resourceVersion,omitempty"`
}

// RevisionReplacement is a revision that was made.
type RevisionReplacement struct {
	// Name of the revision.
	Name string `json:"name"`
	// UID of the revision.
	// +optional
	UID types.UID `json:"uid,omitempty"`
	// Version of the API that its object speaks.
	// +optional
	Version string `json:"version,omitempty"`
	// Hash of the data, made as the source's.
	// +optional
	Hash string `json:"hash,omitempty"`
}

// RevisionReference is a place that names a revision.
type RevisionReference struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Path      string `json:"path"`
	// State is Old where the place names the source, New where it names the result or what
	// is at the target anyway, Fixed where it can't be written, Implied where it names a
	// snapshot's revision and a restore looks this one up.
	State string `json:"state"`
}

// ControllerRevisionUpgradeList is a list of upgrades.
//
// +kubebuilder:object:root=true
type ControllerRevisionUpgradeList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`

	Items []ControllerRevisionUpgrade `json:"items"`
}
