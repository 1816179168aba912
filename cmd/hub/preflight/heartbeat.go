package preflight

import (
	"context"
	"fmt"
	"time"

	"github.com/godwit-dev/godwit"
	api "github.com/godwit-dev/godwit/cmd/hub/api/v1alpha1"
	"github.com/godwit-dev/godwit/cmd/hub/manager"
)

// publishWait is how long a manager may take to publish its receipts again: three attempts.
const publishWait = 3 * manager.PublishInterval

// heartbeats are the receipts that the manager has published.
type heartbeats struct {
	manager.Receipts
	// unknown is why the receipts are not known, and what to do; empty if they are known.
	unknown string
}

// heartbeats reads what the manager publishes.
func (h Hubs) heartbeats(ctx context.Context) (all heartbeats, err error) {
	last, runs, err := h.awaitRenewal(ctx, renewal{clock: h.Clock, wait: publishWait, read: func(ctx context.Context) (time.Time, error) {
		var err error
		all.Receipts, err = manager.ReadReceipts(ctx, h.Global, h.ManagerNamespace)
		return all.Published, err
	}})
	at := h.ManagerNamespace + "/" + manager.HubHeartbeats
	switch {
	case err != nil || runs:
		return all, err
	case last.IsZero():
		all.unknown = "there is no ConfigMap " + at
	default:
		all.unknown = fmt.Sprintf("the manager has not written ConfigMap %s since %s", at, last.UTC().Format(time.RFC3339))
	}
	all.unknown += fmt.Sprintf(": see whether the manager runs, with kubectl -n %s get pods", h.ManagerNamespace)
	return all, nil
}

// decide returns the manager's own decision about the agent of a hub at the start of a migration. It uses the manager's
// clock only.
func (b heartbeats) decide(hub string) (Decision, godwit.Finding) {
	receipt, listed := b.Hubs[hub]
	switch {
	case b.unknown != "":
		return NotChecked, finding(ReasonHeartbeatUnknown, fmt.Sprintf("whether the agent of hub %s sends heartbeats is not known: %s", hub, b.unknown))
	case receipt.Refused != "":
		return Blocked, finding(api.ReasonBrokerRefused, receipt.Refused)
	case !listed || receipt.Waits(b.Published):
		return NotChecked, finding(ReasonHeartbeatUnknown, fmt.Sprintf("the manager waits for the first heartbeat of the agent of hub %s: run the command again in a minute", hub))
	}
	if problem := receipt.Problem(hub, b.Published); problem != "" {
		return Blocked, finding(api.ReasonHubNotReady, problem)
	}
	return Ready, godwit.Finding{}
}
