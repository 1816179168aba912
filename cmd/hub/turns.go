package hub

import (
	"cmp"
	"slices"
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

// turn is a set of tasks that run at the same time. It is done when all tasks are; for a cluster, when the last one is.
type turn []task

// together has the turns of the phases in which all clusters take each turn at the same time. A cluster that fails takes
// all back.
var together = map[api.Phase][]turn{
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
}

// moving has the turns of a cluster that moves, from phase Registering on. It waits for no other cluster.
var moving = []turn{
	// An agent that is released stays in bootstrap if the target refuses it.
	{{Target, []Action{AcceptClusters}}},
	{{Source, []Action{ReleaseClusters}}, {Target, []Action{AwaitRegistration}}},
	{{Target, []Action{FinishMoved}}},
	// Again: the target may have reported the cluster before the source had released it.
	{{Source, []Action{ReleaseClusters, DeleteMoved}}},
}

// returning has the turns of a cluster that returns, by the stage in which the migration failed. It waits for no other
// cluster. Each way back includes those of the earlier stages.
var returning = map[api.Phase][]turn{
	api.PhaseInitializing: {
		{{Source, []Action{RevertBootstrap}}},
	},
	api.PhaseDeploying: {
		{{Source, []Action{RemovePauses, RevertBootstrap, AwaitReturn}}},
		{{Target, []Action{DeleteCreated}}},
	},
	api.PhaseRegistering: {
		{{Source, []Action{RestoreAcceptance}}},
		{{Target, []Action{StopAccepting}}},
		{{Source, []Action{RemovePauses, RevertBootstrap, AwaitReturn}}},
		// Again: the target may not have answered, so that skipTurns has left its turn.
		{{Target, []Action{StopAccepting, DeleteCreated}}},
	},
}

// closing has the turns of the migration as a whole, after the last cluster has ended.
var closing = []turn{
	{{Target, []Action{RevokeRegistration}}},
	{{Manager, []Action{RevokeBootstrap}}}, // last: a dead token sends a restarted agent back
}

// party returns the party that decides when a cluster has taken the turn.
func (t turn) party() Party { return t[len(t)-1].party }

// place returns the name of the turn: its last action.
func (t turn) place() Action {
	last := t[len(t)-1]
	return last.actions[len(last.actions)-1]
}

// has reports whether a party has a task in the turn.
func (t turn) has(p Party) bool {
	return slices.ContainsFunc(t, func(t task) bool { return t.party == p })
}

// ByCluster reports whether each cluster takes its turns by itself in a stage.
func ByCluster(stage api.Phase) bool {
	return stage == api.PhaseRegistering || stage == api.PhaseRollbacking || stage == api.PhaseCleaning
}

// walks reports whether clusters take their turns by themselves now.
func (s State) walks() bool { return ByCluster(s.Stage) && s.Turn == 0 && !s.Abandoned }

// key returns the key of the record of the present command of a party.
func (s State) key(p Party) Key {
	if s.walks() {
		return Key{Party: p}
	}
	return Key{p, s.Stage}
}

// Record returns the record of the present command of a party.
func (s State) Record(p Party) Record {
	r := s.Records[s.key(p)]
	if !s.walks() && r.Attempt != s.Attempt {
		return Record{Stage: s.Stage, Attempt: s.Attempt}
	}
	return r
}

// turns returns the turns of the present stage that are for all clusters together, or for the migration as a whole.
func (s State) turns() []turn {
	if ByCluster(s.Stage) {
		return closing
	}
	return together[s.Stage]
}

// turn returns the present turn of the migration as a whole. It is empty while clusters take their turns by themselves,
// and when no turn is left.
func (s State) turn() turn {
	turns, i := s.turns(), s.Turn
	if ByCluster(s.Stage) {
		i--
	}
	if i >= 0 && i < len(turns) {
		return turns[i]
	}
	return nil
}

// task returns the task of a party in the present turn of the migration as a whole.
func (s State) task(p Party) (task, bool) {
	for _, t := range s.turn() {
		if t.party == p && len(s.orders(t)) > 0 {
			return t, true
		}
	}
	return task{}, false
}

// parties returns the parties that may have a task now, in the order in which they get their commands: the source releases a
// cluster before the target waits for it.
func (s State) parties() []Party {
	if s.walks() {
		return []Party{Source, Target}
	}
	var all []Party
	if s.forgetsAtEnd() {
		all = append(all, Source)
	}
	for _, t := range s.turn() {
		all = append(all, t.party)
	}
	return all
}

// forgetsAtEnd reports whether the migration ends without a cluster, in the first turn after the last cluster has ended. The target
// gets a command in it, and the source must get one too: it may still act for the cluster.
func (s State) forgetsAtEnd() bool {
	return ByCluster(s.Stage) && s.Turn == 1 && !s.Abandoned && s.hasClusterIn(Forgotten)
}

// wayBack returns the turns of clusters that return.
func (s State) wayBack() []turn { return returning[cmp.Or(s.RollbackStage, api.PhaseRegistering)] }

// way returns the turns of a cluster. It has none before phase Registering, and after its end.
func (s State) way(c Cluster) []turn {
	switch {
	case !s.walks() || c.HasEnded():
		return nil
	case c.returns():
		return s.wayBack()
	}
	return moving
}

// turnOf returns the present turn of a cluster, or nil.
func (s State) turnOf(c Cluster) turn {
	if way := s.way(c); c.Turn < len(way) {
		return way[c.Turn]
	}
	return nil
}

// isAt reports whether a cluster takes a turn of a party, and a command with an attempt has its orders.
func (s State) isAt(c Cluster, p Party, attempt int64) bool {
	return c.Attempt != 0 && c.Attempt <= attempt && s.turnOf(c).has(p)
}

// Order is an action with the clusters that it concerns. Without clusters, it concerns the
// migration as a whole.
type Order struct {
	Action   Action   `json:"action"`
	Clusters []string `json:"clusters,omitempty"`
}

// wholeActions concern the migration as a whole.
var wholeActions = []Action{CheckHubs, ClaimClusters, IssueBootstrap, GrantRegistration, RevokeRegistration, RevokeBootstrap}

// orders returns the orders of a task for all clusters together, or for the migration as a whole.
func (s State) orders(t task) []Order {
	var orders []Order
	for _, a := range t.actions {
		order := Order{Action: a}
		if !slices.Contains(wholeActions, a) && (a != ValidateSource || s.Placement == "") {
			order.Clusters = s.clustersIn(Selected)
		}
		orders = append(orders, order)
	}
	return orders
}

// ordersByCluster returns the orders of a party for the clusters that take a turn of it. An agent makes a pass of one order after the
// other. What returns comes first: it may be without a hub. Then the clusters that are the furthest on their way: one that has changed hubs is
// finished before others change.
func (s State) ordersByCluster(p Party) []Order {
	var orders []Order
	for i, t := range s.wayBack() {
		orders = append(orders, t.orders(p, s.clustersAt(true, i))...)
	}
	for i, t := range slices.Backward(moving) {
		orders = append(orders, t.orders(p, s.clustersAt(false, i))...)
	}
	return orders
}

// orders returns the orders of a party for the clusters at the turn.
func (t turn) orders(p Party, names []string) []Order {
	var orders []Order
	for _, task := range t {
		if task.party != p || len(names) == 0 {
			continue
		}
		for _, a := range task.actions {
			orders = append(orders, Order{Action: a, Clusters: names})
		}
	}
	return orders
}

// clustersAt returns the clusters at a turn of their way.
func (s State) clustersAt(back bool, turn int) []string {
	var names []string
	for _, c := range s.Clusters {
		if !c.HasEnded() && c.returns() == back && c.Turn == turn {
			names = append(names, c.Name)
		}
	}
	return names
}

// inFinalPhase reports whether the phase is Failed or Completed.
func (s State) inFinalPhase() bool {
	return s.Phase == api.PhaseFailed || s.Phase == api.PhaseCompleted
}

// Settled reports whether the migration has ended and no work is left.
func (s State) Settled() bool {
	return s.inFinalPhase() && (s.Abandoned || !ByCluster(s.Stage) || s.Turn > len(closing))
}

// timeout returns the timeout of the present phase. Clusters that return during Cleaning need as long as in
// Rollbacking.
func (s State) timeout() time.Duration {
	if s.Stage == api.PhaseCleaning && s.hasClusterIn(Returning, Returned, Restored, Gone) {
		return max(s.Timeouts.ForPhase(api.PhaseCleaning), s.Timeouts.ForPhase(api.PhaseRollbacking))
	}
	return s.Timeouts.ForPhase(s.Stage)
}
