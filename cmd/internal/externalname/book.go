package externalname

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/godwit-dev/godwit/cmd/internal/crd/crdpermission"
	"github.com/godwit-dev/godwit/cmd/internal/externalname/externalnamepermission"
	"github.com/godwit-dev/godwit/cmd/internal/externalname/externalnamereport"
	"github.com/godwit-dev/godwit/cmd/internal/frame"
	"github.com/godwit-dev/godwit/cmd/internal/render"
	"github.com/godwit-dev/godwit/externalname/fleet"
	"github.com/godwit-dev/godwit/internal/format"
)

// bookFlag is the flag that names the ConfigMaps with saved names.
type bookFlag struct{ configMap string }

func (o *bookFlag) addTo(c *cobra.Command) {
	c.Flags().StringVar(&o.configMap, "configmap", "", "ConfigMaps with the saved names, as `NAMESPACE/NAME`, instead of a file")
	_ = c.RegisterFlagCompletionFunc("configmap", cobra.NoFileCompletions)
}

// store returns the store of the flag, or nil without it.
func (o *bookFlag) store(s *cluster) (*fleet.Store, error) {
	if o.configMap == "" {
		return nil, nil //nolint:nilnil // as documented
	}
	namespace, name, _ := strings.Cut(o.configMap, "/")
	return fleet.NewStore(s.Config, s.limiter, namespace, name)
}

func (o *bookFlag) parse() error {
	namespace, name, ok := strings.Cut(o.configMap, "/")
	if o.configMap != "" && (!ok || namespace == "" || name == "" || strings.Contains(name, "/")) {
		return frame.Usagef("invalid argument %q for \"--configmap\": write it as NAMESPACE/NAME", o.configMap)
	}
	return nil
}

type saveOptions struct {
	*frame.App
	bookFlag
	mapFlags
	resources []string
	all       bool
}

func saveCommand(a *frame.App) *cobra.Command {
	o := &saveOptions{App: a}
	c := &cobra.Command{
		Use:   "save {--resource=CRD... | --map=CRD=CRD... | --all} [--configmap=NAMESPACE/NAME]",
		Short: "Save the external names of managed resources to a file or to ConfigMaps",
		Long: "Write the external names of managed resources to stdout as JSON, or to ConfigMaps of which each is\n" +
			"below 1 MiB. After the loss of the cluster, `" + a.Program + " externalname restore` writes the names onto the\n" +
			"managed resources that you have created again from their manifests, so that the provider finds the\n" +
			"external resources and creates no second ones.\n\n" +
			"ConfigMaps are in the cluster whose loss you prepare for: back them up, or save to a file.\n\n" +
			"It prints the managed resources that a restore can't write: those without an external name, and those\n" +
			"without a replacement of their own.\n\n" + mapHelp +
			"Exit codes: 0 saved; 1 saved, except for external resources that exist, or may exist, without a name or\n" +
			"a replacement; 2 error.",
		Example: "  # All managed resources, to a file\n" +
			"  " + a.Program + " externalname save --all > names.json\n\n" +
			"  # One kind, in the cluster\n" +
			"  " + a.Program + " externalname save --resource=members.example.org --configmap=crossplane-system/names\n\n" +
			"  # For the namespaced kind of Crossplane v2\n" +
			"  " + a.Program + " externalname save --map=members.example.org=members.m.example.org --to-namespace='\"shop\"' > names.json",
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(c *cobra.Command, args []string) error {
			switch err := frame.NoArguments(c, args); {
			case err != nil:
				return frame.Usage(err)
			case o.all && len(o.resources) > 0, !o.all && len(o.resources)+len(o.pairs) == 0:
				return frame.Usagef("specify --resource=CRD, --map=CRD=CRD or --all")
			}
			if err := o.bookFlag.parse(); err != nil {
				return err
			}
			if err := o.mapFlags.parse(); err != nil {
				return err
			}
			for _, mapped := range o.originals {
				if !o.all && !slices.Contains(o.resources, mapped) {
					o.resources = append(o.resources, mapped)
				}
			}
			return o.run(c.Context())
		},
	}
	flags := c.Flags()
	flags.StringArrayVar(&o.resources, resourceFlag, nil, resourceUsage+"; repeat the flag for several")
	_ = c.RegisterFlagCompletionFunc(resourceFlag, completeResources(a))
	frame.AddAll(c, &o.all, "the managed resources of all CRDs")
	o.bookFlag.addTo(c)
	o.mapFlags.addTo(c)
	return c
}

func (o *saveOptions) run(ctx context.Context) error {
	purpose := frame.Purpose{Command: externalnamepermission.Plan, Scope: o.resources}
	if o.all {
		purpose = frame.Purpose{Command: crdpermission.Verify, Scope: []string{"--all"}} // lists CRDs
	}
	c, err := dial(ctx, o.App, purpose)
	if err != nil {
		return err
	}
	resources := slices.Clone(o.resources)
	if o.all {
		if resources, err = c.managedCRDs(ctx); err != nil {
			return c.Explain(ctx, err)
		}
		c.Purpose.Command, c.Purpose.Scope = externalnamepermission.Plan, resources
	}
	var saved savedNames
	for _, resource := range resources {
		if err := saved.add(ctx, c, resource, o.mapping(resource)); err != nil {
			return err
		}
	}
	if err := o.write(ctx, c, fleet.NewSavedNames(o.Clock.Now(), saved.names)); err != nil {
		return err
	}
	o.Console.Printf("saved %s of %s\n", render.Count(int64(len(saved.names)), "external name", "external names"), render.CRDs(int64(len(resources))))
	o.Console.Printf("%s", saved.leftOut)
	return frame.Exit(saved.code)
}

// write writes the names to stdout or to ConfigMaps.
func (o *saveOptions) write(ctx context.Context, c *cluster, book fleet.SavedNames) error {
	if o.configMap == "" {
		if err := render.Encode(o.Streams.Out, book); err != nil {
			return fmt.Errorf("write the output: %w", err)
		}
		return nil
	}
	store, err := o.store(c)
	if err == nil {
		err = store.Save(ctx, book)
	}
	if errors.As(err, new(*format.NewerError)) {
		return frame.Refuse(err)
	}
	if err != nil {
		return c.Explain(ctx, err)
	}
	return nil
}

// savedNames are the names of all kinds, and what is left out.
type savedNames struct {
	names   []fleet.Name
	leftOut string
	// code is Pending if an external resource exists, or may exist, whose name is not saved.
	code frame.Code
}

func (n *savedNames) add(ctx context.Context, c *cluster, resource string, to fleet.Mapping) error {
	s, err := c.newSession(ctx, resource, "", fleet.Options{})
	if err != nil {
		return err
	}
	names, leftOut, err := s.Save(ctx, to)
	if err != nil {
		return s.explain(ctx, err)
	}
	n.names = append(n.names, names...)
	for _, p := range externalnamereport.PlanList(s.kind, leftOut, s.remedies).Items {
		n.leftOut += fmt.Sprintf("left out %s %s: %s: %s\n", resource, render.ObjectName(p.Namespace, p.Name), p.Reason, p.Message)
		if p.Action == fleet.Skip {
			n.code = frame.Pending
			n.leftOut += "  " + p.Remedy + "\n"
		}
	}
	return nil
}
