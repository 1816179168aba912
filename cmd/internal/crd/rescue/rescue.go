// Package rescue has the command `godwit crd rescue`.
package rescue

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/cmd/internal/crd/crdpermission"
	"github.com/godwit-dev/godwit/cmd/internal/crd/crdreport"
	"github.com/godwit-dev/godwit/cmd/internal/crd/manifest"
	"github.com/godwit-dev/godwit/cmd/internal/frame"
	"github.com/godwit-dev/godwit/cmd/internal/render"
	"github.com/godwit-dev/godwit/crdmigrator/rescue"
	"github.com/godwit-dev/godwit/internal/apierror"
	"github.com/godwit-dev/godwit/internal/storageversion"
	"github.com/godwit-dev/godwit/internal/storageversion/decision"
)

// Values of --conversion.
const (
	conversionWebhook = "webhook"
	conversionNone    = "none"
)

type options struct {
	*frame.App
	files      manifest.Input
	policy     frame.PolicyFlags
	conversion frame.Choice
	change     frame.ChangeFlags
	undo       bool
	output     frame.Output
}

// Command returns `godwit crd rescue`. complete completes the name of a CRD.
func Command(a *frame.App, complete cobra.CompletionFunc) *cobra.Command {
	o := &options{App: a}
	c := &cobra.Command{
		Use:   "rescue NAME [-f FILE]",
		Short: "Make objects readable that are stored at a version which their CRD no longer has, and migrate them",
		Long: "Rescue the objects of one CRD, of which the API server says \"request to convert CR from an invalid\n" +
			"group/version\". They are stored at a version that spec.versions does not have: status.storedVersions\n" +
			"was set by hand, the CRD was deleted without its finalizer, or a backup was restored.\n\n" +
			"The command adds the missing versions, which are not served. It waits until every API server uses\n" +
			"the new spec, rewrites every object at the storage version, and trims status.storedVersions. Then it\n" +
			"restores the spec, lists every object without the added versions, and gives the fields of the CRD\n" +
			"back to their field managers. `" + a.Program + " crd verify` proves the result from etcd.\n\n" +
			"The schema of a missing version comes from -f, a manifest of an old release. Without it the version\n" +
			"keeps every field. If a rewrite would lose a field that the storage version does not have, the\n" +
			"command names the field, restores the CRD and refuses.\n\n" +
			"--conversion=none is for a conversion webhook that is gone for good. The API server then converts\n" +
			"without it until the objects are rewritten, and only the storage version is served meanwhile.\n\n" +
			"The annotation " + rescue.Annotation + " of the CRD has what the command has changed. Run the same command to\n" +
			"resume after an interruption, or --undo to restore the CRD.\n\n" +
			"Results: Rescued, Healthy (nothing to do), Undone, Ready (a dry run found something to do), Blocked\n" +
			"(refused, and the CRD is as before), Partial (some objects are not rewritten), Failed.\n" +
			"Exit codes: 0 rescued, healthy or undone, 1 a dry run found something to do, 3 blocked, 4 partial,\n" +
			"2 error, 124 stopped by --timeout, 130 interrupted.",
		Example: "  # Show what a rescue would do\n" +
			"  " + a.Program + " crd rescue issuers.cert-manager.io --dry-run=client\n\n" +
			"  # Rescue the objects, with the schemas of the old release\n" +
			"  " + a.Program + " crd rescue issuers.cert-manager.io -f cert-manager-v1.5.yaml\n\n" +
			"  # The conversion webhook is gone for good\n" +
			"  " + a.Program + " crd rescue issuers.cert-manager.io --conversion=none",
		ValidArgsFunction: complete,
		RunE: func(c *cobra.Command, args []string) error {
			name, old, err := o.parse(c, args)
			if err != nil {
				return err
			}
			return o.Change(c.Context(), &o.change, func(ctx context.Context) (frame.Change, error) { return o.plan(ctx, name, old) })
		},
	}
	flags := c.Flags()
	o.files.AddTo(c, "the CRD of an old release, for the schemas of missing versions")
	o.conversion = frame.Choice{Value: conversionWebhook, Allowed: []string{conversionWebhook, conversionNone}, Kind: "string"}
	o.conversion.AddTo(c, "conversion", "", "webhook: as the CRD has it; none: without the conversion webhook, which is gone for good")
	flags.BoolVar(&o.undo, "undo", false, "restore the CRD as it was before an interrupted rescue; objects that were not rewritten are unreadable again")
	o.change.AddYesTo(c)
	o.change.AddDryRunTo(c, frame.DryRunClient)
	o.policy.AddTo(flags)
	o.change.AddTimeoutTo(c)
	o.output.AddTo(c, crdreport.RescueList(nil))
	return c
}

// parse checks the command line, and reads the manifest.
func (o *options) parse(c *cobra.Command, args []string) (name string, old *apiextensionsv1.CustomResourceDefinition, err error) {
	switch {
	case len(args) != 1 || args[0] == "":
		return "", nil, frame.Usagef("specify one NAME, of a CRD")
	case c.Flags().Changed("namespace"):
		return "", nil, frame.Usagef("remove --namespace: CRDs are not namespaced")
	case o.undo && (len(o.files.Files) > 0 || c.Flags().Changed("conversion") || !o.change.Writes()):
		return "", nil, frame.Usagef("--undo restores what an earlier rescue has changed: give no --filename, --conversion or --dry-run")
	case len(o.files.Files) == 0:
		return args[0], nil, nil
	}
	if err := o.files.Parse(c, o.Streams.In); err != nil {
		return "", nil, err
	}
	releases, err := o.files.Read(o.Streams.In)
	if err != nil {
		return "", nil, err
	}
	for _, r := range releases {
		if r.Name == args[0] && r.CRD != nil {
			return args[0], r.CRD, nil
		}
	}
	return "", nil, frame.Refuse(fmt.Errorf("%s is not in %s as apiextensions.k8s.io/v1: nothing was written", args[0], strings.Join(o.files.Files, ", ")))
}

// change is a planned rescue.
type change struct {
	*options
	connection *frame.Connection
	rescuer    *rescue.Rescuer
	plan       rescue.Plan
	report     rescue.Report
	err        error
}

// plan reads the CRD. If there is nothing to rescue, or in a dry run, it prints the result.
func (o *options) plan(ctx context.Context, name string, old *apiextensionsv1.CustomResourceDefinition) (frame.Change, error) {
	c, err := o.Dial(ctx, frame.Purpose{Command: crdpermission.Rescue, Scope: []string{name}})
	if err != nil {
		return nil, err
	}
	ctx = frame.About(ctx, name)
	progress := &progress{name: name, console: o.Console}
	r, err := rescue.New(c.Config, rescue.Options{
		Policy: o.policy.Policy(), Manifest: old, WithoutWebhook: o.conversion.Value == conversionNone, Progress: progress.show,
	})
	if err != nil {
		return nil, frame.BadKubeconfig(err)
	}
	if o.undo {
		return &undo{options: o, connection: c, rescuer: r, name: name}, nil
	}
	plan, err := r.Plan(ctx, name)
	if err != nil {
		return nil, explain(ctx, c, name, err)
	}
	planned := &change{options: o, connection: c, rescuer: r, plan: plan}
	if plan.State != rescue.Ready {
		return nil, planned.End(ctx)
	}
	if !o.change.Asks() {
		o.Console.Printf("%s", steps(plan)) // a question would show the steps
	}
	if !o.change.Writes() {
		item := crdreport.Rescue{Name: name, StorageVersion: plan.StorageVersion, Result: crdreport.Ready, AddedVersions: plan.Missing}
		if err := o.write(item); err != nil {
			return nil, err
		}
		return nil, frame.Exit(frame.Pending)
	}
	return planned, nil
}

// Question implements frame.Change.
func (c *change) Question() (string, error) {
	return fmt.Sprintf("%s\nRescue it on %s?", steps(c.plan), c.connection.Where()), nil
}

// Run implements frame.Change.
func (c *change) Run(ctx context.Context) {
	ctx = frame.About(ctx, c.plan.Name)
	c.report, c.err = c.rescuer.Run(ctx, c.plan)
	c.err = errors.Join(c.err, context.Cause(ctx))
}

// explain adds the remedy for a CRD that does not exist: CRDs with similar names.
func explain(ctx context.Context, c *frame.Connection, name string, err error) *frame.ActionableError {
	if ctx.Err() != nil || !errors.Is(err, decision.ErrNotFound) {
		return c.Explain(ctx, err)
	}
	unknown := &frame.ActionableError{Reason: render.ReasonNotFound, Message: err.Error(), Remedy: "list the CRDs: kubectl get crd", Cause: err}
	m, failed := storageversion.New(c.Config, storageversion.Options{})
	if failed != nil {
		return unknown
	}
	names, failed := m.Names(ctx, "")
	if failed == nil {
		unknown.Remedy = frame.DidYouMean(frame.Suggest(name, names), unknown.Remedy)
	}
	return unknown
}

// undo restores the CRD as it was before an interrupted rescue.
type undo struct {
	*options
	connection *frame.Connection
	rescuer    *rescue.Rescuer
	name       string
	report     rescue.Report
	err        error
}

// Question implements frame.Change.
func (u *undo) Question() (string, error) {
	return fmt.Sprintf("Restore %s as it was before its rescue, on %s? Objects that were not rewritten are unreadable again.", u.name, u.connection.Where()), nil
}

// Run implements frame.Change.
func (u *undo) Run(ctx context.Context) {
	u.report, u.err = u.rescuer.Undo(frame.About(ctx, u.name), u.name)
}

// End implements frame.Change.
func (u *undo) End(ctx context.Context) error {
	var refused *rescue.BlockedError
	switch {
	case errors.As(u.err, &refused) && refused.Blocker.Reason == rescue.ReasonNewerFormat:
		return frame.Refuse(u.err)
	case errors.Is(u.err, rescue.ErrNoRescue):
		return frame.Refuse(fmt.Errorf("no rescue of %s is under way, so that there is nothing to undo: nothing was written", u.name))
	case u.err != nil:
		return explain(ctx, u.connection, u.name, u.err)
	}
	return u.write(crdreport.Rescue{Name: u.name, Result: crdreport.Undone, AddedVersions: u.report.Added, Restored: u.report.Restored, ChangedBy: u.report.Others})
}

func (o *options) write(item crdreport.Rescue) error {
	return frame.Write(o.Streams.Out, o.output, crdreport.RescueList([]crdreport.Rescue{item}), func(w io.Writer) error {
		return crdreport.WriteRescue(w, o.Style(o.Streams.Out, o.output), item)
	})
}

// failure is the failure of the whole rescue.
func (c *change) failure(ctx context.Context, err error) godwit.Failure {
	why := explain(ctx, c.connection, c.plan.Name, err)
	if apierror.IsEndOfRun(err) {
		return render.Failure(c.plan.Name, why.Finding(), c.Remedies())
	}
	return godwit.Failure{Name: c.plan.Name, Finding: godwit.Finding{Reason: decision.ReasonFailed, Message: why.Error()}}
}

// End implements frame.Change.
func (c *change) End(ctx context.Context) error {
	p, r, err := c.plan, c.report, c.err
	item := crdreport.Rescue{
		Name: p.Name, StorageVersion: p.StorageVersion, AddedVersions: r.Added, Objects: render.ObjectsOf(r.Objects.Storage.Counts),
		Changes: r.Changes, Verified: r.Verified, Restored: r.Restored, ChangedBy: r.Others,
		Failures: append([]godwit.Failure{}, r.Objects.Storage.Failures...),
	}
	var code frame.Code
	item.Result, code = resultOf(p, err)
	if item.Result == crdreport.Healthy {
		c.Console.Printf("%s is healthy: no version is missing, and the API server lists its objects; nothing was written\n", p.Name)
	}
	for _, b := range blockersOf(p, err) {
		item.Failures = append(item.Failures, render.Failure(p.Name, b, c.Remedies()))
	}
	end := frame.ContextCode(ctx)
	if code == frame.Error && end == frame.OK {
		item.Failures = append(item.Failures, c.failure(ctx, err))
	}
	if err := c.write(item); err != nil {
		return err
	}
	if code == frame.Partial || code == frame.Error && p.State == rescue.Ready {
		c.Console.Printf("resume with: %s; or restore the CRD: %s crd rescue %s --undo\n", c.CommandLine(), c.Program, p.Name)
	}
	return frame.Exit(frame.Worst(code, end))
}

// resultOf classifies the end of a rescue.
func resultOf(p rescue.Plan, err error) (crdreport.Result, frame.Code) {
	var refused *rescue.BlockedError
	switch {
	case p.State == rescue.Healthy:
		return crdreport.Healthy, frame.OK
	case len(p.Blockers) > 0:
		return crdreport.Blocked, frame.Refused
	case errors.As(err, &refused) && refused.Begun, errors.Is(err, rescue.ErrIncomplete), errors.As(err, new(*decision.BlockedError)):
		return crdreport.Partial, frame.Partial // the migration is refused after the versions were added
	case errors.As(err, &refused):
		return crdreport.Blocked, frame.Refused
	case err != nil:
		return crdreport.Failed, frame.Error
	}
	return crdreport.Rescued, frame.OK
}

func blockersOf(p rescue.Plan, err error) []godwit.Finding {
	var refused *rescue.BlockedError
	var blocked *decision.BlockedError
	switch {
	case len(p.Blockers) > 0:
		return p.Blockers
	case errors.As(err, &refused):
		return []godwit.Finding{refused.Blocker}
	case errors.As(err, &blocked):
		return blocked.Blockers
	}
	return nil
}
