package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/godwit-dev/godwit/bench/internal/measure"
	"github.com/godwit-dev/godwit/test/process"
)

// measureRound lets all contestants take turns, in another order each round. One that has failed is not asked again.
func (b *bench) measureRound(ctx context.Context, contestants []contestant, round int) error {
	first := (round - 1) * len(contestants) / b.rounds
	for i := range len(contestants) + 1 {
		if i == len(contestants)/2 { // among the others, and not always after the same one
			if err := b.measureCeiling(ctx, round); err != nil {
				return err
			}
		}
		if i == len(contestants) {
			continue
		}
		c := contestants[(first+i)%len(contestants)]
		if b.failed(c.name()) {
			continue
		}
		if err := b.turnOf(ctx, c, round); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) turnOf(ctx context.Context, c contestant, round int) error {
	if err := b.resource.PrepareTurn(ctx); err != nil {
		return err
	}
	t := b.run(ctx, c, round)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	t.say()
	b.current.Turns = append(b.current.Turns, t)
	return nil
}

func (b *bench) measureCeiling(ctx context.Context, round int) error {
	for _, width := range measure.InFlight {
		if err := b.resource.PrepareTurn(ctx); err != nil {
			return err
		}
		t, err := b.rawLoop(ctx, round, width)
		if err != nil {
			return err
		}
		t.say()
		b.current.Turns = append(b.current.Turns, t)
	}
	return nil
}

// run lets a contestant migrate. What goes wrong with it is a part of the result.
func (b *bench) run(ctx context.Context, c contestant, round int) (t turn) {
	t = turn{Round: round, Contestant: c.name()}
	if err := b.migrate(ctx, c, &t); err != nil && ctx.Err() == nil {
		t.Error = err.Error()
	}
	return t
}

func (b *bench) migrate(ctx context.Context, c contestant, t *turn) (err error) {
	m, err := c.prepare(ctx, b.resource)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.close(ctx)) }()
	err = b.meter.take(ctx, t, b.resource, func() error {
		if err := m.begin(ctx); err != nil {
			return err
		}
		limited, cancel := context.WithTimeoutCause(ctx, b.limit, errLimit)
		defer cancel()
		var err error
		t.Claim, err = m.wait(limited)
		return err
	})
	if errors.Is(err, errLimit) {
		t.Limited = true
		if t.Objects == 0 {
			return fmt.Errorf("it has written no object in %s, and says %q:%s", b.limit, t.Claim, process.Tail(filepath.Join(b.dir, c.name()+".log")))
		}
		return m.close(ctx)
	}
	if err != nil {
		return err
	}
	return b.resource.MustBeMigrated(ctx)
}

// rawLoop is one turn of the ceiling.
func (b *bench) rawLoop(ctx context.Context, round, width int) (turn, error) {
	t := turn{Round: round, Contestant: rawName(width)}
	err := b.meter.take(ctx, &t, b.resource, func() error {
		_, err := b.resource.As(b.user).PatchAll(ctx, width)
		return err
	})
	return t, err
}
