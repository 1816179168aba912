package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ManagedClusterMigration moves managed clusters from one hub to another.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,shortName=mcm,categories=godwit
// +kubebuilder:metadata:annotations=godwit.dev/crd-owner=godwit
// +kubebuilder:printcolumn:name=Phase,type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name=Ready,type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name=Moved,type=integer,JSONPath=`.status.counts.moved`
// +kubebuilder:printcolumn:name=Failed,type=integer,JSONPath=`.status.counts.failed`
// +kubebuilder:printcolumn:name=Age,type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.status) || !has(oldSelf.status.phase) || oldSelf.status.phase == 'Pending' || self.spec.from == oldSelf.spec.from && self.spec.to == oldSelf.spec.to && has(self.spec.includedManagedClusters) == has(oldSelf.spec.includedManagedClusters) && (!has(self.spec.includedManagedClusters) || self.spec.includedManagedClusters == oldSelf.spec.includedManagedClusters) && has(self.spec.includedManagedClustersPlacementRef) == has(oldSelf.spec.includedManagedClustersPlacementRef) && (!has(self.spec.includedManagedClustersPlacementRef) || self.spec.includedManagedClustersPlacementRef == oldSelf.spec.includedManagedClustersPlacementRef) && has(self.spec.supportedConfigs) == has(oldSelf.spec.supportedConfigs) && (!has(self.spec.supportedConfigs) || self.spec.supportedConfigs == oldSelf.spec.supportedConfigs) && has(self.spec.onEvictedWorks) == has(oldSelf.spec.onEvictedWorks) && (!has(self.spec.onEvictedWorks) || self.spec.onEvictedWorks == oldSelf.spec.onEvictedWorks) && has(self.spec.onUserObjects) == has(oldSelf.spec.onUserObjects) && (!has(self.spec.onUserObjects) || self.spec.onUserObjects == oldSelf.spec.onUserObjects)",message="spec can't be changed once the migration has started, except forgottenManagedClusters: abort this one with the annotation global-hub.open-cluster-management.io/migration-request=rollback, or create another"
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 63",message="the name of a migration has at most 63 characters, because labels and ConfigMaps are named after it"
type ManagedClusterMigration struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`

	Spec ManagedClusterMigrationSpec `json:"spec"`

	// The default keeps kstatus from reporting a migration as Current that no manager has
	// observed.

	// +optional
	// +kubebuilder:default:={"observedGeneration":-1}
	Status ManagedClusterMigrationStatus `json:"status,omitzero"`
}

// HubName is the name of a hub: of its ManagedCluster on the global hub.
//
// +kubebuilder:validation:MaxLength=63
// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="the name of a hub is the name of its ManagedCluster: lower case letters, digits and '-'"
type HubName string

// ClusterName is the name of a managed cluster, which has a namespace of the same name on its hub.
//
// +kubebuilder:validation:MaxLength=63
// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="the name of a managed cluster has lower case letters, digits and '-'"
type ClusterName string

// ManagedClusterMigrationSpec says which clusters move between which hubs.
//
// +kubebuilder:validation:XValidation:rule="self.from != self.to",message="from and to are the same hub: name two hubs"
// +kubebuilder:validation:XValidation:rule="has(self.includedManagedClusters) || has(self.includedManagedClustersPlacementRef)",message="no cluster is selected: set includedManagedClusters or includedManagedClustersPlacementRef"
// +kubebuilder:validation:XValidation:rule="!has(self.includedManagedClusters) || !has(self.includedManagedClustersPlacementRef)",message="includedManagedClusters and includedManagedClustersPlacementRef are both set: keep one of them"
// +kubebuilder:validation:XValidation:rule="!has(self.includedManagedClusters) || !(string(self.from) in self.includedManagedClusters) && !(string(self.to) in self.includedManagedClusters)",message="a hub can't be moved by a migration between it and another hub: remove it from includedManagedClusters"
type ManagedClusterMigrationSpec struct {
	// From is the hub that the clusters leave.
	From HubName `json:"from"`
	// To is the hub that the clusters move to.
	To HubName `json:"to"`
	// IncludedManagedClusters are the clusters to move.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=5000
	// +kubebuilder:validation:XValidation:rule="self.size() > 0",message="includedManagedClusters is empty: name at least one cluster"
	IncludedManagedClusters []ClusterName `json:"includedManagedClusters,omitempty"`
	// IncludedManagedClustersPlacementRef names a Placement on the source hub, in the namespace of
	// its agent. The clusters that it selects when the migration starts are moved.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$')",message="includedManagedClustersPlacementRef is the name of a Placement: lower case letters, digits, '-' and '.'"
	IncludedManagedClustersPlacementRef string `json:"includedManagedClustersPlacementRef,omitempty"`
	// OnEvictedWorks says what becomes of what ManifestWorks of the source hub have applied on a cluster, unless their delete
	// option is Orphan. ManifestWorks do not move, and the work agent deletes what they have applied when the eviction grace
	// period of the Klusterlet ends after the move: 60 minutes by default. Refuse, the default, refuses to move such a cluster.
	// Accept accepts the loss. Orphan sets the delete option to Orphan before the cluster leaves, and back if it returns.
	// +optional
	OnEvictedWorks EvictedWorksPolicy `json:"onEvictedWorks,omitempty"`
	// OnUserObjects says what becomes of Secrets and ConfigMaps of users in the namespace of a cluster on the source hub that no
	// rule moves. The import controller deletes the namespace after the move. Refuse, the default, refuses to move such a
	// cluster. Accept accepts the loss. Move moves them with the cluster. Keep keeps the namespace on the source hub.
	// +optional
	OnUserObjects UserObjectsPolicy `json:"onUserObjects,omitempty"`
	// ForgottenManagedClusters are clusters without which the migration ends: the manager does nothing more for them from
	// phase Registering on, and says what it leaves. Clusters can be added while the migration runs.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=5000
	// +kubebuilder:validation:items:MaxLength=63
	ForgottenManagedClusters []string `json:"forgottenManagedClusters,omitempty"`
	// SupportedConfigs adapts the migration to slow hubs and clusters.
	// +optional
	SupportedConfigs *MigrationConfig `json:"supportedConfigs,omitempty"`
}

// MigrationConfig adapts a migration to slow hubs and clusters.
//
// An agent leaves a hub that does not answer after reconnectTimeout, and its pod may wait up to
// five minutes before its next start (CrashLoopBackOff). No phase in which agents change hubs can
// be shorter.
//
// +kubebuilder:validation:XValidation:rule="!has(self.stageTimeout) || !self.stageTimeout.matches('^([0-9]{1,6}(ms|s|m|h))+$') || has(self.reconnectTimeout) || duration(self.stageTimeout) >= duration('8m')",message="stageTimeout is shorter than 8m: a cluster that can't reach the target hub needs reconnectTimeout (3m) and 5m to return"
// +kubebuilder:validation:XValidation:rule="!has(self.stageTimeout) || !self.stageTimeout.matches('^([0-9]{1,6}(ms|s|m|h))+$') || !has(self.reconnectTimeout) || !self.reconnectTimeout.matches('^([0-9]{1,6}(ms|s|m|h))+$') || duration(self.stageTimeout) >= duration(self.reconnectTimeout) + duration('5m')",message="stageTimeout is shorter than reconnectTimeout and 5m, which a cluster that can't reach the target hub needs to return"
// +kubebuilder:validation:XValidation:rule="has(self.stageTimeout) || !has(self.reconnectTimeout) || !self.reconnectTimeout.matches('^([0-9]{1,6}(ms|s|m|h))+$') || duration(self.reconnectTimeout) <= duration('7m')",message="a reconnectTimeout above 7m needs a stageTimeout that is at least 5m longer"
type MigrationConfig struct {
	// StageTimeout replaces the timeout of every phase. Unless set, Registering and Rollbacking have
	// 12m, and the other phases 5m.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,6}(ms|s|m|h))+$')",message="stageTimeout is not a valid duration: write it as 15m or 1h30m"
	// +kubebuilder:validation:XValidation:rule="!self.matches('^([0-9]{1,6}(ms|s|m|h))+$') || duration(self) <= duration('24h')",message="stageTimeout is longer than 24h, for which no bootstrap token is valid"
	StageTimeout *metav1.Duration `json:"stageTimeout,omitempty"`
	// ReconnectTimeout is how long an agent tries to reach a hub before it tries the other one; 3m
	// unless set, which is the least that a KlusterletConfig accepts.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,6}(ms|s|m|h))+$')",message="reconnectTimeout is not a valid duration: write it as 180s or 5m"
	// +kubebuilder:validation:XValidation:rule="!self.matches('^([0-9]{1,6}(ms|s|m|h))+$') || duration(self) >= duration('180s') && duration(self) <= duration('1h')",message="reconnectTimeout is a duration from 180s to 1h: a KlusterletConfig accepts no shorter one"
	ReconnectTimeout *metav1.Duration `json:"reconnectTimeout,omitempty"`
}

// Phase of a migration.
//
// +kubebuilder:validation:Enum=Pending;Validating;Initializing;Deploying;Registering;Rollbacking;Cleaning;Completed;Failed
type Phase string

// Phases in their order. Rollbacking ends in Failed, and Cleaning in Completed.
const (
	PhasePending      Phase = "Pending"
	PhaseValidating   Phase = "Validating"
	PhaseInitializing Phase = "Initializing"
	PhaseDeploying    Phase = "Deploying"
	PhaseRegistering  Phase = "Registering"
	PhaseRollbacking  Phase = "Rollbacking"
	PhaseCleaning     Phase = "Cleaning"
	PhaseCompleted    Phase = "Completed"
	PhaseFailed       Phase = "Failed"
)

// ManagedClusterMigrationStatus says how far the migration is.
type ManagedClusterMigrationStatus struct {
	// ObservedGeneration is the generation of the spec that the status is about; -1 before the
	// manager has observed the object.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Phase of the migration.
	// +optional
	Phase Phase `json:"phase,omitempty"`
	// Progress is what the manager resumes from after a restart, together with the ConfigMaps
	// <migration>-state-<n>.
	// +optional
	Progress *MigrationProgress `json:"progress,omitempty"`
	// Counts of the clusters.
	// +optional
	Counts *ClusterCounts `json:"counts,omitempty"`
	// Places are where the clusters are from phase Registering on, when each cluster continues by itself. A cluster that has
	// ended is in none.
	// +optional
	// +listType=map
	// +listMapKey=place
	// +kubebuilder:validation:MaxItems=16
	Places []PlaceCount `json:"places,omitempty"`
	// Failures are the first clusters that were not moved, or not cleaned up.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=20
	Failures []ClusterFailure `json:"failures,omitempty"`
	// StartTime is when the migration left phase Pending.
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`
	// CompletionTime is when nothing was left to do.
	// +optional
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`
	// Conditions are Ready, Reconciling and Stalled, and one for each phase that was reached.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// MigrationProgress is the part of the protocol's state that is not about single clusters. The
// ConfigMaps are written before it, so that it is the commit.
type MigrationProgress struct {
	// Format of the progress and of the ConfigMaps; none means 1. A manager leaves a migration alone
	// whose format it does not know: the reason is NewerFormat.
	// +optional
	Format int32 `json:"format,omitempty"`
	// Stage is the last phase in which work was done. Work may be left in phases Failed and
	// Completed.
	// +optional
	Stage Phase `json:"stage,omitempty"`
	// Turn is the number of the step within the stage.
	// +optional
	Turn int32 `json:"turn,omitempty"`
	// Attempt rises with every new command. A command that is sent again keeps it.
	// +optional
	Attempt int64 `json:"attempt,omitempty"`
	// Thirds of the timeout that have passed. Commands without an answer are sent again after each.
	// +optional
	Thirds int32 `json:"thirds,omitempty"`
	// Since is when the phase began, by the clock of the manager.
	// +optional
	Since *metav1.MicroTime `json:"since,omitempty"`
	// RollbackStage is the stage in which the migration failed.
	// +optional
	RollbackStage Phase `json:"rollbackStage,omitempty"`
	// Reason why the migration failed.
	// +optional
	Reason string `json:"reason,omitempty"`
	// Message says what happened, for the reason.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`
	// WaitingFor is the migration that moves one of the clusters.
	// +optional
	WaitingFor string `json:"waitingFor,omitempty"`
	// Deleting means that the object is being deleted.
	// +optional
	Deleting bool `json:"deleting,omitempty"`
	// TargetLost means that a user has ended the migration without the target hub, which never answers again.
	// +optional
	TargetLost bool `json:"targetLost,omitempty"`
	// Abandoned means that the object was deleted, and that the manager has left what it could not restore or delete in
	// time.
	// +optional
	Abandoned bool `json:"abandoned,omitempty"`
	// DeniedRequests are the first CertificateSigningRequests of the bootstrap account that the target hub has denied, each with the reason.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10
	DeniedRequests []string `json:"deniedRequests,omitempty"`
	// Warnings are what may keep the first of the clusters from the end of the migration, as the source hub has found it in phase Validating.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=20
	Warnings []ClusterWarning `json:"warnings,omitempty"`
	// SourceKey is the key of the source hub's agent in this migration: what another key has signed is not used.
	// +optional
	SourceKey *HubKey `json:"sourceKey,omitempty"`
	// TargetKey is that of the target hub's agent.
	// +optional
	TargetKey *HubKey `json:"targetKey,omitempty"`
	// Shards is the number of ConfigMaps.
	// +optional
	Shards int32 `json:"shards,omitempty"`
	// ShardDigests are the digests of the ConfigMaps, which prove that no other client has changed them since.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=20
	ShardDigests []string `json:"shardDigests,omitempty"`
}

// HubKey is the key with which the agent of a hub takes part in a migration.
type HubKey struct {
	// Fingerprint of the public key, as `godwit cluster enroll` shows it.
	Fingerprint string `json:"fingerprint"`
	// Number counts the keys of the hub in this migration. It rises when a user enrolls a new key of the same hub.
	Number int32 `json:"number"`
}

// ClusterCounts counts clusters by what became of them.
type ClusterCounts struct {
	// Total is the number of clusters of the migration.
	Total int32 `json:"total"`
	// Moved is the number of clusters that are registered at the target hub.
	Moved int32 `json:"moved"`
	// Failed is the number of clusters that were not moved, or that no hub has yet.
	Failed int32 `json:"failed"`
	// Restored is the number of clusters that are back at the source hub.
	Restored int32 `json:"restored"`
	// Gone is the number of clusters whose ManagedCluster a user has deleted during the migration.
	// +optional
	Gone int32 `json:"gone,omitempty"`
	// Forgotten is the number of clusters without which the migration ends.
	// +optional
	Forgotten int32 `json:"forgotten,omitempty"`
}

// PlaceCount counts the clusters that wait for the same action.
type PlaceCount struct {
	// Place is the action that these clusters wait for, such as AwaitRegistration, DeleteMoved or AwaitReturn.
	Place string `json:"place"`
	// Hub executes the action: source or target.
	Hub string `json:"hub"`
	// Clusters is their number.
	Clusters int32 `json:"clusters"`
}

// ClusterFailure says why a cluster was not moved.
type ClusterFailure struct {
	// Cluster is the name of the cluster.
	Cluster string `json:"cluster"`
	// Phase in which it failed.
	Phase Phase `json:"phase"`
	// Message says what happened and why.
	// +kubebuilder:validation:MaxLength=512
	Message string `json:"message"`
}

// ClusterWarning is what may keep a cluster from the end of the migration. It refuses nothing.
type ClusterWarning struct {
	// Cluster is the name of the cluster.
	Cluster string `json:"cluster"`
	// Reason is AppliedFromSource or AddOnFinalizer.
	Reason string `json:"reason"`
	// Message says what to do.
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message"`
}

// ManagedClusterMigrationList is a list of ManagedClusterMigrations.
//
// +kubebuilder:object:root=true
type ManagedClusterMigrationList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`

	Items []ManagedClusterMigration `json:"items"`
}
