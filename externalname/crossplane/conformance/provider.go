package conformance

import (
	"context"
	"errors"
)

// running is a provider that was started.
type running interface {
	// kill ends it as a machine dies: no request leaves it any more. It does not wait.
	kill()
	// wait returns when it has ended.
	wait()
}

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

// kill may be called within a call of the provider.
func (e *environment) kill() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.running != nil {
		e.running.kill()
	}
}

func (e *environment) stop() {
	e.kill()
	e.mu.Lock()
	ended := e.running
	e.running = nil
	e.mu.Unlock()
	if ended != nil {
		ended.wait()
	}
}
