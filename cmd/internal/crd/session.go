package crd

import (
	"context"
	"errors"

	"k8s.io/client-go/rest"

	"github.com/godwit-dev/godwit/cmd/internal/frame"
	"github.com/godwit-dev/godwit/cmd/internal/remedy"
	"github.com/godwit-dev/godwit/cmd/internal/render"
	"github.com/godwit-dev/godwit/internal/storageversion"
	"github.com/godwit-dev/godwit/internal/storageversion/decision"
	"github.com/godwit-dev/godwit/walk"
)

// session is a connection over which CRDs are migrated.
type session struct {
	*frame.Connection
	*storageversion.Migrator
	policy  decision.Policy
	options storageversion.Options
	config  *rest.Config // all migrators share its connection
	console *frame.Console
	// remedies writes fixes as commands for the user.
	remedies remedy.Writer
}

func connect(ctx context.Context, a *frame.App, p frame.Purpose, o storageversion.Options) (*session, error) {
	c, err := a.Dial(ctx, p)
	if err != nil {
		return nil, err
	}
	s := &session{Connection: c, policy: o.Policy, options: o, console: a.Console, remedies: a.Remedies()}
	if s.config, err = frame.SharedConfig(c.Config); err != nil {
		return nil, frame.BadKubeconfig(err)
	}
	if s.Migrator, err = storageversion.New(s.config, o); err != nil {
		return nil, frame.BadKubeconfig(err)
	}
	return s, nil
}

// newMigrator returns the migrator of one CRD. With a limiter, each CRD has a part of it: if the
// webhook of a CRD's objects does not answer, only the requests for that CRD slow down.
func (s *session) newMigrator() (*storageversion.Migrator, error) {
	if s.options.Limiter == nil {
		return s.Migrator, nil
	}
	o := s.options
	o.Limiter = o.Limiter.Narrow(walk.Limits{})
	return storageversion.New(s.config, o)
}

// explain adds the remedy for a CRD that does not exist.
func (s *session) explain(ctx context.Context, err error) *frame.ActionableError {
	if ctx.Err() == nil && errors.Is(err, decision.ErrNotFound) {
		return &frame.ActionableError{Reason: render.ReasonNotFound, Message: err.Error(), Remedy: "list the CRDs: kubectl get crd", Cause: err}
	}
	return s.Connection.Explain(ctx, err)
}
