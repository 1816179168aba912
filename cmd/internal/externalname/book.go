package externalname

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/godwit-dev/godwit/cmd/internal/crd/crdpermission"
	"github.com/godwit-dev/godwit/cmd/internal/externalname/externalnamepermission"
	"github.com/godwit-dev/godwit/cmd/internal/externalname/externalnamereport"
	"github.com/godwit-dev/godwit/cmd/internal/frame"
	"github.com/godwit-dev/godwit/cmd/internal/remedy"
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
	resources []string
	all       bool
}

func saveCommand(a *frame.App) *cobra.Command {
	o := &saveOptions{App: a}
	c := &cobra.Command{
		Use:   "save {--resource=CRD... | --all} [--configmap=NAMESPACE/NAME]",
		Short: "Save the external names of managed resources to a file or to ConfigMaps",
		Long: "Write the external names of managed resources to stdout as JSON, or to ConfigMaps of which each is\n" +
			"below 1 MiB. After the loss of the cluster, `" + a.Program + " externalname restore` writes the names onto the\n" +
			"managed resources that you have created again from their manifests, so that the provider finds the\n" +
			"external resources and creates no second ones.\n\n" +
			"ConfigMaps are in the cluster whose loss you prepare for: back them up, or save to a file.\n\n" +
			"It prints the managed resources without an external name, which a restore can't write.\n\n" +
			"Exit codes: 0 saved; 1 saved, except for external resources that exist, or may exist, without a name;\n" +
			"2 error.",
		Example: "  # All managed resources, to a file\n" +
			"  " + a.Program + " externalname save --all > names.json\n\n" +
			"  # One kind, in the cluster\n" +
			"  " + a.Program + " externalname save --resource=members.example.org --configmap=crossplane-system/names",
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(c *cobra.Command, args []string) error {
			switch err := frame.NoArguments(c, args); {
			case err != nil:
				return frame.Usage(err)
			case o.all == (len(o.resources) > 0):
				return frame.Usagef("specify --resource=CRD or --all")
			}
			if err := o.parse(); err != nil {
				return err
			}
			return o.run(c.Context())
		},
	}
	flags := c.Flags()
	flags.StringArrayVar(&o.resources, resourceFlag, nil, resourceUsage+"; repeat the flag for several")
	_ = c.RegisterFlagCompletionFunc(resourceFlag, completeResources(a))
	frame.AddAll(c, &o.all, "the managed resources of all CRDs")
	o.addTo(c)
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
		if err := saved.add(ctx, c, resource); err != nil {
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

func (n *savedNames) add(ctx context.Context, c *cluster, resource string) error {
	s, err := c.newSession(ctx, resource, "", fleet.Options{})
	if err != nil {
		return err
	}
	names, unnamed, err := s.Save(ctx)
	if err != nil {
		return s.explain(ctx, err)
	}
	n.names = append(n.names, names...)
	for _, p := range externalnamereport.PlanList(s.kind, unnamed, s.remedies).Items {
		n.leftOut += fmt.Sprintf("left out %s %s: %s: %s\n", resource, render.ObjectName(p.Namespace, p.Name), p.Reason, p.Message)
		if p.Action == fleet.Skip {
			n.code = frame.Pending
			n.leftOut += "  " + p.Remedy + "\n"
		}
	}
	return nil
}

type restoreOptions struct {
	*frame.App
	bookFlag
	file      string
	change    frame.ChangeFlags
	overwrite bool
	unpause   bool
	output    frame.Output
}

func restoreCommand(a *frame.App) *cobra.Command {
	o := &restoreOptions{App: a}
	c := &cobra.Command{
		Use:   "restore {-f FILE | --configmap=NAMESPACE/NAME} [--unpause]",
		Short: "Write saved external names onto managed resources that are paused",
		Long: "Write the external names that `" + a.Program + " externalname save` has saved onto managed resources with\n" +
			"the annotation crossplane.io/paused=true. Others are left alone: their provider may create a second\n" +
			"external resource before they have a name. --unpause ends the pause in the same patch.\n\n" +
			"Exit codes: 0 all names are restored; 1 some are left alone, or a dry run found work; 3 refused, and\n" +
			"nothing written; 4 some failed; 2 error; 130 interrupted.",
		Example: "  # Show what would be written\n" +
			"  " + a.Program + " externalname restore -f names.json --dry-run=client -o wide\n\n" +
			"  # Restore, and let the providers continue\n" +
			"  " + a.Program + " externalname restore -f names.json --unpause",
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(c *cobra.Command, args []string) error {
			if err := o.check(c, args); err != nil {
				return err
			}
			return o.Change(c.Context(), &o.change, o.plan)
		},
	}
	flags := c.Flags()
	frame.AddFilename(c, &o.file, "`FILE` of saved names; - is stdin")
	o.addTo(c)
	o.change.AddYesTo(c)
	o.change.AddDryRunTo(c, frame.DryRunClient)
	flags.BoolVar(&o.unpause, "unpause", false, "end the pause of each managed resource that has its name")
	flags.BoolVar(&o.overwrite, "overwrite", false, "replace external names that differ from the saved ones")
	o.output.AddTo(c, externalnamereport.RunList(fleet.Kind{}, nil, remedy.Writer{}))
	return c
}

func (o *restoreOptions) check(c *cobra.Command, args []string) error {
	switch err := frame.NoArguments(c, args); {
	case err != nil:
		return frame.Usage(err)
	case (o.file == "") == (o.configMap == ""):
		return frame.Usagef("specify --filename or --configmap")
	}
	return o.parse()
}

// readFile returns the names that are saved in a file. It needs no cluster.
func (o *restoreOptions) readFile() (fleet.SavedNames, error) {
	var text []byte
	var err error
	if o.file == "-" {
		text, err = io.ReadAll(o.Streams.In)
	} else {
		text, err = os.ReadFile(o.file)
	}
	if err != nil {
		return fleet.SavedNames{}, fmt.Errorf("read the saved names: %w", err)
	}
	return fleet.ReadSavedNames(text)
}

// readStore returns the names that are saved in ConfigMaps.
func (o *restoreOptions) readStore(ctx context.Context, c *cluster) (fleet.SavedNames, error) {
	store, err := o.store(c)
	if err != nil {
		return fleet.SavedNames{}, err
	}
	book, err := store.Load(ctx)
	if errors.As(err, new(*format.NewerError)) {
		return book, frame.Refuse(err)
	}
	if err != nil && !errors.Is(err, fleet.ErrNoSavedNames) {
		return book, c.Explain(ctx, err)
	}
	return book, err
}

// restore is a planned restore.
type restore struct {
	*restoreOptions
	cluster  *cluster
	book     fleet.SavedNames
	how      fleet.RestoreOptions
	sessions []*session // one for each kind
	list     render.List[externalnamereport.Run]
	ending   ending
}

// plan reads the saved names, and connects to their kinds.
func (o *restoreOptions) plan(ctx context.Context) (frame.Change, error) {
	r := &restore{restoreOptions: o, how: fleet.RestoreOptions{Overwrite: o.overwrite, Unpause: o.unpause, DryRun: !o.change.Writes()}}
	var err error
	if o.file != "" {
		if r.book, err = o.readFile(); err != nil {
			return nil, err
		}
	}
	if r.cluster, err = dial(ctx, o.App, frame.Purpose{Command: externalnamepermission.Apply}); err != nil {
		return nil, err
	}
	if o.file == "" {
		if r.book, err = o.readStore(ctx, r.cluster); err != nil {
			return nil, err
		}
	}
	if len(r.book.Names) == 0 {
		return nil, errNoNames
	}
	return r, r.connect(ctx)
}

// connect opens the sessions. It refuses to restore if some names can't be written.
func (r *restore) connect(ctx context.Context) error {
	c := r.cluster
	for _, n := range r.book.Names {
		if !slices.Contains(c.Purpose.Scope, n.Resource) {
			c.Purpose.Scope = append(c.Purpose.Scope, n.Resource)
		}
	}
	for _, resource := range c.Purpose.Scope {
		s, err := c.newSession(ctx, resource, "", fleet.Options{})
		if err != nil {
			return err
		}
		r.sessions = append(r.sessions, s)
		if r.how.DryRun {
			continue
		}
		if err := s.missing(ctx); err != nil {
			return frame.Refuse(err)
		}
	}
	return nil
}

// Question implements frame.Change.
func (r *restore) Question() (string, error) {
	return fmt.Sprintf("Write %s of %s on %s?", render.Count(int64(len(r.book.Names)), "external name", "external names"),
		r.book.SavedAt.Format("2006-01-02 15:04:05 MST"), r.cluster.Where()), nil
}

// Run implements frame.Change.
func (r *restore) Run(ctx context.Context) {
	e := &r.ending
	r.list = externalnamereport.RunList(fleet.Kind{}, nil, r.cluster.remedies)
	for _, s := range r.sessions {
		var one fleet.Report
		one, e.err = s.Restore(ctx, r.book.Names, r.how)
		e.session, e.report.Results = s, append(e.report.Results, one.Results...)
		r.list.Items = append(r.list.Items, externalnamereport.RunList(s.kind, one.Results, s.remedies).Items...)
		if e.err != nil {
			return
		}
	}
}

// End implements frame.Change.
func (r *restore) End(ctx context.Context) error {
	if err := printRun(r.App, r.output, r.list); err != nil {
		return err
	}
	e := r.ending
	if r.how.DryRun && e.report.Count(fleet.PhaseRestored) > 0 && e.err == nil {
		return frame.Exit(frame.Worst(frame.Pending, runCode(e.report)))
	}
	return exitAfterRun(ctx, r.App, e)
}
