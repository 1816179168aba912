package plan

import (
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/godwit-dev/godwit/cmd/internal/frame"
)

// contextFlags choose the clusters.
type contextFlags struct {
	names []string
	all   bool
}

func (o *contextFlags) addTo(a *frame.App, c *cobra.Command) {
	c.Flags().StringSliceVar(&o.names, "contexts", nil, "contexts of the kubeconfig, separated by commas: a plan of each cluster")
	c.Flags().BoolVar(&o.all, "all-contexts", false, "all contexts of the kubeconfig")
	_ = c.RegisterFlagCompletionFunc("contexts", func(_ *cobra.Command, _ []string, toComplete string) ([]string, cobra.ShellCompDirective) {
		return completeContexts(a.Contexts(), toComplete), cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	})
}

// completeContexts completes the last name of a list, by names that the list does not have.
func completeContexts(known []string, toComplete string) []string {
	before, last := "", toComplete
	if at := strings.LastIndex(toComplete, ","); at >= 0 {
		before, last = toComplete[:at+1], toComplete[at+1:]
	}
	given := strings.Split(before, ",")
	var all []string
	for _, name := range known {
		if strings.HasPrefix(name, last) && !slices.Contains(given, name) {
			all = append(all, before+name)
		}
	}
	return all
}

// parse checks what can be checked without a cluster.
func (o *contextFlags) parse(a *frame.App, c *cobra.Command) error {
	several := o.all || c.Flags().Changed("contexts")
	for _, one := range []string{"context", "cluster", "server", "user", "token"} {
		if several && c.Flags().Changed(one) {
			return frame.Usagef("--%s is for one cluster: leave it out, or leave out --contexts and --all-contexts", one)
		}
	}
	switch {
	case o.all && len(o.names) > 0:
		return frame.Usagef("--contexts and --all-contexts are mutually exclusive")
	case several && !o.all && (len(o.names) == 0 || slices.Contains(o.names, "")):
		return frame.Usagef("--contexts has an empty name; `kubectl config get-contexts -o name` lists the contexts")
	case c.Flags().Changed("namespace"):
		return frame.Usagef("remove --namespace: a plan is of whole clusters")
	}
	return o.list(a)
}

// list reads the names of all contexts.
func (o *contextFlags) list(a *frame.App) error {
	if !o.all {
		return nil
	}
	config, err := a.Cluster.ToRawKubeConfigLoader().RawConfig()
	if err != nil {
		return frame.BadKubeconfig(err)
	}
	if o.names = slices.Sorted(maps.Keys(config.Contexts)); len(o.names) == 0 {
		return &frame.ActionableError{Message: "the kubeconfig has no context", Remedy: "name a file with contexts by --kubeconfig or KUBECONFIG"}
	}
	return nil
}

// apps returns an invocation for each cluster, each context once.
func (o *contextFlags) apps(a *frame.App) []*frame.App {
	if len(o.names) == 0 {
		return []*frame.App{a}
	}
	var all []*frame.App
	for i, name := range o.names {
		if !slices.Contains(o.names[:i], name) {
			all = append(all, a.InContext(name))
		}
	}
	return all
}

// nameOf returns the context of an invocation, or the address of its API server.
func nameOf(a *frame.App) string {
	if name := *a.Cluster.Context; name != "" {
		return name
	}
	if server := *a.Cluster.APIServer; server != "" {
		return server
	}
	if config, err := a.Cluster.ToRawKubeConfigLoader().RawConfig(); err == nil && config.CurrentContext != "" {
		return config.CurrentContext
	}
	return "current"
}
