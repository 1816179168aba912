package cluster

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"k8s.io/client-go/rest"
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	api "github.com/godwit-dev/godwit/cmd/hub/api/v1alpha1"
	"github.com/godwit-dev/godwit/cmd/hub/direct"
	"github.com/godwit-dev/godwit/cmd/hub/rejoin"
	"github.com/godwit-dev/godwit/cmd/internal/cluster/clusterpermission"
	"github.com/godwit-dev/godwit/cmd/internal/cluster/clusterrejoin"
	"github.com/godwit-dev/godwit/cmd/internal/frame"
	"github.com/godwit-dev/godwit/cmd/internal/permission"
	"github.com/godwit-dev/godwit/internal/quote"
)

// stateNamespace returns the namespace of the state, on both hubs.
func stateNamespace(a *frame.App) string { return cmp.Or(*a.Cluster.Namespace, direct.Namespace) }

// openDirect connects to the hubs of the contexts. Without --to-context it connects to the source hub alone, to read.
func (h *hubFlags) openDirect(ctx context.Context, a *frame.App) (*connection, error) {
	scope := permission.Scope{Namespace: stateNamespace(a), Installation: stateNamespace(a)}
	c, id, err := dialHub(ctx, a.InContext(h.fromContext), scope)
	if err != nil {
		return nil, err
	}
	c.pair = &pair{fromContext: h.fromContext, toContext: h.toContext, from: id}
	if h.toContext != "" {
		to := &target{caFile: h.toCAFile}
		if to.connection, to.id, err = dialHub(ctx, a.InContext(h.toContext), scope); err != nil {
			return nil, h.explainTarget(a, err)
		}
		if to.id == id {
			return nil, frame.Usagef("--from-context=%s and --to-context=%s are the same hub: specify the contexts of two hubs", h.fromContext, h.toContext)
		}
		if to.address, err = h.addressOf(to.Config); err != nil {
			return nil, err
		}
		c.pair.to = to
	}
	c.client = direct.NewStore(c.client, c.scope.Namespace)
	return c, nil
}

// openLost connects to a cluster whose hub is lost, and to the target hub.
func (h *hubFlags) openLost(ctx context.Context, a *frame.App, name string) (*clusterrejoin.Move, error) {
	own, err := dial(ctx, a.InContext(h.clusterContext), clusterpermission.Rejoin, permission.Scope{Installation: clusterpermission.Rejoin.Installation})
	if err != nil {
		return nil, err
	}
	namespace := stateNamespace(a)
	to, _, err := dialHub(ctx, a.InContext(h.toContext), permission.Scope{Namespace: namespace, Installation: namespace})
	if err != nil {
		return nil, err
	}
	address, err := h.addressOf(to.Config)
	if err != nil {
		return nil, err
	}
	return &clusterrejoin.Move{App: a, Own: own.Connection, Target: to.Connection, Rejoin: &rejoin.Rejoin{
		Cluster: name, Own: own.client, Target: to.client, Namespace: namespace, Address: address,
		OnEvictedWorks: api.EvictedWorksPolicy(h.onEvictedWorks.Value), Clock: a.Clock,
	}}, nil
}

// explainTarget says what to do about a target hub that never answers again.
func (h *hubFlags) explainTarget(a *frame.App, err error) error {
	if _, gone := frame.Unreachable(err); gone && h.endsWithoutTarget {
		a.Console.Printf("if the hub of --to-context=%s never answers again, leave the flag out: the migration then ends without it\n", h.toContext)
	}
	return err
}

func dialHub(ctx context.Context, a *frame.App, scope permission.Scope) (*connection, direct.ID, error) {
	c, err := dial(ctx, a, clusterpermission.Move, scope)
	if err != nil {
		return nil, "", err
	}
	id, err := direct.IDOf(ctx, c.client, scope.Namespace)
	if err != nil {
		return nil, "", c.explain(ctx, err)
	}
	return c, id, nil
}

// addressOf returns how clusters reach a hub: as the flags say, or as this command does.
func (h *hubFlags) addressOf(config *rest.Config) (clusterv1.ClientConfig, error) {
	address := clusterv1.ClientConfig{URL: cmp.Or(h.toServer, config.Host), CABundle: config.CAData}
	file := h.toCAFile
	if file == "" && len(address.CABundle) == 0 {
		file = config.CAFile
	}
	if file == "" {
		return address, nil
	}
	ca, err := os.ReadFile(file)
	if err != nil {
		return address, frame.Usagef("read the CA of the target hub: %v", err)
	}
	address.CABundle = ca
	return address, nil
}

// checkAddress refuses a migration that gives clusters another address of the target hub than the command.
func (c *connection) checkAddress(a *frame.App, m *api.ManagedClusterMigration) error {
	why, err := otherAddress(m, c.pair.to.address)
	if err == nil && why != "" {
		return frame.Refuse(fmt.Errorf("%s, and otherwise return them: %s", why, c.hint(a, "rollback "+m.Name)))
	}
	return err
}

// otherAddress returns how the address of the target hub in a migration differs from that of a command, and what confirms it. A client that may
// write ConfigMaps in the namespace of the state could have changed it.
func otherAddress(m *api.ManagedClusterMigration, given clusterv1.ClientConfig) (string, error) {
	stored, err := direct.AddressIn(m)
	switch {
	case err != nil:
		return "", err
	case stored.URL != given.URL:
		return fmt.Sprintf("clusters of migration %s reach hub %s at %s, and this command has %s: nothing was written; if they reach it there, give --to-server=%s",
			m.Name, m.Spec.To, stored.URL, given.URL, quote.Shell(stored.URL)), nil
	case !bytes.Equal(bytes.TrimSpace(stored.CABundle), bytes.TrimSpace(given.CABundle)):
		return fmt.Sprintf("clusters of migration %s verify hub %s at %s by another CA than that of this command: nothing was written; if that CA is right, give it with --to-ca-file=FILE",
			m.Name, m.Spec.To, stored.URL), nil
	}
	return "", nil
}

// prepareDirect creates the namespace of the state on both hubs. With a global hub it does nothing.
func (c *connection) prepareDirect(ctx context.Context, namespace string) error {
	if c.pair == nil {
		return nil
	}
	return errors.Join(direct.Prepare(ctx, c.client, namespace), direct.Prepare(ctx, c.pair.to.client, namespace))
}

// unfinished returns the migration of the same clusters between the same hubs that has not ended, or nil.
func (p *pair) unfinished(all []api.ManagedClusterMigration, o selection) *api.ManagedClusterMigration {
	for i := range all {
		m := &all[i]
		var names []string
		for _, name := range m.Spec.IncludedManagedClusters {
			names = append(names, string(name))
		}
		same := slices.Equal(slices.Sorted(slices.Values(names)), slices.Sorted(slices.Values(o.clusters))) && m.Spec.IncludedManagedClustersPlacementRef == o.placement
		if same && m.Status.CompletionTime == nil && p.to.id.Is(string(m.Spec.To)) {
			return m
		}
	}
	return nil
}

// open connects to the global hub, for a command on the migrations of one namespace: that of the flag, or of
// the kubeconfig's context. A command without a global hub connects to both hubs.
func (h *hubFlags) open(ctx context.Context, a *frame.App, command permission.Command) (*connection, error) {
	if h.direct {
		return h.openDirect(ctx, a)
	}
	namespace, err := namespaceOf(a)
	if err != nil {
		return nil, err
	}
	return dialGlobal(ctx, a, command, permission.Scope{Namespace: namespace, Installation: h.managerNamespace})
}

// openMigration connects, and reads a migration.
func (h *hubFlags) openMigration(ctx context.Context, a *frame.App, command permission.Command, name string) (*connection, migration, error) {
	c, err := h.open(ctx, a, command)
	if err != nil {
		return nil, migration{}, err
	}
	m, err := c.find(ctx, name)
	return c, m, err
}
