package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/godwit-dev/godwit"
)

// CRDMigration carries the objects of the CustomResourceDefinition that it is
// named after to that definition's storage version.
//
// The manager makes one, with an empty spec, for every definition in its scope
// that has something to migrate. Users make their own for any other definition.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=crdm,categories=godwit
// +kubebuilder:metadata:labels=godwit.dev/auto-migrate-storage-version=true
// +kubebuilder:printcolumn:name=Ready,type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name=Storage,type=string,JSONPath=`.status.storageVersion`
// +kubebuilder:printcolumn:name=Stored,type=string,JSONPath=`.status.storedVersions`
// +kubebuilder:printcolumn:name=Progress,type=string,JSONPath=`.status.progress`
// +kubebuilder:printcolumn:name=Reason,type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name=Age,type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.contains('.')",message="a CRDMigration is named after its CustomResourceDefinition, as in widgets.example.com: see kubectl get crd"
type CRDMigration struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// +optional
	Spec CRDMigrationSpec `json:"spec,omitzero"`

	// The API server drops the status of what is created, and sets the default with
	// every read: without it, kstatus would take what nobody has looked at for done.

	// +optional
	// +kubebuilder:default:={"observedGeneration":-1}
	Status CRDMigrationStatus `json:"status,omitzero"`
}

// Phase is one of the two things that are done to objects which outlive a version.
//
// +kubebuilder:validation:Enum=StorageVersionMigration;CleanupManagedFields
type Phase string

// Write is how an object is written again.
//
// +kubebuilder:validation:Enum=patch;status-patch;update;apply;status-apply
type Write string

// CRDMigrationSpec says how to migrate. What is not set is as the manager is
// configured.
//
// +kubebuilder:validation:XValidation:rule="!has(self.trim) || !self.trim || !has(self.phases) || 'StorageVersionMigration' in self.phases",message="trim: true needs the phase StorageVersionMigration: without it nobody knows at which version objects are stored"
type CRDMigrationSpec struct {
	// Suspend stops the migration before the next page of objects. Nothing is lost:
	// it goes on where it stopped.
	// +optional
	Suspend bool `json:"suspend,omitempty"`
	// Phases that are run; both unless set.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=2
	Phases []Phase `json:"phases,omitempty"`
	// Write is how an object is written: patch sends an empty merge patch, the
	// others are for webhooks and conventions that ask for them.
	// +optional
	Write Write `json:"write,omitempty"`
	// Settle is how long after a change of the storage version the first write may be
	// sent; 0s means as soon as every API server is known to use it.
	// +optional
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('0s') && duration(self) <= duration('24h')",message="settle is a duration from 0s to 24h, as in 75s"
	Settle *metav1.Duration `json:"settle,omitempty"`
	// Trim says whether the old versions are removed from the definition's
	// status.storedVersions in the end.
	// +optional
	Trim *bool `json:"trim,omitempty"`
	// MaxInFlight bounds the requests of this migration that are under way at once.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=256
	MaxInFlight *int32 `json:"maxInFlight,omitempty"`
	// MaxWritesPerSecond bounds the writes of this migration that start within a
	// second.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100000
	MaxWritesPerSecond *int32 `json:"maxWritesPerSecond,omitempty"`
}

// CRDMigrationStatus says how far a migration is.
type CRDMigrationStatus struct {
	// ObservedGeneration is the generation of the spec that the status is about; -1
	// before anybody has looked.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// CRDUID is the definition's UID: one that is made again is another one.
	// +optional
	CRDUID types.UID `json:"crdUID,omitempty"`
	// CRDGeneration is the generation of the definition.
	// +optional
	CRDGeneration int64 `json:"crdGeneration,omitempty"`
	// StorageVersion is the version that objects are carried to.
	// +optional
	StorageVersion string `json:"storageVersion,omitempty"`
	// StoredVersions are the versions that objects may be stored at.
	// +optional
	// +listType=atomic
	StoredVersions []string `json:"storedVersions,omitempty"`
	// Progress is how far it is, for people: 1200/2000.
	// +optional
	Progress string `json:"progress,omitempty"`
	// Checkpoint is the evidence to go on from after an interruption.
	// +optional
	Checkpoint *Checkpoint `json:"checkpoint,omitempty"`
	// Storage counts what became of the objects. It alone gates the trim.
	// +optional
	Storage *godwit.Counts `json:"storage,omitempty"`
	// ManagedFields counts the objects whose managedFields named a version that is
	// not served.
	// +optional
	ManagedFields *godwit.Counts `json:"managedFields,omitempty"`
	// StartTime is when objects were first written.
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`
	// CompletionTime is when nothing was left to do.
	// +optional
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`
	// EstimatedCompletion is when nothing is left to do at the pace so far.
	// +optional
	EstimatedCompletion *metav1.Time `json:"estimatedCompletion,omitempty"`
	// Failures are the first objects that failed, with the API server's words.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=20
	Failures []godwit.Failure `json:"failures,omitempty"`
	// Blockers are what keeps the migration from starting, with remedies.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=20
	Blockers []godwit.Blocker `json:"blockers,omitempty"`
	// Conditions are Ready, Reconciling, Stalled and Blocked.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Checkpoint is the evidence that an interrupted run leaves behind. Losing it costs
// requests, never safety.
type Checkpoint struct {
	// CRDUID is the UID of the definition that it is about.
	CRDUID types.UID `json:"crdUID"`
	// Generation is the definition's, when the run began.
	Generation int64 `json:"generation"`
	// StorageVersion is the version that objects were written at.
	StorageVersion string `json:"storageVersion"`
	// ResourceVersion of the first page after settling: what is newer was written at
	// the storage version.
	// +optional
	ResourceVersion string `json:"resourceVersion,omitempty"`
	// Cursor is the key up to which every object is done.
	// +optional
	Cursor string `json:"cursor,omitempty"`
	// Settled is the settle time that was kept before.
	// +optional
	Settled metav1.Duration `json:"settled,omitzero"`
	// AcceptedStaleLeases means that the run did not wait for API servers whose lease was stale.
	// +optional
	AcceptedStaleLeases bool `json:"acceptedStaleLeases,omitempty"`
	// Restarts are when runs began again because the definition changed.
	// +optional
	// +listType=atomic
	Restarts []metav1.Time `json:"restarts,omitempty"`
}

// Types of conditions.
const (
	// ConditionReady is True when nothing is left to do.
	ConditionReady = "Ready"
	// ConditionReconciling is True while work goes on, or will by itself.
	ConditionReconciling = "Reconciling"
	// ConditionStalled is True when somebody has to do something.
	ConditionStalled = "Stalled"
	// ConditionBlocked is True when something keeps the migration from starting; the
	// blockers say what.
	ConditionBlocked = "Blocked"
	// ConditionDiscovered is True when a trigger has looked at every revision.
	ConditionDiscovered = "Discovered"
	// ConditionVersionsDroppable is True when nothing is left at an old version in the
	// whole cluster.
	ConditionVersionsDroppable = "VersionsDroppable"
)

// Reasons of conditions. A condition Blocked has the reason of its first blocker,
// which is one of crdmigrator's.
const (
	// ReasonSucceeded: every object is stored at the storage version, and the
	// definition says so.
	ReasonSucceeded = "Succeeded"
	// ReasonNotTrimmed: nothing is left to do, but the old versions stay in
	// storedVersions, as spec.trim asks for, or spec.phases without the rewrite.
	ReasonNotTrimmed = "NotTrimmed"
	// ReasonSettling: API servers may still write the old version.
	ReasonSettling = "Settling"
	// ReasonMigrating: objects are being written.
	ReasonMigrating = "Migrating"
	// ReasonRetrying: a pass left objects behind, another follows.
	ReasonRetrying = "Retrying"
	// ReasonPartial: every object is stored at the storage version, but some
	// managedFields could not be cleaned.
	ReasonPartial = "Partial"
	// ReasonObjectsFailed: the API server refuses to write some objects.
	ReasonObjectsFailed = "ObjectsFailed"
	// ReasonFailed: a pass could not be made at all.
	ReasonFailed = "Failed"
	// ReasonObjectsUnlisted: the API server does not list the objects now, for a
	// reason that may end by itself, so that nothing is known about them.
	ReasonObjectsUnlisted = "ObjectsUnlisted"
	// ReasonNotConverging: pass after pass met writes by others.
	ReasonNotConverging = "NotConverging"
	// ReasonSuspended: spec.suspend says so. It is neither done nor failed, and none of
	// the conditions is True: kstatus, which has no word for it, says InProgress, and
	// whoever waits for it waits until somebody lifts the suspension.
	ReasonSuspended = "Suspended"
	// ReasonCRDNotFound: there is no definition of this name.
	ReasonCRDNotFound = "CRDNotFound"
	// ReasonBlocked: see the condition Blocked.
	ReasonBlocked = "Blocked"
	// ReasonNotBlocked: nothing keeps the migration from starting.
	ReasonNotBlocked = "NotBlocked"
)

// CRDMigrationList is a list of CRDMigrations.
//
// +kubebuilder:object:root=true
type CRDMigrationList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`

	Items []CRDMigration `json:"items"`
}
