package operator

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/godwit-dev/godwit/internal/storageversion/decision"
)

// outage is how long a server is away: half a minute, or two minutes with `make soak`.
// A manager loses its lease after 10 s of either.
func outage() time.Duration {
	if os.Getenv("GODWIT_SOAK") != "" {
		return 2 * time.Minute
	}
	return 30 * time.Second
}

// TestAPIServerAway in the middle of a migration. A manager that elects loses its
// lease, ends, and is started again as a kubelet does; one that does not lives through
// it. Either resumes by itself.
func TestAPIServerAway(t *testing.T) {
	t.Parallel()
	for name, env := range map[string][]string{"elected": {electIn + "=default"}, "alone": nil} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newClusterOn(t, startPlane(t)) // what lasts longest waits for nothing
			const n = 600
			away := outage()
			geese := c.define("geese", n, optedIn)
			manager := c.keepManaging(c.plane.Config(), c.slowly(40), env...)
			c.flip(geese)
			c.awaitMiddle(geese, n)
			if err := c.plane.StopAPIServer(); err != nil {
				t.Fatal(err)
			}
			before := c.stored(geese, "v2")
			<-time.After(away)
			if err := c.plane.StartAPIServer(t.Context()); err != nil {
				t.Fatal(err)
			}
			back := time.Now()
			c.awaitReason(geese, decision.ReasonSucceeded.Name)
			c.mustBeMigratedOnce(geese, n)
			took := time.Since(back)
			restarts, said := manager.end()
			if name == "elected" && restarts == 0 {
				t.Error("a manager that lost its lease did not stop")
			}
			if name == "alone" && restarts > 0 {
				t.Errorf("%d restarts of a manager that has no lease to lose", restarts)
			}
			t.Logf("API server away %s with %d of %d objects written: %d restarts of the manager, %d lines said, Succeeded %s after its return, %d revisions",
				away, before, n, restarts, strings.Count(said, "\n"), took.Round(time.Second), c.revisions(geese))
		})
	}
}

// TestEtcdAway in the middle of a migration: the API server is there, and answers
// nothing.
func TestEtcdAway(t *testing.T) {
	t.Parallel()
	c := newClusterOn(t, ownPlane(t))
	const n = 600
	away := outage()
	geese := c.define("geese", n, optedIn)
	manager := c.keepManaging(c.plane.Config(), c.slowly(40), electIn+"=default")
	c.flip(geese)
	c.awaitMiddle(geese, n)
	if err := c.plane.StopEtcd(); err != nil {
		t.Fatal(err)
	}
	<-time.After(away)
	if err := c.plane.StartEtcd(t.Context()); err != nil {
		t.Fatal(err)
	}
	before, back := c.stored(geese, "v2"), time.Now()
	if before >= n {
		t.Fatal("nothing was left to do when etcd was back")
	}
	c.awaitReason(geese, decision.ReasonSucceeded.Name)
	c.mustBeMigratedOnce(geese, n)
	took := time.Since(back)
	restarts, said := manager.end()
	t.Logf("etcd away %s with %d of %d objects written: %d restarts of the manager, %d lines said, Succeeded %s after its return, %d revisions",
		away, before, n, restarts, strings.Count(said, "\n"), took.Round(time.Second), c.revisions(geese))
}
