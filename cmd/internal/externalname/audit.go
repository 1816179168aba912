package externalname

import (
	"context"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/godwit-dev/godwit/cmd/internal/externalname/externalnamepermission"
	"github.com/godwit-dev/godwit/cmd/internal/externalname/externalnamereport"
	"github.com/godwit-dev/godwit/cmd/internal/frame"
	"github.com/godwit-dev/godwit/cmd/internal/remedy"
	"github.com/godwit-dev/godwit/cmd/internal/render"
	"github.com/godwit-dev/godwit/externalname/audit"
	"github.com/godwit-dev/godwit/externalname/fleet"
)

type auditOptions struct {
	*frame.App
	resources  []string
	all        bool
	pendingFor frame.DurationFlag
	output     frame.Output
}

func auditCommand(a *frame.App) *cobra.Command {
	o := &auditOptions{App: a, pendingFor: frame.DurationFlag(audit.DefaultPendingFor)}
	c := &cobra.Command{
		Use:   "audit [--resource=CRD... | --all]",
		Short: "Find external names that are lost or shared, and doubled creations, for any provider; changes nothing",
		Long: "Find what puts external resources at risk, for the managed resources of every provider as it is:\n" +
			"  NameLost             created, and the external name is missing: the next creation makes another one\n" +
			"  CreateIncomplete     a creation was begun, and its outcome is not recorded for longer than --pending-for\n" +
			"  CreatedTwice         created several times, by the events of the last hour and by annotations\n" +
			"  Duplicate            one external resource of two managed resources, also of two kinds and in two spellings\n" +
			"  MaybeShared          one external name of two managed resources, which may be one external resource\n" +
			"  NameContested        the provider and the source of the manifest write the name in turns\n" +
			"  PausedLeftover       paused, by Godwit, for more than a day, or while it is being deleted\n" +
			"  RenamingInterrupted  " + a.Program + " externalname run has begun, and has not ended\n" +
			"The command only reads: managed resources, page by page, and the events of creations. It asks no\n" +
			"external system, so that some findings ask you to compare. No remedy deletes an external resource.\n\n" +
			"Without --resource it reads the managed resources of all CRDs. With it, it finds shared names among\n" +
			"these CRDs only.\n\n" +
			"Exit codes: 0 nothing was found, 1 some are to compare, 3 some need user action, 2 some could not be\n" +
			"read, or error.",
		Example: "  # All providers of the cluster\n" +
			"  " + a.Program + " externalname audit --all\n\n" +
			"  # Two kinds, for a script\n" +
			"  " + a.Program + " externalname audit --resource=buckets.s3.example.org --resource=buckets.s3.m.example.org -o json",
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(c *cobra.Command, args []string) error {
			switch err := frame.NoArguments(c, args); {
			case err != nil:
				return frame.Usage(err)
			case o.all && len(o.resources) > 0:
				return frame.Usagef("--resource and --all are mutually exclusive")
			}
			return o.run(c.Context())
		},
	}
	flags := c.Flags()
	flags.StringArrayVar(&o.resources, resourceFlag, nil, resourceUsage+"; repeat the flag for several")
	_ = c.RegisterFlagCompletionFunc(resourceFlag, completeResources(a))
	frame.AddAll(c, &o.all, "the managed resources of all CRDs")
	flags.Var(&o.pendingFor, "pending-for", "how long a creation may be pending")
	o.output.AddTo(c, externalnamereport.NewAuditReport(audit.Facts{}, nil, remedy.Writer{}, nil))
	return c
}

func (o *auditOptions) run(ctx context.Context) error {
	scope := o.resources
	if len(scope) == 0 {
		scope = []string{"--all"}
	}
	c, err := dial(ctx, o.App, frame.Purpose{Command: externalnamepermission.Audit, Scope: scope})
	if err != nil {
		return err
	}
	kinds, err := o.kinds(ctx, c)
	if err != nil {
		return err
	}
	reader, err := audit.NewReader(c.Config, c.limiter)
	if err != nil {
		return frame.BadKubeconfig(err)
	}
	facts, err := reader.Read(ctx, kinds)
	if err != nil {
		return c.Explain(ctx, err)
	}
	found := audit.Decide(facts.Managed, audit.Options{Now: facts.Now, PendingFor: time.Duration(o.pendingFor)})
	r := externalnamereport.NewAuditReport(facts, found, o.Remedies(), func(err error) render.Problem {
		known := c.Explain(ctx, err)
		return render.Problem{Reason: known.Reason.String(), Message: known.Message, Remedy: known.Remedy}
	})
	r.Kinds = int64(len(kinds))
	if err := o.print(ctx, c, r); err != nil {
		return err
	}
	return frame.Exit(auditCode(r))
}

// kinds returns the kinds to audit.
func (o *auditOptions) kinds(ctx context.Context, c *cluster) ([]fleet.Kind, error) {
	var kinds []fleet.Kind
	if len(o.resources) == 0 {
		crds, err := c.managed(ctx)
		if err != nil {
			return nil, c.Explain(ctx, err)
		}
		for _, crd := range crds {
			kinds = append(kinds, fleet.KindOf(&crd))
		}
		return kinds, nil
	}
	for i, resource := range o.resources {
		if slices.Contains(o.resources[:i], resource) {
			continue
		}
		s, err := c.newSession(ctx, resource, "", fleet.Options{})
		if err != nil {
			return nil, err
		}
		kinds = append(kinds, s.kind)
	}
	return kinds, nil
}

func (o *auditOptions) print(ctx context.Context, c *cluster, r externalnamereport.AuditReport) error {
	return frame.WriteDocument(o.Streams.Out, o.output, r, render.NamesOf(r.Items), func(w io.Writer) error {
		grant := ""
		if slices.ContainsFunc(r.Unread, func(u externalnamereport.AuditUnread) bool { return u.Reason == render.ReasonForbidden.Name }) {
			grant = c.Purpose.Remedy(c.WhoAmI(ctx))
		}
		return externalnamereport.WriteAudit(w, o.Style(o.Streams.Out, o.output), r, grant)
	})
}

func auditCode(r externalnamereport.AuditReport) frame.Code {
	code := frame.OK
	if len(r.Unread) > 0 {
		code = frame.Error
	}
	for _, f := range r.Items {
		switch f.State {
		case externalnamereport.UserAction:
			code = frame.Worst(code, frame.Refused)
		case externalnamereport.Compare:
			code = frame.Worst(code, frame.Pending)
		}
	}
	return code
}
