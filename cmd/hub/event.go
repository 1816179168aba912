package hub

import (
	"encoding/json"
	"time"

	api "github.com/godwit-dev/godwit/cmd/hub/api/v1alpha1"
)

// Event is an observation of the manager, with the time of its own clock.
type Event interface{ occurredAt() time.Time }

// Tick means that time has passed.
type Tick struct{ At time.Time }

// Resume is the first event after a manager has read a state. The shards alone may belong to a later state, if the
// previous manager was killed before the commit.
type Resume struct{ At time.Time }

// Continue is the first event of a process that carries out a migration by itself, without brokers: what the process before
// it had sent may be lost. Nothing happened for the time of Paused, and the timeouts do not count it.
type Continue struct {
	At     time.Time
	Paused time.Duration
}

// Start begins a Pending migration that waits for no other migration.
type Start struct{ At time.Time }

// Wait keeps a migration Pending, because another migration has one of its clusters.
type Wait struct {
	At  time.Time
	For string
}

// Rollback is the request of a user in the annotation: it aborts a running migration, and repeats the rollback of a
// failed one.
type Rollback struct{ At time.Time }

// Delete is the deletion of the migration: it aborts a running migration.
type Delete struct{ At time.Time }

// Lose means that a user ends the migration without the target hub, which never answers again. It aborts a running migration. What is
// left for the target hub to do stays undone. The event is repeated while the state [State.NeedsLose].
type Lose struct{ At time.Time }

// Find means that the target hub answers again, after a user has begun to end the migration without it.
type Find struct{ At time.Time }

// Forget is the request of a user to end the migration without clusters.
type Forget struct {
	At       time.Time
	Clusters []string
}

// Sent means that the command of an effect was sent.
type Sent struct {
	At  time.Time
	Key string
}

// Unsent means that the manager can't build the command of an effect, or that the broker refuses it. The effect stays
// due.
type Unsent struct {
	At      time.Time
	Key     string
	Message string
}

// Report is the answer of a party to a command, or the result of an effect of the
// manager.
type Report struct {
	At      time.Time
	Party   Party
	Stage   api.Phase
	Attempt int64
	// Finished means that the report is the party's last one for this command. An earlier report says that the party
	// has the command, and which clusters are done.
	Finished bool
	// Reason is one of the documented constants, for errors of the manager.
	Reason string
	// Error is why the party can't do its task for any cluster.
	Error         Failure
	ClusterErrors map[string]Failure
	// Clusters are those that a placement selects.
	Clusters []string
	// Done are the clusters for which the last order of the command is done.
	Done []string
	// Gone has, for clusters whose ManagedCluster does not exist any more, what the party did not find. An order is done
	// for them.
	Gone map[string]string
	// Certificates have, by cluster, when the certificate expires that the target hub has issued, also for clusters that stay there.
	Certificates map[string]time.Time
	// DeniedRequests are CertificateSigningRequests of the bootstrap account that the target hub has denied, each with the reason.
	DeniedRequests []string
	// Warnings are what the source hub has found in ValidateSource.
	Warnings []Warning
}

// storedReport is a report as an agent stores it.
type storedReport struct {
	At             time.Time
	Party          Party
	Stage          api.Phase
	Attempt        int64
	Finished       bool
	Reason         string
	Error          string
	ErrorReason    string `json:",omitempty"`
	ClusterErrors  map[string]string
	ClusterReasons map[string]string `json:",omitempty"`
	Clusters       []string
	Done           []string
	Gone           map[string]string    `json:",omitempty"`
	Certificates   map[string]time.Time `json:",omitempty"`
	DeniedRequests []string             `json:",omitempty"`
	Warnings       []Warning            `json:",omitempty"`
}

// MarshalJSON writes the texts of failures, and their reasons in fields of their own.
func (e Report) MarshalJSON() ([]byte, error) {
	stored := storedReport{
		At: e.At, Party: e.Party, Stage: e.Stage, Attempt: e.Attempt, Finished: e.Finished, Reason: e.Reason,
		Error: e.Error.String(), ErrorReason: e.Error.Reason, Clusters: e.Clusters, Done: e.Done, Gone: e.Gone,
		Certificates: e.Certificates, DeniedRequests: e.DeniedRequests, Warnings: e.Warnings,
	}
	stored.ClusterErrors, stored.ClusterReasons = Texts(e.ClusterErrors)
	return json.Marshal(stored)
}

// UnmarshalJSON reads the output of MarshalJSON, with or without reasons.
func (e *Report) UnmarshalJSON(text []byte) error {
	var stored storedReport
	if err := json.Unmarshal(text, &stored); err != nil {
		return err
	}
	*e = Report{
		At: stored.At, Party: stored.Party, Stage: stored.Stage, Attempt: stored.Attempt, Finished: stored.Finished, Reason: stored.Reason,
		Error: ReadFailure(stored.ErrorReason, stored.Error), ClusterErrors: ReadFailures(stored.ClusterErrors, stored.ClusterReasons),
		Clusters: stored.Clusters, Done: stored.Done, Gone: stored.Gone, Certificates: stored.Certificates, DeniedRequests: stored.DeniedRequests, Warnings: stored.Warnings,
	}
	return nil
}

func (e Tick) occurredAt() time.Time { return e.At }

func (e Resume) occurredAt() time.Time { return e.At }

func (e Continue) occurredAt() time.Time { return e.At }

func (e Start) occurredAt() time.Time { return e.At }

func (e Wait) occurredAt() time.Time { return e.At }

func (e Rollback) occurredAt() time.Time { return e.At }

func (e Delete) occurredAt() time.Time { return e.At }

func (e Lose) occurredAt() time.Time { return e.At }

func (e Find) occurredAt() time.Time { return e.At }

func (e Forget) occurredAt() time.Time { return e.At }

func (e Sent) occurredAt() time.Time { return e.At }

func (e Unsent) occurredAt() time.Time { return e.At }

func (e Report) occurredAt() time.Time { return e.At }
