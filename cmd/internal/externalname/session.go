package externalname

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"

	"github.com/godwit-dev/godwit/cmd/internal/frame"
	"github.com/godwit-dev/godwit/cmd/internal/permission"
	"github.com/godwit-dev/godwit/cmd/internal/remedy"
	"github.com/godwit-dev/godwit/cmd/internal/render"
	"github.com/godwit-dev/godwit/externalname/fleet"
	"github.com/godwit-dev/godwit/internal/kube"
	"github.com/godwit-dev/godwit/walk"
)

// cluster is a connection over which CRDs are read.
type cluster struct {
	*frame.Connection
	client   *kube.Client
	limiter  *walk.Limiter
	remedies remedy.Writer
}

// session is a connection for the managed resources of one kind.
type session struct {
	*cluster
	*fleet.Fleet
	kind      fleet.Kind
	resource  string
	namespace string
	// clusterScoped means that the managed resources have no namespace.
	clusterScoped bool
}

// dial connects for the managed resources of some CRDs.
func dial(ctx context.Context, a *frame.App, p frame.Purpose) (*cluster, error) {
	c, err := a.Dial(ctx, p)
	if err != nil {
		return nil, err
	}
	s := &cluster{Connection: c, limiter: walk.NewLimiter(walk.Limits{}), remedies: a.Remedies()}
	if s.client, err = kube.NewClient(c.Config, s.limiter, clock.RealClock{}); err != nil {
		return nil, frame.BadKubeconfig(err)
	}
	return s, nil
}

// newSession returns the session for one kind over a connection.
func (c *cluster) newSession(ctx context.Context, resource, namespace string, o fleet.Options) (*session, error) {
	s := &session{cluster: c, resource: resource, namespace: namespace}
	crd, err := c.client.CRD(ctx, resource)
	switch {
	case apierrors.IsNotFound(err):
		return nil, c.unknown(ctx, resource)
	case err != nil:
		return nil, s.explain(ctx, err)
	case !fleet.ManagedCRD(crd):
		return nil, frame.Refuse(&frame.ActionableError{
			Reason:  render.ReasonNotFound,
			Message: fmt.Sprintf("CRD %s does not define managed resources: its schema has no spec.forProvider", resource),
			Remedy:  "choose the CRD of a managed resource, and not that of a claim or a composite",
		})
	}
	s.kind = fleet.KindOf(crd)
	s.clusterScoped = kube.ClusterScoped(crd)
	if s.clusterScoped && namespace != "" {
		return nil, frame.Usagef("remove --namespace: %s are not namespaced", resource)
	}
	o.Limiter = c.limiter
	if s.Fleet, err = fleet.New(c.Config, s.kind, o); err != nil {
		return nil, frame.BadKubeconfig(err)
	}
	return s, nil
}

// newWriter returns the session for one kind, all of whose permissions the user has. Otherwise it refuses.
func (c *cluster) newWriter(ctx context.Context, resource string) (*session, error) {
	s, err := c.newSession(ctx, resource, "", fleet.Options{})
	if err != nil {
		return nil, err
	}
	if err := s.missing(ctx); err != nil {
		return nil, frame.Refuse(err)
	}
	return s, nil
}

// managed lists the CRDs of managed resources.
func (c *cluster) managed(ctx context.Context) ([]apiextensionsv1.CustomResourceDefinition, error) {
	list := &apiextensionsv1.CustomResourceDefinitionList{}
	if err := kube.Do(ctx, c.client.Get().AbsPath("apis", apiextensionsv1.GroupName, "v1", kube.CRDs.Resource)).Into(list); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(list.Items, func(crd apiextensionsv1.CustomResourceDefinition) bool { return !fleet.ManagedCRD(&crd) }), nil
}

// managedCRDs lists the names of the CRDs of managed resources.
func (c *cluster) managedCRDs(ctx context.Context) ([]string, error) {
	crds, err := c.managed(ctx)
	var names []string
	for i := range crds {
		names = append(names, crds[i].Name)
	}
	return names, err
}

// unknown returns the error for a CRD that does not exist.
func (c *cluster) unknown(ctx context.Context, resource string) error {
	known, _ := c.managedCRDs(ctx) // without them nothing is suggested
	return &frame.ActionableError{
		Reason: render.ReasonNotFound, Message: fmt.Sprintf("CRD %s not found on %s", resource, c.Where()),
		Remedy: frame.DidYouMean(frame.Suggest(resource, known), "list the CRDs: kubectl get crd"+c.remedies.Cluster),
	}
}

// completeResources completes the CRDs of managed resources.
func completeResources(a *frame.App) cobra.CompletionFunc {
	return frame.CompleteNames(func(ctx context.Context) ([]string, error) {
		s, err := dial(ctx, a, frame.Purpose{})
		if err != nil {
			return nil, err
		}
		return s.managedCRDs(ctx)
	})
}

// explain names the permissions of the command that are missing.
func (s *session) explain(ctx context.Context, err error) error {
	return s.ExplainBy(ctx, err, s.missing)
}

// missing returns an error that names the permissions that the user lacks, and the command that grants
// them.
func (s *session) missing(ctx context.Context) error {
	return s.Missing(ctx, s.Purpose.Command.Permissions(permission.Scope{CRDs: []string{s.resource}, Namespace: s.namespace}))
}

// plan plans the new names.
func (s *session) plan(ctx context.Context, naming fleet.Naming) ([]fleet.Item, error) {
	items, err := s.Plan(ctx, naming)
	if err != nil {
		return nil, s.explain(ctx, err)
	}
	return items, nil
}
