package guide_test

import (
	"context"
	"testing"
	"time"

	"github.com/godwit-dev/godwit/test/controlplane"
	"github.com/godwit-dev/godwit/test/managed"
)

// directoryGroup is the API group of managed resources. A cluster has them, and a provider, if its guide names the group.
const directoryGroup = "directory.example.org"

// installProvider creates managed resources with names of an old release.
func (c *cluster) installProvider() {
	c.t.Helper()
	members, err := managed.New(c.plane.Config(), directoryGroup)
	if err == nil {
		err = controlplane.InstallCRDs(c.t.Context(), c.plane.Config(), members.CRD())
	}
	for _, one := range [][3]string{{"anna", "ACME/Anna"}, {"bob", "acme/bob"}, {"carl", "ACME/Carl"}, {"dora", "ACME/Dora", "argocd-controller"}} {
		if err == nil {
			err = members.Create(c.t.Context(), one[0], one[1], one[2])
		}
	}
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(members.Start("acme/anna", "acme/bob", "acme/carl", "acme/dora"))
	awaitObserved(c.t, members)
}

func awaitObserved(t *testing.T, members managed.Kind) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	for {
		err := members.Observed(ctx)
		if err == nil {
			return
		}
		if ctx.Err() != nil {
			t.Fatal(err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}
