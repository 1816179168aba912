package hub_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/godwit-dev/godwit/test/hub/klusterlet"
)

// tick is how often a klusterlet acts.
const tick = 200 * time.Millisecond

// play runs klusterlets until the test ends.
func play(t *testing.T, all ...*klusterlet.Klusterlet) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	for _, k := range all {
		group.Go(func() {
			if err := k.Run(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	t.Cleanup(func() {
		cancel()
		group.Wait()
	})
}

// names of klusterlets, sorted.
func names(all []*klusterlet.Klusterlet) []string {
	var list []string
	for _, k := range all {
		list = append(list, k.Name)
	}
	slices.Sort(list)
	return list
}
