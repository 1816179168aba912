package conformance

import (
	"context"
	"errors"
	"sync"
	"time"
)

// killDuring kills the provider during its first call of an operation, before or after the external system carries the
// call out. It returns when the provider has ended.
func (e *environment) killDuring(ctx context.Context, op Operation, carriedOut bool, begin func() error) error {
	dead := make(chan struct{})
	kill := sync.OnceFunc(func() { e.kill(); close(dead) })
	fault := Fault{Answer: Dropped, Before: kill}
	if carriedOut {
		fault = Fault{Answer: Lost, After: kill}
	}
	e.calls.always(fault, op)
	if err := begin(); err != nil {
		return err
	}
	select {
	case <-dead:
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(e.harness.Timeout):
		return errors.New("the provider has not called " + string(op))
	}
	e.stop()
	e.calls.intercept(nil)
	return e.start(ctx)
}

// killedBeforeCreate: the provider dies within Create, before the external system creates.
func killedBeforeCreate(ctx context.Context, e *environment) (string, error) {
	return killedInCreate(ctx, e, false)
}

// killedAfterCreate: the provider dies within Create, after the external system has created.
func killedAfterCreate(ctx context.Context, e *environment) (string, error) {
	return killedInCreate(ctx, e, true)
}

func killedInCreate(ctx context.Context, e *environment, carriedOut bool) (string, error) {
	o := e.manifest()
	err := e.killDuring(ctx, Create, carriedOut, func() error { return errors.Join(e.start(ctx), e.create(ctx, o)) })
	if err != nil {
		return "", err
	}
	note, err := e.outcome(ctx, o)
	if err != nil {
		return "", err
	}
	want := 1
	if !carriedOut && note != recovered {
		want = 0
	}
	return note, e.checkCreated(ctx, want)
}

// killedAfterUpdate: the provider dies after an update has changed the key.
func killedAfterUpdate(ctx context.Context, e *environment) (string, error) {
	o, before, err := e.createBound(ctx)
	if err != nil {
		return "", err
	}
	err = e.killDuring(ctx, Update, true, func() error { return asPreparationError(e.patch(ctx, o, e.kind.Rename)) })
	if err != nil {
		return "", err
	}
	note := recovered
	if err := e.renamed(ctx, e.harness.Recovery, o, before); err != nil {
		if _, refusedErr := e.awaitRefused(ctx, o, "the external resource has another name"); refusedErr != nil {
			return "", errors.Join(err, refusedErr)
		}
		note = held
	}
	return note, e.checkCreated(ctx, 1)
}
