package storageversion

import (
	"fmt"
	"strings"
	"time"

	"github.com/godwit-dev/godwit/internal/storageversion/internal/settle"
)

// DefaultSettle is 15 s, for a server's watch to bring the change, and 60 s, the API
// server's request timeout, for what was begun before it.
const DefaultSettle = settle.Default

// terms is what the policy says about the wait.
func (p Policy) terms() settle.Terms {
	return settle.Terms{Settle: p.Settle, SettleFromSight: p.SettleFromSight, AcceptStaleLeases: p.AcceptStaleLeases}
}

// NotSettledError reports that nothing may be written yet. Whoever runs a
// control loop requeues after Wait; another caller runs again at Until, and
// better every few seconds: a lease that becomes stale meanwhile is only noticed
// by looking.
type NotSettledError struct {
	// Until is the API server's time before which nothing is written. Where Servers are waited
	// for, it is when they renew their leases next.
	Until time.Time
	// Wait is how long that is from now, by the API server's clock.
	Wait time.Duration
	// Servers have not adopted the storage version as far as their leases show.
	Servers []Server
	// Stale are those of them whose lease is stale.
	Stale []Server
}

func (e *NotSettledError) Error() string {
	switch {
	case len(e.Stale) > 0:
		return fmt.Sprintf("not settled: API server %s has a stale lease and may still write the old version", join(e.Stale))
	case len(e.Servers) > 0:
		return fmt.Sprintf("not settled: API server %s has not shown yet that it adopted the storage version", join(e.Servers))
	}
	return fmt.Sprintf("not settled: requests begun before the storage version changed may still be under way for %s",
		max(e.Wait.Round(time.Second), time.Second))
}

func join(servers []Server) string {
	names := make([]string, len(servers))
	for i, s := range servers {
		names[i] = s.String()
	}
	return strings.Join(names, ", ")
}
