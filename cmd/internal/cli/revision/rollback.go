package revision

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/godwit-dev/godwit/api/v1alpha1"
	"github.com/godwit-dev/godwit/cmd/internal/cli"
	"github.com/godwit-dev/godwit/cmd/internal/permission"
	"github.com/godwit-dev/godwit/cmd/internal/remedy"
	"github.com/godwit-dev/godwit/cmd/internal/report"
	"github.com/godwit-dev/godwit/cmd/internal/report/revisionreport"
	"github.com/godwit-dev/godwit/revision"
)

type rollbackOptions struct {
	*cli.App
	selection
	policyFlags
	names     []string
	all       bool
	yes       bool
	retention retentionFlag
	timeout   cli.DurationFlag
	output    cli.Output
}

func rollbackCommand(a *cli.App) *cobra.Command {
	o := &rollbackOptions{App: a}
	c := &cobra.Command{
		Use:   "rollback {NAME... | --all} [-n NAMESPACE]",
		Short: "Repoint references to the old revisions, as long as they are there",
		Long: "Repoint all references to a new revision to the old one, and remove the new one after\n" +
			"the retention: run the command again after the time that it names. No trigger upgrades the\n" +
			"old revision again; `" + a.Program + " revision run` does. NAME is an old revision, as\n" +
			"`" + a.Program + " revision status` shows it; where --namespace is not given it is looked for in\n" +
			"the namespace of the kubeconfig, as kubectl does.\n\n" +
			"There is nothing to go back to once the retention is over and a run has removed the old\n" +
			"revision: that is refused.\n\n" +
			"Exit codes: 0 done or nothing to do, 1 something runs and is left for now, 3 refused and\n" +
			"nothing written, 4 some could not be rolled back, 2 error, 124 --timeout,\n" +
			"130 interrupted.",
		Example: "  " + a.Program + " revision rollback --all -n shop\n\n" +
			"  # One of them, although the virtual machine runs\n  " + a.Program + " revision rollback web-u1.medium-5d0c2cf4-6d2b-4a47-8f0e-7d2f3f51b102-1 -n shop --on-running=Hold",
		ValidArgsFunction: completeRevisions(a),
		RunE: func(c *cobra.Command, args []string) error {
			err := o.parse(a, c, args)
			if err == nil {
				err = o.run(c.Context())
			}
			return cli.ListOnError(a.Streams.Out, o.output, revisionreport.NewRunReport(nil), err)
		},
	}
	cli.ListOnFlagError(a, c, revisionreport.NewRunReport(nil))
	flags := c.Flags()
	flags.SortFlags = false
	AddFamilyFlag(c, &o.family)
	flags.BoolVar(&o.all, "all", false, "every upgrade of the namespace that can be rolled back")
	flags.BoolVarP(&o.yes, "yes", "y", false, "do not ask")
	o.addOnRunning(c)
	o.retention.addTo(c, "a new revision")
	flags.Var(&o.timeout, "timeout", "end after this time; the same command goes on with it (default: no limit)")
	o.output.AddTo(c)
	return c
}

func (o *rollbackOptions) parse(a *cli.App, c *cobra.Command, args []string) error {
	if err := o.parseNamespace(a, c); err != nil {
		return err
	}
	switch {
	case len(args) > 0 && o.all:
		return cli.Usagef("choose by NAME or by --all, one of them")
	case len(args) == 0 && !o.all:
		return cli.Usagef("which revisions? give NAME... or --all; `%s status` shows what there is", c.Parent().CommandPath())
	case o.all && o.namespace == "":
		return cli.Usagef("--all is of one namespace: give --namespace")
	}
	for _, name := range args {
		bare := name[strings.LastIndex(name, "/")+1:]
		if bare == "" {
			return cli.Usagef("%q is not the name of a controllerrevision", name)
		}
		if !slices.Contains(o.names, bare) {
			o.names = append(o.names, bare)
		}
	}
	if o.namespace != "" {
		return nil
	}
	var err error
	if o.namespace, _, err = a.Cluster.ToRawKubeConfigLoader().Namespace(); err != nil {
		return cli.BadKubeconfig(err)
	}
	return nil
}

func (o *rollbackOptions) run(ctx context.Context) error {
	if !o.yes && !o.CanAsk() {
		return o.RefuseUnasked("rollback")
	}
	ctx, cancel := o.timeout.Limit(ctx)
	defer cancel()
	began := time.Now()
	steps := &steps{console: o.Console}
	policy := o.policy()
	policy.Retention = o.retention.duration()
	s, err := connect(ctx, o.App, permission.RevisionRollback, &o.selection, revision.Options{Policy: policy, Progress: steps.moved})
	if err != nil {
		return err
	}
	items, _, err := s.look(ctx)
	if err != nil {
		return err
	}
	meant, wishes := o.wishes(items)
	if len(meant) > 0 {
		if err := errors.Join(s.missing(ctx, o.namespace), s.inCharge(ctx, o.namespace, meant)); err != nil {
			return cli.Refuse(err)
		}
		if !o.yes {
			o.Console.Printf("Roll back %s in namespace %s on %s? [y/N] ",
				report.Count(int64(len(meant)), "old revision", "old revisions"), o.namespace, s.Where())
			if err := o.Confirm(ctx); err != nil {
				return err
			}
		}
	}
	p := &pass{session: s, flags: o.ClusterFlags()}
	said := o.SayEnding(ctx)
	steps.begin("rolling back", len(meant))
	var results []revision.Result
	results, p.err = s.Advance(ctx, o.namespace, wishes)
	steps.end()
	said()
	for _, r := range results {
		p.addRollback(r)
	}
	if err := o.unknown(items, results); err != nil {
		return err
	}
	return end(ctx, o.App, o.output, p, began)
}

// addRollback adds what became of one rollback.
func (p *pass) addRollback(r revision.Result) {
	action := revision.Action("")
	if revisionreport.Waits(r) {
		action = revision.Deferred
	}
	p.counts.Add(action, r.Phase)
	one := p.newRow(r)
	one.printed.Remedy = remedy.ForRollback(r.Item, p.flags)
	p.rows = append(p.rows, one)
}

// inCharge is an error where the manager has an upgrade of a revision under way: it
// would lead everybody forward again. Where its kind is not installed, or is not to be
// seen, there is nothing to say.
func (s *session) inCharge(ctx context.Context, namespace string, meant []revision.Item) error {
	var upgrades v1alpha1.ControllerRevisionUpgradeList
	body, err := s.Client.Get().AbsPath("apis", v1alpha1.GroupVersion.Group, v1alpha1.GroupVersion.Version,
		"namespaces", namespace, "controllerrevisionupgrades").Do(ctx).Raw()
	if err != nil || json.Unmarshal(body, &upgrades) != nil {
		return ctx.Err()
	}
	for _, one := range upgrades.Items {
		named := slices.ContainsFunc(meant, func(i revision.Item) bool { return i.Name == one.Spec.TargetName })
		if named && !revision.Phase(one.Status.Phase).Ended() {
			return &cli.ActionableError{
				Message: fmt.Sprintf("controllerrevisionupgrade %s/%s is in charge of controllerrevision %s: the manager would lead everybody forward again", namespace, one.Name, one.Spec.TargetName),
				Remedy:  fmt.Sprintf(`roll back there: kubectl patch controllerrevisionupgrade %s -n %s%s --type=merge -p '{"spec":{"rollback":true}}'`, one.Name, namespace, s.clusterFlags),
			}
		}
	}
	return nil
}

// wishes are for the names that were given, or for whatever has a successor. Meant are
// the items among them.
func (o *rollbackOptions) wishes(items []revision.Item) (meant []revision.Item, wishes []revision.Request) {
	names := o.names
	for _, i := range items {
		switch {
		case o.all && i.Replacement != "":
			names, meant = append(names, i.Name), append(meant, i)
		case slices.Contains(names, i.Name):
			meant = append(meant, i)
		}
	}
	for _, name := range names {
		wishes = append(wishes, revision.Request{Name: name, Rollback: true})
	}
	return meant, wishes
}

// unknown is about a name that was never one of a revision, or that nothing remembers.
func (o *rollbackOptions) unknown(items []revision.Item, results []revision.Result) error {
	for _, r := range results {
		if r.Reason != revision.ReasonSourceGone || len(results) > 1 {
			continue
		}
		var known []string
		for _, i := range items {
			if i.Replacement != "" {
				known = append(known, i.Name)
			}
		}
		remedy := "see what can be rolled back: " + o.Hint("revision status -n "+r.Namespace)
		if near := cli.Suggest(r.Name, known); len(near) > 0 {
			remedy = "did you mean " + strings.Join(near, " or ") + "?"
		}
		return &cli.ActionableError{
			Reason:  report.ReasonNotFound,
			Message: fmt.Sprintf("no such controllerrevision: %s/%s, and none that has taken its place", r.Namespace, r.Name),
			Remedy:  remedy,
		}
	}
	return nil
}

// completeRevisions completes the names of what can be rolled back.
func completeRevisions(a *cli.App) cobra.CompletionFunc {
	return func(c *cobra.Command, given []string, toComplete string) ([]string, cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(c.Context(), cli.DialTimeout)
		defer cancel()
		o := &rollbackOptions{App: a, names: given}
		AddFamilyFlag(&cobra.Command{}, &o.family)
		if err := o.parse(a, c, []string{"any"}); err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		s, err := connect(ctx, a, permission.RevisionRollback, &o.selection, revision.Options{})
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		items, _, err := s.look(ctx)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var names []string
		for _, i := range items {
			if i.Replacement != "" && strings.HasPrefix(i.Name, toComplete) && !slices.Contains(given, i.Name) {
				names = append(names, i.Name)
			}
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}
