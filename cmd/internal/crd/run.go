package crd

import (
	"context"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/godwit-dev/godwit/cmd/internal/crd/crdpermission"
	"github.com/godwit-dev/godwit/cmd/internal/crd/crdreport"
	"github.com/godwit-dev/godwit/cmd/internal/crd/policy"
	"github.com/godwit-dev/godwit/cmd/internal/frame"
	"github.com/godwit-dev/godwit/cmd/internal/render"
	"github.com/godwit-dev/godwit/internal/storageversion"
	"github.com/godwit-dev/godwit/internal/storageversion/preflight"
)

type runOptions struct {
	*frame.App
	Selection
	policy     policy.Flags
	output     frame.Output
	yes        bool
	dryRun     frame.Choice
	write      policy.WriteFlag
	references referencesFlag
	limits     frame.LimitFlags
	noTrim     bool
	timeout    frame.DurationFlag
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
			"If admission denies it, the run is refused; see --accept-denials.\n\n" +
			"The run writes nothing until every API server uses the storage version; see --settle. An\n" +
			"interrupted run keeps a checkpoint. Run the same command to resume.\n\n" +
			"Results: Succeeded, NoChange (no object had to be written), Partial (some objects are not\n" +
			"migrated), Blocked (refused before the first write), Failed (an error ended the run before the\n" +
			"first write), Unknown (the API server did not list the objects), Terminating (the CRD is being\n" +
			"deleted).\n" +
			"Exit codes: 0 done or nothing to do, 1 a dry run found work, 3 blocked or refused and nothing\n" +
			"written, 4 some objects failed, 2 error or unknown, 124 stopped by --timeout, 130 interrupted.\n" +
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
			return o.run(c.Context())
		},
	}
	o.addFlags(c)
	return c
}

func (o *runOptions) addFlags(c *cobra.Command) {
	flags := c.Flags()
	flags.SortFlags = false // targets first, then what changes, then pace
	o.AddTo(c)
	flags.BoolVar(&o.All, "all", false, "all CRDs")
	flags.BoolVarP(&o.yes, "yes", "y", false, "do not ask for confirmation")
	o.dryRun = frame.Choice{Value: frame.DryRunNone, Allowed: []string{frame.DryRunNone, frame.DryRunClient, frame.DryRunServer}, Kind: "string"}
	o.dryRun.AddTo(c, "dry-run", "", "none; client: print what a run would migrate; server: send every write as a dry run, which the API server checks and does not store")
	o.write.AddTo(c)
	o.policy.AddTo(flags)
	o.references.addTo(c)
	flags.BoolVar(&o.noTrim, "no-trim", false, "keep the old versions in status.storedVersions")
	o.limits.AddTo(flags)
	flags.Var(&o.timeout, "timeout", "stop the run after this time; run the same command to resume (default: no limit)")
	o.output.AddTo(c, crdreport.RunList(nil))
}

func (o *runOptions) migratorOptions() storageversion.Options {
	policy := o.policy.Policy()
	policy.Write = o.write.Write()
	options := storageversion.Options{
		Policy:  policy,
		Limiter: o.limits.Limiter(),
		NoTrim:  o.noTrim,
		DryRun:  o.dryRun.Value == frame.DryRunServer,
	}
	if !options.DryRun { // which tries every object
		options.Preflight = preflight.Run
	}
	return options
}

func (o *runOptions) changes() bool { return o.dryRun.Value == frame.DryRunNone }

func (o *runOptions) run(ctx context.Context) error {
	if o.changes() && !o.yes && !o.CanAsk() {
		return o.RefuseUnasked("run")
	}
	ctx, cancel := o.timeout.Limit(ctx)
	defer cancel()
	s, findings, err := look(ctx, o.App, crdpermission.Run, o.Selection, o.migratorOptions())
	if err != nil {
		return err
	}
	if items, refused := refuseUnreadable(o.Selection, findings); refused {
		if err := o.writeRuns(items, findings); err != nil {
			return err
		}
		sayProblems(o.App, findings)
		return frame.Exit(frame.Error)
	}
	sayLacking(ctx, o.App, s, findings)
	if repairs := o.references.sentence(findings); o.changes() && !o.yes && (mayWrite(findings) || repairs != "") {
		if err := ask(ctx, o.App, s, findings, repairs); err != nil {
			return err
		}
	} else if o.dryRun.Value != frame.DryRunClient {
		sayWarnings(o.App, findings)
	}
	said := o.SayEnding(ctx)
	items, byStatus := o.migrate(ctx, s, findings)
	said()
	if err := o.writeRuns(items, findings); err != nil {
		return err
	}
	sayProblems(o.App, findings)
	for _, name := range byStatus {
		o.Console.Printf("%s: a dry run of a write to the status passes for the objects that failed: %s crd run %s --write=%s\n", name, o.Program, name, storageversion.WriteStatusPatch)
	}
	return o.end(ctx, o.decisive(items), findings)
}

// decisive are the results that decide the exit code. A CRD that is being deleted
// is a refusal only to a user who named it.
func (o *runOptions) decisive(items []crdreport.Run) []crdreport.Run {
	if len(o.Names) > 0 {
		return items
	}
	return slices.DeleteFunc(slices.Clone(items), func(item crdreport.Run) bool { return item.Result == crdreport.Terminating })
}

// migrate carries out the plans. A write to the status passes for the objects of byStatus.
func (o *runOptions) migrate(ctx context.Context, s *session, findings []finding) (items []crdreport.Run, byStatus []string) {
	r := &runner{
		session: s, dryRun: o.dryRun.Value, slots: make(slots, passesAtOnce),
		board: &board{console: o.Console, dryRun: o.dryRun.Value == frame.DryRunServer, pace: s.options.Limiter},
	}
	deleted := func(f finding) bool { return f.problem != nil && f.problem.Reason == render.ReasonNotFound } // since it was listed
	findings = slices.DeleteFunc(slices.Clone(findings), deleted)
	ends := r.all(ctx, findings)
	r.repairReferences(ctx, o.references, findings, ends)
	for _, end := range ends {
		items = append(items, end.Run)
		if end.statusPatchPasses {
			byStatus = append(byStatus, end.Name)
		}
	}
	return items, byStatus
}

// writeRuns leaves out of the table what is clean, and what only lacks permissions if
// that is much, unless it was asked for by name or the table is wide.
func (o *runOptions) writeRuns(items []crdreport.Run, findings []finding) error {
	return frame.Write(o.Streams.Out, o.output, crdreport.RunList(items), func(w io.Writer) error {
		style := o.Style(o.Streams.Out, o.output)
		if o.dryRun.Value == frame.DryRunClient {
			if err := crdreport.WritePlans(w, style, readable(findings, o.Remedies()), len(o.Names) > 0); err != nil {
				return err
			}
			return crdreport.WriteOwnerReferences(w, items)
		}
		shown, folded := foldRuns(items, findings, len(o.Names) > 0 || style.Wide)
		return crdreport.WriteRuns(w, style, shown, folded)
	})
}

// foldRuns parts what has a row from what is counted only.
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

// end chooses the exit code and says how to resume.
func (o *runOptions) end(ctx context.Context, items []crdreport.Run, findings []finding) error {
	code := runCode(items, findings)
	if code == frame.OK || code == frame.Pending {
		return frame.Exit(code) // it was through before the context ended
	}
	end := frame.Ended(ctx)
	switch end {
	case frame.TimedOut:
		o.Console.Printf("stopped by --timeout; what was done is saved, resume with: %s\n", o.CommandLine())
	case frame.Interrupted:
		o.Console.Printf("interrupted; what was done is saved, resume with: %s\n", o.CommandLine())
	}
	return frame.Exit(frame.Worst(code, end))
}

func runCode(items []crdreport.Run, findings []finding) frame.Code {
	code := frame.OK
	pending := ready(findings)
	for _, item := range items {
		switch item.Result {
		case crdreport.Failed, crdreport.Unknown:
			code = frame.Worst(code, frame.Error)
		case crdreport.Partial:
			code = frame.Worst(code, frame.Partial)
		case crdreport.Blocked, crdreport.Terminating:
			code = frame.Worst(code, frame.Refused)
		case crdreport.NoChange:
			if pending[item.Name] || item.OwnerReferences.Found > 0 { // a dry run
				code = frame.Worst(code, frame.Pending)
			}
		}
	}
	return code
}

// ready returns the names of the CRDs that a run would migrate.
func ready(findings []finding) map[string]bool {
	names := map[string]bool{}
	for _, f := range findings {
		names[f.name] = f.problem == nil && f.plan.State != storageversion.Clean
	}
	return names
}
