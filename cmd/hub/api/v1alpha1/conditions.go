package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Conditions points to the conditions of the status.
func (m *ManagedClusterMigration) Conditions() *[]metav1.Condition { return &m.Status.Conditions }

// ObservedGeneration points to the generation that the status is about.
func (m *ManagedClusterMigration) ObservedGeneration() *int64 { return &m.Status.ObservedGeneration }

// Types of conditions. The first three are what kstatus reads.
const (
	// ConditionReady is True when every cluster was moved and nothing is left to do.
	ConditionReady = "Ready"
	// ConditionReconciling is True while the manager works, or will without user action.
	ConditionReconciling = "Reconciling"
	// ConditionStalled is True when user action is required.
	ConditionStalled = "Stalled"

	// ConditionStarted is True when the migration left phase Pending.
	ConditionStarted = "MigrationStarted"
	// ConditionValidated is True when both hubs are ready and every cluster can be moved.
	ConditionValidated = "ResourceValidated"
	// ConditionInitialized is True when the clusters have the bootstrap kubeconfig of the
	// target hub.
	ConditionInitialized = "ResourceInitialized"
	// ConditionDeployed is True when the target hub has the resources of every cluster.
	ConditionDeployed = "ResourceDeployed"
	// ConditionRegistered is True when every cluster is registered at the target hub.
	ConditionRegistered = "ClusterRegistered"
	// ConditionRolledBack is True when everything is as it was before the migration.
	ConditionRolledBack = "ResourceRolledBack"
	// ConditionCleaned is True when nothing of the migration is left on either hub.
	ConditionCleaned = "ResourceCleaned"
)

// Reasons of conditions.
const (
	// ReasonSucceeded means that the step was completed for every cluster.
	ReasonSucceeded = "Succeeded"
	// ReasonInProgress means that the manager waits for an answer of a hub.
	ReasonInProgress = "InProgress"
	// ReasonWaiting means that another migration moves one of the clusters. The message
	// names it.
	ReasonWaiting = "WaitingForMigration"
	// ReasonHubNotReady means that a hub does not exist, is not Available, or that its agent
	// has sent no heartbeat for 60 s. Nothing was sent to either hub.
	ReasonHubNotReady = "HubNotReady"
	// ReasonBrokerRefused means that the broker does not answer, or does not let the manager
	// use a topic. Nothing was sent to either hub.
	ReasonBrokerRefused = "BrokerRefused"
	// ReasonHubAddressUnknown means that the ManagedCluster of the target hub has no
	// spec.managedClusterClientConfigs, so that no bootstrap kubeconfig can be written.
	ReasonHubAddressUnknown = "HubAddressUnknown"
	// ReasonClustersInvalid means that clusters cannot be moved. The failures name them.
	ReasonClustersInvalid = "ClustersInvalid"
	// ReasonTimeout means that a hub did not answer in time.
	ReasonTimeout = "Timeout"
	// ReasonFailed means that a hub reported an error, or that the manager can't make a command.
	ReasonFailed = "Failed"
	// ReasonAborted means that a user asked for the rollback, or deleted the migration.
	ReasonAborted = "Aborted"
	// ReasonNotRegistered means that no cluster was registered at the target hub.
	ReasonNotRegistered = "NotRegistered"
	// ReasonPartiallyRegistered means that some clusters were registered at the target hub.
	// The failures name the others, which return to the source hub.
	ReasonPartiallyRegistered = "PartiallyRegistered"
	// ReasonCommandNotSent means that a command can't be made, or that the broker refuses it, while
	// clusters change hubs. The manager tries again.
	ReasonCommandNotSent = "CommandNotSent"
	// ReasonIncomplete means that a rollback or a cleanup is not finished after its timeout.
	// The manager continues.
	ReasonIncomplete = "Incomplete"
	// ReasonNewerFormat means that a newer release of Godwit has stored the state of the migration.
	// The manager leaves the migration alone.
	ReasonNewerFormat = "NewerFormat"
	// ReasonStateLost means that ConfigMaps with the state of the migration were deleted or
	// changed. The manager does nothing until they are restored.
	ReasonStateLost = "StateLost"
)
