package main

import (
	"context"
	"fmt"
	"time"

	"github.com/godwit-dev/godwit/bench/internal/frame"
	"github.com/godwit-dev/godwit/bench/internal/widget"
	"github.com/godwit-dev/godwit/walk"
)

// measureKilled kills each contestant after half of the objects, and starts it again.
func (b *bench) measureKilled(ctx context.Context, contestants []contestant) error {
	frame.Logf("killed: the process is killed after half of the objects, and started again")
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
	before, err := s.resource.Revision(ctx)
	if err != nil {
		return err
	}
	if err := s.migration.begin(ctx); err != nil {
		return err
	}
	limited, cancel := context.WithTimeoutCause(ctx, recoveryLimit, errLimit)
	defer cancel()
	if err := s.resource.AwaitHalf(limited, before); err != nil {
		return err
	}
	if err := s.migration.kill(); err != nil {
		return err
	}
	if err := walk.Wait(ctx, afterKill); err != nil {
		return err
	}
	s.residue.During, err = s.readState(ctx, "killed")
	if err == nil && s.residue.During.Old == 0 {
		err = fmt.Errorf("it had written all %d objects when it was killed: measure more of them", s.resource.Len())
	}
	return err
}

// afterKill is the time that writes in flight have to end: ten times the duration of a write on a busy server.
const afterKill = time.Second

// restart starts the process again, which writes the remaining objects. It counts the writes of other objects as repeated.
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
	if s.residue.After, err = s.readState(ctx, claim); err != nil {
		return err
	}
	after, err := b.meter.requests.Writes(ctx, s.resource.Group())
	repeated := after - before - int64(s.residue.During.Old-s.residue.After.Old)
	s.residue.Repeated = &repeated
	return err
}
