package hub

import (
	"time"

	api "github.com/godwit-dev/godwit/cmd/hub/api/v1alpha1"
)

// Action is an action of a party, for all clusters that it concerns. Every action may be repeated, and resumes after an
// interruption.
type Action string

// Actions of the manager.
const (
	// CheckHubs reads whether both hubs are Available and their agents send heartbeats.
	CheckHubs Action = "CheckHubs"
	// ClaimClusters checks that no other migration has one of the clusters.
	ClaimClusters Action = "ClaimClusters"
	// IssueBootstrap creates the ManagedServiceAccount of the pair of hubs, or adds the
	// migration to its owners, and waits for the token.
	IssueBootstrap Action = "IssueBootstrap"
	// RevokeBootstrap removes the migration from the owners, and deletes the
	// ManagedServiceAccount with the last one.
	RevokeBootstrap Action = "RevokeBootstrap"
	// RemoveFinalizer lets the deletion of the migration complete.
	RemoveFinalizer Action = "RemoveFinalizer"
)

// Actions of the agent on the source hub.
const (
	// ValidateSource resolves the placement and checks every cluster.
	ValidateSource Action = "ValidateSource"
	// InstallBootstrap adds the kubeconfig of the target hub to the klusterlets, saves the values that it replaces, and
	// waits until the klusterlets have it.
	InstallBootstrap Action = "InstallBootstrap"
	// SendResources pauses the clusters' provisioning, and sends all resources.
	SendResources Action = "SendResources"
	// ReleaseClusters sets hubAcceptsClient to false; the klusterlets then change hubs.
	ReleaseClusters Action = "ReleaseClusters"
	// RestoreAcceptance restores the original hubAcceptsClient.
	RestoreAcceptance Action = "RestoreAcceptance"
	// RemovePauses removes the pauses that the migration has set.
	RemovePauses Action = "RemovePauses"
	// RevertBootstrap restores the klusterlets' bootstrap configuration, and removes the
	// annotations of the migration.
	RevertBootstrap Action = "RevertBootstrap"
	// AwaitReturn is done for a cluster when its lease was renewed twice.
	AwaitReturn Action = "AwaitReturn"
	// DeleteMoved deletes the source hub's objects of moved clusters.
	DeleteMoved Action = "DeleteMoved"
)

// Actions of the agent on the target hub.
const (
	// ValidateTarget checks that the hub has none of the clusters, and can have them.
	ValidateTarget Action = "ValidateTarget"
	// GrantRegistration grants the bootstrap account the permission to register clusters, and approves them.
	GrantRegistration Action = "GrantRegistration"
	// ReceiveResources applies the resources that the source sends, as objects that belong
	// to the migration. ManagedClusters are not accepted yet.
	ReceiveResources Action = "ReceiveResources"
	// AcceptClusters sets hubAcceptsClient to true.
	AcceptClusters Action = "AcceptClusters"
	// AwaitRegistration is done for a cluster when it is Joined and Available, and its lease was renewed twice.
	AwaitRegistration Action = "AwaitRegistration"
	// StopAccepting sets hubAcceptsClient to false, and prevents the hub from setting it again.
	StopAccepting Action = "StopAccepting"
	// DeleteCreated deletes the objects that the migration has created, and no others.
	DeleteCreated Action = "DeleteCreated"
	// FinishMoved waits until the klusterlets have the hub's own bootstrap kubeconfig,
	// removes the annotations of the migration, and unpauses.
	FinishMoved Action = "FinishMoved"
	// RevokeRegistration undoes GrantRegistration.
	RevokeRegistration Action = "RevokeRegistration"
)

// task has the actions of one party in a turn.
type task struct {
	party   Party
	actions []Action
}

// turn is a set of tasks that run at the same time. The next turn begins when all are finished.
type turn []task

// forward is the protocol without failures.
var forward = map[api.Phase][]turn{
	api.PhaseValidating: {
		{{Manager, []Action{CheckHubs}}},
		{{Source, []Action{ValidateSource}}},
		{{Manager, []Action{ClaimClusters}}}, // also for the clusters that a placement selects
		{{Target, []Action{ValidateTarget}}},
	},
	api.PhaseInitializing: {
		{{Manager, []Action{IssueBootstrap}}},
		{{Target, []Action{GrantRegistration}}},
		{{Source, []Action{InstallBootstrap}}},
	},
	api.PhaseDeploying: {
		{{Target, []Action{ReceiveResources}}, {Source, []Action{SendResources}}},
	},
	api.PhaseRegistering: {
		// An agent that is released stays in bootstrap if the target refuses it.
		{{Target, []Action{AcceptClusters}}},
		{{Source, []Action{ReleaseClusters}}, {Target, []Action{AwaitRegistration}}},
	},
	api.PhaseCleaning: {
		{{Source, []Action{RestoreAcceptance}}},
		{{Target, []Action{StopAccepting, FinishMoved}}},
		{{Source, []Action{RemovePauses, RevertBootstrap, AwaitReturn, DeleteMoved}}},
		{{Target, []Action{StopAccepting, DeleteCreated}}},
		{{Target, []Action{RevokeRegistration}}},
		{{Manager, []Action{RevokeBootstrap}}}, // last: a dead token sends a restarted agent back
	},
}

// backward is the rollback by the failed stage. Each rollback includes those of the earlier stages.
var backward = map[api.Phase][]turn{
	api.PhaseInitializing: {
		{{Source, []Action{RevertBootstrap}}},
		{{Target, []Action{RevokeRegistration}}},
		{{Manager, []Action{RevokeBootstrap}}},
	},
	api.PhaseDeploying: {
		{{Source, []Action{RemovePauses, RevertBootstrap, AwaitReturn}}},
		{{Target, []Action{DeleteCreated}}},
		{{Target, []Action{RevokeRegistration}}},
		{{Manager, []Action{RevokeBootstrap}}},
	},
	api.PhaseRegistering: {
		{{Source, []Action{RestoreAcceptance}}},
		{{Target, []Action{StopAccepting}}},
		{{Source, []Action{RemovePauses, RevertBootstrap, AwaitReturn}}},
		// Again: the target may not have answered, so that skipTurn has left its turn.
		{{Target, []Action{StopAccepting, DeleteCreated}}},
		{{Target, []Action{RevokeRegistration}}},
		{{Manager, []Action{RevokeBootstrap}}},
	},
}

// turns returns the turns of the present stage.
func (s State) turns() []turn {
	if s.Stage == api.PhaseRollbacking {
		return backward[s.RollbackStage]
	}
	return forward[s.Stage]
}

// turn returns the present turn. It is empty when no turn is left.
func (s State) turn() turn {
	if turns := s.turns(); s.Turn < len(turns) {
		return turns[s.Turn]
	}
	return nil
}

// task returns the task of a party in the present turn.
func (s State) task(p Party) (task, bool) {
	for _, t := range s.turn() {
		if t.party == p && len(s.orders(t)) > 0 {
			return t, true
		}
	}
	return task{}, false
}

// Order is an action with the clusters that it concerns. Without clusters, it concerns the
// migration as a whole.
type Order struct {
	Action   Action   `json:"action"`
	Clusters []string `json:"clusters,omitempty"`
}

// statesByAction has the cluster states that an action concerns. Other actions concern the migration as a whole.
var statesByAction = map[Action][]ClusterState{
	ValidateTarget: {Selected}, InstallBootstrap: {Selected}, SendResources: {Selected}, ReceiveResources: {Selected},
	AcceptClusters: {Selected}, ReleaseClusters: {Selected}, AwaitRegistration: {Selected},
	RestoreAcceptance: {Returning}, RemovePauses: {Returning}, RevertBootstrap: {Returning}, AwaitReturn: {Returning},
	DeleteCreated: {Returned}, FinishMoved: {Registered}, DeleteMoved: {Registered},
}

// orders returns the orders of a task. A task without orders is done.
func (s State) orders(t task) []Order {
	var orders []Order
	for _, a := range t.actions {
		states, some := statesByAction[a]
		if a == StopAccepting {
			// After the deletion, the action concerns deleted clusters; before, those that return.
			states, some = []ClusterState{Returning}, true
			if t.actions[len(t.actions)-1] == DeleteCreated {
				states = []ClusterState{Returned}
			}
		}
		if !some {
			order := Order{Action: a}
			if a == ValidateSource && s.Placement == "" {
				order.Clusters = s.clustersIn(Selected)
			}
			orders = append(orders, order)
		} else if names := s.clustersIn(states...); len(names) > 0 {
			orders = append(orders, Order{Action: a, Clusters: names})
		}
	}
	return orders
}

// stateAfter returns the state of a cluster after an action is done.
func (s State) stateAfter(a Action, was ClusterState) ClusterState {
	switch {
	case a == AwaitRegistration && was == Selected:
		return Registered
	case a == AwaitReturn && was == Returning:
		return Returned
	case a == RevertBootstrap && was == Returning && s.RollbackStage == api.PhaseInitializing:
		return Restored // no object was created, and no agent has changed hubs
	case a == DeleteCreated && was == Returned:
		return Restored
	case a == DeleteMoved && was == Registered:
		return Moved
	}
	return was
}

// inFinalPhase reports whether the phase is Failed or Completed.
func (s State) inFinalPhase() bool {
	return s.Phase == api.PhaseFailed || s.Phase == api.PhaseCompleted
}

// Settled reports whether the migration has ended and no work is left.
func (s State) Settled() bool { return s.inFinalPhase() && s.Turn >= len(s.turns()) }

// timeout returns the timeout of the present phase. Clusters that return during Cleaning need as long as in
// Rollbacking.
func (s State) timeout() time.Duration {
	if s.Stage == api.PhaseCleaning && s.hasClusterIn(Returning, Returned, Restored) {
		return max(s.Timeouts.ForPhase(api.PhaseCleaning), s.Timeouts.ForPhase(api.PhaseRollbacking))
	}
	return s.Timeouts.ForPhase(s.Stage)
}
