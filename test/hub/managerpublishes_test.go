package hub_test

import (
	"strings"
	"testing"
	"time"

	"github.com/godwit-dev/godwit/cmd/hub"
	"github.com/godwit-dev/godwit/cmd/hub/preflight"
)

// TestManagerPublishesHeartbeats: a preflight on the global hub alone knows which agents reach the brokers, and
// that it does not know it when the manager has stopped.
//
// Matrix: H82.
func TestManagerPublishesHeartbeats(t *testing.T) {
	t.Parallel()
	g := newGlobalHub(t)
	g.to = g.newSilentHub("silent-"+newName(), hub.Target)
	g.enroll(g.from, g.to)
	clock := &leaping{}
	g.clock = clock
	user := &leaping{}
	expect := func(name string, want preflight.Decision, says string) {
		t.Helper()
		hubs := preflight.Hubs{Global: g.c, ManagerNamespace: g.namespace, Clock: user, Poll: 100 * time.Millisecond}
		var check preflight.Check
		for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
			r, err := hubs.Run(t.Context(), preflight.Request{From: g.from.hub, To: g.to.hub, Clusters: []string{"c1"}})
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range r.Checks {
				if c.Name == name {
					check = c
				}
			}
			if check.Decision == want && strings.Contains(check.Message, says) {
				return
			}
			pause(t.Context(), 100*time.Millisecond)
		}
		t.Fatalf("%s is %s: %s: %s; want %s: %q", name, check.Decision, check.Reason, check.Message, want, says)
	}
	expect(preflight.CheckSourceAgent, preflight.NotChecked, "there is no ConfigMap "+g.namespace+"/godwit-hub-heartbeats: see whether the manager runs")

	p := g.start(nil)
	defer p.stop()
	expect(preflight.CheckSourceAgent, preflight.Ready, "")
	expect(preflight.CheckTargetAgent, preflight.NotChecked, "the manager waits for the first heartbeat of the agent of hub "+g.to.hub)

	clock.leap(2 * time.Minute)
	expect(preflight.CheckTargetAgent, preflight.Blocked, "the agent of hub "+g.to.hub+" has sent no heartbeat for 1m0s")
	expect(preflight.CheckSourceAgent, preflight.Ready, "")

	p.stop()
	user.leap(5 * time.Minute)
	expect(preflight.CheckSourceAgent, preflight.NotChecked, "the manager has not written ConfigMap "+g.namespace+"/godwit-hub-heartbeats since")
}
