package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/godwit-dev/godwit"
)

// CRDMigration rewrites the objects of the CustomResourceDefinition with its name at the storage
// version.
//
// The manager creates one, with an empty spec, for every CustomResourceDefinition in its scope that
// has something to migrate. Users create one for any other CustomResourceDefinition.
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

	// The API server drops the status on create, and sets the default on every read. The default
	// keeps kstatus from reporting a migration as Current that no manager has observed.

	// +optional
	// +kubebuilder:default:={"observedGeneration":-1}
	Status CRDMigrationStatus `json:"status,omitzero"`
}

// Phase is one of the two parts of a migration.
//
// +kubebuilder:validation:Enum=StorageVersionMigration;CleanupManagedFields
type Phase string

// Write is the request that rewrites an object.
//
// +kubebuilder:validation:Enum=Patch;StatusPatch;Update;Apply;StatusApply
type Write string

// CRDMigrationSpec says how to migrate. The configuration of the manager has the defaults.
//
// +kubebuilder:validation:XValidation:rule="!has(self.trim) || !self.trim || !has(self.phases) || 'StorageVersionMigration' in self.phases",message="trim: true needs the phase StorageVersionMigration: without it, objects may be stored at any version"
type CRDMigrationSpec struct {
	// Suspend stops the migration before the next page of objects. When it is false again, the
	// migration resumes.
	// +optional
	Suspend bool `json:"suspend,omitempty"`
	// Phases to run; both unless set.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=2
	Phases []Phase `json:"phases,omitempty"`
	// Write is the request that rewrites an object. Patch sends an empty merge patch; the others are
	// for webhooks and conventions that require them.
	// +optional
	Write Write `json:"write,omitempty"`
	// Settle is the time between a change of the storage version and the first write. With 0s, the
	// manager writes as soon as every known API server uses the storage version.
	// +optional
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('0s') && duration(self) <= duration('24h')",message="settle is a duration from 0s to 24h, as in 75s"
	Settle *metav1.Duration `json:"settle,omitempty"`
	// Trim says whether the manager removes the old versions from status.storedVersions of the
	// CustomResourceDefinition once every object is at the storage version.
	// +optional
	Trim *bool `json:"trim,omitempty"`
	// AcceptLosses are the paths of values that the migration may drop, as in spec.retentionDays: each with all below
	// it. "." is every path. A migration that would drop other values is blocked.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=1024
	AcceptLosses []string `json:"acceptLosses,omitempty"`
	// AcceptChanges are the paths that admission may change while the migration writes the objects as they are, as in
	// metadata.labels: each with all below it. "." is every path. A migration that finds other changes is blocked.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=1024
	AcceptChanges []string `json:"acceptChanges,omitempty"`
	// MaxInFlight bounds the concurrent requests of this migration.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=256
	MaxInFlight *int32 `json:"maxInFlight,omitempty"`
	// MaxWritesPerSecond bounds the writes of this migration that start within a second.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100000
	MaxWritesPerSecond *int32 `json:"maxWritesPerSecond,omitempty"`
}

// CRDMigrationStatus says how far the migration is.
type CRDMigrationStatus struct {
	// ObservedGeneration is the generation of the spec that the status is about; -1
	// before the manager has observed the object.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// CRDUID is the UID of the CustomResourceDefinition. One that is created again has another UID.
	// +optional
	CRDUID types.UID `json:"crdUID,omitempty"`
	// CRDGeneration is the generation of the CustomResourceDefinition.
	// +optional
	CRDGeneration int64 `json:"crdGeneration,omitempty"`
	// StorageVersion is the version at which objects are rewritten.
	// +optional
	StorageVersion string `json:"storageVersion,omitempty"`
	// StoredVersions are the versions that objects may be stored at.
	// +optional
	// +listType=atomic
	StoredVersions []string `json:"storedVersions,omitempty"`
	// Progress is the number of visited objects and of all, for users: 1200/2000.
	// +optional
	Progress string `json:"progress,omitempty"`
	// Checkpoint is the evidence from which an interrupted run resumes.
	// +optional
	Checkpoint *Checkpoint `json:"checkpoint,omitempty"`
	// Values says how the last run has proven, before its first write, that each value of the objects survives.
	// +optional
	Values *ValueProof `json:"values,omitempty"`
	// Storage counts the outcomes of the rewrite. The trim depends on it alone.
	// +optional
	Storage *godwit.Counts `json:"storage,omitempty"`
	// ManagedFields counts the outcomes of the cleanup of managedFields that named a version which is
	// not served.
	// +optional
	ManagedFields *godwit.Counts `json:"managedFields,omitempty"`
	// StartTime is when the first object was written.
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`
	// CompletionTime is when nothing was left to do.
	// +optional
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`
	// EstimatedCompletion is when the migration completes if it keeps its present pace.
	// +optional
	EstimatedCompletion *metav1.Time `json:"estimatedCompletion,omitempty"`
	// Failures are the first objects that failed, with the answers of the API server.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=20
	Failures []Failure `json:"failures,omitempty"`
	// Blockers keep the migration from starting. Each has a remedy.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=20
	Blockers []Blocker `json:"blockers,omitempty"`
	// Conditions are Ready, Reconciling, Stalled and Blocked.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Blocker is a condition under which a migration must not start.
type Blocker struct {
	// Reason is a documented CamelCase constant.
	Reason string `json:"reason"`
	// Message names the object and the cause.
	Message string `json:"message"`
	// Remedy is the next step, a command where there is one.
	Remedy string `json:"remedy"`
}

// Checkpoint is the evidence from which an interrupted run resumes. Its loss costs requests, never
// safety.
type Checkpoint struct {
	// Format of the checkpoint; none means 1. A manager does not migrate by a format that it does not
	// know: the reason is NewerFormat.
	// +optional
	Format int64 `json:"format,omitempty"`
	// CRDUID is the UID of the CustomResourceDefinition.
	CRDUID types.UID `json:"crdUID"`
	// Generation is the generation of the CustomResourceDefinition when the run began.
	Generation int64 `json:"generation"`
	// StorageVersion is the version at which objects were written.
	StorageVersion string `json:"storageVersion"`
	// ResourceVersion of the first page after the settle time. Newer objects were written at the
	// storage version.
	// +optional
	ResourceVersion string `json:"resourceVersion,omitempty"`
	// Cursor is the key up to which every object was visited.
	// +optional
	Cursor string `json:"cursor,omitempty"`
	// Settled is the settle time that the run waited for.
	// +optional
	Settled metav1.Duration `json:"settled,omitzero"`
	// AcceptedStaleLeases means that the run did not wait for API servers whose lease was stale.
	// +optional
	AcceptedStaleLeases bool `json:"acceptedStaleLeases,omitempty"`
	// Values is the proof that the rewrite keeps each value. Without one for the generation of the
	// CustomResourceDefinition, a run that resumes makes the proof again.
	// +optional
	Values *ValueProof `json:"values,omitempty"`
	// Restarts are the times at which runs began again because the CustomResourceDefinition changed.
	// +optional
	// +listType=atomic
	Restarts []metav1.Time `json:"restarts,omitempty"`
}

// ValueProof says how a run has proven that the rewrite keeps each value of the objects.
type ValueProof struct {
	// ProvenBy is Schemas (the storage version has each field of the old versions), RoundTrips (a dry run wrote each
	// object through the old versions) or Consent (an old version is not served, and the user gives its values up).
	ProvenBy string `json:"provenBy"`
	// Generation is the generation of the CustomResourceDefinition whose schemas were compared.
	Generation int64 `json:"generation"`
	// Objects is the number of objects that a dry run wrote.
	// +optional
	Objects int64 `json:"objects,omitempty"`
	// Accepted are the values that objects lose, as spec.acceptLosses allows.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=100
	Accepted []ValueLoss `json:"accepted,omitempty"`
	// Unproven are old versions that are not served, so that no client sees what their objects have.
	// +optional
	// +listType=atomic
	Unproven []string `json:"unproven,omitempty"`
}

// ValueLoss is a path at which objects lose values.
type ValueLoss struct {
	// Path is as in spec.tls[].issuer; [] is an item of a list, and {} a value of a map.
	Path string `json:"path"`
	// Objects is the number of objects with a value there.
	Objects int64 `json:"objects"`
}

// Types of conditions.
const (
	// ConditionReady is True when nothing is left to do.
	ConditionReady = "Ready"
	// ConditionReconciling is True while the manager works, or will without user action.
	ConditionReconciling = "Reconciling"
	// ConditionStalled is True when user action is required.
	ConditionStalled = "Stalled"
	// ConditionBlocked is True when a blocker keeps the migration from starting.
	ConditionBlocked = "Blocked"
	// ConditionDiscovered is True when a trigger has scanned every revision.
	ConditionDiscovered = "Discovered"
	// ConditionVersionsDroppable is True when the cluster stores no object at an old version.
	ConditionVersionsDroppable = "VersionsDroppable"
)

// CRDMigrationList is a list of CRDMigrations.
//
// +kubebuilder:object:root=true
type CRDMigrationList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`

	Items []CRDMigration `json:"items"`
}
