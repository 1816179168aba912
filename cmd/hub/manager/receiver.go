package manager

import (
	"context"
	"errors"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/godwit-dev/godwit/cmd/hub/kafka"
	"github.com/godwit-dev/godwit/cmd/hub/message"
)

// retryInterval is how long a receiver waits after the broker has refused it.
const retryInterval = 2 * time.Second

// Group returns the consumer group in which the manager reads the status topic of a hub. Each hub has its own group, so
// that a topic without an ACL does not block the others.
func Group(hub string) string { return "godwit-manager-" + hub }

// Receive reads the status topics of all enrolled hubs until the context ends, and publishes the receipts. Only the
// leader calls it. It reads the list of enrolled hubs again whenever it publishes.
func (r *Reconciler) Receive(ctx context.Context) error {
	var group sync.WaitGroup
	defer group.Wait()
	running := map[string]context.CancelFunc{}
	for {
		hubs, err := r.enrolledKeys(ctx)
		if err != nil && ctx.Err() == nil {
			log.FromContext(ctx).Error(err, "Cannot read the enrolled hubs")
		}
		for name := range hubs {
			if running[name] == nil {
				one, cancel := context.WithCancel(ctx)
				running[name] = cancel
				group.Go(func() { r.receiveFrom(one, name) })
			}
		}
		for name, cancel := range running {
			if _, ok := hubs[name]; !ok && err == nil {
				cancel()
				delete(running, name)
			}
		}
		if err == nil {
			if err := r.publish(ctx, hubs); err != nil && ctx.Err() == nil {
				log.FromContext(ctx).Error(err, "Cannot publish the heartbeats")
			}
		}
		if !wait(ctx, PublishInterval) {
			for _, cancel := range running {
				cancel()
			}
			return nil
		}
	}
}

// receiveFrom reads the status topic of one hub.
func (r *Reconciler) receiveFrom(ctx context.Context, name string) {
	ctx = log.IntoContext(ctx, log.FromContext(ctx).WithValues("hub", name))
	r.beginCounters(name)
	defer r.receipts.update(name, func(p *Receipt) { *p = Receipt{} })
	for {
		err := r.receiveOnce(ctx, name)
		if ctx.Err() != nil {
			return
		}
		var forbidden *kafka.ForbiddenError
		r.receipts.update(name, func(p *Receipt) {
			p.Refused = ""
			if errors.As(err, &forbidden) {
				p.Refused = err.Error()
			}
		})
		log.FromContext(ctx).Error(err, "Receiving is interrupted")
		if !wait(ctx, retryInterval) {
			return
		}
	}
}

func (r *Reconciler) receiveOnce(ctx context.Context, name string) error {
	topic := message.StatusTopic(name)
	if err := r.Transport.EnsureTopics(ctx, topic); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	var group sync.WaitGroup
	defer group.Wait()
	defer cancel()
	group.Go(func() {
		if r.receipts.hasCaughtUp(name) {
			return
		}
		if err := r.Transport.AwaitCaughtUp(ctx, Group(name), topic); err != nil {
			if ctx.Err() == nil {
				log.FromContext(ctx).Error(err, "Cannot read how far the status topic is read")
				cancel() // another attempt follows
			}
			return
		}
		r.receipts.update(name, func(p *Receipt) { p.CaughtUp, p.Refused = r.Clock.Now(), "" })
	})
	return r.Transport.Receive(ctx, Group(name), []string{topic}, r.handler(name))
}

// wait returns false if the context ends before the time has passed.
func wait(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
