package cluster

import (
	"context"
	"io"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-dev/godwit/cmd/hub/preflight"
	"github.com/godwit-dev/godwit/cmd/internal/cluster/clusterpermission"
	"github.com/godwit-dev/godwit/cmd/internal/cluster/clusterreport"
	"github.com/godwit-dev/godwit/cmd/internal/frame"
	"github.com/godwit-dev/godwit/cmd/internal/permission"
)

// labelLocal marks the hub that is the global hub itself.
const labelLocal = "local-cluster"

// preflight runs a preflight on the global hub, and on the hubs to which the user has access.
func (c *connection) preflight(ctx context.Context, a *frame.App, q preflight.Request, h hubFlags) (clusterreport.Preflight, error) {
	if c.pair != nil {
		r, err := c.pair.preflightHubs(c, a).Run(ctx, q)
		if err != nil {
			return clusterreport.NoPreflight(q.From, q.To), c.explain(ctx, err)
		}
		return clusterreport.PreflightOf(r, func(preflight.Check) string { return "" }), nil
	}
	hubs := preflight.Hubs{Global: c.client, ManagerNamespace: h.managerNamespace, Clock: a.Clock}
	none := clusterreport.NoPreflight(q.From, q.To)
	var err error
	if hubs.Source, err = c.view(ctx, a, q.From, h.fromContext, h.agentNamespace); err != nil {
		return none, err
	}
	if hubs.Target, err = c.view(ctx, a, q.To, h.toContext, h.agentNamespace); err != nil {
		return none, err
	}
	r, err := hubs.Run(ctx, q)
	if err != nil {
		return none, c.explain(ctx, err)
	}
	known, err := c.managedClusters(ctx)
	if err != nil {
		return none, c.explain(ctx, err)
	}
	return clusterreport.PreflightOf(r, func(check preflight.Check) string { return remedyFor(a, q, check, known) }), nil
}

// preflightHubs returns what the preflight reads.
func (p *pair) preflightHubs(c *connection, a *frame.App) preflight.Hubs {
	view := func(c *connection) *preflight.View {
		return &preflight.View{Client: c.client, AgentNamespace: c.scope.Namespace, Clock: c.clock}
	}
	return preflight.Hubs{Global: c.client, Direct: &p.to.address, Source: view(c), Target: view(p.to.connection), Clock: a.Clock}
}

// view connects to a hub, with a context or because it is the global hub. It returns nil without access.
func (c *connection) view(ctx context.Context, a *frame.App, hub, kubeContext, agentNamespace string) (*preflight.View, error) {
	if kubeContext != "" {
		a = a.InContext(kubeContext)
	} else if local, err := c.isLocal(ctx, hub); err != nil || !local {
		return nil, err
	}
	v, err := dial(ctx, a, clusterpermission.Hub, permission.Scope{Installation: agentNamespace})
	if err != nil {
		return nil, err
	}
	if err := v.missing(ctx); err != nil {
		return nil, err
	}
	return &preflight.View{Client: v.client, AgentNamespace: agentNamespace, Clock: v.clock}, nil
}

// isLocal reports whether a hub is the global hub.
func (c *connection) isLocal(ctx context.Context, hub string) (bool, error) {
	mc := &clusterv1.ManagedCluster{}
	err := c.client.Get(ctx, client.ObjectKey{Name: hub}, mc)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, c.explain(ctx, err)
	}
	return mc.Labels[labelLocal] == "true", nil
}

// remedyFor returns a command or a flag for a check. known are the ManagedClusters of the global hub.
func remedyFor(a *frame.App, q preflight.Request, check preflight.Check, known []string) string {
	sides := map[string]struct{ hub, flag string }{
		preflight.CheckSourceHub: {q.From, "--from"}, preflight.CheckSourceAgent: {q.From, "--from-context"}, preflight.CheckSelection: {q.From, "--from-context"},
		preflight.CheckOnSource:  {q.From, "--from-context"},
		preflight.CheckTargetHub: {q.To, "--to"}, preflight.CheckTargetAgent: {q.To, "--to-context"}, preflight.CheckOnTarget: {q.To, "--to-context"},
	}
	side := sides[check.Name]
	switch check.Reason {
	case preflight.ReasonHubNotChecked:
		if check.Name == preflight.CheckClocks {
			return "give --from-context=CONTEXT and --to-context=CONTEXT"
		}
		return "give " + side.flag + "=CONTEXT"
	case preflight.ReasonHeartbeatUnknown, preflight.ReasonAgentStopped:
		return ""
	}
	switch check.Name {
	case preflight.CheckSourceHub, preflight.CheckTargetHub:
		others := slices.DeleteFunc(slices.Clone(known), func(name string) bool { return name == q.From || name == q.To })
		if near := frame.Similar(side.hub, others); !slices.Contains(known, side.hub) && len(near) > 0 {
			return "did you mean " + side.flag + "=" + strings.Join(near, " or "+side.flag+"=") + "?"
		}
	case preflight.CheckSourceAgent, preflight.CheckTargetAgent:
		if slices.Contains(known, side.hub) {
			return a.Hint("cluster enroll " + side.hub + " --hub-context=CONTEXT")
		}
	}
	return ""
}

// writePreflight writes a preflight for the user.
func writePreflight(a *frame.App, f frame.Output, p clusterreport.Preflight) func(io.Writer) error {
	return func(w io.Writer) error { return clusterreport.WritePreflight(w, a.Style(w, f), p) }
}

// preflightCode returns the exit code of a preflight.
func preflightCode(d preflight.Decision) frame.Code {
	switch d {
	case preflight.Ready:
		return frame.OK
	case preflight.Blocked:
		return frame.Refused
	case preflight.NotChecked, preflight.AtRisk:
	}
	return frame.Pending
}
