package revision

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/godwit-dev/godwit/cmd/internal/frame"
	"github.com/godwit-dev/godwit/cmd/internal/permission"
	"github.com/godwit-dev/godwit/cmd/internal/render"
	"github.com/godwit-dev/godwit/revision"
	"github.com/godwit-dev/godwit/revision/decision"
)

// connect returns an error if the software of the family is not installed, or if no CRD serves the
// target version.
func connect(ctx context.Context, a *frame.App, p permission.Command, scope *selection, o revision.Options) (*session, error) {
	c, err := a.Dial(ctx, purposeOf(p, scope))
	if err != nil {
		return nil, err
	}
	s := &session{Connection: c, family: Families[scope.family.Value], scope: scope, clusterFlags: a.ClusterFlags()}
	if s.Upgrader, err = revision.New(c.Config, s.family, o); err != nil {
		return nil, frame.BadKubeconfig(err)
	}
	crds, err := s.CRDs(ctx)
	if err != nil {
		return nil, s.explain(ctx, err)
	}
	s.installed = s.family.Software(crds)
	if o.Target == "" {
		printUnknownStorageVersions(a, s.family.Describe(), crds)
	}
	return s, s.checkCRDs(crds, o.Target)
}

// printUnknownStorageVersions prints the target version of this release if the CRDs store a version that it does not
// know.
func printUnknownStorageVersions(a *frame.App, d decision.Description, crds map[schema.GroupResource]decision.CRD) {
	if unknown := revision.UnknownStorageVersions(d, crds); len(unknown) > 0 {
		older := slices.DeleteFunc(slices.Clone(d.Versions), func(v string) bool { return slices.Contains(d.Targets, v) })
		a.Console.Printf("! the CRDs store %s; this release of godwit converts %s to %s and upgrades to that; a later release may convert to %[1]s\n",
			strings.Join(unknown, ", "), strings.Join(older, ", "), strings.Join(d.Targets, ", "))
	}
}

func (s *session) checkCRDs(crds map[schema.GroupResource]decision.CRD, target string) error {
	known := slices.SortedFunc(maps.Keys(crds), func(a, b schema.GroupResource) int { return strings.Compare(a.String(), b.String()) })
	found := false
	for _, r := range known {
		d := crds[r]
		if found = found || d.Found; target == "" || !d.Found || slices.Contains(d.ServedVersions, target) {
			continue
		}
		helps := "data can be converted to none of the versions that it serves"
		if reachable := d.Reachable(s.family.Describe().Targets); len(reachable) > 0 {
			helps = "or give one that data can be converted to: " + strings.Join(reachable, ", ")
		}
		return frame.Refuse(fmt.Errorf("customresourcedefinition %s does not serve %s; leave --target-version out; %s", r, target, helps))
	}
	if found {
		return nil
	}
	return &frame.ActionableError{
		Reason:  render.ReasonNotFound,
		Message: fmt.Sprintf("%s is not installed on %s: CRD %s not found", software[s.scope.family.Value], s.Where(), known[0]),
		Remedy:  "choose another cluster by --context",
	}
}

// scan returns the item of every revision in scope and, if the scope is the whole cluster, the
// inventory.
func (s *session) scan(ctx context.Context) ([]decision.Item, *revision.Inventory, error) {
	var items []decision.Item
	inventory, err := s.scanEach(ctx, func(i decision.Item) { items = append(items, i) })
	return items, inventory, err
}

// scanEach calls each with every item, without keeping the items in memory.
func (s *session) scanEach(ctx context.Context, each func(decision.Item)) (*revision.Inventory, error) {
	if s.scope.isWholeCluster() {
		inventory, err := s.InventoryEach(ctx, func(i decision.Item) error {
			each(i)
			return nil
		})
		if err != nil {
			return nil, s.explain(ctx, err)
		}
		return &inventory, nil
	}
	return nil, s.planEach(ctx, s.Plan(ctx, s.scope.scope()), each)
}

// tryEach calls each with every item, after a dry run of its writes.
func (s *session) tryEach(ctx context.Context, each func(decision.Item)) error {
	if err := s.missingInScope(ctx); err != nil {
		return frame.Refuse(err)
	}
	return s.planEach(ctx, s.Try(ctx, s.scope.scope()), each)
}

func (s *session) planEach(ctx context.Context, items iter.Seq2[decision.Item, error], each func(decision.Item)) error {
	found := false
	for i, err := range items {
		if err != nil {
			return s.explain(ctx, err)
		}
		found = true
		each(i)
	}
	if !found && !s.scope.isWholeCluster() {
		return s.emptyScope(ctx)
	}
	return nil
}

// emptyScope returns the error for a scope without revisions: a typo in a namespace or a selector must not look like
// finished work.
func (s *session) emptyScope(ctx context.Context) error {
	if s.scope.selected != nil {
		return &frame.ActionableError{
			Reason:  render.ReasonNotFound,
			Message: fmt.Sprintf("no object that refers to a revision of %s on %s matches --selector %s", s.scope.family.Value, s.Where(), s.scope.selector),
			Remedy:  "list the labels: kubectl get virtualmachines -A --show-labels" + s.clusterFlags,
		}
	}
	err := s.Client.Get().AbsPath("/api/v1/namespaces", s.scope.namespace).MaxRetries(0).Do(ctx).Error()
	if apierrors.IsNotFound(err) {
		return &frame.ActionableError{
			Reason:  render.ReasonNotFound,
			Message: fmt.Sprintf("namespace %s not found on %s", s.scope.namespace, s.Where()),
			Remedy:  "list the namespaces: kubectl get namespaces" + s.clusterFlags,
		}
	}
	return nil // without the permission to read namespaces, the empty scope is no error
}
