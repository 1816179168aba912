package revision

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/godwit-dev/godwit/cmd/internal/frame"
	"github.com/godwit-dev/godwit/revision/decision"
)

// retentionFlag is a duration of at least revision.MinRetention.
type retentionFlag time.Duration

var _ pflag.Value = new(retentionFlag)

func (r *retentionFlag) addTo(c *cobra.Command) {
	*r = retentionFlag(decision.DefaultRetention)
	c.Flags().Var(r, "retention", "how long a revision is kept after the last reference to it is gone; at least "+decision.MinRetention.String())
}

func (r *retentionFlag) duration() time.Duration { return time.Duration(*r) }

func (r *retentionFlag) Set(text string) error {
	parsed, err := time.ParseDuration(text)
	switch {
	case err != nil:
		return frame.ErrDuration
	case parsed < decision.MinRetention:
		return fmt.Errorf("it must be at least %s, since caches of controllers may name the old revision until then", decision.MinRetention)
	}
	*r = retentionFlag(parsed)
	return nil
}

func (r *retentionFlag) Type() string { return "duration" }

func (r *retentionFlag) String() string { return time.Duration(*r).String() }
