package cluster

import (
	"fmt"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/internal/format"
)

// Reasons has the reasons why clusters can't be moved or returned.
var Reasons godwit.Catalog

// Reasons of failures.
var (
	ReasonNotFound = Reasons.Declare(godwit.Reason{
		Name: "ClusterNotFound", UserAction: true,
		Meaning: "The hub has no ManagedCluster of this name.",
		Fix:     godwit.Do("check the name. Import the cluster at the hub that the message names, or remove it from the migration"),
	})
	ReasonExists = Reasons.Declare(godwit.Reason{
		Name: "AlreadyExists", UserAction: true,
		Meaning: "The target hub has an object that the migration wants to create, and did not create it.",
		Fix:     godwit.Do("delete the object on the target hub if nothing there needs it, or remove the cluster from the migration"),
	})
	ReasonBeingDeleted = Reasons.Declare(godwit.Reason{
		Name: "BeingDeleted", UserAction: true,
		Meaning: "The ManagedCluster, or its namespace on the target hub, is being deleted.",
		Fix:     godwit.Do("wait until the deletion has ended. `kubectl get <kind> <name> -o yaml` shows the finalizers that it waits for"),
	})
	ReasonLocal = Reasons.Declare(godwit.Reason{
		Name: "LocalCluster", UserAction: true,
		Meaning: "The cluster is the source hub itself, which has the label local-cluster=true.",
		Fix:     godwit.Do("remove the cluster from the list or from the placement"),
	})
	ReasonHosted = Reasons.Declare(godwit.Reason{
		Name: "HostedKlusterlet", UserAction: true,
		Meaning: "The klusterlet runs in hosted mode on another cluster, which stays at the source hub.",
		Fix:     godwit.Do("remove the cluster from the migration. Detach it and import it at the target hub instead"),
	})
	ReasonUnavailable = Reasons.Declare(godwit.Reason{
		Name: "ClusterUnavailable", UserAction: true,
		Meaning: "The source hub does not accept the cluster, or its agent does not answer.",
		Fix:     godwit.Do("see the conditions with `kubectl get managedcluster <cluster> -o yaml` on the source hub, and correct the klusterlet. Or remove the cluster from the migration"),
	})
	ReasonOtherCluster = Reasons.Declare(godwit.Reason{
		Name: "OtherCluster", UserAction: true,
		Meaning: "The target hub has a live cluster of this name: it has joined. A hub can't have two clusters of one name.",
		Fix:     godwit.Do("remove the cluster from the migration. To move it all the same, detach it from the source hub, and import it at the target hub under another name"),
	})
	ReasonMoved = Reasons.Declare(godwit.Reason{
		Name: "AlreadyMoved", UserAction: true,
		Meaning: "The target hub has the cluster itself: a ManagedCluster of this name has joined there, with the same claim id.k8s.io as at the source hub.",
		Fix:     godwit.Do("remove the cluster from the migration. `kubectl get managedcluster <cluster> -o yaml` on both hubs shows which of them its agent reports to"),
	})
	ReasonNamespaceInUse = Reasons.Declare(godwit.Reason{
		Name: "NamespaceInUse", UserAction: true,
		Meaning: "The target hub has a namespace of the cluster's name with Secrets or ConfigMaps, such as those of a former life of the cluster. The migration does not overwrite them, and the hub deletes them with the namespace when the cluster leaves it.",
		Fix:     godwit.Do("move what is needed to another namespace, and delete the namespace on the target hub. Or remove the cluster from the migration"),
	})
	ReasonWorkStays = Reasons.Declare(godwit.Reason{
		Name: "ManifestWorkStays", UserAction: true,
		Meaning: "A ManifestWork of the cluster does not move. The work agent deletes what it has applied when the eviction grace period of the Klusterlet ends after the move (60 minutes by default), because its delete option is not Orphan.",
		Fix:     godwit.Do("let the migration set the delete option to Orphan, with onEvictedWorks: Orphan or --on-evicted-works=Orphan, and create the ManifestWork on the target hub. Or accept the loss, with Accept instead of Orphan"),
	})
	ReasonUserObjects = Reasons.Declare(godwit.Reason{
		Name: "UserObjectsStay", UserAction: true,
		Meaning: "The namespace of the cluster on the source hub has Secrets or ConfigMaps of users that no rule moves. The import controller deletes the namespace, with all that is in it, some seconds after the source hub has deleted the ManagedCluster. Objects of other kinds are not looked at.",
		Fix:     godwit.Do("choose with onUserObjects or --on-user-objects: Move moves them with the cluster, Keep keeps the namespace on the source hub, and Accept accepts the loss"),
	})
	ReasonApplied = Reasons.Declare(godwit.Reason{
		Name: "AppliedFromSource", UserAction: true,
		Meaning: "A tool has applied spec.hubAcceptsClient of the ManagedCluster on the source hub from a repository. If it still does, it sets the field back during the migration, so that both hubs accept the cluster, and Cleaning does not end.",
		Fix:     godwit.Do("suspend the Application or the Kustomization that has the ManagedCluster, or remove the ManagedCluster from the repository without pruning it. Take it into the repository of the target hub after the migration. The entry in metadata.managedFields stays: if nothing applies the ManagedCluster any more, there is nothing to do"),
	})
	ReasonAddOnFinalizer = Reasons.Declare(godwit.Reason{
		Name: "AddOnFinalizer", UserAction: true,
		Meaning: "A ManagedClusterAddOn of the cluster has finalizers that only the agent of the add-on removes. The agent leaves with the cluster, so that the source hub can't delete its objects of the cluster, and Cleaning waits.",
		Fix:     godwit.Do("when Cleaning waits for the ManagedClusterAddOn, remove these finalizers on the source hub, with the command in the message. Or remove the add-on from the cluster before the migration"),
	})
	ReasonOtherMigration = Reasons.Declare(godwit.Reason{
		Name: "OtherMigration", UserAction: true,
		Meaning: "Another migration has changed the object, and has not restored it.",
		Fix:     godwit.Do("wait for the end of the migration whose UID the message has, or abort it with the annotation global-hub.open-cluster-management.io/migration-request=rollback"),
	})
	ReasonNoKlusterletWork = Reasons.Declare(godwit.Reason{
		Name: "NoKlusterletWork", UserAction: true,
		Meaning: "The hub does not install the klusterlet of the cluster by a ManifestWork. The migration could not give it the kubeconfig of the target hub.",
		Fix:     godwit.Do("import the cluster with the import controller of the hub, or remove it from the migration"),
	})
	ReasonKindNotServed = Reasons.Declare(godwit.Reason{
		Name: "KindNotServed", UserAction: true,
		Meaning: "The hub has no CRD of a kind that the migration needs.",
		Fix:     godwit.Do("install the component that brings the CRD in the message"),
	})
	ReasonKlusterlet = Reasons.Declare(godwit.Reason{
		Name: "KlusterletNotConfigurable", UserAction: true,
		Meaning: "The source hub has no KlusterletConfig, so that a ManifestWork of the migration configures the klusterlet, or the hub is lost and the command does it. The Klusterlet of the cluster has another name than klusterlet, runs on a hosting cluster, knows several hubs already, or does not register by CertificateSigningRequests.",
		Fix:     godwit.Do("correct what the message names on the cluster, with `kubectl get klusterlet -o yaml` there. Or remove the cluster from the migration"),
	})
	ReasonHubAnswers = Reasons.Declare(godwit.Reason{
		Name: "SourceHubAnswers", UserAction: true,
		Meaning: "A cluster is to be brought to another hub as if its hub were lost, and its hub answers. Nothing was changed.",
		Fix:     godwit.Do("move the cluster with both hubs: `godwit cluster move <cluster> --from-context=<context> --to-context=<context>`"),
	})
	ReasonHubsDiffer = Reasons.Declare(godwit.Reason{
		Name: "HubsConfigureDifferently", UserAction: true,
		Meaning: "One of the two hubs has KlusterletConfig and the import controller, and the other one has not. The import controller would replace what a ManifestWork of the migration has configured, and a cluster could not return.",
		Fix:     godwit.Do("move clusters between hubs of one kind: install the import controller on both, or on none"),
	})
	ReasonPlacement = Reasons.Declare(godwit.Reason{
		Name: "PlacementNotFound", UserAction: true,
		Meaning: "The source hub has no such Placement in the namespace of its agent.",
		Fix:     godwit.Do("create the Placement in that namespace, or list the clusters in includedManagedClusters"),
	})
	ReasonForeignObject = Reasons.Declare(godwit.Reason{
		Name: "ForeignObject", UserAction: true,
		Meaning: "An object has a name that the migration needs, and Godwit did not create it.",
		Fix:     godwit.Do("rename or delete the object in the message, then create the migration again under another name"),
	})
	ReasonTooManyRequests = Reasons.Declare(godwit.Reason{
		Name: "TooManySigningRequests", UserAction: true,
		Meaning: "The target hub has ten or more CertificateSigningRequests of the cluster. Its agent makes no further one.",
		Fix:     godwit.Do("delete them with `kubectl delete csr -l open-cluster-management.io/cluster-name=<cluster>` on the target hub"),
	})
	ReasonDenied = Reasons.Declare(godwit.Reason{
		Name: "SigningRequestDenied", UserAction: true,
		Meaning: "The target hub has denied or failed the CertificateSigningRequest of the cluster.",
		Fix:     godwit.Do("see the message of the request with `kubectl describe csr <name>` on the target hub. Let the signer or the policy that denied it accept the bootstrap account"),
	})
	ReasonRefusedObject = Reasons.Declare(godwit.Reason{
		Name: "ObjectRefused", UserAction: true,
		Meaning: "The source hub has sent an object that no rule names, or whose metadata belongs to the source hub. Nothing of its cluster was applied.",
		Fix:     godwit.Do("add a rule for the kind to the agents of both hubs, if it is to move. Otherwise find out what has written it on the source hub: the collection rules never select it"),
	})
	ReasonAPI = Reasons.Declare(godwit.Reason{
		Name: "RequestRefused", UserAction: true,
		Meaning: "The API server of the hub refuses a request. The message has its answer.",
		Fix:     godwit.Do("correct what the answer names, such as a permission (`godwit rbac --for=hub-agent`) or a webhook, then create the migration again under another name"),
	})
	ReasonNotPrepared = Reasons.Declare(godwit.Reason{
		Name: "NotPrepared", UserAction: true,
		Meaning: "An earlier step is missing for the cluster, mostly since a user has changed or deleted its ManagedCluster during the migration.",
		Fix:     godwit.Do("restore what the message names, or abort the migration: the rollback returns the cluster"),
	})
	ReasonTooLarge = Reasons.Declare(godwit.Reason{
		Name: "ObjectTooLarge", UserAction: true,
		Meaning: "An object does not fit into a message of 800 KiB.",
		Fix:     godwit.Do("make the object smaller, or leave it out of the rules and move it by hand"),
	})
	ReasonTimeout = Reasons.Declare(godwit.Reason{
		Name: "NotInTime", UserAction: true,
		Meaning: "A hub did not complete its task for the cluster before the phase ended.",
		Fix:     godwit.Do("correct what the message says that the cluster was waiting for. The migration returns the cluster to the source hub, or tries again in Cleaning and Rollbacking"),
	})
	ReasonNotArrived = Reasons.Declare(godwit.Reason{
		Name: "ObjectsNotArrived", UserAction: true,
		Meaning: "The target hub did not receive all objects of the cluster before Deploying ended.",
		Fix:     godwit.Do("see whether both agents reach the brokers, and whether the source may write the topic godwit.migration.<target>. Then create the migration again under another name, with a longer stageTimeout if there are many clusters"),
	})
	ReasonKey = Reasons.Declare(godwit.Reason{
		Name: "SealingKeyUnknown", UserAction: true,
		Meaning: "The hub cannot open the bootstrap kubeconfig that was sealed to it, or has no key of the other hub to seal to.",
		Fix:     godwit.Do("the Secret of the migration in the namespace of the agent was deleted or changed. Create the migration again under another name"),
	})
	ReasonNewerFormat = format.DeclareNewer(&Reasons, "has stored what a migration has changed in an object, or a command of the migration",
		"The object is left alone.", godwit.Do("run that release of the agent, or a newer one. Then abort the migration, or repeat it"))
	ReasonUnknownAction = Reasons.Declare(godwit.Reason{
		Name: "ActionUnknown", UserAction: true,
		Meaning: "The manager asks the agent for an action that it does not have.",
		Fix:     godwit.Do("upgrade the agent of the hub in the message to the version of the manager"),
	})
)

// Error is an error that a retry does not fix. Its message says what to do.
type Error struct {
	Reason  *godwit.Reason
	Message string
}

func (e *Error) Error() string { return e.Reason.Name + ": " + e.Message }

// Fail returns an [Error].
func Fail(reason *godwit.Reason, format string, args ...any) error {
	return &Error{Reason: reason, Message: fmt.Sprintf(format, args...)}
}
