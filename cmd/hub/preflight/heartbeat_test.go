package preflight

import (
	"strings"
	"testing"
	"time"

	"github.com/godwit-dev/godwit"
	api "github.com/godwit-dev/godwit/cmd/hub/api/v1alpha1"
	"github.com/godwit-dev/godwit/cmd/hub/manager"
	"github.com/godwit-dev/godwit/cmd/hub/message"
)

// TestHeartbeats: the preflight decides as the manager does, and what the manager does not say is NotChecked.
//
// Matrix: H82.
func TestHeartbeats(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	current := []int{message.Version}
	for name, test := range map[string]struct {
		reason   string
		receipt  *manager.Receipt
		unknown  string
		decision Decision
		because  *godwit.Reason
		says     string
	}{
		"Fresh":       {reason: "The manager would start.", receipt: &manager.Receipt{CaughtUp: ago(time.Hour), Heartbeat: ago(time.Minute), Versions: current}, decision: Ready},
		"Stale":       {reason: "The manager would refuse.", receipt: &manager.Receipt{CaughtUp: ago(time.Hour), Heartbeat: ago(61 * time.Second), Versions: current}, decision: Blocked, because: api.ReasonHubNotReady, says: "the agent of hub a has sent no heartbeat for 1m0s"},
		"Never":       {reason: "The manager has listened for long enough.", receipt: &manager.Receipt{CaughtUp: ago(61 * time.Second)}, decision: Blocked, because: api.ReasonHubNotReady, says: "no heartbeat for 1m0s"},
		"JustStarted": {reason: "The manager would wait.", receipt: &manager.Receipt{CaughtUp: ago(time.Minute)}, decision: NotChecked, because: ReasonHeartbeatUnknown, says: "run the command again in a minute"},
		"NotRead":     {reason: "The manager has not read the old messages.", receipt: &manager.Receipt{}, decision: NotChecked, because: ReasonHeartbeatUnknown, says: "waits for the first heartbeat"},
		"NotListed":   {reason: "The hub was enrolled a moment ago.", decision: NotChecked, because: ReasonHeartbeatUnknown, says: "waits for the first heartbeat"},
		"Versions":    {reason: "The agent reads no version that the manager writes.", receipt: &manager.Receipt{CaughtUp: ago(time.Hour), Heartbeat: now, Versions: []int{message.Version + 1}}, decision: Blocked, because: api.ReasonHubNotReady, says: "upgrade the older of the two"},
		"Refused":     {reason: "An ACL is missing.", receipt: &manager.Receipt{CaughtUp: ago(time.Hour), Heartbeat: now, Versions: current, Refused: "read topic x: not authorized"}, decision: Blocked, because: api.ReasonBrokerRefused, says: "read topic x"},
		"Unknown":     {reason: "An old receipt says nothing.", receipt: &manager.Receipt{CaughtUp: ago(time.Hour), Heartbeat: now, Versions: current}, unknown: "the manager has stopped", decision: NotChecked, because: ReasonHeartbeatUnknown, says: "the manager has stopped"},
	} {
		all := heartbeats{manager.Receipts{Published: now, Hubs: map[string]manager.Receipt{}}, test.unknown}
		if test.receipt != nil {
			all.Hubs["a"] = *test.receipt
		}
		decision, f := all.decide("a")
		if decision != test.decision || f.Reason != test.because || !strings.Contains(f.Message, test.says) {
			t.Errorf("%s: %s Got %s, %+v", name, test.reason, decision, f)
		}
	}
}
