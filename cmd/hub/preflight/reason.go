package preflight

import "github.com/godwit-dev/godwit"

// Reasons has the reasons that only a preflight reports.
var Reasons godwit.Catalog

// Reasons of findings that only a preflight has.
var (
	ReasonHubNotChecked = Reasons.Declare(godwit.Reason{
		Name: "HubNotChecked", UserAction: true,
		Meaning: "The preflight has no access to the hub. What the hub has of the clusters is not known.",
		Fix:     godwit.Do("give --from-context or --to-context, with a context of the kubeconfig for the hub. `godwit rbac --for=cluster-hub` prints the role that a user needs there"),
	})
	ReasonAddressNotChecked = Reasons.Declare(godwit.Reason{
		Name: "AddressNotChecked", UserAction: true,
		Meaning: "Whether clusters verify the target hub is not known: this machine can't reach the address or has no root certificates, or clusters get the CA with a token that the migration issues. A migration whose manager finds that they would not fails before a cluster changes hubs.",
		Fix:     godwit.Do("give the CA: in spec.managedClusterClientConfigs of the target hub, or with --to-ca-file. If the address can't be reached, run the command where the clusters' network is reached; or check from a cluster: `curl --cacert CA URL/version`"),
	})
	ReasonUserObjectsNotChecked = Reasons.Declare(godwit.Reason{
		Name: "UserObjectsNotChecked", UserAction: true,
		Meaning: "The user may not list the Secrets and ConfigMaps of the source hub, so that those are not known which no rule moves. The migration itself checks them before it changes anything, and fails if there are some.",
		Fix:     godwit.Do("choose what becomes of them with onUserObjects or --on-user-objects. Or run the command as a user who may `list` secrets and configmaps there: `godwit rbac --for=cluster-hub` does not grant it"),
	})
	ReasonKlusterletNotChecked = Reasons.Declare(godwit.Reason{
		Name: "KlusterletNotChecked", UserAction: true,
		Meaning: "The source hub has no KlusterletConfig, so that a ManifestWork of the migration configures the klusterlets, with the feature gate MultipleHubs. A preflight writes nothing, and so does not know the Klusterlets. The migration reads them in Initializing, before it changes them, and fails for a cluster whose Klusterlet it can't configure.",
		Fix:     godwit.Do("see on a cluster, with `kubectl get klusterlet -o yaml`, that its Klusterlet has the name klusterlet, a deploy mode other than Hosted, no registration driver other than csr, and no bootstrapKubeConfigs of its own. If a repository applies it, suspend that for the time of the migration"),
	})
	ReasonHeartbeatUnknown = Reasons.Declare(godwit.Reason{
		Name: "HeartbeatUnknown", UserAction: true,
		Meaning: "The hub is enrolled. Whether its agent reaches the brokers is not known: the manager, which publishes the heartbeats that it receives, does not run or has just started.",
		Fix:     godwit.Do("see whether the manager runs, with `kubectl -n godwit get pods` on the global hub. Run the command again a minute after its start"),
	})
	ReasonAgentStopped = Reasons.Declare(godwit.Reason{
		Name: "AgentLeaseStale", UserAction: true,
		Meaning: "The agent of the hub does not renew its Lease.",
		Fix:     godwit.Do("see whether the agent runs, with `kubectl -n godwit-agent get pods` on the hub"),
	})
	ReasonUndecided = Reasons.Declare(godwit.Reason{
		Name:    "PlacementUndecided",
		Meaning: "The scheduler has not decided on the Placement, or another migration has not resolved its own.",
		Fix:     godwit.Do("run the command again after some seconds"),
	})
	ReasonAddOnStays = Reasons.Declare(godwit.Reason{
		Name: "AddOnStays", UserAction: true,
		Meaning: "An add-on of the cluster does not move. Its agent is deleted after the move, when the eviction grace period of the Klusterlet ends (60 minutes by default).",
		Fix:     godwit.Do("install the add-on on the target hub"),
	})
	ReasonClusterSet = Reasons.Declare(godwit.Reason{
		Name: "ClusterSetNotFound", UserAction: true,
		Meaning: "The target hub has no ManagedClusterSet of the cluster. No Placement and no user of the set finds the cluster there.",
		Fix:     godwit.Do("create the ManagedClusterSet on the target hub"),
	})
	ReasonClock = Reasons.Declare(godwit.Reason{
		Name: "ClocksDiffer", UserAction: true,
		Meaning: "Two clocks differ by more than a minute: those of the hubs, or those of a cluster and its hub.",
		Fix:     godwit.Do("correct the clocks. Tokens and certificates are valid only within times that each machine reads from its own clock"),
	})
)
