package resource

import (
	"context"
	"errors"
	"slices"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/cmd/internal/frame"
	"github.com/godwit-dev/godwit/cmd/internal/permission"
	"github.com/godwit-dev/godwit/cmd/internal/remedy"
	"github.com/godwit-dev/godwit/cmd/internal/render"
	"github.com/godwit-dev/godwit/cmd/internal/resource/resourcepermission"
	"github.com/godwit-dev/godwit/cmd/internal/resource/resourcereport"
	"github.com/godwit-dev/godwit/internal/kube"
	"github.com/godwit-dev/godwit/internal/storageversion/decision"
	"github.com/godwit-dev/godwit/internal/storageversion/resource"
)

// session is a connection over which objects are rewritten.
type session struct {
	*frame.Connection
	*resource.Rewriter
	catalog  resource.Catalog
	remedies remedy.Writer
	unread   string // why nothing is known about the API servers
}

func connect(ctx context.Context, a *frame.App, p frame.Purpose, o resource.Options) (*session, error) {
	c, err := a.Dial(ctx, p)
	if err != nil {
		return nil, err
	}
	s := &session{Connection: c, remedies: a.Remedies()}
	if s.Rewriter, err = resource.New(c.Config, o); err != nil {
		return nil, frame.BadKubeconfig(err)
	}
	return s, nil
}

// finding is the plan of one resource, or of an argument that matches none.
type finding struct {
	name string
	plan resource.Plan
}

// lacksKey reports whether the API server lacks the encryption key of some object.
func (f finding) lacksKey() bool {
	return slices.ContainsFunc(f.plan.Blockers, func(b godwit.Finding) bool { return b.Reason == decision.ReasonEncryptionKeyMissing })
}

// connectAndPlan connects, finds the resources, and plans each of them.
func connectAndPlan(ctx context.Context, a *frame.App, command permission.Command, sel *selection, o resource.Options) (*session, []finding, error) {
	o.Namespace, o.ReadOnly = sel.namespace, command.Name != resourcepermission.Run.Name
	s, err := connect(ctx, a, frame.Purpose{Command: command, Scope: sel.arguments()}, o)
	if err != nil {
		return nil, nil, err
	}
	if s.catalog, err = s.Catalog(ctx); err != nil {
		return nil, nil, s.explain(ctx, sel, err)
	}
	findings := s.find(sel)
	if sel.namespace != "" {
		if err := refuseClusterScoped(sel, findings); err != nil {
			return nil, nil, err
		}
	}
	servers, unread, err := s.Servers(ctx)
	if err != nil {
		return nil, nil, s.explain(ctx, sel, err)
	}
	s.unread = unread
	empty := true
	for i := range findings {
		f := &findings[i]
		if len(f.plan.Blockers) > 0 {
			continue
		}
		facts, err := s.Observe(frame.About(ctx, f.name), f.plan.Resource, servers)
		if err != nil {
			return nil, nil, s.explain(ctx, sel, err)
		}
		f.plan = resource.PlanFor(facts)
		empty = empty && f.plan.State == decision.Clean
	}
	if empty && sel.namespace != "" {
		if err := s.checkNamespace(ctx, sel.namespace); err != nil {
			return nil, nil, err
		}
	}
	return s, findings, nil
}

// checkNamespace refuses a namespace that does not exist: a typing error must not look like finished work. Without the
// permission to read namespaces, it accepts any.
func (s *session) checkNamespace(ctx context.Context, namespace string) error {
	_, err := kube.Metadata(ctx, s.Client.Get().AbsPath("api", "v1", "namespaces", namespace))
	if !apierrors.IsNotFound(err) {
		return nil
	}
	return &frame.ActionableError{Reason: render.ReasonNotFound, Message: "namespace " + namespace + " does not exist", Remedy: "list the namespaces: kubectl get namespaces", Cause: err}
}

// preflight blocks the resources whose write admission denies.
func (s *session) preflight(ctx context.Context, findings []finding) error {
	for i := range findings {
		f := &findings[i]
		if f.plan.State != decision.Ready {
			continue
		}
		denials, err := s.Preflight(frame.About(ctx, f.name), f.plan)
		if err != nil {
			return err
		}
		if len(denials) > 0 {
			f.plan.State, f.plan.Blockers = decision.Blocked, append(f.plan.Blockers, denials...)
		}
	}
	return nil
}

// find returns the selected resources, each once.
func (s *session) find(sel *selection) []finding {
	var findings []finding
	if sel.all {
		for _, r := range s.catalog.All() {
			if sel.namespace == "" || r.Namespaced {
				findings = append(findings, finding{name: r.Name(), plan: resource.Plan{Resource: r}})
			}
		}
		return findings
	}
	seen := map[string]bool{}
	for _, argument := range sel.names {
		r, ok := s.catalog.Find(argument)
		f := finding{name: r.Name(), plan: resource.Plan{Resource: r}}
		if !ok {
			f.name, f.plan.State = argument, decision.Blocked
			f.plan.Blockers = []godwit.Finding{s.notFound(argument)}
		}
		if !seen[f.name] {
			findings = append(findings, f)
		}
		seen[f.name] = true
	}
	return findings
}

// notFound suggests similar names.
func (s *session) notFound(argument string) godwit.Finding {
	b := s.catalog.NotFound(argument)
	if near := frame.Suggest(argument, s.catalog.Names()); b.Reason == resource.ReasonResourceNotFound && len(near) > 0 {
		b.Fix = resource.DidYouMean(near...)
	}
	return b
}

func refuseClusterScoped(sel *selection, findings []finding) error {
	for _, f := range findings {
		if len(f.plan.Blockers) == 0 && !f.plan.Resource.Namespaced {
			return frame.Usagef("remove --namespace=%s: %s are not namespaced", sel.namespace, f.name)
		}
	}
	return nil
}

// explain names the permissions of the command that are missing.
func (s *session) explain(ctx context.Context, sel *selection, err error) error {
	if errors.Is(err, resource.ErrMetricsForbidden) {
		return frame.Refuse(&frame.ActionableError{
			Reason: resource.ReasonConfigurationNotLoaded, Message: err.Error(), Remedy: resource.BindMonitoring(s.WhoAmI(ctx)).String(), Cause: err,
		})
	}
	if ctx.Err() == nil && apierrors.IsForbidden(err) {
		denied := s.Denied(ctx, s.Purpose.Command.Permissions(permission.Scope{Resources: s.selected(sel), Namespace: sel.namespace}))
		if len(denied) > 0 {
			return frame.Refuse(s.Lacks(s.WhoAmI(ctx), denied))
		}
	}
	return s.Connection.Explain(ctx, err)
}

// selected are the resources as permissions name them. Without discovery the names are as the user wrote them.
func (s *session) selected(sel *selection) []resource.Resource {
	return resourcesOf(s.catalog, sel.names, sel.all)
}

// Named returns the resources of the arguments, or all resources. It returns an error for an argument that matches
// none.
func Named(ctx context.Context, a *frame.App, names []string, all bool) ([]resource.Resource, error) {
	s, err := connect(ctx, a, frame.Purpose{}, resource.Options{})
	if err != nil {
		return nil, err
	}
	if s.catalog, err = s.Catalog(ctx); err != nil {
		return nil, s.Connection.Explain(ctx, err)
	}
	for _, name := range names {
		if _, ok := s.catalog.Find(name); !ok {
			f := s.notFound(name)
			return nil, &frame.ActionableError{Reason: f.Reason, Message: f.Message, Remedy: s.remedies.Text(f.Fix)}
		}
	}
	return resourcesOf(s.catalog, names, all), nil
}

// resourcesOf are the resources that arguments name, or all.
func resourcesOf(c resource.Catalog, names []string, all bool) []resource.Resource {
	if all {
		return c.All()
	}
	var found []resource.Resource
	for _, name := range names {
		if r, ok := c.Find(name); ok {
			found = append(found, r)
		}
	}
	return found
}

// nameLacking replaces the blockers for single permissions with one blocker that has the command to grant all of them.
func (s *session) nameLacking(ctx context.Context, findings []finding, sel *selection) {
	var lacks *frame.ActionableError
	for i := range findings {
		b := findings[i].plan.Blockers
		if len(b) == 0 || !render.IsForbidden(b[0].Reason) {
			continue
		}
		if lacks == nil {
			user := s.WhoAmI(ctx)
			lacks = s.Lacks(user, s.Denied(ctx, s.Purpose.Command.Permissions(permission.Scope{Resources: s.selected(sel), Namespace: sel.namespace})))
		}
		findings[i].plan.Blockers = []godwit.Finding{lacks.Finding()}
	}
}

// item returns the finding in the form of the JSON output.
func (f finding) item(w remedy.Writer) resourcereport.Plan {
	item := resourcereport.Plan{Name: f.name, Version: f.plan.Resource.Version, State: string(f.plan.State), Objects: f.plan.Objects}
	for _, b := range f.plan.Blockers {
		item.Blockers = append(item.Blockers, render.NewProblem(b, w))
	}
	return item
}

// printUnknownServers prints why the API servers are not known.
func (s *session) printUnknownServers(a *frame.App) {
	if s.unread != "" {
		a.Console.Printf("? %s: the settle time alone decides when a run begins to write\n", s.unread)
	}
}

// completeNames completes RESOURCE arguments from discovery.
func completeNames(a *frame.App) cobra.CompletionFunc {
	return frame.CompleteNames(func(ctx context.Context) ([]string, error) {
		s, err := connect(ctx, a, frame.Purpose{}, resource.Options{})
		if err != nil {
			return nil, err
		}
		catalog, err := s.Catalog(ctx)
		if err != nil {
			return nil, err
		}
		var names []string
		for _, r := range catalog.All() {
			names = append(names, r.Name())
		}
		return names, nil
	})
}
