package cli

import (
	"context"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/godwit-dev/godwit/cmd/internal/permission"
	"github.com/godwit-dev/godwit/cmd/internal/report"
	"github.com/godwit-dev/godwit/crdmigrator"
	"github.com/godwit-dev/godwit/walk"
)

const (
	dryRunNone   = "none"
	dryRunClient = "client"
	dryRunServer = "server"

	maxBytesFlag = "max-bytes-per-5m"
)

type runOptions struct {
	selection
	policy      policyFlags
	output      format
	yes         bool
	dryRun      choice
	write       writeFlag
	maxInFlight countFlag
	maxRate     rateFlag
	maxBytes    bytesFlag
	noTrim      bool
	timeout     durationFlag
}

func (a *app) runCommand() *cobra.Command {
	o := &runOptions{maxInFlight: walk.DefaultMaxInFlight, maxBytes: walk.DefaultMaxBytesPerFiveMinutes}
	c := &cobra.Command{
		Use:   "run {NAME... | -l SELECTOR | --all}",
		Short: "Migrate objects to the storage version, then trim status.storedVersions",
		Long: "Write every object again at the storage version of its CustomResourceDefinition,\n" +
			"without changing it, and then remove the old versions from status.storedVersions.\n" +
			"Entries of metadata.managedFields that name a version which is not served are removed,\n" +
			"since server-side apply fails on them once the version is gone.\n\n" +
			"The write is first tried on one object of each namespace, as a dry run: if admission\n" +
			"denies it the run is refused, see --accept-denials.\n\n" +
			"Nothing is written before every API server is known to use the storage version; see\n" +
			"--settle. An interrupted run leaves a checkpoint, and the same command resumes it.\n\n" +
			"Exit codes: 0 done or nothing to do, 1 a dry run found work, 3 blocked or refused and\n" +
			"nothing written, 4 some objects failed, 2 error or unknown, 124 --timeout, 130 interrupted.\n" +
			"A CRD that is being deleted is a refusal only if it is named.",
		Example: "  # Migrate one definition; asks before it writes\n  " + a.program + " crd run httproutes.gateway.networking.k8s.io\n\n" +
			"  # Everything there is, in a script, gently\n  " + a.program + " crd run --all --yes --max-rate=50 -o json\n\n" +
			"  # Which objects would admission refuse?\n  " + a.program + " crd run --all --dry-run=server",
		ValidArgsFunction: a.completeNames,
		RunE: func(c *cobra.Command, args []string) error {
			err := o.parse(c, args, false)
			if err == nil {
				err = a.run(c.Context(), o)
			}
			return listOnError(a.streams.Out, o.output, report.RunReportList(nil), err)
		},
	}
	listOnFlagError(a, c, report.RunReportList(nil))
	o.addFlags(c)
	return c
}

func (o *runOptions) addFlags(c *cobra.Command) {
	flags := c.Flags()
	flags.SortFlags = false // targets first, then what changes, then pace
	o.addTo(c)
	flags.BoolVar(&o.all, "all", false, "all customresourcedefinitions")
	flags.BoolVarP(&o.yes, "yes", "y", false, "do not ask")
	o.dryRun = choice{value: dryRunNone, allowed: []string{dryRunNone, dryRunClient, dryRunServer}, kind: "string"}
	o.dryRun.addTo(c, "dry-run", "", "none; client: say what there is to do; server: send every write, to be checked and not carried out")
	o.write.addTo(c)
	o.policy.addTo(flags)
	flags.BoolVar(&o.noTrim, "no-trim", false, "leave status.storedVersions as it is")
	flags.Var(&o.maxInFlight, "max-in-flight", "how many requests may be under way at once; fewer are while the server shows strain")
	flags.Var(&o.maxRate, "max-rate", "how many writes may start per second (default: no limit)")
	flags.Var(&o.maxBytes, maxBytesFlag, "how many bytes may be written to etcd within five minutes, the time between two "+
		"compactions; none: no limit, at the risk that etcd fills up and refuses all writes")
	flags.Var(&o.timeout, "timeout", "end the run after this time; the same command resumes it (default: no limit)")
	o.output.addTo(c)
}

func (o *runOptions) migratorOptions() crdmigrator.Options {
	policy := o.policy.policy()
	policy.Write = o.write.write()
	return crdmigrator.Options{
		Policy: policy,
		Limiter: walk.NewLimiter(walk.Limits{
			MaxInFlight: int(o.maxInFlight), MaxWritesPerSecond: float64(o.maxRate), MaxBytesPerFiveMinutes: int64(o.maxBytes),
		}),
		NoTrim:   o.noTrim,
		DryRun:   o.dryRun.value == dryRunServer,
		Rehearse: o.dryRun.value != dryRunServer, // which tries every object
	}
}

func (o *runOptions) changes() bool { return o.dryRun.value == dryRunNone }

func (a *app) run(ctx context.Context, o *runOptions) error {
	if o.changes() && !o.yes && !a.canAsk() {
		return a.refuseUnasked("run")
	}
	ctx, cancel := o.timeout.limit(ctx)
	defer cancel()
	s, findings, err := a.look(ctx, permission.CRDRun, o.selection, o.migratorOptions())
	if err != nil {
		return err
	}
	if items, refused := refuseUnreadable(o.selection, findings); refused {
		if err := a.writeRuns(o, items, findings); err != nil {
			return err
		}
		a.sayProblems(findings)
		return exit(Error)
	}
	a.sayLacking(ctx, s, findings)
	if o.changes() && !o.yes && mayWrite(findings) {
		if err := a.ask(ctx, s, findings); err != nil {
			return err
		}
	} else if o.dryRun.value != dryRunClient {
		a.sayWarnings(findings)
	}
	said := a.sayEnding(ctx)
	items, past := a.migrate(ctx, s, o, findings)
	said()
	if err := a.writeRuns(o, items, findings); err != nil {
		return err
	}
	a.sayProblems(findings)
	for _, name := range past {
		a.console.printf("%s: a dry run of a write to the status passes for the objects that failed: %s crd run %s --write=%s\n", name, a.program, name, crdmigrator.WriteStatusPatch)
	}
	return a.endRun(ctx, o.decisive(items), findings)
}

// decisive are the results that decide the exit code. A CRD that is being deleted
// is a refusal only to a user who named it.
func (o *runOptions) decisive(items []report.CRDRunReport) []report.CRDRunReport {
	if len(o.names) > 0 {
		return items
	}
	return slices.DeleteFunc(slices.Clone(items), func(item report.CRDRunReport) bool { return item.Result == report.Terminating })
}

// migrate carries out the plans, one after the other. For the CRDs in past,
// another write gets past what objects failed for.
func (a *app) migrate(ctx context.Context, s *session, o *runOptions, findings []finding) (items []report.CRDRunReport, past []string) {
	r := &runner{session: s, dryRun: o.dryRun.value, display: a.newDisplay(o.dryRun.value == dryRunServer, s.limiter)}
	for _, f := range findings {
		if f.problem != nil && f.problem.reason == report.ReasonNotFound {
			continue // deleted since it was listed
		}
		items = append(items, r.one(ctx, f))
	}
	return items, r.past
}

// writeRuns leaves out of the table what is clean, and what only lacks permissions if
// that is much, unless it was asked for by name or the table is wide.
func (a *app) writeRuns(o *runOptions, items []report.CRDRunReport, findings []finding) error {
	return write(a.streams.Out, o.output, report.RunReportList(items), func(w io.Writer) error {
		style := a.style(a.streams.Out, o.output)
		if o.dryRun.value == dryRunClient {
			return report.WritePlans(w, style, readable(findings), len(o.names) > 0)
		}
		shown, folded := foldRuns(items, findings, len(o.names) > 0 || style.Wide)
		return report.WriteRuns(w, style, shown, folded)
	})
}

// foldRuns parts what has a row from what is counted only.
func foldRuns(items []report.CRDRunReport, findings []finding, all bool) (shown []report.CRDRunReport, folded report.Folded) {
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
		case item.Result == report.Nothing && !pending[item.Name]:
			folded.Clean++
		case lacking[item.Name] && len(lacking) > report.ManyLacking:
			folded.Lacking++
		default:
			shown = append(shown, item)
		}
	}
	return shown, folded
}

// endRun chooses the code and says how to go on.
func (a *app) endRun(ctx context.Context, items []report.CRDRunReport, findings []finding) error {
	code := runCode(items, findings)
	if code == OK || code == Pending {
		return exit(code) // it was through before the context ended
	}
	end := ended(ctx)
	switch end {
	case TimedOut:
		a.console.printf("stopped by --timeout; what was done is saved, resume with: %s\n", a.commandLine())
	case Interrupted:
		a.console.printf("interrupted; what was done is saved, resume with: %s\n", a.commandLine())
	}
	return exit(worst(code, end))
}

func runCode(items []report.CRDRunReport, findings []finding) Code {
	code := OK
	pending := ready(findings)
	for _, item := range items {
		switch item.Result {
		case report.Failed, report.Unknown:
			code = worst(code, Error)
		case report.Partial:
			code = worst(code, Partial)
		case report.Blocked, report.Terminating:
			code = worst(code, Refused)
		case report.Nothing:
			if pending[item.Name] { // a dry run
				code = worst(code, Pending)
			}
		}
	}
	return code
}

// ready are the definitions that were found with something to do.
func ready(findings []finding) map[string]bool {
	names := map[string]bool{}
	for _, f := range findings {
		names[f.name] = f.problem == nil && f.plan.State != crdmigrator.Clean
	}
	return names
}
