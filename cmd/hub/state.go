package hub

import (
	"maps"
	"slices"
	"strings"
	"time"

	api "github.com/godwit-dev/godwit/cmd/hub/api/v1alpha1"
)

// Party acts in a migration.
type Party string

// Parties. Keys of the stored state begin with them and not with the name of a hub, which can be any name.
const (
	Manager Party = "manager"
	Source  Party = "source"
	Target  Party = "target"
)

// ClusterState is what has become of a cluster.
type ClusterState string

const (
	// Selected means that the cluster is to be moved.
	Selected ClusterState = "Selected"
	// Registered means that the target hub has seen two renewals of its lease.
	Registered ClusterState = "Registered"
	// Moved means that the source hub has deleted the objects of the cluster.
	Moved ClusterState = "Moved"
	// Returning means that the cluster belongs to the source hub, and that its return is not proven yet.
	Returning ClusterState = "Returning"
	// Returned means that the source hub has seen two renewals of its lease since the
	// rollback began.
	Returned ClusterState = "Returned"
	// Restored means that the target hub has deleted the objects that it had created. With a note, it may have some: it is lost,
	// or can't prove that the migration has created them.
	Restored ClusterState = "Restored"
	// Gone means that a user has deleted the ManagedCluster at one of the hubs, and that the migration has nothing left
	// to do for the cluster.
	Gone ClusterState = "Gone"
	// Forgotten means that a user has ended the migration without the cluster.
	Forgotten ClusterState = "Forgotten"
)

// String names the party in a message.
func (p Party) String() string {
	if p == Manager {
		return "the manager"
	}
	return "the " + string(p) + " hub"
}

// Cluster is a managed cluster in a migration.
type Cluster struct {
	Name  string
	State ClusterState
	// Turn is the index of the present turn on the way of the cluster, from phase Registering on.
	Turn int
	// Attempt is the attempt of the first command with the orders of the turn. It is zero until there is one.
	Attempt int64
	// Note is what the migration did not find or has left, for users.
	Note string
	// FailedIn is the stage in which the cluster failed, empty if it did not.
	FailedIn api.Phase
	// Failure is the reason of the failure.
	Failure
	// Certificate is when the certificate expires that the target hub has issued; zero without one. See [Cluster.Unrevoked].
	Certificate time.Time
	// Since is when the cluster reached its state, by the clock of the manager. It is zero for a Selected cluster.
	Since time.Time
}

// HasEnded reports whether the migration has nothing left to do for the cluster.
func (c Cluster) HasEnded() bool {
	return slices.Contains([]ClusterState{Moved, Restored, Gone, Forgotten}, c.State)
}

// returns reports whether the cluster is on its way back.
func (c Cluster) returns() bool { return c.State == Returning || c.State == Returned }

// Key identifies the record of one party: in a stage, or of the clusters that take their turns by themselves, which has no
// stage.
type Key struct {
	Party Party
	Stage api.Phase
}

// String returns the key of the record in a ConfigMap, such as source-deploying or source.
func (k Key) String() string {
	if k.Stage == "" {
		return string(k.Party)
	}
	return string(k.Party) + "-" + strings.ToLower(string(k.Stage))
}

// Record is what the manager knows of a party's last command.
type Record struct {
	// Stage and Attempt of the command. While all clusters take a turn together, a record whose attempt differs from the
	// state's is outdated.
	Stage   api.Phase
	Attempt int64
	// Sent is one more than the thirds of the timeout that had passed when the command was
	// last sent; zero if it was not sent.
	Sent int
	// Unsent is why the command can't be sent; empty unless the last attempt to send it has failed.
	Unsent string
	// Started means that the party has the command.
	Started bool
	// Finished means that the party has sent its final report.
	Finished bool
	// Error is why the party can't do its task for any cluster.
	Error Failure
	// ClusterErrors are the failures of single clusters.
	ClusterErrors map[string]Failure
}

func (r Record) failed() bool { return r.Error != (Failure{}) || len(r.ClusterErrors) > 0 }

// Timeouts of a migration.
type Timeouts struct {
	// Stage replaces the timeout of every phase, unless it is zero.
	Stage time.Duration
	// Reconnect is how long an agent tries to reach a hub before it tries the other one.
	Reconnect time.Duration
}

// DefaultReconnect is the least value that the API of KlusterletConfig accepts.
const DefaultReconnect = 180 * time.Second

const (
	defaultTimeout = 5 * time.Minute
	// changeHubsTimeout is the default timeout of phases in which agents change hubs.
	changeHubsTimeout = 12 * time.Minute
)

// ForPhase returns the timeout of a phase.
func (t Timeouts) ForPhase(stage api.Phase) time.Duration {
	switch {
	case t.Stage > 0:
		return t.Stage
	case stage == api.PhaseRegistering, stage == api.PhaseRollbacking:
		return changeHubsTimeout
	}
	return defaultTimeout
}

// AfterEnd is how long a bootstrap token is valid after [Timeouts.Total], for work that is left after the end of the
// migration. With it, a hub can be down for a night.
const AfterEnd = 24 * time.Hour

// Total bounds the time from start to end, including every kind of rollback. A bootstrap token must be valid for at
// least this time: an agent that restarts with an expired token of one hub changes to the other hub.
func (t Timeouts) Total() time.Duration {
	var sum time.Duration
	for _, stage := range stages {
		sum += t.ForPhase(stage)
	}
	return sum
}

// stages are the stages in their order.
var stages = []api.Phase{
	api.PhaseValidating, api.PhaseInitializing, api.PhaseDeploying, api.PhaseRegistering, api.PhaseRollbacking, api.PhaseCleaning,
}

// StageNumber returns the position of a stage in their order, from 1. It returns zero for a phase that is not a stage.
func StageNumber(stage api.Phase) int {
	for i, s := range stages {
		if s == stage {
			return i + 1
		}
	}
	return 0
}

// State is everything that the manager knows of a migration. It is a value: [Step] returns a new one and does not
// modify its argument.
type State struct {
	Phase api.Phase
	// Stage is the last phase in which work was done. In phases Failed and Completed, work of this stage may be left.
	Stage api.Phase
	// Turn is the index of the present turn of the stage. From Registering on it is zero while clusters take their turns by
	// themselves, and then one more than the index in closing.
	Turn int
	// Attempt rises with every new command. A command that is sent again keeps it.
	Attempt int64
	// Thirds of the timeout that have passed since Since.
	Thirds int
	// Since is when the phase began, by the clock of the manager.
	Since time.Time
	// RollbackStage is the stage in which the migration failed.
	RollbackStage api.Phase
	// Reason is why the migration failed, or why it is partial: a documented constant.
	Reason  string
	Message string
	// WaitingFor is the migration for whose end this one is Pending.
	WaitingFor string
	// Deleting means that a user has deleted the migration.
	Deleting bool
	// DeniedRequests are the first CertificateSigningRequests of the bootstrap account that the target hub has denied, each with the reason.
	DeniedRequests []string
	// Warnings are what the source hub has found in ValidateSource: what may keep clusters from the end of the migration.
	Warnings []Warning
	// TargetLost means that a user has ended the migration without the target hub: see [Lose].
	TargetLost bool
	// Abandoned means that the migration was deleted, or has lost its target hub, and that its time is over: what is left stays as it is.
	Abandoned bool

	Timeouts Timeouts
	// From and To are the names of the hubs.
	From, To  string
	Placement string
	// Clusters are sorted by name. They are empty until a placement is resolved.
	Clusters []Cluster
	Records  map[Key]Record
}

// New returns the state of a migration that has not started.
func New(spec api.ManagedClusterMigrationSpec) State {
	s := State{
		Phase: api.PhasePending, From: string(spec.From), To: string(spec.To),
		Placement: spec.IncludedManagedClustersPlacementRef, Timeouts: Timeouts{Reconnect: DefaultReconnect},
	}
	if c := spec.SupportedConfigs; c != nil {
		if c.StageTimeout != nil {
			s.Timeouts.Stage = c.StageTimeout.Duration
		}
		if c.ReconnectTimeout != nil {
			s.Timeouts.Reconnect = c.ReconnectTimeout.Duration
		}
	}
	names := make([]string, len(spec.IncludedManagedClusters))
	for i, name := range spec.IncludedManagedClusters {
		names[i] = string(name)
	}
	s.selectClusters(names)
	return s
}

func (s *State) selectClusters(names []string) {
	names = slices.Clone(names)
	slices.Sort(names)
	names = slices.Compact(names)
	s.Clusters = make([]Cluster, len(names))
	for i, name := range names {
		s.Clusters[i] = Cluster{Name: name, State: Selected}
	}
}

// clone returns a copy that shares nothing with s that Step modifies. The errors within a record are never modified.
func (s State) clone() State {
	s.Clusters = slices.Clone(s.Clusters)
	s.Records = maps.Clone(s.Records)
	if s.Records == nil {
		s.Records = map[Key]Record{}
	}
	return s
}

func (s State) cluster(name string) (int, bool) {
	return slices.BinarySearchFunc(s.Clusters, name, func(c Cluster, name string) int { return strings.Compare(c.Name, name) })
}

// clustersIn returns the clusters that are in one of the states.
func (s State) clustersIn(states ...ClusterState) []string {
	var names []string
	for _, c := range s.Clusters {
		if slices.Contains(states, c.State) {
			names = append(names, c.Name)
		}
	}
	return names
}

// everyClusterHasEnded reports whether every cluster has ended.
func (s State) everyClusterHasEnded() bool {
	return !slices.ContainsFunc(s.Clusters, func(c Cluster) bool { return !c.HasEnded() })
}

func (s State) hasClusterIn(states ...ClusterState) bool {
	return slices.ContainsFunc(s.Clusters, func(c Cluster) bool { return slices.Contains(states, c.State) })
}
