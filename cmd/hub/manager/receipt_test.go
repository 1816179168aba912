package manager

import (
	"testing"
	"time"

	"github.com/godwit-dev/godwit/cmd/hub/message"
)

// TestBeat: a heartbeat counts once the old messages are read, and shows that the broker lets the manager read.
func TestBeat(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	var all receipts
	all.addHeartbeat("a", []int{message.Version}, now)
	if got := all.get("a"); !got.Heartbeat.IsZero() || got.Problem("a", now) == "" {
		t.Errorf("an old heartbeat counts: %+v", got)
	}
	all.update("a", func(r *Receipt) { r.CaughtUp, r.Refused = now, "no ACL" })
	all.addHeartbeat("a", []int{message.Version}, now)
	if got := all.get("a"); got.Problem("a", now.Add(time.Minute)) != "" || got.Refused != "" {
		t.Errorf("a heartbeat says nothing: %+v", got)
	}
	if got := all.get("a"); got.Problem("a", now.Add(61*time.Second)) == "" {
		t.Errorf("an old heartbeat counts: %+v", got)
	}
}
