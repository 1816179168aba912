package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/internal/format"
)

// Conditions returns a pointer to the conditions of the status.
func (m *ManagedClusterMigration) Conditions() *[]metav1.Condition { return &m.Status.Conditions }

// ObservedGeneration returns a pointer to the generation that the status is about.
func (m *ManagedClusterMigration) ObservedGeneration() *int64 { return &m.Status.ObservedGeneration }

// Types of conditions. kstatus reads the first three.
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
	// ConditionRequestDenied is True when the bootstrap account has requested the certificate of another identity than
	// that of a cluster which moves. Otherwise the migration does not have it.
	ConditionRequestDenied = "CertificateRequestDenied"
	// ConditionCleaned is True when nothing of the migration is left on either hub.
	ConditionCleaned = "ResourceCleaned"
)

// Reasons has the reasons of conditions.
var Reasons godwit.Catalog

// Reasons of conditions.
var (
	ReasonSucceeded = Reasons.Declare(godwit.Reason{
		Name:    "Succeeded",
		Meaning: "The step was completed for every cluster.",
		Fix:     godwit.Do("nothing is left to do"),
	})
	ReasonInProgress = Reasons.Declare(godwit.Reason{
		Name:    "InProgress",
		Meaning: "The manager waits for an answer of a hub.",
		Fix:     godwit.Do("wait. status.phase says which step it is, and the manager sends the command again at a third and at two thirds of its timeout"),
	})
	ReasonWaiting = Reasons.Declare(godwit.Reason{
		Name:    "WaitingForMigration",
		Meaning: "Another migration moves one of the clusters. The message names it.",
		Fix:     godwit.Do("wait until the other migration has ended, or delete one of the two: a migration that has not begun changes nothing when it is deleted"),
	})
	ReasonHubNotReady = Reasons.Declare(godwit.Reason{
		Name: "HubNotReady", UserAction: true,
		Meaning: "A hub does not exist, is not Available, is not enrolled, or its agent has sent no heartbeat for 60 s. Nothing was sent to either hub.",
		Fix:     godwit.Do("enroll the hub with `godwit cluster enroll`, if the message says so. See the conditions of the hub with `kubectl get managedcluster <hub> -o yaml`, and whether its agent runs. Then create the migration again under another name"),
	})
	ReasonBrokerRefused = Reasons.Declare(godwit.Reason{
		Name: "BrokerRefused", UserAction: true,
		Meaning: "The broker does not answer, or does not let the manager use a topic. Nothing was sent to either hub.",
		Fix:     godwit.Do("grant the ACL or correct the credentials that the message names. Then create the migration again under another name"),
	})
	ReasonNamespaceNotAllowed = Reasons.Declare(godwit.Reason{
		Name: "NamespaceNotAllowed", UserAction: true,
		Meaning: "The manager begins migrations of some namespaces only, and this is another one. Nothing was sent to either hub.",
		Fix:     godwit.Do("create the migration in a namespace that the message names, or have the administrator of the manager add the namespace to `--migration-namespaces`"),
	})
	ReasonHubReplaced = Reasons.Declare(godwit.Reason{
		Name: "HubReplaced", UserAction: true,
		Meaning: "A hub was enrolled with another key than the one with which it takes part in the migration. Nothing is sent to it, and nothing that it says is used.",
		Fix: godwit.Do("If the hub has a new key, run `godwit cluster enroll <hub> --same-hub`. If another hub has got its name, enroll the former hub again, or delete the migration: " +
			"the other hub gets nothing of it"),
	})
	ReasonHubAddressUnknown = Reasons.Declare(godwit.Reason{
		Name: "HubAddressUnknown", UserAction: true,
		Meaning: "The ManagedCluster of the target hub has no spec.managedClusterClientConfigs, so that no bootstrap kubeconfig can be written.",
		Fix:     godwit.Do("set spec.managedClusterClientConfigs of the target hub to the URL and the CA of its API server. Then create the migration again under another name"),
	})
	ReasonHubAddressUntrusted = Reasons.Declare(godwit.Reason{
		Name: "HubAddressUntrusted", UserAction: true,
		Meaning: "What clusters get does not verify the API server of the target hub, so that no cluster would register there: the CA in spec.managedClusterClientConfigs or of --to-ca-file, for example since it was rotated. Without one, that of the token of a ManagedServiceAccount, or else the root certificates of the system.",
		Fix:     godwit.Do("write the present CA of the target hub, and the URL that its certificate is for, to spec.managedClusterClientConfigs; between two contexts, give them with --to-server and --to-ca-file. Then create the migration again under another name"),
	})
	ReasonClustersInvalid = Reasons.Declare(godwit.Reason{
		Name: "ClustersInvalid", UserAction: true,
		Meaning: "Clusters cannot be moved: they do not exist on the source hub, or exist on the target hub. status.failures names them.",
		Fix:     godwit.Do("remove these clusters from the list or from the placement. Then create the migration again under another name"),
	})
	ReasonTimeout = Reasons.Declare(godwit.Reason{
		Name: "Timeout", UserAction: true,
		Meaning: "A hub did not answer in time.",
		Fix:     godwit.Do("see whether the agent of the hub in the message runs, and whether it reaches the brokers"),
	})
	ReasonFailed = Reasons.Declare(godwit.Reason{
		Name: "Failed", UserAction: true,
		Meaning: "A hub reported an error, or the manager can't make a command. The message says why.",
		Fix:     godwit.Do("correct what the message names. Then create the migration again under another name"),
	})
	ReasonAborted = Reasons.Declare(godwit.Reason{
		Name:    "Aborted",
		Meaning: "A user asked for the rollback, or deleted the migration.",
		Fix:     godwit.Do("wait for the rollback to end: ResourceRolledBack says so"),
	})
	ReasonNotRegistered = Reasons.Declare(godwit.Reason{
		Name: "NotRegistered", UserAction: true,
		Meaning: "No cluster was registered at the target hub. All clusters return to the source hub.",
		Fix:     godwit.Do("see in status.failures what each cluster was waiting for: an approved CSR, or a lease at the target hub"),
	})
	ReasonPartiallyRegistered = Reasons.Declare(godwit.Reason{
		Name: "PartiallyRegistered", UserAction: true,
		Meaning: "Some clusters were registered at the target hub. status.failures names the others, which return to the source hub.",
		Fix:     godwit.Do("correct what status.failures names, and move these clusters with a migration of their own"),
	})
	ReasonCommandNotSent = Reasons.Declare(godwit.Reason{
		Name: "CommandNotSent", UserAction: true,
		Meaning: "A command to a hub can't be made, or the broker refuses it, while clusters change hubs. The manager tries again until the time of the phase is over.",
		Fix:     godwit.Do("correct what the message names, such as an ACL. The migration continues by itself"),
	})
	ReasonIncomplete = Reasons.Declare(godwit.Reason{
		Name: "Incomplete", UserAction: true,
		Meaning: "A rollback or a cleanup is not finished after its timeout. The manager continues.",
		Fix:     godwit.Do("see whether the hub in the message is reachable. The migration ends by itself when it is"),
	})
	ReasonLeftBehind = Reasons.Declare(godwit.Reason{
		Name: "LeftBehind", UserAction: true,
		Meaning: "The migration has ended without clusters that a user has told it to forget, or was deleted and a hub did not do its part in time. Or the target hub has a ManagedCluster with the label of the migration, without proof that the migration has created it. The message says what is left on which hub.",
		Fix:     godwit.Do("remove what the message names on the hubs, when they are reachable"),
	})
	ReasonRequestDenied = Reasons.Declare(godwit.Reason{
		Name: "NotOfMigration", UserAction: true,
		Meaning: "The bootstrap token was used to request a certificate for another identity than that of a cluster which moves, such as a cluster that the target hub has already. The target hub has denied it. The source hub and the clusters that move have this token.",
		Fix:     godwit.Do("find out which client has the token: on the target hub, `kubectl get csr <name> -o yaml` shows when it was used. Do not move further clusters from this source hub before"),
	})
	ReasonCertificateIssued = Reasons.Declare(godwit.Reason{
		Name: "CertificateIssued", UserAction: true,
		Meaning: "The target hub has issued a certificate for a cluster that does not stay there: it has returned, or a user has deleted its ManagedCluster or ended the migration without it. Kubernetes can't revoke certificates. The cluster has no permissions there as long as the hub has no ManagedCluster of this name.",
		Fix:     godwit.Do("import no other cluster under this name at the target hub until the certificate has expired: status.failures has the time. Or rotate the CA of the client certificates of the target hub"),
	})
	ReasonNewerFormat = format.DeclareNewer(&Reasons, "has stored the state of the migration",
		"The manager leaves the migration alone.", godwit.Do("run that release, or a newer one: it resumes by itself"))
	ReasonStateLost = Reasons.Declare(godwit.Reason{
		Name: "StateLost", UserAction: true,
		Meaning: "ConfigMaps with the state of the migration were deleted, or another client than the manager has changed them. The manager does nothing for this migration until they are as before. Other migrations continue.",
		Fix:     godwit.Do("restore the ConfigMaps <migration>-state-<n> from a backup of the same state. The manager resumes by itself"),
	})
	ReasonKeysChanged = Reasons.Declare(godwit.Reason{
		Name: "KeysChanged", UserAction: true,
		Meaning: "Another client than the manager has changed ConfigMap <migration>-keys, by whose keys secrets of clusters are sealed, or the key of the manager was replaced. The manager uses nothing of it.",
		Fix:     godwit.Do("unless you have replaced the key of the manager, find out who may write ConfigMaps in the namespace of the migration: `kubectl auth can-i update configmaps -n <namespace> --as=<user>`. Then create the migration again under another name"),
	})
)
