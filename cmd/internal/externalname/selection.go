package externalname

import (
	"context"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/godwit-dev/godwit/cmd/internal/frame"
	"github.com/godwit-dev/godwit/cmd/internal/permission"
	"github.com/godwit-dev/godwit/externalname/fleet"
	"github.com/godwit-dev/godwit/internal/quote"
)

// selection chooses the managed resources of a command.
type selection struct {
	resource   string
	everywhere bool
	namespace  string // empty: all
	selector   string
	selected   labels.Selector
}

// The flag --resource names one CRD, and for save several.
const (
	resourceFlag  = "resource"
	resourceUsage = "the managed resources, by the name of their `CRD`, as in buckets.s3.example.org"
)

func (o *selection) addTo(a *frame.App, c *cobra.Command) {
	c.Flags().StringVar(&o.resource, resourceFlag, "", resourceUsage)
	_ = c.RegisterFlagCompletionFunc(resourceFlag, completeResources(a))
	frame.AddAllNamespaces(c, &o.everywhere)
	frame.AddSelector(c, &o.selector, "managed resources with these labels")
}

// parse checks what can be checked without a cluster.
func (o *selection) parse(a *frame.App, c *cobra.Command) error {
	if err := frame.NoArguments(c, c.Flags().Args()); err != nil {
		return frame.Usage(err)
	}
	if o.resource == "" {
		return frame.Usagef("specify --resource=CRD; `kubectl get crd` lists the CRDs")
	}
	var err error
	if o.namespace, err = a.GivenNamespace(c); err != nil {
		return err
	}
	o.selected, err = frame.ParseSelector(o.selector)
	return err
}

// parseToWrite also requires the namespaces, for a command that writes.
func (o *selection) parseToWrite(a *frame.App, c *cobra.Command) error {
	if err := o.parse(a, c); err != nil {
		return err
	}
	if o.namespace == "" && !o.everywhere {
		return frame.Usagef("specify --namespace or --all-namespaces")
	}
	return nil
}

func (o *selection) scope() fleet.Scope {
	return fleet.Scope{Namespace: o.namespace, Selector: o.selected}
}

// selectorFlag is the flag that selects by labels, for a command line; empty without it.
func (o *selection) selectorFlag() string {
	if o.selector == "" {
		return ""
	}
	return " --selector=" + quote.Shell(o.selector)
}

// identityFlags are the flags that select the fields of status.atProvider which identify the external resource.
type identityFlags struct {
	fields   []string
	volatile []string
	sources  []string
	unsafe   bool
}

func (o *identityFlags) addTo(c *cobra.Command) {
	o.addFieldsTo(c)
	c.Flags().BoolVar(&o.unsafe, "accept-unsafe", false, "rename also where a second external resource may be the result: with the reasons MayCreate and OthersNotRead")
}

// addFieldsTo adds the flags that a restore has, too.
func (o *identityFlags) addFieldsTo(c *cobra.Command) {
	flags := c.Flags()
	flags.StringArrayVar(&o.fields, "identity", nil, "`FIELD` of status.atProvider that must not change, such as id or metadata.uid; repeat the flag for several (default: all that the spec lacks, but volatile ones)")
	flags.StringArrayVar(&o.volatile, "volatile", nil, "`FIELD` of status.atProvider that may change; repeat the flag for several")
	flags.StringArrayVar(&o.sources, "source-manager", nil, "field `MANAGER` that applies names from a source, beside those of GitOps tools and Compositions; repeat the flag for several")
	for _, flag := range []string{"identity", "volatile", "source-manager"} {
		_ = c.RegisterFlagCompletionFunc(flag, cobra.NoFileCompletions)
	}
}

// options are those of the library.
func (o *identityFlags) options(s *selection) fleet.Options {
	return fleet.Options{Scope: s.scope(), Identity: fleet.Identity{Fields: o.fields, Volatile: o.volatile}, SourceManagers: o.sources, AcceptUnsafe: o.unsafe}
}

// timeoutFlags are how long a provider may take.
type timeoutFlags struct {
	pause frame.DurationFlag
	proof frame.DurationFlag
}

func (o *timeoutFlags) addTo(c *cobra.Command) {
	o.pause, o.proof = frame.DurationFlag(fleet.DefaultPauseTimeout), frame.DurationFlag(fleet.DefaultProofTimeout)
	c.Flags().Var(&o.pause, "pause-timeout", "how long the provider may take to report a pause")
	c.Flags().Var(&o.proof, "proof-timeout", "how long the provider may take to report success under the new name")
}

// connect returns an error if the CRD is not of managed resources.
func connect(ctx context.Context, a *frame.App, command permission.Command, s *selection, o fleet.Options) (*session, error) {
	scope := []string{s.resource}
	if s.namespace != "" {
		scope = append(scope, "--namespace="+s.namespace)
	}
	c, err := dial(ctx, a, frame.Purpose{Command: command, Scope: scope})
	if err != nil {
		return nil, err
	}
	if o.Limiter != nil {
		c.limiter = o.Limiter
	}
	return c.newSession(ctx, s.resource, s.namespace, o)
}
