package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// ControllerRevisionUpgrade upgrades one ControllerRevision, the source: the manager creates a
// replacement at the target version, repoints all references to it, and deletes the source after
// the retention.
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

	// The default keeps kstatus from reporting an upgrade as Current that no manager has observed.

	// +optional
	// +kubebuilder:default:={"observedGeneration":-1}
	Status ControllerRevisionUpgradeStatus `json:"status,omitzero"`
}

// ControllerRevisionUpgradeSpec says which revision to upgrade, and how. Only targetName is
// required. All fields except suspend, rollback, onRunning and lossPolicy are immutable.
//
// +kubebuilder:validation:XValidation:rule="has(oldSelf.targetUID) == has(self.targetUID) && has(oldSelf.family) == has(self.family) && has(oldSelf.targetVersion) == has(self.targetVersion) && has(oldSelf.retention) == has(self.retention)",message="only suspend, rollback, onRunning and lossPolicy can be changed: create another upgrade"
type ControllerRevisionUpgradeSpec struct {
	// TargetName is the name of the ControllerRevision to upgrade.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="only suspend, rollback, onRunning and lossPolicy can be changed: create another upgrade"
	TargetName string `json:"targetName"`
	// TargetUID is the UID of this ControllerRevision. Unless set, the manager upgrades the first
	// ControllerRevision that it finds by the name.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="only suspend, rollback, onRunning and lossPolicy can be changed: create another upgrade"
	TargetUID string `json:"targetUID,omitempty"`
	// Family of the stored object; KubeVirtInstancetype unless set.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="only suspend, rollback, onRunning and lossPolicy can be changed: create another upgrade"
	Family RevisionFamily `json:"family,omitempty"`
	// TargetVersion to upgrade to; the storage version of the installed CRD unless set.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="only suspend, rollback, onRunning and lossPolicy can be changed: create another upgrade"
	TargetVersion string `json:"targetVersion,omitempty"`
	// OnRunning is that of the trigger that created the upgrade unless set, and follows its changes;
	// Defer without a trigger. A value here has precedence over that of the trigger.
	// +optional
	OnRunning OnRunning `json:"onRunning,omitempty"`
	// LossPolicy is that of the trigger that created the upgrade unless set, and follows its changes;
	// Fail without a trigger. A value here has precedence over that of the trigger.
	// +optional
	LossPolicy LossPolicy `json:"lossPolicy,omitempty"`
	// Retention says how long the source is kept.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="only suspend, rollback, onRunning and lossPolicy can be changed: create another upgrade"
	Retention *Retention `json:"retention,omitempty"`
	// Suspend stops the upgrade. When it is false again, the upgrade resumes.
	// +optional
	Suspend bool `json:"suspend,omitempty"`
	// Rollback repoints references to the source, and deletes the replacement after the retention.
	// It is possible until the source is deleted. A trigger does not undo it; set it to false to
	// upgrade again.
	// +optional
	Rollback bool `json:"rollback,omitempty"`
}

// UpgradePhase is how far an upgrade is.
//
// +kubebuilder:validation:Enum=Pending;Analyzing;Converted;Created;Repointed;InUse;Retained;Succeeded;Skipped;Failed;RolledBack
type UpgradePhase string

// ControllerRevisionUpgradeStatus says how far an upgrade is.
type ControllerRevisionUpgradeStatus struct {
	// ObservedGeneration is the generation of the spec that the status is about; -1
	// before the manager has observed the object.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Phase is for users; the conditions are for programs. Pending: nothing is written. The upgrade
	// is suspended, only writes labels, or waits for its rollback. Analyzing: the API server did not
	// return the objects. Converted: the data can be converted. The upgrade waits for a referrer, such
	// as a virtual machine, or for the API server to accept the replacement. Created: the replacement
	// exists, and references are left to repoint. Repointed: no reference to the source is left, and
	// the time of this is not recorded yet. InUse: the replacement exists, and an object still refers
	// to the source. Retained: no object refers to the source, which is kept for the retention.
	// Succeeded: the source is deleted, or was at the target version. Skipped: there is nothing to
	// upgrade. Failed: user action is required. RolledBack: all references name the source again.
	// +optional
	Phase UpgradePhase `json:"phase,omitempty"`
	// Source is the revision that is upgraded, as the manager found it first. It stays when the
	// revision is deleted.
	// +optional
	Source *RevisionSource `json:"source,omitempty"`
	// Replacement is the revision at the target version.
	// +optional
	Replacement *RevisionReplacement `json:"replacement,omitempty"`
	// References are the first references to the source or to the replacement.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=20
	References []RevisionReference `json:"references,omitempty"`
	// Losses are the first fields that the target version does not know.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=20
	Losses []string `json:"losses,omitempty"`
	// RetainedUntil is the earliest time at which the manager deletes the source or, after a rollback,
	// the replacement.
	// +optional
	RetainedUntil *metav1.Time `json:"retainedUntil,omitempty"`
	// Conditions are Ready, Reconciling and Stalled.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// RevisionSource is the old revision, as the manager found it first.
type RevisionSource struct {
	// UID of the revision. The upgrade stays with this one, also if the spec names no UID.
	// +optional
	UID types.UID `json:"uid,omitempty"`
	// Version at which the object is stored.
	// +optional
	Version string `json:"version,omitempty"`
	// Form of the data, as the family names it.
	// +optional
	Form string `json:"form,omitempty"`
	// Hash of the data: the SHA-256, in hex, of what `jq -jcS .data` prints of the revision, which
	// is its data as JSON without white space, with sorted keys. Compare it with a backup to prove
	// what was converted.
	// +optional
	Hash string `json:"hash,omitempty"`
	// ResourceVersion of the revision before the first write of the upgrade.
	// +optional
	ResourceVersion string `json:"resourceVersion,omitempty"`
}

// RevisionReplacement is the new revision.
type RevisionReplacement struct {
	// Name of the revision.
	Name string `json:"name"`
	// UID of the revision.
	// +optional
	UID types.UID `json:"uid,omitempty"`
	// Version at which the object is stored.
	// +optional
	Version string `json:"version,omitempty"`
	// Hash of the data, computed as that of the source.
	// +optional
	Hash string `json:"hash,omitempty"`
}

// RevisionReference is a field that names a revision.
type RevisionReference struct {
	// Kind of the object that has the field.
	Kind string `json:"kind"`
	// Namespace of that object, empty if it has none.
	Namespace string `json:"namespace"`
	// Name of that object.
	Name string `json:"name"`
	// Path is a JSON pointer to the field.
	Path string `json:"path"`
	// State is Old if the field names the source; New if it names the replacement or another revision
	// at the target version; Fixed if it can't be written; Implied if it names the revision of a
	// snapshot, and a restore of that snapshot needs the revision of this upgrade.
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
