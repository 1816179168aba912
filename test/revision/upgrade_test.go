package revision_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/godwit-dev/godwit/revision"
	"github.com/godwit-dev/godwit/revision/decision"
)

// TestUpgradeRepointsEveryReference to a replacement, keeps the source for the
// retention, and removes it then.
func TestUpgradeRepointsEveryReference(t *testing.T) {
	c := newNamespace(t)
	c.app()
	for name, r := range c.run(decision.Policy{}) {
		if r.Phase != revision.Retained {
			t.Errorf("%s is %s: %s", name, r.Phase, r.Message)
		}
	}
	want := map[string]string{
		"/spec/preset/revision": "app-preset-v2", "/spec/profile/revision": "app-profile-v2",
		"/status/preset/revision": "app-preset-v2", "/status/profile/revision": "app-profile-v2",
	}
	if diff := cmp.Diff(want, c.refers("app")); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]any{"duration": "30m"}, c.data("app-preset-v2")["spec"]); diff != "" {
		t.Error(diff)
	}
	if got := c.revisions(); len(got) != 4 {
		t.Errorf("revisions %v: a source is kept for an hour", got)
	}
	for _, i := range c.plan(decision.Policy{}) {
		if i.Version == "v1" && (i.Action != decision.Upgrade || i.Reason != decision.ReasonRetained) {
			t.Errorf("%s: %s %s", i.Name, i.Action, i.Reason)
		}
	}

	c.clock.SetTime(c.clock.Now().Add(decision.DefaultRetention - time.Second))
	c.run(decision.Policy{})
	if got := c.revisions(); len(got) != 4 {
		t.Errorf("revisions %v a second before the retention ends", got)
	}
	c.clock.SetTime(c.clock.Now().Add(time.Second))
	for name, r := range c.run(decision.Policy{}) {
		if r.Phase != revision.Succeeded {
			t.Errorf("%s is %s: %s", name, r.Phase, r.Message)
		}
	}
	if got := c.revisions(); !slices.Equal(got, []string{"app-preset-v2", "app-profile-v2"}) {
		t.Errorf("revisions %v in the end", got)
	}
	if err := c.unresolved(); err != nil {
		t.Error(err)
	}
	for _, i := range c.plan(decision.Policy{}) {
		if i.Action != decision.UpToDate {
			t.Errorf("%s: %s %s", i.Name, i.Action, i.Message)
		}
	}
}
