package cluster

import (
	"context"
	"fmt"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	operatorv1 "open-cluster-management.io/api/operator/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/godwit-dev/godwit/cmd/hub/api/v1alpha1"
	"github.com/godwit-dev/godwit/cmd/hub/direct"
	"github.com/godwit-dev/godwit/cmd/hub/manager"
	"github.com/godwit-dev/godwit/cmd/internal/frame"
	"github.com/godwit-dev/godwit/cmd/internal/permission"
	"github.com/godwit-dev/godwit/cmd/internal/render"
	"github.com/godwit-dev/godwit/internal/kube"
	"github.com/godwit-dev/godwit/internal/quote"
)

var newScheme = sync.OnceValues(func() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, clusterv1.Install, clusterv1beta1.Install, workv1.Install, operatorv1.Install, api.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	return scheme, nil
})

// connection is a connection to the global hub or to a hub.
type connection struct {
	*frame.Connection
	client client.Client
	clock  *kube.ServerClock
	scope  permission.Scope
	// pair is nil for a connection to the global hub.
	pair *pair
}

// target is the target hub of migrations that a command carries out itself.
type target struct {
	*connection
	id direct.ID
	// address is how clusters reach the hub. That of a migration to continue is the same.
	address clusterv1.ClientConfig
	// caFile is the flag that gives its CA; empty if the context does.
	caFile string
}

// pair is the two hubs of a command that needs no global hub. The connection of the command is that of the source hub, whose
// store has the migrations.
type pair struct {
	fromContext, toContext string
	from                   direct.ID
	// to is nil for a command that only reads, and for one that ends a migration whose target hub is lost.
	to *target
}

// flags returns the flags with which another command uses the same migrations.
func (p *pair) flags(namespace string) string {
	flags := " --from-context=" + quote.Shell(p.fromContext)
	if p.toContext != "" {
		flags += " --to-context=" + quote.Shell(p.toContext)
	}
	if namespace != direct.Namespace {
		flags += " --namespace=" + namespace
	}
	return flags
}

// target returns the target hub for a process; empty if it is lost.
func (p *pair) target() direct.Hub {
	if p.to == nil {
		return direct.Hub{}
	}
	return direct.Hub{Client: p.to.client, Config: p.to.Config}
}

// names returns the names of the hubs.
func (p *pair) names() (from, to string) {
	return p.from.Name(p.fromContext), p.to.id.Name(p.toContext)
}

// backwards returns the contexts for a move back.
func (p *pair) backwards() *pair { return &pair{fromContext: p.toContext, toContext: p.fromContext} }

// dial connects for a command. The scope is that of the command's permissions.
func dial(ctx context.Context, a *frame.App, command permission.Command, scope permission.Scope) (*connection, error) {
	p := frame.Purpose{Command: command}
	if command.Of == permission.Migrations {
		namespace := "--all-namespaces"
		if scope.Namespace != "" {
			namespace = "--namespace=" + scope.Namespace
		}
		p.Scope = append(p.Scope, namespace)
	}
	if scope.Installation != command.Installation {
		p.Scope = append(p.Scope, "--godwit-namespace="+scope.Installation)
	}
	connected, err := a.Dial(ctx, p)
	if err != nil {
		return nil, err
	}
	scheme, err := newScheme()
	if err != nil {
		return nil, err
	}
	c := &connection{Connection: connected, clock: kube.NewServerClock(a.Clock), scope: scope}
	config := *connected.Config
	config.QPS = -1
	config.Wrap(c.clock.RoundTripper)
	if c.client, err = newClient(&config, scheme); err != nil {
		return nil, c.explain(ctx, err)
	}
	return c, nil
}

func newClient(config *rest.Config, scheme *runtime.Scheme) (client.Client, error) {
	clients, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	mapper, err := kube.NewMapper(config, clients)
	if err != nil {
		return nil, err
	}
	return client.New(config, client.Options{Scheme: scheme, HTTPClient: clients, Mapper: mapper})
}

// dialGlobal connects to the global hub, which must serve Godwit's ManagedClusterMigration.
func dialGlobal(ctx context.Context, a *frame.App, command permission.Command, scope permission.Scope) (*connection, error) {
	c, err := dial(ctx, a, command, scope)
	if err != nil {
		return nil, err
	}
	if err := manager.CheckCRD(ctx, c.client); err != nil {
		if known := c.explain(ctx, err); apierrors.IsForbidden(err) || ctx.Err() != nil {
			return nil, known
		}
		if _, gone := frame.Unreachable(err); gone {
			return nil, c.Explain(ctx, err)
		}
		return nil, fmt.Errorf("%s: %w", c.Where(), err)
	}
	return c, nil
}

// explain names the permissions of the command that are missing.
func (c *connection) explain(ctx context.Context, err error) error {
	return c.ExplainBy(ctx, err, c.missing)
}

// hint returns a command of `godwit cluster` on the same migrations.
func (c *connection) hint(a *frame.App, words string) string {
	if c.pair != nil {
		return a.Hint("cluster " + words + c.pair.flags(c.scope.Namespace))
	}
	return a.Hint("cluster " + words + " --namespace=" + c.scope.Namespace)
}

// kind returns what messages call a migration.
func (c *connection) kind() string {
	if c.pair != nil {
		return "migration"
	}
	return "managedclustermigration"
}

// missing returns an error that names the permissions that the user lacks, and the command that grants
// them.
func (c *connection) missing(ctx context.Context) error {
	return c.Missing(ctx, c.Purpose.Command.Permissions(c.scope))
}

// notFound returns the error for a name that does not exist.
func notFound(message, remedy string) error {
	return &frame.ActionableError{Reason: render.ReasonNotFound, Message: message, Remedy: remedy}
}
