package direct

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/go-logr/logr"

	api "github.com/godwit-dev/godwit/cmd/hub/api/v1alpha1"
)

const (
	// leaseDuration is how long a killed process keeps its Lease. All times follow client-go's defaults.
	leaseDuration = 15 * time.Second
	renewDeadline = 10 * time.Second
	retryPeriod   = 2 * time.Second

	// MaxWait is the longest time until [Run] begins, or returns a [HeldError]. A holder that lives has renewed its Lease by then.
	MaxWait = leaseDuration + 2*retryPeriod
)

// HeldError means that another process carries the migration out.
type HeldError struct {
	// Holder names the process.
	Holder string
}

// Error implements error.
func (e *HeldError) Error() string {
	return fmt.Sprintf("process %s carries the migration out", e.Holder)
}

// errLost means that the process could not renew its Lease.
var errLost = errors.New("the Lease of the migration could not be renewed, so that another process may carry the migration out: this one has stopped")

// leaseKey returns the name of the Lease of a migration.
func leaseKey(m *api.ManagedClusterMigration) types.NamespacedName {
	return types.NamespacedName{Namespace: m.Namespace, Name: "godwit-" + m.Name}
}

// Holder is who has the Lease of a migration.
type Holder struct {
	// Name of the process; empty if none has it.
	Name string
	// Renewed is when a process renewed the Lease last, by its own clock; zero if none ever did.
	Renewed time.Time
}

// HolderOf reads the Lease of a migration on the source hub. A Lease that is not renewed has no holder.
func HolderOf(ctx context.Context, hub client.Reader, m *api.ManagedClusterMigration, now time.Time) (h Holder, err error) {
	lease := &coordinationv1.Lease{}
	err = hub.Get(ctx, leaseKey(m), lease)
	if apierrors.IsNotFound(err) {
		return h, nil
	}
	if err != nil {
		return h, fmt.Errorf("read Lease %s: %w", leaseKey(m), err)
	}
	if lease.Spec.RenewTime != nil {
		h.Renewed = lease.Spec.RenewTime.Time
	}
	if lease.Spec.HolderIdentity != nil && now.Sub(h.Renewed) < leaseDuration {
		h.Name = *lease.Spec.HolderIdentity
	}
	return h, nil
}

// holding is the turn of a process at a Lease: it waits, it works, or it has given up.
type holding struct {
	mutex sync.Mutex
	// other is who has the Lease.
	other       string
	began, over bool
	// done is closed when the work has ended.
	done chan struct{}
}

// begin reports whether the work may begin.
func (h *holding) begin() bool {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	h.began = !h.over
	return h.began
}

// giveUp ends the wait, and reports whether the work had not begun.
func (h *holding) giveUp() bool {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	h.over = !h.began
	return h.over
}

func (h *holding) see(name string) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	h.other = name
}

func (h *holding) seen() string {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	return h.other
}

// hold carries out do while this process has the Lease, and gives the Lease back when do has ended. It returns a
// [HeldError] if another process keeps the Lease.
func hold(ctx context.Context, clients kubernetes.Interface, key types.NamespacedName, name string, do func(context.Context) error) error {
	// The Lease is kept until do has ended, also after an interruption.
	electing, stop := context.WithCancel(logr.NewContext(context.WithoutCancel(ctx), logr.Discard()))
	defer stop()
	h := &holding{done: make(chan struct{})}
	stopIfWaiting := func() {
		if h.giveUp() {
			stop()
		}
	}
	defer time.AfterFunc(MaxWait, stopIfWaiting).Stop()
	defer context.AfterFunc(ctx, stopIfWaiting)()
	var result error
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: &resourcelock.LeaseLock{
			LeaseMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}, Client: clients.CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: name},
		},
		LeaseDuration: leaseDuration, RenewDeadline: renewDeadline, RetryPeriod: retryPeriod, ReleaseOnCancel: true,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(held context.Context) {
				if !h.begin() {
					return
				}
				defer close(h.done)
				defer stop()
				working, end := context.WithCancelCause(ctx)
				defer end(nil)
				defer context.AfterFunc(held, func() { end(errLost) })()
				if result = do(working); errors.Is(context.Cause(working), errLost) {
					result = errLost
				}
			},
			OnStoppedLeading: func() {},
			OnNewLeader:      h.see,
		},
	})
	if err != nil {
		return err
	}
	elector.Run(electing)
	switch {
	case !h.giveUp():
		<-h.done
		return result
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case h.seen() == "":
		return fmt.Errorf("could not get Lease %s of the source hub within %s: see whether its API server answers, and run the command again", key, MaxWait)
	}
	return &HeldError{h.seen()}
}
