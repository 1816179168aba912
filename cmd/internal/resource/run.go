package resource

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/cmd/internal/frame"
	"github.com/godwit-dev/godwit/cmd/internal/remedy"
	"github.com/godwit-dev/godwit/cmd/internal/render"
	"github.com/godwit-dev/godwit/cmd/internal/resource/resourcepermission"
	"github.com/godwit-dev/godwit/cmd/internal/resource/resourcereport"
	"github.com/godwit-dev/godwit/internal/apierror"
	"github.com/godwit-dev/godwit/internal/format"
	"github.com/godwit-dev/godwit/internal/storageversion/decision"
	"github.com/godwit-dev/godwit/internal/storageversion/resource"
	"github.com/godwit-dev/godwit/walk"
)

type runOptions struct {
	*frame.App
	selection
	output        frame.Output
	change        frame.ChangeFlags
	policy        frame.PolicyFlags
	configuration string // a file
	resume        bool
	journal       string
	limits        frame.LimitFlags
}

func runCommand(a *frame.App) *cobra.Command {
	o := &runOptions{App: a}
	c := &cobra.Command{
		Use:   "run {RESOURCE... | --all} [-n NAMESPACE]",
		Short: "Write every object again as it is",
		Long: "Write every object of some resources again, without changing it. Each API server then encrypts it\n" +
			"with the first key of its configuration, and stores it at its storage version. An object that etcd\n" +
			"has in this form already is not changed.\n\n" +
			"First give every API server its new configuration. An API server that still has the old one would\n" +
			"write objects back with the old key. No API shows with which key an API server writes. With\n" +
			"--encryption-config, the run compares the configuration that each API server has loaded with your\n" +
			"file, and waits for those that have another one. Without it, the run only waits for API servers\n" +
			"with a stale lease, and for --settle.\n\n" +
			"Before the first write, the run sends the write of one object of each namespace as a dry run. If\n" +
			"admission denies one, the run is refused; see --accept-denials.\n\n" +
			"An interrupted run keeps a journal. Without --resume, the next run starts from the beginning: objects\n" +
			"that are current cost a request and no write. With --resume, it skips them. Use --resume only if\n" +
			"no encryption configuration was changed since; a run does not resume after an API server restarted.\n\n" +
			"Only `" + a.Program + " resource verify` proves that the old key can be removed.\n\n" +
			"Results: Succeeded, Accepted (a dry run), NoChange (no object changed in etcd), Partial (some objects are not written),\n" +
			"Blocked (refused before the first write), Failed (an error ended the run before the first write).\n" +
			"Exit codes: 0 done or nothing to do, 1 a dry run found work, 3 blocked or refused and nothing\n" +
			"written, 4 some objects failed, 2 error, 124 stopped by --timeout, 130 interrupted.",
		Example: "  # After a change of the encryption key, on a control plane node\n" +
			"  " + a.Program + " resource run secrets --encryption-config=/etc/kubernetes/enc/enc.yaml\n\n" +
			"  # In a script, an hour after the last API server restarted\n" +
			"  " + a.Program + " resource run secrets configmaps --settle=0s --yes\n\n" +
			"  # List the objects whose write admission would deny\n" +
			"  " + a.Program + " resource run --all --dry-run=server",
		ValidArgsFunction: completeNames(a),
		RunE: func(c *cobra.Command, args []string) error {
			if err := o.parse(a, c, args); err != nil {
				return err
			}
			return o.Change(c.Context(), &o.change, o.plan)
		},
	}
	o.addFlags(c)
	return c
}

func (o *runOptions) addFlags(c *cobra.Command) {
	flags := c.Flags()
	o.addTo(c)
	o.change.AddYesTo(c)
	o.change.AddDryRunTo(c, frame.DryRunClient, frame.DryRunServer)
	flags.StringVar(&o.configuration, "encryption-config", "", "`FILE` that every API server must have loaded, as its --encryption-provider-config; needs the permission to get /metrics")
	_ = c.MarkFlagFilename("encryption-config")
	o.policy.AddTo(flags)
	flags.BoolVar(&o.resume, "resume", false, "skip what an interrupted run has done; only if no API server got another configuration since")
	flags.StringVar(&o.journal, "journal-namespace", "kube-system", "namespace of the ConfigMap "+resource.JournalName+", in which a run keeps what it has done until it is done")
	o.limits.AddTo(flags)
	o.change.AddTimeoutTo(c)
	o.output.AddTo(c, resourcereport.RunList(nil))
}

func (o *runOptions) options() (resource.Options, error) {
	policy := o.policy.Policy()
	options := resource.Options{
		Limiter: o.limits.Limiter(), MaxFailures: render.MaxFailures,
		Settle: policy.Settle, AcceptStaleLeases: policy.AcceptStaleLeases, DryRun: o.change.DryRun() == frame.DryRunServer, Resume: o.resume, JournalNamespace: o.journal,
	}
	if o.configuration != "" {
		text, err := os.ReadFile(o.configuration)
		if err != nil {
			return options, &frame.ActionableError{Message: "--encryption-config: " + err.Error(), Remedy: "give the file that kube-apiserver has in --encryption-provider-config", Cause: err}
		}
		options.Configuration = resource.ConfigurationHash(text)
	}
	return options, nil
}

// run is a planned run.
type run struct {
	*runOptions
	session  *session
	findings []finding
	items    []resourcereport.Run
	err      error
}

// plan reads the resources. It prints the plan of a client-side dry run, or the refusal of a run.
func (o *runOptions) plan(ctx context.Context) (frame.Change, error) {
	options, err := o.options()
	if err != nil {
		return nil, err
	}
	s, findings, err := connectAndPlan(ctx, o.App, resourcepermission.Run, &o.selection, options)
	if err != nil {
		return nil, err
	}
	s.nameLacking(ctx, findings, &o.selection)
	if o.change.Writes() && !o.policy.Policy().AcceptDenials && !refused(findings) {
		if err := s.preflight(ctx, findings); err != nil {
			return nil, s.explain(ctx, &o.selection, err)
		}
	}
	r := &run{runOptions: o, session: s, findings: findings}
	switch {
	case o.change.DryRun() == frame.DryRunClient:
		if err := writePlans(o.Streams.Out, o.App, o.output, findings); err != nil {
			return nil, err
		}
		return nil, frame.Exit(planCode(findings))
	case refused(findings):
		r.items = refusals(findings, o.Remedies(), o.change.DryRun() == frame.DryRunServer)
		return nil, r.End(ctx)
	}
	return r, nil
}

// Question implements frame.Change.
func (r *run) Question() (string, error) {
	return fmt.Sprintf("\nWrite them on %s?", r.session.Where()), writePlans(r.Console, r.App, frame.Output{}, r.findings)
}

// Run implements frame.Change.
func (r *run) Run(ctx context.Context) {
	r.session.printUnknownServers(r.App)
	r.items, r.err = r.rewrite(ctx, r.session, r.findings)
}

// refused reports whether a resource can't be written. Then the run writes none: a typing error must not leave the list
// half written.
func refused(findings []finding) bool {
	for _, f := range findings {
		if len(f.plan.Refusals()) > 0 {
			return true
		}
	}
	return false
}

// refusals returns the results of a refused run.
func refusals(findings []finding, w remedy.Writer, dryRun bool) []resourcereport.Run {
	items := make([]resourcereport.Run, len(findings))
	for i, f := range findings {
		items[i] = resourcereport.Run{Name: f.name, Version: f.plan.Resource.Version, Result: resourcereport.Blocked, DryRun: dryRun}
		for _, b := range f.plan.Refusals() {
			items[i].Failures = append(items[i].Failures, render.Failure(f.name, b, w))
		}
		if len(items[i].Failures) == 0 {
			items[i].Failures = []godwit.Failure{{Name: f.name, Finding: godwit.Finding{Reason: render.ReasonNotStarted, Message: "not begun, because another resource is refused"}}}
		}
	}
	return items
}

// rewrite writes one resource after the other: the limiter bounds the concurrency in any case.
func (o *runOptions) rewrite(ctx context.Context, s *session, findings []finding) ([]resourcereport.Run, error) {
	left, resumes, err := s.Begin(ctx)
	switch {
	case err != nil:
		return nil, err
	case resumes:
		o.Console.Printf("resuming an interrupted run\n")
	case left && o.resume:
		o.Console.Printf("not resumed: an API server started since, or --encryption-config differs; the run starts from the beginning\n")
	case left:
		o.Console.Printf("an earlier run was interrupted; this one starts from the beginning, and --resume skips what that one has written\n")
	}
	if err := o.settled(ctx, s); err != nil {
		return nil, err
	}
	var items []resourcereport.Run
	complete := true
	for _, f := range findings {
		item := o.one(ctx, s, f)
		items = append(items, item)
		complete = complete && len(item.Failures) == 0
	}
	if complete {
		if err := s.End(ctx); err != nil {
			o.Console.Printf("warning: %v\n", err)
		}
	}
	return items, nil
}

// settled waits until every API server has the change, and prints each reason to wait once.
func (o *runOptions) settled(ctx context.Context, s *session) error {
	said := ""
	for {
		err := s.Settle(ctx)
		var wait *resource.WaitError
		if !errors.As(err, &wait) {
			return err
		}
		kind := fmt.Sprint(wait.Stale, wait.Different)
		if kind != said || said == "" {
			o.Console.Printf("nothing is written yet: %v\n", err)
			said = kind
		}
		if err := walk.Wait(ctx, min(max(wait.Wait, 100*time.Millisecond), 5*time.Second)); err != nil {
			return err
		}
	}
}

func (o *runOptions) one(ctx context.Context, s *session, f finding) resourcereport.Run {
	began := time.Now()
	item := resourcereport.Run{Name: f.name, Version: f.plan.Resource.Version, DryRun: o.change.DryRun() == frame.DryRunServer}
	if ctx.Err() != nil {
		item.Result, item.Failures = resourcereport.Failed, []godwit.Failure{endedFailure(ctx, f.name)}
		return item
	}
	p := newProgress(o.Console, f)
	after, err := s.Rewrite(frame.About(ctx, f.name), f.plan, p.update)
	p.stop()
	item.Objects, item.Failures = render.ObjectsOf(after.Counts), after.Failures
	item.DurationSeconds = time.Since(began).Round(time.Millisecond).Seconds()
	item.Result = resultOf(after, err, item.DryRun)
	switch {
	case err != nil && ctx.Err() != nil:
		item.Failures = append([]godwit.Failure{endedFailure(ctx, f.name)}, item.Failures...)
	case apierror.IsEndOfRun(err):
		why := s.Connection.Explain(ctx, err)
		item.Failures = append([]godwit.Failure{{Name: f.name, Finding: godwit.Finding{Reason: why.Reason, Message: why.Error()}}}, item.Failures...)
	case err != nil:
		item.Failures = append([]godwit.Failure{{Name: f.name, Finding: godwit.Finding{Reason: decision.ReasonFailed, Message: frame.OneLine(err)}}}, item.Failures...)
	}
	o.Console.Printf("%s: %s\n", f.name, resourcereport.Summary(item))
	return item
}

func endedFailure(ctx context.Context, name string) godwit.Failure {
	if frame.ContextCode(ctx) == frame.TimedOut {
		return godwit.Failure{Name: name, Finding: godwit.Finding{Reason: render.ReasonTimedOut, Message: "stopped by --timeout"}}
	}
	return godwit.Failure{Name: name, Finding: godwit.Finding{Reason: render.ReasonInterrupted, Message: "interrupted"}}
}

func resultOf(r walk.Report, err error, dryRun bool) resourcereport.Result {
	wrote := r.Counts.Migrated+r.Counts.Unchanged > 0
	switch {
	case err != nil && !wrote:
		return resourcereport.Failed
	case err != nil || !r.Counts.Settled():
		return resourcereport.Partial
	case r.Counts.Migrated > 0:
		return resourcereport.Succeeded
	case dryRun && r.Counts.Skipped > 0:
		return resourcereport.Accepted
	}
	return resourcereport.NoChange
}

// End implements frame.Change. An interrupted run that wrote something resumes with --resume.
func (r *run) End(ctx context.Context) error {
	switch {
	case errors.As(r.err, new(*format.NewerError)):
		return frame.Refuse(r.err)
	case r.err != nil && len(r.items) == 0 && ctx.Err() != nil:
		return context.Cause(ctx)
	case r.err != nil && len(r.items) == 0:
		return r.session.explain(ctx, &r.selection, r.err)
	}
	if err := frame.Print(r.App, r.output, resourcereport.RunList(r.items), resourcereport.WriteRuns); err != nil {
		return err
	}
	end := frame.Ending{Code: r.code(r.items), Resume: r.CommandLine()}
	if end.Code != frame.OK || len(r.items) == 0 {
		end.Err = context.Cause(ctx)
	}
	if !r.resume {
		end.Resume = r.CommandLine("--resume")
	}
	return r.ExitAfter(ctx, end)
}

func (o *runOptions) code(items []resourcereport.Run) frame.Code {
	code := frame.OK
	for _, item := range items {
		switch item.Result {
		case resourcereport.Failed:
			code = frame.Worst(code, frame.Error)
		case resourcereport.Partial:
			code = frame.Worst(code, frame.Partial)
			if slices.ContainsFunc(item.Failures, func(f godwit.Failure) bool { return f.Reason == decision.ReasonUnauthorized }) {
				code = frame.Worst(code, frame.Error)
			}
		case resourcereport.Blocked:
			code = frame.Worst(code, frame.Refused)
		case resourcereport.Accepted:
			code = frame.Worst(code, frame.Pending)
		}
	}
	return code
}
