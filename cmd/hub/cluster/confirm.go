package cluster

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-dev/godwit/internal/apierror"
	"github.com/godwit-dev/godwit/internal/kube"
)

const (
	// confirmTime is how long a hub must deny a permission, or not serve a kind, before this counts as final. API
	// servers were seen to deny everything for 1.5 s after their start, and authorizers read Roles later than
	// ClusterRoles.
	confirmTime = 5 * time.Second
	// confirmCount is the least number of denials within confirmTime.
	confirmCount = 3
	// confirmInterval bounds the reviews of a pass over many clusters, which all need the same permission.
	confirmInterval = time.Second
	// confirmGap ends a series of denials: requests between them may have succeeded.
	confirmGap = 30 * time.Second
)

// Confirmations distinguish a missing permission or kind from an API server that has just started. They count denials
// over the passes of a command. They are lost with the process: the next process confirms again. The zero value is
// ready.
type Confirmations struct {
	mutex sync.Mutex
	// denials has the permissions and the kinds that the hub denies.
	denials map[string]denial
	since   time.Time
}

// Since returns when it was first called in this process: what no process has tried before is not final yet.
func (c *Confirmations) Since(now time.Time) time.Time {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.since.IsZero() {
		c.since = now
	}
	return c.since
}

// denial is a series of denials without a gap.
type denial struct {
	first, last time.Time
	count       int
}

// recent reports whether it is too early for another review.
func (d denial) recent(now time.Time) bool { return d.count > 0 && now.Sub(d.last) < confirmInterval }

// add counts a denial.
func (d denial) add(now time.Time) denial {
	if d.count == 0 || now.Sub(d.last) > confirmGap {
		d = denial{first: now}
	}
	d.last = now
	d.count++
	return d
}

// confirmed reports whether the denials are enough.
func (d denial) confirmed() bool {
	return d.count >= confirmCount && d.last.Sub(d.first) >= confirmTime
}

// Final reports whether a retry cannot fix an error: an [Error], or an error that package apierror calls final. A
// missing permission or kind is final only if the hub denies it for some seconds: a permission in access reviews, a
// kind in discovery. A review that fails or allows the request starts the count again.
func (c *Confirmations) Final(ctx context.Context, hub client.Client, err error) bool {
	var failure *Error
	if errors.As(err, &failure) {
		return true
	}
	switch apierror.TreatmentOf(err) {
	case apierror.Final:
		return true
	case apierror.Confirm:
		return c.confirm(ctx, hub, err)
	}
	return false
}

// confirm asks the hub, and reports whether it has denied often enough.
func (c *Confirmations) confirm(ctx context.Context, hub client.Client, err error) bool {
	permission := apierror.Of(err).Permission
	key := fmt.Sprintf("%+v", permission)
	if permission == (apierror.Permission{}) {
		key = err.Error() // a kind
	}
	if d := c.get(key); d.recent(time.Now()) {
		return d.confirmed()
	}
	denied := permission == (apierror.Permission{}) || denies(ctx, hub, permission)
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if !denied {
		delete(c.denials, key)
		return false
	}
	if c.denials == nil {
		c.denials = map[string]denial{}
	}
	c.denials[key] = c.denials[key].add(time.Now())
	return c.denials[key].confirmed()
}

func (c *Confirmations) get(key string) denial {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.denials[key]
}

// denies reports whether the hub answers an access review, and denies the permission.
func denies(ctx context.Context, hub client.Client, p apierror.Permission) bool {
	review := kube.ReviewOf(p)
	return hub.Create(ctx, review) == nil && !review.Status.Allowed
}
