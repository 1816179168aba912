package cluster

import (
	"context"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
	// clusterContext is the context of a cluster whose hub is lost.
	clusterContext string
	// direct means that the command uses the hubs of the contexts, and no global hub.
	direct bool
	// endsWithoutTarget means that the command ends a migration without --to-context.
	endsWithoutTarget bool
}

func (h *hubFlags) addTo(a *frame.App, c *cobra.Command) {
	h.addContextsTo(a, c)
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

// addContextsTo adds the flags that name the contexts of both hubs.
func (h *hubFlags) addContextsTo(a *frame.App, c *cobra.Command) {
	addFromContext(a, c, &h.fromContext)
	addContext(a, c, &h.toContext, "to-context", "`context` of the kubeconfig for the target hub")
}

func addFromContext(a *frame.App, c *cobra.Command, to *string) {
	addContext(a, c, to, "from-context", "`context` of the kubeconfig for the source hub")
}

// addAddressTo adds the flags that say how clusters reach the target hub.
func (h *hubFlags) addAddressTo(c *cobra.Command) {
	c.Flags().StringVar(&h.toServer, "to-server", "", "`URL` at which clusters reach the target hub (default: the server of --to-context)")
	c.Flags().StringVar(&h.toCAFile, "to-ca-file", "", "`file` with the CA by which clusters verify it (default: the CA of --to-context)")
	_ = c.RegisterFlagCompletionFunc("to-server", cobra.NoFileCompletions)
}

// givesAddress reports whether the flags of addAddressTo are set.
func (h *hubFlags) givesAddress() bool { return h.toServer != "" || h.toCAFile != "" }

// addClusterContextTo adds the flag for a cluster whose hub is lost.
func (h *hubFlags) addClusterContextTo(a *frame.App, c *cobra.Command) {
	addContext(a, c, &h.clusterContext, "cluster-context", "`context` of the kubeconfig for the cluster itself, whose hub is lost, instead of --from-context")
}

// parseDirect decides whether the command works without a global hub. Without --to-context, it ends a migration whose target hub is lost.
func (h *hubFlags) parseDirect() error {
	if h.fromContext == "" && h.toContext != "" {
		return frame.Usagef("specify --from-context=CONTEXT and --to-context=CONTEXT, --from-context=CONTEXT alone if the target hub never answers again, or none of both for a migration on a global hub")
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
	_ = c.RegisterFlagCompletionFunc("from", completeHubs(a))
	_ = c.RegisterFlagCompletionFunc("to", completeHubs(a))
	o.addPlacementTo(c)
}

func (o *selection) addPlacementTo(c *cobra.Command) {
	c.Flags().StringVar(&o.placement, "placement", "", "`Placement` on the source hub that selects the clusters, instead of their names")
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

// bothHubs are flags that have no meaning for a move without the source hub.
var bothHubs = []string{"from", "to", "manager-namespace", "agent-namespace", "on-user-objects", "stage-timeout", "reconnect-timeout"}

// parseLost checks the flags of a move by the context of the cluster.
func (o *selection) parseLost(c *cobra.Command, h hubFlags, args []string) error {
	switch {
	case h.fromContext != "":
		return frame.Usagef("--from-context and --cluster-context are mutually exclusive: a cluster whose hub answers moves with --from-context")
	case h.toContext == "":
		return frame.Usagef("specify --to-context=CONTEXT")
	case o.placement != "":
		return frame.Usagef("--placement and --cluster-context are mutually exclusive: the lost hub has the Placement")
	case len(args) != 1:
		return frame.Usagef("specify one cluster: --cluster-context is the context of this one")
	}
	for _, flag := range bothHubs {
		if c.Flags().Changed(flag) {
			return frame.Usagef("--%s and --cluster-context are mutually exclusive: the flag is for a move with both hubs", flag)
		}
	}
	return o.parseClusters(args)
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

// timeouts are the flags with the timeouts of a migration.
type timeouts struct{ stage, reconnect frame.DurationFlag }

func (t *timeouts) addTo(c *cobra.Command) {
	c.Flags().Var(&t.stage, "stage-timeout", "timeout of every phase (default: 12m for Registering and Rollbacking, 5m for the others)")
	c.Flags().Var(&t.reconnect, "reconnect-timeout", "how long a cluster tries to reach a hub before it tries the other one (default: 3m)")
}

// spec returns the spec of a migration of the selected clusters.
func (o *selection) spec(from, to string, t timeouts) api.ManagedClusterMigrationSpec {
	spec := api.ManagedClusterMigrationSpec{From: api.HubName(from), To: api.HubName(to), IncludedManagedClustersPlacementRef: o.placement}
	for _, one := range o.clusters {
		spec.IncludedManagedClusters = append(spec.IncludedManagedClusters, api.ClusterName(one))
	}
	if t.stage != 0 || t.reconnect != 0 {
		spec.SupportedConfigs = &api.MigrationConfig{StageTimeout: durationOf(t.stage), ReconnectTimeout: durationOf(t.reconnect)}
	}
	return spec
}

func durationOf(d frame.DurationFlag) *metav1.Duration {
	if d == 0 {
		return nil
	}
	return &metav1.Duration{Duration: time.Duration(d)}
}
