package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/godwit-dev/godwit/bench/internal/frame"
	"github.com/godwit-dev/godwit/bench/internal/result"
	"github.com/godwit-dev/godwit/test/process"
)

// measureRound lets all contestants that have not failed take turns, with the ceiling among them.
func (b *bench) measureRound(ctx context.Context, contestants []contestant, round int) error {
	var turns []frame.Turn
	for _, c := range contestants {
		if !b.failed(c.name()) {
			turns = append(turns, b.turn(c.name(), round, func(ctx context.Context, t *result.Turn) error {
				if err := b.migrate(ctx, c, t); err != nil && ctx.Err() == nil {
					t.Error = err.Error() // a part of the result
				}
				return context.Cause(ctx)
			}))
		}
	}
	middle := len(turns) / 2
	for _, width := range frame.InFlight {
		turns = slices.Insert(turns, middle, b.turn(result.RawName(width), round, func(ctx context.Context, t *result.Turn) error {
			return b.meter.measure(ctx, t, b.resource, func() error {
				_, err := b.resource.PatchAll(ctx, width)
				return err
			})
		}))
	}
	return frame.TakeTurns(ctx, round-1, b.resource.PrepareTurn, turns)
}

func (b *bench) turn(contestant string, round int, measure func(context.Context, *result.Turn) error) frame.Turn {
	return func(ctx context.Context) (string, error) {
		t := result.Turn{Round: round, Contestant: contestant}
		err := measure(ctx, &t)
		if err == nil {
			b.current.Turns = append(b.current.Turns, t)
		}
		return t.String(), err
	}
}

// migrate lets a contestant migrate.
func (b *bench) migrate(ctx context.Context, c contestant, t *result.Turn) (err error) {
	m, err := c.prepare(ctx, b.resource)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.close(ctx)) }()
	err = b.meter.measure(ctx, t, b.resource, func() error {
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
			return fmt.Errorf("it has written no object in %s, and reports %q%s", b.limit, t.Claim, process.Tail(filepath.Join(b.frame.Dir, c.name()+".log")))
		}
		return m.close(ctx)
	}
	if err != nil {
		return err
	}
	return b.resource.MustBeMigrated(ctx)
}
