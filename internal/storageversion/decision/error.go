package decision

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/internal/apierror"
)

// ErrConflicts reports a complete pass that left objects alone because other clients
// wrote them at the same moment. Nothing was trimmed. Most of these objects need no
// write in another pass.
var ErrConflicts = errors.New("objects were written by others at the same moment")

// ErrChanged reports that a CRD is no longer as it was planned for: its
// spec changed in a way that voids the evidence, it is being deleted, or a
// write to its status came in between. Observe and plan again.
var ErrChanged = errors.New("the customresourcedefinition changed")

// ErrOutOfScope is what the option BeforePage of a migrator returns to end a run because the CRD
// left the scope. The run then writes nothing else, not even its checkpoint.
var ErrOutOfScope = errors.New("the customresourcedefinition left the scope")

// ErrNotFound reports a CustomResourceDefinition that does not exist.
var ErrNotFound = errors.New("no such customresourcedefinition")

// BlockedError reports a plan that must not be run.
type BlockedError struct {
	CRD      string
	Blockers []godwit.Finding
}

func (e *BlockedError) Error() string {
	messages := make([]string, len(e.Blockers))
	for i, b := range e.Blockers {
		messages[i] = b.Line() + "; " + b.Fix.String()
	}
	return fmt.Sprintf("%s is blocked: %s", e.CRD, strings.Join(messages, "; "))
}

// NotSettledError reports that nothing may be written yet. A control loop requeues
// after Wait. Another caller runs again at Until, or better every few seconds: only
// a read of the leases shows that one became stale meanwhile.
type NotSettledError struct {
	// Until is the API server's time before which nothing is written. If Servers is not empty, it
	// is when they renew their leases next.
	Until time.Time
	// Wait is the time from now to Until, by the API server's clock.
	Wait time.Duration
	// Servers have not adopted the storage version, as far as their leases show.
	Servers []Server
	// Stale are those of Servers whose lease is stale.
	Stale []Server
	// Late means that a server has another storage version in discovery: the one at Address, or the one that answers if Address is
	// empty.
	Late    bool
	Address string
}

func (e *NotSettledError) Error() string {
	switch {
	case e.Late:
		return "not settled: " + e.lateServer()
	case len(e.Stale) > 0:
		return fmt.Sprintf("not settled: API server %s has a stale lease and may still write the old version", join(e.Stale))
	case len(e.Servers) > 0:
		return fmt.Sprintf("not settled: API server %s has not shown yet that it adopted the storage version", join(e.Servers))
	}
	return fmt.Sprintf("not settled: requests begun before the storage version changed may still be under way for %s",
		max(e.Wait.Round(time.Second), time.Second))
}

func (e *NotSettledError) lateServer() string {
	server := "the API server that answers"
	if e.Address != "" {
		server = "the API server at " + e.Address
	}
	return server + " has another storage version in discovery (storageVersionHash), and would write the old version"
}

func join(servers []Server) string {
	names := make([]string, len(servers))
	for i, s := range servers {
		names[i] = s.String()
	}
	return strings.Join(names, ", ")
}

// causesOf names the webhooks and policies that failures come from, each once and
// sorted.
func causesOf(failures []godwit.Failure) []string {
	var names []string
	for _, f := range failures {
		if by := apierror.Of(f.Err).Origin; by.Name != "" {
			names = append(names, by.String())
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
