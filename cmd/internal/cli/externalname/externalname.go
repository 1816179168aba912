// Package externalname has the commands for the external names of managed resources: `godwit
// externalname`.
//
// Read externalname.go and session.go, then naming.go, which has the expression, and the files named after
// the commands.
package externalname

import (
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/godwit-dev/godwit/cmd/internal/cli"
	"github.com/godwit-dev/godwit/externalname/fleet"
)

// Command is `godwit externalname`.
func Command(a *cli.App) *cobra.Command {
	c := &cobra.Command{
		Use:   "externalname",
		Short: "Rename, save and restore the external names of Crossplane's managed resources",
		Long: "The annotation crossplane.io/external-name identifies the external resource of a managed\n" +
			"resource. A provider that writes names in another form than before needs the annotations of\n" +
			"all its managed resources to change, without a second external resource for any of them.\n\n" +
			"The commands below plan new names by an expression, write them one after the other with a\n" +
			"proof that the external resource is still the same, and restore the old names. An annotation\n" +
			"of each managed resource says how far its renaming is, so that the same command resumes an\n" +
			"interrupted run.",
	}
	cli.Parent(c)
	c.AddCommand(planCommand(a), applyCommand(a), rollbackCommand(a), readyCommand(a), saveCommand(a), restoreCommand(a))
	return c
}

// selection chooses the managed resources of a command.
type selection struct {
	resource   string
	everywhere bool
	namespace  string // empty: all
	selector   string
	selected   labels.Selector
}

func (o *selection) addTo(a *cli.App, c *cobra.Command) {
	c.Flags().StringVar(&o.resource, "resource", "", "the managed resources, by the name of their `CRD`, as in buckets.s3.example.org")
	_ = c.RegisterFlagCompletionFunc("resource", completeResources(a))
	c.Flags().BoolVarP(&o.everywhere, "all-namespaces", "A", false, "managed resources of all namespaces")
	c.Flags().StringVarP(&o.selector, "selector", "l", "", "only managed resources with these labels; the syntax is kubectl's")
	_ = c.RegisterFlagCompletionFunc("selector", cobra.NoFileCompletions)
}

// parse checks what can be checked without a cluster.
func (o *selection) parse(a *cli.App, c *cobra.Command) error {
	if err := cli.NoArguments(c, c.Flags().Args()); err != nil {
		return cli.Usage(err)
	}
	if o.resource == "" {
		return cli.Usagef("which managed resources? give --resource=CRD; `kubectl get crd` lists the CRDs")
	}
	var err error
	if o.namespace, err = a.GivenNamespace(c); err != nil {
		return err
	}
	if o.everywhere && o.namespace != "" {
		return cli.Usagef("choose --all-namespaces or --namespace, one of them")
	}
	o.selected, err = cli.ParseSelector(o.selector)
	return err
}

// checkNamespaces makes the user of a command that writes say which namespaces.
func (o *selection) checkNamespaces() error {
	if o.namespace == "" && !o.everywhere {
		return cli.Usagef("which managed resources? give --namespace or --all-namespaces")
	}
	return nil
}

func (o *selection) scope() fleet.Scope {
	return fleet.Scope{Namespace: o.namespace, Selector: o.selected}
}

// identityFlags say which fields of status.atProvider identify the external resource.
type identityFlags struct {
	fields   []string
	volatile []string
	sources  []string
}

func (o *identityFlags) addTo(c *cobra.Command) {
	flags := c.Flags()
	flags.StringArrayVar(&o.fields, "identity", nil, "`FIELD` of status.atProvider that must not change; repeat the flag for several (default: all but volatile ones)")
	flags.StringArrayVar(&o.volatile, "volatile", nil, "`FIELD` of status.atProvider that may change; repeat the flag for several")
	flags.StringArrayVar(&o.sources, "source-manager", nil, "field `MANAGER` that applies names from a source, beside those of GitOps tools and Compositions; repeat the flag for several")
	for _, flag := range []string{"identity", "volatile", "source-manager"} {
		_ = c.RegisterFlagCompletionFunc(flag, cobra.NoFileCompletions)
	}
}

// options are those of the library.
func (o *identityFlags) options(s *selection) fleet.Options {
	return fleet.Options{Scope: s.scope(), Identity: fleet.Identity{Fields: o.fields, Volatile: o.volatile}, SourceManagers: o.sources}
}
