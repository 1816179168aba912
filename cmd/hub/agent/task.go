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

// task is what an agent keeps of a migration. It stays when the migration has ended, so that
// commands of it which a hub has recorded are refused for ever.
type task struct {
	Role  hub.Party `json:"role"`
	Inbox hub.Inbox `json:"inbox"`
	// Source or Target is the last command as it came.
	Source *message.SourceBundle `json:"source,omitempty"`
	Target *message.TargetBundle `json:"target,omitempty"`
	// Until is when the command ends, by the clock of this hub.
	Until time.Time `json:"until"`
	// Bootstrap is the kubeconfig of the final report, sealed to the source.
	Bootstrap message.Sealed `json:"bootstrap,omitempty"`
}

const (
	// least time for a command, also one that is sent when its phase has ended.
	least = time.Minute
	// reserve is the share of a command's time that is left for the report to arrive, up to
	// maxReserve.
	reserve    = 10
	maxReserve = 10 * time.Second
	// keyGrace is how long a key stays after its command has ended, so that the next one can
	// follow.
	keyGrace = 10 * time.Minute
)

// ends returns when a command ends that was received now, so that its report is with the
// manager before the phase ends.
func ends(now time.Time, left time.Duration) time.Time {
	left = max(left, least)
	return now.Add(left - min(left/reserve, maxReserve))
}

// needsKey reports whether commands of a stage may bring secrets.
func needsKey(stage api.Phase) bool {
	return slices.Contains([]api.Phase{api.PhaseValidating, api.PhaseInitializing, api.PhaseDeploying}, stage)
}

// keepsKey reports whether the key of the migration may be needed yet.
func (t task) keepsKey(now time.Time) bool {
	r := t.Inbox.Report
	failed := r != nil && r.Finished && (r.Error != (hub.Failure{}) || len(r.ClusterErrors) > 0)
	switch {
	case !needsKey(t.Inbox.Last.Stage):
		return false
	case t.Inbox.Last.Stage == api.PhaseValidating && failed:
		return false // the manager ends the migration, and says nothing more
	}
	return now.Before(t.Until.Add(keyGrace))
}

// finished reports whether the agent will do no more for the last command.
func (t task) finished() bool { return t.Inbox.Report != nil && t.Inbox.Report.Finished }

// encode compresses: a command and its report name each of up to 5,000 clusters several
// times, and a Secret has at most 1 MiB.
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
