// Package doctor has the command that finds references to versions of a CRD which the API server does not serve: `godwit crd doctor`.
//
// Package crdmigrator/doctor reads and decides. The command chooses CRDs, shows how far the reading is, and prints.
package doctor

import (
	"context"
	"errors"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/godwit-dev/godwit/cmd/internal/crd"
	"github.com/godwit-dev/godwit/cmd/internal/crd/crdpermission"
	"github.com/godwit-dev/godwit/cmd/internal/crd/crdreport"
	"github.com/godwit-dev/godwit/cmd/internal/frame"
	"github.com/godwit-dev/godwit/cmd/internal/render"
	"github.com/godwit-dev/godwit/crdmigrator/doctor"
	"github.com/godwit-dev/godwit/internal/storageversion/decision"
	"github.com/godwit-dev/godwit/internal/storageversion/ownerreference"
)

type options struct {
	*frame.App
	crd.Selection
	output frame.Output
}

// Command returns `godwit crd doctor`.
func Command(a *frame.App) *cobra.Command {
	o := &options{App: a}
	c := &cobra.Command{
		Use:   "doctor [NAME...] [-l SELECTOR]",
		Short: "Find references to API versions that are no longer served: ownerReferences, webhooks, roles; changes nothing",
		Long: "Find references to versions of a CRD that the API server does not serve, by default for all CRDs:\n" +
			"ownerReferences, rules of webhooks, admission policies and roles, parameters of admission policies,\n" +
			"APIServices, conversion webhooks whose Service does not exist, and objects that kubectl applied from\n" +
			"a manifest at such a version.\n\n" +
			"An ownerReference at such a version keeps an object for ever when its owner is deleted, and a\n" +
			"deletion of the owner in the foreground waits for ever. `" + a.Program + " crd run` repairs ownerReferences.\n" +
			"The other findings have the command that fixes them.\n\n" +
			"The command changes nothing. It reads the metadata of all objects of the cluster, page by page,\n" +
			"with at most 4 requests at a time, and the rules of webhooks, policies and roles.\n\n" +
			"States: Clean, Stale (something names a version that is not served), Unknown (nothing was found,\n" +
			"and some resources could not be read). Findings marked with ! are leftovers without an effect.\n" +
			"Exit codes: 0 all CRDs are Clean, 1 some are Stale, 2 some resources could not be read, or error.",
		Example: "  # After an upgrade, find what still names an old version\n" +
			"  " + a.Program + " crd doctor\n\n" +
			"  # Look at one CRD, for a script\n" +
			"  " + a.Program + " crd doctor httproutes.gateway.networking.k8s.io -o json",
		ValidArgsFunction: crd.CompleteNames(a),
		RunE: func(c *cobra.Command, args []string) error {
			if err := o.Parse(c, args, true); err != nil {
				return err
			}
			return o.run(c.Context())
		},
	}
	o.AddTo(c)
	o.output.AddTo(c, crdreport.NoDoctorReport())
	return c
}

func (o *options) run(ctx context.Context) error {
	c, err := o.Dial(ctx, frame.Purpose{Command: crdpermission.Doctor})
	if err != nil {
		return err
	}
	d, err := doctor.New(c.Config, nil)
	if err != nil {
		return frame.BadKubeconfig(err)
	}
	subjects, err := o.subjects(ctx, d)
	if err != nil {
		return o.explain(ctx, c, d, err)
	}
	facts, err := observe(ctx, o.App, d, subjects)
	if err != nil {
		return c.Explain(ctx, err)
	}
	r := crdreport.NewDoctorReport(facts, o.Remedies())
	err = frame.WriteDocument(o.Streams.Out, o.output, r, render.NamesOf(r.Items), func(w io.Writer) error {
		grant := ""
		if forbidden(facts.Unread) {
			grant = c.Purpose.Remedy(c.WhoAmI(ctx))
		}
		return crdreport.WriteDoctorReport(w, o.Style(o.Streams.Out, o.output), r, len(o.Names) > 0, grant)
	})
	if err != nil {
		return err
	}
	return frame.Exit(code(r))
}

// subjects reads the selected CRDs, each once.
func (o *options) subjects(ctx context.Context, d *doctor.Doctor) ([]doctor.Subject, error) {
	if len(o.Names) == 0 {
		all, err := d.Subjects(ctx, o.Selector)
		if err == nil && len(all) == 0 && o.Selector != "" {
			return nil, &frame.ActionableError{ // a selector with a typing error must not look like "nothing was found"
				Reason: render.ReasonNotFound, Message: "no CRD matches --selector " + o.Selector, Remedy: "list the labels: kubectl get crd --show-labels",
			}
		}
		return all, err
	}
	var all []doctor.Subject
	for i, name := range o.Names {
		if slices.Contains(o.Names[:i], name) {
			continue
		}
		one, err := d.CRD(frame.About(ctx, name), name)
		if err != nil {
			return nil, err
		}
		all = append(all, doctor.SubjectOf(one))
	}
	return all, nil
}

// explain suggests similar names for a CRD that does not exist.
func (o *options) explain(ctx context.Context, c *frame.Connection, d *doctor.Doctor, err error) error {
	if ctx.Err() != nil || !errors.Is(err, decision.ErrNotFound) {
		return c.Explain(ctx, err)
	}
	problem := &frame.ActionableError{Reason: render.ReasonNotFound, Message: err.Error(), Remedy: "list the CRDs: kubectl get crd", Cause: err}
	known, listErr := d.Subjects(ctx, "")
	if listErr != nil {
		return problem // without a list there is nothing to suggest
	}
	names := make([]string, len(known))
	for i, s := range known {
		names[i] = s.Owners.CRD
	}
	for _, name := range o.Names {
		if near := frame.Suggest(name, names); len(near) > 0 && !slices.Contains(names, name) {
			problem.Remedy = frame.DidYouMean(near, problem.Remedy)
			break
		}
	}
	return problem
}

// observe reads the cluster, and shows the progress.
func observe(ctx context.Context, a *frame.App, d *doctor.Doctor, subjects []doctor.Subject) (doctor.Facts, error) {
	show, done := crd.ShowScan(a.Console)
	defer done()
	return d.Observe(ctx, subjects, show)
}

func forbidden(unread []ownerreference.Unread) bool {
	return slices.ContainsFunc(unread, func(u ownerreference.Unread) bool { return render.IsForbidden(u.Reason) })
}

func code(r crdreport.DoctorReport) frame.Code {
	code := frame.OK
	if slices.ContainsFunc(r.Unread, func(u crdreport.Unread) bool { return !u.Alone }) {
		code = frame.Error
	}
	for _, d := range r.Items {
		switch d.State {
		case string(doctor.Stale):
			code = frame.Worst(code, frame.Pending)
		case string(doctor.Unknown):
			code = frame.Error
		}
	}
	return code
}
