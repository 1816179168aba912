package cluster

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-dev/godwit/cmd/hub"
	api "github.com/godwit-dev/godwit/cmd/hub/api/v1alpha1"
	"github.com/godwit-dev/godwit/cmd/hub/manager"
	"github.com/godwit-dev/godwit/cmd/internal/cluster/clusterpermission"
	"github.com/godwit-dev/godwit/cmd/internal/cluster/clusterreport"
	"github.com/godwit-dev/godwit/cmd/internal/frame"
	"github.com/godwit-dev/godwit/cmd/internal/permission"
	"github.com/godwit-dev/godwit/internal/format"
)

// migration is a ManagedClusterMigration with its state.
type migration struct {
	*api.ManagedClusterMigration
	state hub.State
}

// report returns the document of a migration, at the time of the global hub.
func (m migration) report(c *connection) clusterreport.Migration {
	return clusterreport.MigrationOf(m.ManagedClusterMigration, m.state, c.clock.Now())
}

// namespaceOf returns the namespace of the flag, or of the kubeconfig's context.
func namespaceOf(a *frame.App) (string, error) {
	namespace, _, err := a.Cluster.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return "", frame.BadKubeconfig(err)
	}
	return namespace, nil
}

// find reads a migration. The error for one that does not exist suggests others.
func (c *connection) find(ctx context.Context, name string) (migration, error) {
	m := migration{ManagedClusterMigration: &api.ManagedClusterMigration{}}
	err := c.client.Get(ctx, client.ObjectKey{Namespace: c.scope.Namespace, Name: name}, m.ManagedClusterMigration)
	if apierrors.IsNotFound(err) {
		return m, c.unknown(ctx, name)
	}
	if err != nil {
		return m, c.explain(ctx, err)
	}
	m.state, err = c.state(ctx, m.ManagedClusterMigration)
	return m, err
}

// state reads the state of a migration. It refuses state of a newer release.
func (c *connection) state(ctx context.Context, m *api.ManagedClusterMigration) (hub.State, error) {
	state, err := manager.ReadState(ctx, c.client, m)
	switch {
	case errors.As(err, new(*format.NewerError)):
		return state, frame.Refuse(fmt.Errorf("%s: %w", api.ReasonNewerFormat, err))
	case err != nil:
		return state, c.explain(ctx, err)
	}
	return state, nil
}

// list reads the migrations of a namespace, or of all if it is empty.
func (c *connection) list(ctx context.Context, namespace string) ([]api.ManagedClusterMigration, error) {
	list := &api.ManagedClusterMigrationList{}
	if err := c.client.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return nil, err
	}
	return list.Items, nil
}

// unknown returns the error for a migration that does not exist.
func (c *connection) unknown(ctx context.Context, name string) error {
	message := fmt.Sprintf("%s %s not found in namespace %s on %s", c.kind(), name, c.scope.Namespace, c.Where())
	all, err := c.list(ctx, "")
	if err != nil {
		return notFound(message, c.listHint())
	}
	var here, elsewhere []string
	for _, m := range all {
		switch {
		case m.Namespace == c.scope.Namespace:
			here = append(here, m.Name)
		case m.Name == name:
			elsewhere = append(elsewhere, "--namespace="+m.Namespace)
		}
	}
	if len(elsewhere) > 0 {
		return notFound(message, "there is one in another namespace: give "+strings.Join(elsewhere, " or "))
	}
	return notFound(message, frame.DidYouMean(frame.Similar(name, here), c.listHint()))
}

// listHint says how to list the migrations.
func (c *connection) listHint() string {
	if c.pair != nil {
		return "list the migrations: " + c.Purpose.Program + " cluster status" + c.pair.flags(c.scope.Namespace)
	}
	return "list the migrations: " + c.Purpose.Program + " cluster status --all-namespaces"
}

// maxName is the longest name of a migration: labels and ConfigMaps are named after it.
const maxName = 63

// nextName returns NAME-word-N, where N is one more than the highest that exists. If the name already has this form,
// NAME is the part before the suffix.
func nextName(name, word string, known []api.ManagedClusterMigration) string {
	pattern := regexp.MustCompile(`^(.+)-` + word + `-([0-9]+)$`)
	if parts := pattern.FindStringSubmatch(name); parts != nil {
		name = parts[1]
	}
	for n := 1; ; n++ {
		suffix := fmt.Sprintf("-%s-%d", word, n)
		next := strings.TrimRight(name[:min(len(name), maxName-len(suffix))], "-") + suffix
		if !slices.ContainsFunc(known, func(m api.ManagedClusterMigration) bool { return m.Name == next }) {
			return next
		}
	}
}

// oneName is the Args function of a command with the name of a migration as its argument.
func oneName(c *cobra.Command, args []string) error {
	if len(args) != 1 {
		return frame.Usagef("specify one NAME; `%s cluster status` lists the migrations", c.Root().Name())
	}
	return nil
}

// completeMigrations completes the first argument.
func completeMigrations(a *frame.App) cobra.CompletionFunc {
	return frame.CompleteFirst(frame.CompleteNames(func(ctx context.Context) ([]string, error) {
		namespace, err := namespaceOf(a)
		if err != nil {
			return nil, err
		}
		connected, err := dial(ctx, a, clusterpermission.Preflight, permission.Scope{Namespace: namespace})
		if err != nil {
			return nil, err
		}
		all, err := connected.list(ctx, namespace)
		names := make([]string, len(all))
		for i := range all {
			names[i] = all[i].Name
		}
		return names, err
	}))
}
