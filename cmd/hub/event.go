package hub

import (
	"encoding/json"
	"time"

	api "github.com/godwit-dev/godwit/cmd/hub/api/v1alpha1"
)

// Event is what the manager learned, at a time of its own clock.
type Event interface{ at() time.Time }

// Tick says only how late it is.
type Tick struct{ At time.Time }

// Resume is the first event of a manager that reads a state. Only the shards may be of a
// later state, since the manager before was killed ahead of the commit.
type Resume struct{ At time.Time }

// Start begins a migration that is Pending and that no other one holds up.
type Start struct{ At time.Time }

// Wait keeps a migration Pending, since another one has one of its clusters.
type Wait struct {
	At  time.Time
	For string
}

// Rollback is what a user asks for by the annotation: it aborts a migration that is
// running, and repeats the rollback of one that has failed.
type Rollback struct{ At time.Time }

// Delete is the deletion of the migration: it aborts one that is running.
type Delete struct{ At time.Time }

// Sent says that the command of an effect was sent.
type Sent struct {
	At  time.Time
	Key string
}

// Unsent says that the command of an effect can't be made, or that the broker refuses it. It stays due.
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
	// Finished means that the party will do no more for this command. A report before
	// says only that it has the command, and which clusters are done.
	Finished bool
	// Reason is one of the documented constants, for errors of the manager.
	Reason string
	// Error is why the party can't do its task for any cluster.
	Error         Failure
	ClusterErrors map[string]Failure
	// Clusters are those that a placement selects.
	Clusters []string
	// Done are the clusters that have reached what the command is for: registered,
	// returned or deleted.
	Done []string
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
}

// MarshalJSON writes texts, and reasons beside them.
func (e Report) MarshalJSON() ([]byte, error) {
	stored := storedReport{
		At: e.At, Party: e.Party, Stage: e.Stage, Attempt: e.Attempt, Finished: e.Finished, Reason: e.Reason,
		Error: e.Error.String(), ErrorReason: e.Error.Reason, Clusters: e.Clusters, Done: e.Done,
	}
	stored.ClusterErrors, stored.ClusterReasons = Texts(e.ClusterErrors)
	return json.Marshal(stored)
}

// UnmarshalJSON reads what MarshalJSON has written, also without reasons.
func (e *Report) UnmarshalJSON(text []byte) error {
	var stored storedReport
	if err := json.Unmarshal(text, &stored); err != nil {
		return err
	}
	*e = Report{
		At: stored.At, Party: stored.Party, Stage: stored.Stage, Attempt: stored.Attempt, Finished: stored.Finished, Reason: stored.Reason,
		Error: ReadFailure(stored.ErrorReason, stored.Error), ClusterErrors: ReadFailures(stored.ClusterErrors, stored.ClusterReasons),
		Clusters: stored.Clusters, Done: stored.Done,
	}
	return nil
}

func (e Tick) at() time.Time { return e.At }

func (e Resume) at() time.Time { return e.At }

func (e Start) at() time.Time { return e.At }

func (e Wait) at() time.Time { return e.At }

func (e Rollback) at() time.Time { return e.At }

func (e Delete) at() time.Time { return e.At }

func (e Sent) at() time.Time { return e.At }

func (e Unsent) at() time.Time { return e.At }

func (e Report) at() time.Time { return e.At }
