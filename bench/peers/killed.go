package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/godwit-dev/godwit/bench/internal/measure"
	"github.com/godwit-dev/godwit/bench/internal/widget"
)

// measureKilled kills each contestant after half of the objects, and starts it again.
func (b *bench) measureKilled(ctx context.Context, contestants []contestant) error {
	measure.Say("killed: the process is killed after half of the objects, and started again")
	all, err := b.subjects(ctx, "killed", contestants)
	if err != nil {
		return err
	}
	defer b.finish(ctx, all)
	if err := each(ctx, all, func(s *subject) error { return s.resource.FlipAndProbe(ctx) }); err != nil {
		return err
	}
	if err := widget.Age(ctx); err != nil {
		return err
	}
	return each(ctx, all, func(s *subject) error {
		if err := b.killHalfway(ctx, s); err != nil {
			return err
		}
		return b.restart(ctx, s)
	})
}

func (b *bench) killHalfway(ctx context.Context, s *subject) (err error) {
	if s.migration, err = s.prepare(ctx, s.resource); err != nil {
		return err
	}
	half, err := b.watchWrites(ctx, s.resource, s.resource.Len()/2)
	if err != nil {
		return err
	}
	if err := s.migration.begin(ctx); err != nil {
		return err
	}
	if err := half(); err != nil {
		return err
	}
	if err := s.migration.kill(); err != nil {
		return err
	}
	select { // until writes that were under way have ended
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(afterKill):
	}
	s.residue.During, err = s.look(ctx, "killed")
	if err == nil && s.residue.During.Old == 0 {
		err = fmt.Errorf("it had written all %d objects when it was killed: measure more of them", s.resource.Len())
	}
	return err
}

// afterKill is ten times what a write takes on a busy server.
const afterKill = time.Second

// watchWrites returns a function that returns when etcd has stored n objects since.
func (b *bench) watchWrites(ctx context.Context, r *widget.Resource, n int) (func() error, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, recoveryLimit, errLimit)
	events := b.plane.Etcd().Watch(clientv3.WithRequireLeader(ctx), r.Prefix(), clientv3.WithPrefix(), clientv3.WithCreatedNotify())
	if created := <-events; created.Err() != nil || !created.Created {
		cancel()
		return nil, errors.Join(fmt.Errorf("watch %s in etcd", r.Prefix()), created.Err())
	}
	return func() error {
		defer cancel()
		for seen := 0; seen < n; {
			response, open := <-events
			if !open || response.Err() != nil {
				return errors.Join(fmt.Errorf("wait for %d writes of %s, %d seen", n, r.CRD(), seen), response.Err(), context.Cause(ctx))
			}
			seen += len(response.Events)
		}
		return nil
	}, nil
}

// restart starts the process again, which does what is left. What it writes beyond that, it repeats.
func (b *bench) restart(ctx context.Context, s *subject) (err error) {
	before, err := b.meter.requests.Writes(ctx, s.resource.Group())
	if err != nil {
		return err
	}
	if s.migration, err = s.prepare(ctx, s.resource); err != nil {
		return err
	}
	if err := s.migration.begin(ctx); err != nil {
		return err
	}
	claim := s.wait(ctx, recoveryLimit/2)
	if s.residue.After, err = s.look(ctx, claim); err != nil {
		return err
	}
	after, err := b.meter.requests.Writes(ctx, s.resource.Group())
	repeated := after - before - int64(s.residue.During.Old-s.residue.After.Old)
	s.residue.Repeated = &repeated
	return err
}
