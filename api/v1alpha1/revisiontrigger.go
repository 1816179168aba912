package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ControllerRevisionUpgradeTrigger finds the ControllerRevisions of a family that store an object at
// an old version of its API, and creates a ControllerRevisionUpgrade for each.
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

	// The API server compares an immutable field with its former value. Without the default, an
	// absent spec would have none.

	// +optional
	// +kubebuilder:default:={}
	Spec ControllerRevisionUpgradeTriggerSpec `json:"spec,omitzero"`

	// The default keeps kstatus from reporting a trigger as Current that no manager has observed.

	// +optional
	// +kubebuilder:default:={"observedGeneration":-1}
	Status ControllerRevisionUpgradeTriggerStatus `json:"status,omitzero"`
}

// ControllerRevisionUpgradeTriggerSpec says which revisions to upgrade, and how. Every field is
// optional. All fields except suspend, onRunning and lossPolicy are immutable.
//
// +kubebuilder:validation:XValidation:rule="has(oldSelf.namespace) == has(self.namespace) && has(oldSelf.labelSelector) == has(self.labelSelector) && has(oldSelf.family) == has(self.family) && has(oldSelf.targetVersion) == has(self.targetVersion) && has(oldSelf.mode) == has(self.mode) && has(oldSelf.maxConcurrent) == has(self.maxConcurrent) && has(oldSelf.retention) == has(self.retention) && has(oldSelf.run) == has(self.run) && has(oldSelf.ttlSecondsAfterFinished) == has(self.ttlSecondsAfterFinished)",message="only suspend, onRunning and lossPolicy can be changed: create another trigger"
type ControllerRevisionUpgradeTriggerSpec struct {
	// Namespace to scan; all namespaces unless set.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="only suspend, onRunning and lossPolicy can be changed: create another trigger"
	Namespace string `json:"namespace,omitempty"`
	// LabelSelector of the objects that refer to revisions, such as virtual machines; all objects
	// unless set.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="only suspend, onRunning and lossPolicy can be changed: create another trigger"
	LabelSelector *Selector `json:"labelSelector,omitempty"`
	// Family of the stored objects; KubeVirtInstancetype unless set.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="only suspend, onRunning and lossPolicy can be changed: create another trigger"
	Family RevisionFamily `json:"family,omitempty"`
	// TargetVersion to upgrade to; the storage version of the installed CRD unless set.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="only suspend, onRunning and lossPolicy can be changed: create another trigger"
	TargetVersion string `json:"targetVersion,omitempty"`
	// Mode is Upgrade unless set.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="only suspend, onRunning and lossPolicy can be changed: create another trigger"
	Mode UpgradeMode `json:"mode,omitempty"`
	// Suspend stops the trigger before the next upgrade. When it is false again, the trigger
	// resumes.
	// +optional
	Suspend bool `json:"suspend,omitempty"`
	// MaxConcurrent bounds the upgrades that are written at once; 10 unless set. Triggers with the
	// same value share it.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="only suspend, onRunning and lossPolicy can be changed: create another trigger"
	MaxConcurrent *int32 `json:"maxConcurrent,omitempty"`
	// OnRunning is Defer unless set: a revision that a running virtual machine uses stays as it is,
	// unless the installed KubeVirt can't read it. Hold upgrades it, and keeps the source until the
	// virtual machine stops. A change is for each upgrade of the trigger that has not ended and has
	// no onRunning of its own.
	// +optional
	OnRunning OnRunning `json:"onRunning,omitempty"`
	// LossPolicy is Fail unless set. Allow upgrades a revision with fields that the target version
	// does not know. The data keeps these fields, and no client reads them. A change is for each
	// upgrade of the trigger that has not ended and has no lossPolicy of its own.
	// +optional
	LossPolicy LossPolicy `json:"lossPolicy,omitempty"`
	// Retention says how long sources are kept.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="only suspend, onRunning and lossPolicy can be changed: create another trigger"
	Retention *Retention `json:"retention,omitempty"`
	// Run is Once unless set. Continuous scans again every ten minutes, such as for snapshots that
	// are restored later.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="only suspend, onRunning and lossPolicy can be changed: create another trigger"
	Run RunPolicy `json:"run,omitempty"`
	// TTLSecondsAfterFinished is the time after which the manager deletes the trigger and its
	// upgrades. It starts when the trigger has completed and the last source is deleted. Unless set,
	// the manager deletes neither. A continuous trigger never completes.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="only suspend, onRunning and lossPolicy can be changed: create another trigger"
	TTLSecondsAfterFinished *int32 `json:"ttlSecondsAfterFinished,omitempty"`
}

// ControllerRevisionUpgradeTriggerStatus says what the trigger found, and how far the upgrades are.
type ControllerRevisionUpgradeTriggerStatus struct {
	// ObservedGeneration is the generation of the spec that the status is about; -1 before the
	// manager has observed the object.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Counts of the revisions in scope.
	// +optional
	Counts *RevisionCounts `json:"counts,omitempty"`
	// VersionCounts counts all ControllerRevisions of the family in the cluster, by version and form.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=50
	VersionCounts []RevisionVersionCount `json:"versionCounts,omitempty"`
	// DroppableVersions are the versions at which the cluster stored no object at lastScanTime. A
	// restore from a backup can bring a version back.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=20
	DroppableVersions []string `json:"droppableVersions,omitempty"`
	// Failures are the first revisions that need user action.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=20
	Failures []Failure `json:"failures,omitempty"`
	// LastScanTime is when the trigger last scanned for revisions.
	// +optional
	LastScanTime *metav1.Time `json:"lastScanTime,omitempty"`
	// CompletionTime is when no revision was left to upgrade, and no source to delete. With the modes
	// DryRun and Verify it is when the scan ended.
	// +optional
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`
	// Conditions are Ready, Reconciling, Stalled, Discovered and VersionsDroppable.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// RevisionCounts counts revisions. Each revision is in one count besides discovered.
type RevisionCounts struct {
	// Discovered counts the revisions that an object in scope referred to during the scan.
	Discovered int64 `json:"discovered"`
	// UpToDate counts the revisions that needed no upgrade.
	UpToDate int64 `json:"upToDate"`
	// Relabelled counts the revisions that were at the target version already, and got the labels of
	// that version.
	Relabelled int64 `json:"relabelled"`
	// Pending counts the revisions whose upgrade is not complete.
	Pending int64 `json:"pending"`
	// Deferred counts the revisions that wait for another object, such as a virtual machine that runs.
	Deferred int64 `json:"deferred"`
	// InUse counts the revisions that have a replacement and to which an object still refers.
	InUse int64 `json:"inUse"`
	// Blocked counts the revisions that wait for a decision of the user. Nothing was tried.
	Blocked int64 `json:"blocked"`
	// Failed counts the revisions whose upgrade failed and needs user action.
	Failed int64 `json:"failed"`
	// Succeeded counts the revisions whose references all name the replacement.
	Succeeded int64 `json:"succeeded"`
}

// RevisionVersionCount is the number of revisions with data at one version in one form.
type RevisionVersionCount struct {
	// Version at which the objects are stored.
	Version string `json:"version"`
	// Form of the data, as the family names it.
	Form string `json:"form"`
	// Count is the number of revisions.
	Count int64 `json:"count"`
}

// ControllerRevisionUpgradeTriggerList is a list of triggers.
//
// +kubebuilder:object:root=true
type ControllerRevisionUpgradeTriggerList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`

	Items []ControllerRevisionUpgradeTrigger `json:"items"`
}
