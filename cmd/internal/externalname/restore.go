package externalname

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/godwit-dev/godwit/cmd/internal/externalname/externalnamepermission"
	"github.com/godwit-dev/godwit/cmd/internal/externalname/externalnamereport"
	"github.com/godwit-dev/godwit/cmd/internal/frame"
	"github.com/godwit-dev/godwit/cmd/internal/remedy"
	"github.com/godwit-dev/godwit/cmd/internal/render"
	"github.com/godwit-dev/godwit/externalname/fleet"
	"github.com/godwit-dev/godwit/externalname/handover"
	"github.com/godwit-dev/godwit/internal/format"
)

type restoreOptions struct {
	*frame.App
	bookFlag
	identityFlags
	timeoutFlags
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
			"A name that was saved with --map is handed over to the replacement, which you have created, paused. For\n" +
			"each one: write the name and spec.managementPolicies [Observe] to the replacement, and end its pause. Wait\n" +
			"until its provider reports success, and compare the fields of status.atProvider that identify the\n" +
			"external resource with those of the original. Then let the original only observe, so that its\n" +
			"deletion deletes nothing, and give the replacement its management policies back. If the two have different\n" +
			"external resources, or the provider finds none, both are as before. The first is handed over alone; the\n" +
			"command stops after one that is not handed over. Run it again to resume. `" + a.Program + " externalname\n" +
			"rollback` with the CRD of the replacements returns the external resources.\n\n" +
			"Exit codes: 0 all names are restored; 1 some are left alone, or a dry run found work; 3 refused or\n" +
			"undone, and nothing restored; 4 some are undone or failed; 2 error; 124 --timeout; 130 interrupted.",
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
	o.bookFlag.addTo(c)
	o.change.AddYesTo(c)
	o.change.AddDryRunTo(c, frame.DryRunClient)
	flags.BoolVar(&o.unpause, "unpause", false, "end the pause of each managed resource that has its name")
	flags.BoolVar(&o.overwrite, "overwrite", false, "replace external names that differ from the saved ones")
	o.addFieldsTo(c)
	o.timeoutFlags.addTo(c)
	o.change.AddTimeoutTo(c)
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
	parts    []restorePart
	progress *progress
	list     render.List[externalnamereport.Run]
	report   fleet.Report
	notBegun int      // names of the parts after a stop
	ended    *session // of the last part
	err      error
}

// restorePart are the names of one kind, or the pairs of two.
type restorePart struct {
	session *session // of the kind to which the names are written
	run     func(context.Context) (fleet.Report, error)
	n       int
}

// plan reads the saved names, and connects to their kinds.
func (o *restoreOptions) plan(ctx context.Context) (frame.Change, error) {
	r := &restore{restoreOptions: o, progress: &progress{console: o.Console, what: "restoring"}}
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
	var names []string // CRDs
	var pairs [][2]string
	for _, n := range r.book.Names {
		crds := []string{n.Resource}
		if n.Replacement != nil {
			crds = append(crds, n.Replacement.Resource)
			if pair := [2]string(crds); !slices.Contains(pairs, pair) {
				pairs = append(pairs, pair)
			}
		} else if !slices.Contains(names, n.Resource) {
			names = append(names, n.Resource)
		}
		for _, crd := range crds {
			if !slices.Contains(r.cluster.Purpose.Scope, crd) {
				r.cluster.Purpose.Scope = append(r.cluster.Purpose.Scope, crd)
			}
		}
	}
	for _, resource := range names {
		s, err := r.session(ctx, resource)
		if err != nil {
			return err
		}
		r.parts = append(r.parts, r.unmapped(s))
	}
	for _, pair := range pairs {
		part, err := r.handover(ctx, pair[0], pair[1])
		if err != nil {
			return err
		}
		r.parts = append(r.parts, part)
	}
	return nil
}

func (r *restore) session(ctx context.Context, resource string) (*session, error) {
	if r.change.Writes() {
		return r.cluster.newWriter(ctx, resource)
	}
	return r.cluster.newSession(ctx, resource, "", fleet.Options{})
}

// unmapped writes names to the managed resources of a kind themselves.
func (r *restore) unmapped(s *session) restorePart {
	names := slices.DeleteFunc(slices.Clone(r.book.Names), func(n fleet.Name) bool { return n.Replacement != nil || n.Resource != s.resource })
	how := fleet.RestoreOptions{Overwrite: r.overwrite, Unpause: r.unpause, DryRun: !r.change.Writes()}
	return restorePart{session: s, n: len(names), run: func(ctx context.Context) (fleet.Report, error) { return s.Restore(ctx, names, how) }}
}

// handover hands external resources over from one kind to another.
func (r *restore) handover(ctx context.Context, from, to string) (restorePart, error) {
	old, err := r.session(ctx, from)
	if err != nil {
		return restorePart{}, err
	}
	s, err := r.session(ctx, to)
	if err != nil {
		return restorePart{}, err
	}
	var pairs []handover.Pair
	for _, n := range r.book.Names {
		if n.Resource == from && n.Replacement != nil && n.Replacement.Resource == to {
			if s.clusterScoped != (n.Replacement.Namespace == "") {
				return restorePart{}, frame.Refuse(wrongScope(s, *n.Replacement))
			}
			pairs = append(pairs, handover.Pair{
				From: handover.Object{Resource: from, Namespace: n.Namespace, Name: n.Name}, To: handover.Object(*n.Replacement), ExternalName: n.ExternalName,
			})
		}
	}
	h, err := handover.New(r.cluster.Config, old.kind, s.kind, handover.Options{
		Limiter: r.cluster.limiter, Identity: fleet.Identity{Fields: r.fields, Volatile: r.volatile}, SourceManagers: r.sources, Overwrite: r.overwrite,
		DryRun: !r.change.Writes(), PauseTimeout: time.Duration(r.pause), ProofTimeout: time.Duration(r.proof), Progress: r.progress.update,
	})
	return restorePart{session: s, n: len(pairs), run: func(ctx context.Context) (fleet.Report, error) { return h.Run(ctx, pairs) }}, err
}

// wrongScope returns the error for a replacement whose kind has a namespace where it has none, or the other way round.
func wrongScope(s *session, o fleet.Replacement) error {
	message, remedy := "%s %s has no namespace, and its kind is namespaced", "save again, with --to-namespace=CEL"
	if s.clusterScoped {
		message, remedy = "%s %s has a namespace, and its kind is cluster-scoped", "save again, with --to-namespace='\"\"'"
	}
	return &frame.ActionableError{Reason: fleet.ReasonNotMapped, Message: fmt.Sprintf(message, o.Resource, render.ObjectName(o.Namespace, o.Name)), Remedy: remedy}
}

// Question implements frame.Change.
func (r *restore) Question() (string, error) {
	return fmt.Sprintf("Write %s of %s on %s?", render.Count(int64(len(r.book.Names)), "external name", "external names"),
		r.book.SavedAt.Format("2006-01-02 15:04:05 MST"), r.cluster.Where()), nil
}

// Run implements frame.Change.
func (r *restore) Run(ctx context.Context) {
	r.list = externalnamereport.RunList(fleet.Kind{}, nil, r.cluster.remedies)
	for i, part := range r.parts {
		if r.report.Stopped {
			for _, rest := range r.parts[i:] {
				r.notBegun += rest.n
			}
			return
		}
		if r.change.Writes() {
			r.progress.begin(part.n)
		}
		var one fleet.Report
		one, r.err = part.run(ctx)
		r.progress.end()
		r.ended, r.report.Results = part.session, append(r.report.Results, one.Results...)
		r.report.Stopped = r.report.Stopped || one.Stopped
		r.list.Items = append(r.list.Items, externalnamereport.RunList(part.session.kind, one.Results, part.session.remedies).Items...)
		if r.err != nil {
			return
		}
	}
}

// End implements frame.Change.
func (r *restore) End(ctx context.Context) error {
	if err := printRun(r.App, r.output, r.list); err != nil {
		return err
	}
	if r.report.Stopped {
		others := ""
		if r.notBegun > 0 {
			others = fmt.Sprintf(", nor %s of other kinds", render.Count(int64(r.notBegun), "name", "names"))
		}
		r.Console.Printf("stopped: an external resource was not handed over; the rest were not started%s\n", others)
	}
	done := r.report.Count(fleet.PhaseRestored) + r.report.Count(fleet.PhaseHandedOver)
	if !r.change.Writes() && done > 0 && r.err == nil {
		return frame.Exit(frame.Worst(frame.Pending, runCode(r.report)))
	}
	return exitAfterRun(ctx, r.App, ending{session: r.ended, report: r.report, err: r.err})
}
