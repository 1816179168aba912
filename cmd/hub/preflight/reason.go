package preflight

// Reason of a finding. A finding of the migration's own checks has the reason that the migration
// would have.
type Reason string

// Reasons of findings that only a preflight has.
const (
	// ReasonHubNotChecked means that the preflight has no access to the hub.
	ReasonHubNotChecked Reason = "HubNotChecked"
	// ReasonHeartbeatUnknown means that the manager does not say whether it receives the heartbeats of
	// the agent: it does not run, or it has just started.
	ReasonHeartbeatUnknown Reason = "HeartbeatUnknown"
	// ReasonAgentStopped means that the agent does not renew its Lease.
	ReasonAgentStopped Reason = "AgentLeaseStale"
	// ReasonUndecided means that the scheduler has not decided on the Placement, or that another
	// migration has not resolved its own.
	ReasonUndecided Reason = "PlacementUndecided"
	// ReasonWorkStays means that a ManifestWork does not move. The work agent of the cluster deletes
	// what it has applied 60 minutes after the move, unless its delete option is Orphan.
	ReasonWorkStays Reason = "ManifestWorkStays"
	// ReasonAddOnStays means that an add-on of the cluster does not move.
	ReasonAddOnStays Reason = "AddOnStays"
	// ReasonClusterSet means that the target hub has no ManagedClusterSet of the cluster.
	ReasonClusterSet Reason = "ClusterSetNotFound"
	// ReasonClock means that two clocks differ by more than a minute.
	ReasonClock Reason = "ClocksDiffer"
)
