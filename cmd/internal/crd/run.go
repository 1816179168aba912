package crd

import (
	"context"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/cmd/internal/crd/crdpermission"
	"github.com/godwit-dev/godwit/cmd/internal/crd/crdreport"
	"github.com/godwit-dev/godwit/cmd/internal/frame"
	"github.com/godwit-dev/godwit/cmd/internal/render"
	"github.com/godwit-dev/godwit/internal/storageversion"
	"github.com/godwit-dev/godwit/internal/storageversion/decision"
	"github.com/godwit-dev/godwit/internal/storageversion/preflight"
)

type runOptions struct {
	*frame.App
	Selection
	policy     frame.PolicyFlags
	change     frame.ChangeFlags
	output     frame.Output
	write      frame.WriteFlag
	references referencesFlag
	limits     frame.LimitFlags
	noTrim     bool
	// acceptLosses are the paths of values that the run may drop, and acceptChanges those that admission may change.
	acceptLosses, acceptChanges []string
}

func runCommand(a *frame.App) *cobra.Command {
	o := &runOptions{App: a}
	c := &cobra.Command{
		Use:   "run {NAME... | -l SELECTOR | --all}",
		Short: "Migrate objects to the storage version, then trim status.storedVersions",
		Long: "Write every object again at the storage version of its CRD, without changing the object. Then\n" +
			"remove the old versions from status.storedVersions.\n\n" +
			"The run also removes entries of metadata.managedFields that name a version which is not\n" +
			"served: server-side apply fails on them after the version is removed from the CRD.\n\n" +
			"In the end the run repairs ownerReferences of other objects that name a version which is not\n" +
			"served: the garbage collector does not follow them. The run reads the metadata of all objects of\n" +
			"the cluster for that, once, if a CRD has a version that is not served; see --owner-references.\n\n" +
			"Before the first write, the run sends the write of one object of each namespace as a dry run.\n" +
			"If admission denies it, or changes the object, the run is refused; see --accept-denials and\n" +
			"--accept-change.\n\n" +
			"The run proves that each value of the objects survives: by the schemas of the CRD or, where they do\n" +
			"not show it and for each conversion webhook, by a dry run of each object through its old versions. If\n" +
			"a value would be lost, the run is refused and names the fields and objects; see --accept-loss.\n\n" +
			"The run writes nothing until every API server uses the storage version; see --settle. An\n" +
			"interrupted run keeps a checkpoint. Run the same command to resume.\n\n" +
			"Results: Succeeded, Accepted or Planned (a dry run), NoChange (no object had to be written), Partial (some objects are not\n" +
			"migrated), Blocked (refused before the first write), Failed (an error ended the run before the\n" +
			"first write), Unknown (the API server did not list the objects), Terminating (the CRD is being\n" +
			"deleted).\n" +
			"Exit codes: 0 done or nothing to do, 1 a dry run found work, 3 blocked or refused and nothing\n" +
			"written, 4 some objects failed, or some CRDs are migrated and others blocked, 2 error or unknown,\n" +
			"124 stopped by --timeout, 130 interrupted.\n" +
			"A CRD that is being deleted changes the exit code only if you name it.",
		Example: "  # Migrate the objects of one CRD; the command asks before it writes\n" +
			"  " + a.Program + " crd run httproutes.gateway.networking.k8s.io\n\n" +
			"  # Migrate the objects of all CRDs in a script, with at most 50 writes per second\n" +
			"  " + a.Program + " crd run --all --yes --max-writes-per-second=50 -o json\n\n" +
			"  # List the objects whose write admission would deny\n" +
			"  " + a.Program + " crd run --all --dry-run=server",
		ValidArgsFunction: CompleteNames(a),
		RunE: func(c *cobra.Command, args []string) error {
			if err := o.Parse(c, args, false); err != nil {
				return err
			}
			if len(o.acceptLosses) > 0 && len(o.Names) != 1 {
				return frame.Usagef("--accept-loss is for one CRD: name the CRD whose values are lost")
			}
			return o.Change(c.Context(), &o.change, o.plan)
		},
	}
	o.addFlags(c)
	return c
}

func (o *runOptions) addFlags(c *cobra.Command) {
	flags := c.Flags()
	o.AddTo(c)
	frame.AddAll(c, &o.All, "all CRDs")
	o.change.AddYesTo(c)
	o.change.AddDryRunTo(c, frame.DryRunClient, frame.DryRunServer)
	o.write.AddTo(c)
	o.policy.AddTo(flags)
	o.references.addTo(c)
	flags.StringSliceVar(&o.acceptLosses, "accept-loss", nil, "`PATH` of values that the run may drop, as in spec.retentionDays, with all below it; may be repeated; "+
		". is every path; for one CRD")
	flags.StringSliceVar(&o.acceptChanges, "accept-change", nil, "`PATH` that admission may change while the run writes objects as they are, as in metadata.labels, with all below it; "+
		"may be repeated; . is every path")
	flags.BoolVar(&o.noTrim, "no-trim", false, "keep the old versions in status.storedVersions")
	o.limits.AddTo(flags)
	o.change.AddTimeoutTo(c)
	o.output.AddTo(c, crdreport.RunList(nil))
}

func (o *runOptions) migratorOptions() storageversion.Options {
	policy := o.policy.Policy()
	policy.Write, policy.AcceptLosses, policy.AcceptChanges = o.write.Write(), o.acceptLosses, o.acceptChanges
	options := storageversion.Options{
		Policy:  policy,
		Limiter: o.limits.Limiter(), MaxFailures: render.MaxFailures,
		NoTrim: o.noTrim,
		DryRun: o.change.DryRun() == frame.DryRunServer,
	}
	if !options.DryRun { // a server dry run tries every object, so it needs no preflight
		options.Preflight, options.CheckReadable = preflight.Run, true
	}
	return options
}

// run is a planned run.
type run struct {
	*runOptions
	session  *session
	findings []finding
	items    []crdreport.Run
	// byStatus lists the CRDs with failed objects for which a dry run of a write to the status passes.
	byStatus []string
}

// plan reads the CRDs. If the user named CRDs and one of them can't be read, it refuses the run.
func (o *runOptions) plan(ctx context.Context) (frame.Change, error) {
	s, findings, err := connectAndPlan(ctx, o.App, crdpermission.Run, o.Selection, o.migratorOptions())
	if err != nil {
		return nil, err
	}
	r := &run{runOptions: o, session: s, findings: findings}
	if items, refused := refuseUnreadable(o.Selection, findings); refused {
		r.items = items
		if err := r.write(); err != nil {
			return nil, err
		}
		return nil, frame.Exit(frame.Error)
	}
	printLacking(ctx, o.App, s, findings)
	if !r.asks() && o.change.DryRun() != frame.DryRunClient {
		printWarnings(o.App, findings) // a question shows the plan, which has the warnings
	}
	return r, nil
}

// asks reports whether the run asks for confirmation: it may write objects, or ownerReferences.
func (r *run) asks() bool {
	return r.change.Asks() && (mayWrite(r.findings) || r.references.scans(r.findings))
}

// Question implements frame.Change.
func (r *run) Question() (string, error) {
	if !r.asks() {
		return "", nil
	}
	return question(r.App, r.session, r.findings, r.references.sentence(r.findings))
}

// Run implements frame.Change.
func (r *run) Run(ctx context.Context) {
	runner := &runner{
		session: r.session, dryRun: r.change.DryRun(), slots: make(slots, passesAtOnce),
		board: &board{console: r.Console, dryRun: r.change.DryRun() == frame.DryRunServer, pace: r.session.options.Limiter},
	}
	deleted := func(f finding) bool { return f.problem != nil && f.problem.Reason == render.ReasonNotFound } // since it was listed
	findings := slices.DeleteFunc(slices.Clone(r.findings), deleted)
	ends := runner.runAll(ctx, findings)
	runner.repairReferences(ctx, r.references, findings, ends)
	for _, end := range ends {
		r.items = append(r.items, end.Run)
		if end.statusPatchPasses {
			r.byStatus = append(r.byStatus, end.Name)
		}
	}
}

// End implements frame.Change.
func (r *run) End(ctx context.Context) error {
	if err := r.write(); err != nil {
		return err
	}
	for _, name := range r.byStatus {
		r.Console.Printf("%s: a dry run of a write to the status passes for the objects that failed: %s crd run %s --write=%s\n", name, r.Program, name, decision.WriteStatusPatch)
	}
	code := runCode(r.decisive(r.items), r.findings)
	if code == frame.OK || code == frame.Pending {
		return frame.Exit(code) // the run was complete before the context ended
	}
	return r.ExitAfter(ctx, frame.Ending{Code: code, Err: context.Cause(ctx)})
}

// decisive returns the results that decide the exit code. A CRD that is being deleted
// counts as refused only if the user named it.
func (o *runOptions) decisive(items []crdreport.Run) []crdreport.Run {
	if len(o.Names) > 0 {
		return items
	}
	return slices.DeleteFunc(slices.Clone(items), func(item crdreport.Run) bool { return item.Result == crdreport.Terminating })
}

// write prints the results. The table leaves out clean CRDs, and many CRDs that only lack
// permissions, unless the user named CRDs or the table is wide.
func (r *run) write() error {
	err := frame.Write(r.Streams.Out, r.output, crdreport.RunList(r.items), func(w io.Writer) error {
		style := r.Style(r.Streams.Out, r.output)
		if r.change.DryRun() == frame.DryRunClient {
			if err := crdreport.WritePlans(w, style, readable(r.findings, r.Remedies()), len(r.Names) > 0); err != nil {
				return err
			}
			return crdreport.WriteOwnerReferences(w, r.items)
		}
		shown, folded := foldRuns(r.items, r.findings, len(r.Names) > 0 || style.Wide)
		return crdreport.WriteRuns(w, style, shown, folded)
	})
	if err == nil {
		printProblems(r.App, r.findings)
	}
	return err
}

// foldRuns separates the CRDs that have a row from those that are only counted.
func foldRuns(items []crdreport.Run, findings []finding, all bool) (shown []crdreport.Run, folded crdreport.Folded) {
	if all {
		return items, folded
	}
	pending, lacking := ready(findings), map[string]bool{}
	for _, f := range findings {
		if f.onlyLacks() {
			lacking[f.name] = true
		}
	}
	for _, item := range items {
		switch {
		case item.Result == crdreport.NoChange && !pending[item.Name] && item.OwnerReferences.Found+item.OwnerReferences.Left == 0:
			folded.Clean++
		case lacking[item.Name] && len(lacking) > crdreport.ManyLacking:
			folded.Lacking++
		default:
			shown = append(shown, item)
		}
	}
	return shown, folded
}

// runCode returns the exit code. If the objects of one CRD were migrated and another CRD was refused, the run did a part of its work.
func runCode(items []crdreport.Run, findings []finding) frame.Code {
	code := frame.OK
	pending, wrote := ready(findings), false
	for _, item := range items {
		switch item.Result {
		case crdreport.Succeeded:
			wrote = true
		case crdreport.Failed, crdreport.Unknown:
			code = frame.Worst(code, frame.Error)
		case crdreport.Partial:
			code = frame.Worst(code, frame.Partial)
			if slices.ContainsFunc(item.Failures, isUnauthorized) {
				code = frame.Worst(code, frame.Error)
			}
		case crdreport.Blocked, crdreport.Terminating:
			code = frame.Worst(code, frame.Refused)
		case crdreport.Accepted, crdreport.Planned:
			code = frame.Worst(code, frame.Pending)
		case crdreport.NoChange:
			if pending[item.Name] || item.OwnerReferences.Found > 0 { // a dry run finds ownerReferences
				code = frame.Worst(code, frame.Pending)
			}
		}
	}
	if wrote && code == frame.Refused {
		return frame.Partial
	}
	return code
}

func isUnauthorized(f godwit.Failure) bool { return f.Reason == decision.ReasonUnauthorized }

// ready returns the names of the CRDs that a run would migrate.
func ready(findings []finding) map[string]bool {
	names := map[string]bool{}
	for _, f := range findings {
		names[f.name] = f.problem == nil && f.plan.State != decision.Clean
	}
	return names
}
