package cluster

import (
	"context"

	"github.com/spf13/cobra"
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	api "github.com/godwit-dev/godwit/cmd/hub/api/v1alpha1"
	"github.com/godwit-dev/godwit/cmd/hub/preflight"
	"github.com/godwit-dev/godwit/cmd/internal/cluster/clusterpermission"
	"github.com/godwit-dev/godwit/cmd/internal/frame"
	"github.com/godwit-dev/godwit/cmd/internal/permission"
)

// hubFlags are the flags that connect to the hubs.
type hubFlags struct {
	fromContext, toContext           string
	toServer, toCAFile               string
	managerNamespace, agentNamespace string
	onEvictedWorks, onUserObjects    frame.Choice
	// direct means that the command uses the hubs of the contexts, and no global hub.
	direct bool
}

func (h *hubFlags) addTo(a *frame.App, c *cobra.Command) {
	addContext(a, c, &h.fromContext, "from-context", "`context` of the kubeconfig for the source hub, to check the clusters there (default: only a source hub that is the global hub)")
	addContext(a, c, &h.toContext, "to-context", "`context` of the kubeconfig for the target hub (default: only a target hub that is the global hub)")
	addManagerNamespace(c, &h.managerNamespace)
	addAgentNamespace(c, &h.agentNamespace)
	h.addChoicesTo(c)
}

// addChoicesTo adds the flags that say what becomes of objects which a move would destroy.
func (h *hubFlags) addChoicesTo(c *cobra.Command) {
	h.onEvictedWorks = frame.Choice{Kind: "string", Allowed: []string{string(api.EvictedWorksRefuse), string(api.EvictedWorksAccept), string(api.EvictedWorksOrphan)}}
	h.onEvictedWorks.AddTo(c, "on-evicted-works", "", "what ManifestWorks have applied whose delete option is not Orphan; Refuse: do not move the cluster; Accept: the cluster loses it; "+
		"Orphan: set the delete option to Orphan before the cluster leaves (default Refuse, or that of the migration to retry)")
	h.onUserObjects = frame.Choice{Kind: "string", Allowed: []string{
		string(api.UserObjectsRefuse), string(api.UserObjectsAccept), string(api.UserObjectsMove), string(api.UserObjectsKeep),
	}}
	h.onUserObjects.AddTo(c, "on-user-objects", "", "Secrets and ConfigMaps in the namespace of a cluster that no rule moves; Refuse: do not move the cluster; Accept: the source hub "+
		"deletes them; Move: move them with the cluster; Keep: keep the namespace on the source hub (default Refuse, or that of the migration to retry)")
}

// addDirectTo adds the flags of a command that can work without a global hub.
func (h *hubFlags) addDirectTo(a *frame.App, c *cobra.Command) {
	addContext(a, c, &h.fromContext, "from-context", "`context` of the kubeconfig for the source hub of a migration that `cluster move` carries out")
	addContext(a, c, &h.toContext, "to-context", "`context` of the kubeconfig for the target hub")
}

// addAddressTo adds the flags that say how clusters reach the target hub.
func (h *hubFlags) addAddressTo(c *cobra.Command) {
	c.Flags().StringVar(&h.toServer, "to-server", "", "`URL` at which clusters reach the target hub (default: the server of --to-context)")
	c.Flags().StringVar(&h.toCAFile, "to-ca-file", "", "`file` with the CA by which clusters verify it (default: the CA of --to-context)")
	_ = c.RegisterFlagCompletionFunc("to-server", cobra.NoFileCompletions)
}

// parseDirect decides whether the command works without a global hub.
func (h *hubFlags) parseDirect() error {
	if (h.fromContext == "") != (h.toContext == "") {
		return frame.Usagef("specify --from-context=CONTEXT and --to-context=CONTEXT, or none of both for a migration on a global hub")
	}
	h.direct = h.fromContext != ""
	return nil
}

// choose writes the choices of the flags to a migration.
func (h *hubFlags) choose(spec *api.ManagedClusterMigrationSpec) {
	if v := h.onEvictedWorks.Value; v != "" {
		spec.OnEvictedWorks = api.EvictedWorksPolicy(v)
	}
	if v := h.onUserObjects.Value; v != "" {
		spec.OnUserObjects = api.UserObjectsPolicy(v)
	}
}

// addContext adds a flag that names a context of the kubeconfig.
func addContext(a *frame.App, c *cobra.Command, to *string, name, usage string) {
	c.Flags().StringVar(to, name, "", usage)
	_ = c.RegisterFlagCompletionFunc(name, func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return a.Contexts(), cobra.ShellCompDirectiveNoFileComp
	})
}

func addManagerNamespace(c *cobra.Command, to *string) {
	const name = "manager-namespace"
	c.Flags().StringVar(to, name, permission.ManagerNamespace, "namespace of Godwit's manager on the global hub")
	_ = c.RegisterFlagCompletionFunc(name, cobra.NoFileCompletions)
}

func addAgentNamespace(c *cobra.Command, to *string) {
	const name = "agent-namespace"
	c.Flags().StringVar(to, name, permission.AgentNamespace, "namespace of Godwit's agent on a hub, which also has the Placements")
	_ = c.RegisterFlagCompletionFunc(name, cobra.NoFileCompletions)
}

// selection is the flags that select the clusters and the hubs.
type selection struct {
	from, to  string
	placement string
	clusters  []string
}

func (o *selection) addTo(a *frame.App, c *cobra.Command) {
	flags := c.Flags()
	flags.StringVar(&o.from, "from", "", "`hub` that the clusters leave: the name of its ManagedCluster on the global hub")
	flags.StringVar(&o.to, "to", "", "`hub` that the clusters move to")
	flags.StringVar(&o.placement, "placement", "", "`Placement` on the source hub that selects the clusters, instead of their names")
	_ = c.RegisterFlagCompletionFunc("from", completeHubs(a))
	_ = c.RegisterFlagCompletionFunc("to", completeHubs(a))
	_ = c.RegisterFlagCompletionFunc("placement", cobra.NoFileCompletions)
}

// parse checks what can be checked without a cluster.
func (o *selection) parse(clusters []string) error {
	switch {
	case o.from == "" || o.to == "":
		return frame.Usagef("specify --from=HUB and --to=HUB")
	case o.from == o.to:
		return frame.Usagef("--from and --to are the same hub: specify two hubs")
	}
	return o.parseClusters(clusters)
}

// parseClusters checks which clusters are selected.
func (o *selection) parseClusters(clusters []string) error {
	o.clusters = clusters
	switch {
	case len(clusters) == 0 && o.placement == "":
		return frame.Usagef("specify names of clusters, or --placement=NAME")
	case len(clusters) > 0 && o.placement != "":
		return frame.Usagef("names of clusters and --placement are mutually exclusive")
	}
	seen := map[string]bool{}
	for _, name := range clusters {
		if seen[name] {
			return frame.Usagef("cluster %s is given twice", name)
		}
		seen[name] = true
	}
	return nil
}

func (o *selection) request(h hubFlags) preflight.Request {
	spec := api.ManagedClusterMigrationSpec{}
	h.choose(&spec)
	return preflight.Request{
		From: o.from, To: o.to, Clusters: o.clusters, Placement: o.placement, OnEvictedWorks: spec.EvictedWorks(), OnUserObjects: spec.UserObjects(),
	}
}

// managedClusters returns the names of the ManagedClusters on the global hub, including the hubs.
func (c *connection) managedClusters(ctx context.Context) ([]string, error) {
	list := &clusterv1.ManagedClusterList{}
	if err := c.client.List(ctx, list); err != nil {
		return nil, err
	}
	names := make([]string, len(list.Items))
	for i := range list.Items {
		names[i] = list.Items[i].Name
	}
	return names, nil
}

func completeHubs(a *frame.App) cobra.CompletionFunc {
	return frame.CompleteNames(func(ctx context.Context) ([]string, error) {
		connected, err := dial(ctx, a, clusterpermission.Preflight, permission.Scope{})
		if err != nil {
			return nil, err
		}
		return connected.managedClusters(ctx)
	})
}
