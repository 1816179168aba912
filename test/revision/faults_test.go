package revision_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"testing"

	"github.com/godwit-dev/godwit/revision"
	"github.com/godwit-dev/godwit/revision/decision"
	"github.com/godwit-dev/godwit/test/fault"
)

// TestEveryWriteMayGoWrong: a fault befalls one write after the other, in the
// upgrade and in the removal that follows the retention, and the next pass continues.
// After every single write each reference leads to a revision that can be read, and
// in the end nothing is left of the old version, nor a revision too many.
func TestEveryWriteMayGoWrong(t *testing.T) {
	for name, one := range fault.All() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for at := 0; ; at++ {
				c := newNamespace(t)
				c.app()
				var wrong error
				w := &fault.Transport{At: at, Fault: one, After: func(req *http.Request) {
					if err := c.unresolved(); err != nil && wrong == nil {
						wrong = fmt.Errorf("after %s %s: %w", req.Method, req.URL.Path, err)
					}
				}}
				pass := func() {
					u := c.upgrader(w.Config(shared.Config()), decision.Policy{})
					w.Run(t.Context(), func(ctx context.Context) { _, _ = u.Run(ctx, revision.Scope{Namespace: c.namespace}, nil) })
				}
				pass()
				c.run(decision.Policy{}) // the next client, undisturbed
				c.clock.SetTime(c.clock.Now().Add(2 * decision.DefaultRetention))
				pass()
				c.run(decision.Policy{})

				if wrong != nil {
					t.Errorf("write %d: %v", at, wrong)
				}
				if got := c.revisions(); !slices.Equal(got, []string{"app-preset-v2", "app-profile-v2"}) {
					t.Errorf("write %d of %q: revisions %v in the end", at, w.Writes(), got)
				}
				if at >= len(w.Writes()) {
					t.Logf("%d writes: %q", at, w.Writes())
					return
				}
			}
		})
	}
}
