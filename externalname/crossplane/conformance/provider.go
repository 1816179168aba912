package conformance

import (
	"context"
	"errors"
)

// start starts the provider, also again after it was killed.
func (e *environment) start(ctx context.Context) error {
	var started running
	var err error
	switch p := e.provider; {
	case p.Setup != nil:
		started, err = e.startManager(ctx, p.Setup)
	case p.Client != nil:
		started, err = e.startManager(ctx, e.setUpClient)
	case p.Command != nil:
		started, err = e.startProcess(ctx)
	default:
		err = errors.New("start the provider: one of Setup, Client and Command has to be set")
	}
	if err != nil {
		return prepare(err)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.running = started
	return nil
}
