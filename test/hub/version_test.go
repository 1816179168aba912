package hub_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/godwit-dev/godwit/cmd/hub"
	api "github.com/godwit-dev/godwit/cmd/hub/api/v1alpha1"
	"github.com/godwit-dev/godwit/cmd/hub/message"
)

// TestVersions: a heartbeat lists the versions of messages that an agent reads. An agent that is
// newer than the manager, and still reads its version, takes part. One with which the manager has no
// version in common does not, and nothing is sent.
//
// Matrix: H43.
func TestVersions(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		versions []int
		says     string // empty: the clusters move
	}{
		"Newer":        {[]int{message.Version, message.Version + 1}, ""},
		"NoneInCommon": {[]int{message.Version + 1}, "reads versions [2] of messages, and the manager writes version 1: upgrade the older of the two"},
		"NoneAtAll":    {nil, "reads versions [] of messages"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newGlobalHub(t)
			g.to = g.newSilentHub("silent-"+newName(), hub.Target)
			g.enroll(g.from, g.to)
			g.kubeconfig = "issued by " + g.to.hub
			ctx, stop := context.WithCancel(t.Context())
			ended := make(chan struct{})
			defer func() { stop(); <-ended }()
			go func() {
				defer close(ended)
				for ctx.Err() == nil {
					g.to.write(ctx, message.Header{Type: message.TypeHeartbeat}, message.Heartbeat{Hub: g.to.hub, Versions: tc.versions})
					pause(ctx, 250*time.Millisecond)
				}
			}()
			key := g.migrate("move", "c1")
			p := g.start(nil, key)
			defer p.stop()
			m := g.await(key, "the migration has ended", settled)
			if tc.says == "" {
				g.mustBeMoved(m)
				return
			}
			c := meta.FindStatusCondition(m.Status.Conditions, api.ConditionStalled)
			if m.Status.Phase != api.PhaseFailed || c.Reason != api.ReasonHubNotReady.Name || !strings.Contains(c.Message, tc.says) {
				t.Errorf("phase %s, want HubNotReady that says %q:\n%s", m.Status.Phase, tc.says, describe(m))
			}
			if told := append(g.from.executed(), g.to.executed()...); len(told) > 0 {
				t.Errorf("the hubs were told %v", told)
			}
		})
	}
}
