package agent

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/godwit-dev/godwit/cmd/hub"
	api "github.com/godwit-dev/godwit/cmd/hub/api/v1alpha1"
	"github.com/godwit-dev/godwit/cmd/hub/message"
)

// task is what an agent stores of a migration. The agent keeps it after the end of the migration, so that it refuses
// replayed commands forever.
type task struct {
	Role  hub.Party `json:"role"`
	Inbox hub.Inbox `json:"inbox"`
	// Source or Target is the last command as received.
	Source *message.SourceBundle `json:"source,omitempty"`
	Target *message.TargetBundle `json:"target,omitempty"`
	// Until is the deadline of the command, by the clock of this hub.
	Until time.Time `json:"until"`
	// Bootstrap is the kubeconfig of the final report, sealed to the source.
	Bootstrap message.Sealed `json:"bootstrap,omitempty"`
}

const (
	// minCommandTime is the least time for a command, even if its phase has already ended.
	minCommandTime = time.Minute
	// reportReserve divides the time of a command: this part, up to maxReportReserve, is left for the report to arrive.
	reportReserve    = 10
	maxReportReserve = 10 * time.Second
	// keyGrace is how long a key is kept after its command has ended: the next command needs it.
	keyGrace = 10 * time.Minute
)

// commandDeadline returns the deadline of a command that was received now. Its report must reach the manager before the
// phase ends.
func commandDeadline(now time.Time, left time.Duration) time.Time {
	left = max(left, minCommandTime)
	return now.Add(left - min(left/reportReserve, maxReportReserve))
}

// needsKey reports whether commands of a stage may bring secrets.
func needsKey(stage api.Phase) bool {
	return slices.Contains([]api.Phase{api.PhaseValidating, api.PhaseInitializing, api.PhaseDeploying}, stage)
}

// keepsKey reports whether the migration may still need its key.
func (t task) keepsKey(now time.Time) bool {
	r := t.Inbox.Report
	failed := r != nil && r.Finished && (r.Error != (hub.Failure{}) || len(r.ClusterErrors) > 0)
	switch {
	case !needsKey(t.Inbox.Last.Stage):
		return false
	case t.Inbox.Last.Stage == api.PhaseValidating && failed:
		return false // the manager ends the migration and sends no further command
	}
	return now.Before(t.Until.Add(keyGrace))
}

// finished reports whether the last command has its final report.
func (t task) finished() bool { return t.Inbox.Report != nil && t.Inbox.Report.Finished }

// encode compresses the task: a command and its report name each of up to 5,000 clusters several times, and a Secret
// has at most 1 MiB.
func (t task) encode() ([]byte, error) {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if err := json.NewEncoder(w).Encode(t); err != nil {
		return nil, fmt.Errorf("encode a command: %w", err)
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("encode a command: %w", err)
	}
	return out.Bytes(), nil
}

func decodeTask(data []byte) (t task, err error) {
	r, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return t, fmt.Errorf("decode a command: %w", err)
	}
	text, err := io.ReadAll(r)
	if err != nil {
		return t, fmt.Errorf("decode a command: %w", err)
	}
	if err := json.Unmarshal(text, &t); err != nil {
		return t, fmt.Errorf("decode a command: %w", err)
	}
	return t, nil
}
