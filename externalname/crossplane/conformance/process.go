package conformance

import (
	"context"
	"errors"

	"github.com/godwit-dev/godwit/externalname/crossplane/conformance/internal/program"
)

// startProgram starts the program. The last lines that it prints are part of the evidence.
func (e *environment) startProgram(ctx context.Context) (running, error) {
	p, err := program.Start(ctx, e.harness.Config, e.namespace, e.provider.Command)
	if err != nil {
		return nil, err
	}
	e.output = p.Output
	return p, nil
}

// start starts the provider, or restarts it after a kill.
func (e *environment) start(ctx context.Context) error {
	var started running
	var err error
	switch p := e.provider; {
	case p.Setup != nil:
		started, err = e.startManager(ctx, p.Setup)
	case p.Client != nil:
		started, err = e.startManager(ctx, e.setUpClient)
	case p.Command != nil:
		started, err = e.startProgram(ctx)
	default:
		err = errors.New("start the provider: one of Setup, Client and Command has to be set")
	}
	if err != nil {
		return asPreparationError(err)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.running = started
	return nil
}
