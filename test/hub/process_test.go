package hub_test

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/godwit-dev/godwit/cmd/hub/kafka"
	"github.com/godwit-dev/godwit/cmd/hub/manager"
	"github.com/godwit-dev/godwit/cmd/hub/message"
)

// reconcileEvery is how often a process reconciles each migration. With a quarter of it, two thirds of the API server's requests are
// reads of what has not changed.
const reconcileEvery = 200 * time.Millisecond

// process is one run of the manager, until it is killed.
type process struct {
	r      *manager.Reconciler
	cancel context.CancelFunc
	group  sync.WaitGroup
}

// start runs the manager for some migrations. Its writes and sends go through a valve, if
// there is one.
func (g *globalHub) start(v *valve, keys ...objectKey) *process {
	g.t.Helper()
	ctx, cancel := context.WithCancel(log.IntoContext(g.t.Context(), g.log))
	transport := g.transport("manager")
	p := &process{cancel: cancel}
	own := cmp.Or(g.own, g.c)
	var c client.Client = own
	var carries manager.Transport = transport
	if v != nil {
		v.kill = cancel
		c, carries = v.client(own), v.transport(transport)
	}
	if g.through != nil {
		carries = g.through(carries)
	}
	if g.forbidden != "" {
		carries = forbidding{carries, g.forbidden}
	}
	p.r = &manager.Reconciler{
		Client: c, Reader: own, Recorder: g.events, Clock: g.clock, Transport: carries,
		Metrics: g.metrics, Namespace: g.namespace, Allowed: g.allowed, Identity: g.manager,
	}
	p.group.Go(func() {
		if err := p.r.Receive(ctx); err != nil {
			g.t.Error(err)
		}
	})
	for _, key := range keys {
		p.group.Go(func() {
			for ctx.Err() == nil {
				_, err := p.r.Reconcile(ctx, reconcile.Request{NamespacedName: key})
				if err != nil && ctx.Err() == nil {
					g.t.Logf("reconcile: %v", err)
					g.log.Error(err, "Reconcile")
				}
				pause(ctx, reconcileEvery)
			}
		})
	}
	return p
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// stop kills the process.
func (p *process) stop() {
	p.cancel()
	p.group.Wait()
}

// valve lets writes and sends through, up to one at which the manager is killed.
type valve struct {
	kill   context.CancelFunc
	left   atomic.Int32
	before bool // killed before the last one, instead of after it
	passed atomic.Int32
}

var errKilled = errors.New("the manager is killed")

// pass executes an operation unless the manager is dead.
func (v *valve) pass(do func() error) error {
	left := v.left.Add(-1)
	switch {
	case left < 0, left == 0 && v.before:
		v.kill()
		return errKilled
	}
	v.passed.Add(1)
	err := do()
	if left == 0 {
		v.kill()
		return errors.Join(errKilled, err)
	}
	return err
}

func (v *valve) client(c client.WithWatch) client.Client {
	return interceptor.NewClient(c, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			return v.pass(func() error { return c.Create(ctx, o, opts...) })
		},
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
			return v.pass(func() error { return c.Update(ctx, o, opts...) })
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			return v.pass(func() error { return c.Patch(ctx, o, p, opts...) })
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			return v.pass(func() error { return c.Delete(ctx, o, opts...) })
		},
		SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, o client.Object, opts ...client.SubResourceUpdateOption) error {
			return v.pass(func() error { return c.SubResource(sub).Update(ctx, o, opts...) })
		},
	})
}

func (v *valve) transport(t *kafka.Transport) manager.Transport { return valved{t, v} }

type valved struct {
	*kafka.Transport
	v *valve
}

func (t valved) Send(ctx context.Context, topic, key string, e message.Envelope) error {
	return t.v.pass(func() error { return t.Transport.Send(ctx, topic, key, e) })
}
