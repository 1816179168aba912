package plan

import (
	"context"
	"errors"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"

	"github.com/godwit-dev/godwit/cmd/internal/frame"
	"github.com/godwit-dev/godwit/cmd/internal/permission"
	"github.com/godwit-dev/godwit/cmd/internal/plan/planreport"
	"github.com/godwit-dev/godwit/cmd/internal/render"
	"github.com/godwit-dev/godwit/internal/storageversion"
	"github.com/godwit-dev/godwit/internal/storageversion/preflight"
	"github.com/godwit-dev/godwit/walk"
)

// scanner reads the domains of one cluster. Its limiter bounds the requests of all domains together.
type scanner struct {
	*frame.Connection
	app      *frame.App
	config   *rest.Config
	limiter  *walk.Limiter
	migrator *storageversion.Migrator
	crds     []apiextensionsv1.CustomResourceDefinition
	depth    depth
}

// depth is how much of a cluster a plan reads.
type depth struct {
	// references has the metadata of all objects read.
	references bool
	// preflight has the write of a run tried as a dry run, and all objects of a CRD with work listed, as `crd plan` does.
	preflight bool
}

// dial connects to the cluster of an invocation.
func dial(ctx context.Context, a *frame.App, d depth) (*scanner, error) {
	c, err := a.Dial(ctx, frame.Purpose{Command: Permissions, Scope: []string{"--all"}})
	if err != nil {
		return nil, err
	}
	s := &scanner{Connection: c, app: a, limiter: walk.NewLimiter(walk.Limits{}), depth: d}
	c.Config.WarningHandlerWithContext = rest.NoWarnings{} // a deprecated version is no finding of a plan
	if s.config, err = frame.SharedConfig(c.Config); err != nil {
		return nil, frame.BadKubeconfig(err)
	}
	options := storageversion.Options{Limiter: s.limiter}
	if d.preflight {
		options.Preflight, options.CheckReadable = preflight.Run, true
	}
	if s.migrator, err = storageversion.New(s.config, options); err != nil {
		return nil, frame.BadKubeconfig(err)
	}
	return s, nil
}

// errSlow is the cause of a scan that --cluster-timeout ended.
var errSlow = errors.New("--cluster-timeout is over")

// failed returns the row of a domain that could not be read. needed are the permissions of the domain.
func (s *scanner) failed(ctx context.Context, d planreport.Domain, err error, needed []permission.Permission) planreport.Row {
	if ctx.Err() != nil {
		return planreport.FailedRow(d, planreport.Unknown, problemOf(unfinished(ctx)))
	}
	state := planreport.Unknown
	known := s.Explain(ctx, err)
	if apierrors.IsForbidden(err) {
		state = planreport.NotChecked
		if denied := s.Denied(ctx, needed); len(denied) > 0 {
			known = s.Lacks(s.WhoAmI(ctx), denied)
		}
	}
	return planreport.FailedRow(d, state, problemOf(known))
}

func problemOf(e *frame.ActionableError) render.Problem {
	return render.Problem{Reason: e.Reason.String(), Message: e.Message, Remedy: e.Remedy}
}

// unfinished returns why a scan has not ended.
func unfinished(ctx context.Context) *frame.ActionableError {
	if errors.Is(context.Cause(ctx), errSlow) {
		return &frame.ActionableError{Reason: render.ReasonTimedOut, Message: "the cluster was not read within --cluster-timeout", Remedy: "allow more time with --cluster-timeout, or see what loads the API server: kubectl get --raw '/readyz?verbose'"}
	}
	return &frame.ActionableError{Reason: render.ReasonInterrupted, Message: "the command ended before the cluster was read", Remedy: "run the same command again"}
}

// unreachable returns the row of a cluster that can't be used.
func unreachable(ctx context.Context, err error) planreport.Row {
	if ctx.Err() != nil {
		return planreport.FailedRow(planreport.Cluster, planreport.Unknown, problemOf(unfinished(ctx)))
	}
	var known *frame.ActionableError
	if !errors.As(err, &known) {
		known = &frame.ActionableError{Reason: render.ReasonUnreadable, Message: frame.OneLine(err), Remedy: "check the context with `kubectl config view --minify`"}
	}
	return planreport.FailedRow(planreport.Cluster, planreport.Unreachable, problemOf(known))
}

// defaultTimeout is enough for 300 CRDs on a busy API server, and for 10,000 VirtualMachines.
const defaultTimeout = time.Minute

// served reports whether the cluster has a CRD.
func (s *scanner) served(name string) bool {
	for i := range s.crds {
		if s.crds[i].Name == name {
			return true
		}
	}
	return false
}

// servesGroup reports whether discovery has a group, for a user who may not list CRDs.
func (s *scanner) servesGroup(ctx context.Context, group string) bool {
	return s.Client.Get().AbsPath("/apis", group).MaxRetries(0).Do(ctx).Error() == nil
}
