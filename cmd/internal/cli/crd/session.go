package crd

import (
	"context"
	"errors"

	"github.com/godwit-dev/godwit/cmd/internal/cli"
	"github.com/godwit-dev/godwit/cmd/internal/report"
	"github.com/godwit-dev/godwit/crdmigrator"
	"github.com/godwit-dev/godwit/walk"
)

// session is a connection over which definitions are migrated.
type session struct {
	*cli.Connection
	*crdmigrator.Migrator
	policy  crdmigrator.Policy
	limiter *walk.Limiter // nil: the migrator has one of its own
}

func connect(ctx context.Context, a *cli.App, p cli.Purpose, o crdmigrator.Options) (*session, error) {
	c, err := a.Dial(ctx, p)
	if err != nil {
		return nil, err
	}
	s := &session{Connection: c, policy: o.Policy, limiter: o.Limiter}
	if s.Migrator, err = crdmigrator.New(c.Config, o); err != nil {
		return nil, cli.BadKubeconfig(err)
	}
	return s, nil
}

// explain also knows what a CRD is that is not there.
func (s *session) explain(ctx context.Context, err error) *cli.ActionableError {
	if ctx.Err() == nil && errors.Is(err, crdmigrator.ErrNotFound) {
		return &cli.ActionableError{Reason: report.ReasonNotFound, Message: err.Error(), Remedy: "see what there is: kubectl get crd", Cause: err}
	}
	return s.Connection.Explain(ctx, err)
}
