package cli

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
	"github.com/godwit-dev/godwit/cmd/internal/permission"
	"github.com/godwit-dev/godwit/cmd/internal/report"
	"github.com/godwit-dev/godwit/revision"
)

type revisionRollbackOptions struct {
	revisionScope
	revisionPolicy
	names     []string
	all       bool
	yes       bool
	retention retentionFlag
	timeout   durationFlag
	output    format
}

func (a *app) revisionRollbackCommand() *cobra.Command {
	o := &revisionRollbackOptions{}
	c := &cobra.Command{
		Use:   "rollback {NAME... | --all} [-n NAMESPACE]",
		Short: "Repoint references to the old revisions, as long as they are there",
		Long: "Repoint all references to a new revision to the old one, and remove the new one after\n" +
			"the retention: run the command again after the time that it names. No trigger upgrades the\n" +
			"old revision again; `" + a.program + " revision run` does. NAME is an old revision, as\n" +
			"`" + a.program + " revision status` shows it; where --namespace is not given it is looked for in\n" +
			"the namespace of the kubeconfig, as kubectl does.\n\n" +
			"There is nothing to go back to once the retention is over and a run has removed the old\n" +
			"revision: that is refused.\n\n" +
			"Exit codes: 0 done or nothing to do, 1 something runs and is left for now, 3 refused and\n" +
			"nothing written, 4 some could not be rolled back, 2 error, 124 --timeout,\n" +
			"130 interrupted.",
		Example: "  " + a.program + " revision rollback --all -n shop\n\n" +
			"  # One of them, although the virtual machine runs\n  " + a.program + " revision rollback web-u1.medium-5d0c2cf4-6d2b-4a47-8f0e-7d2f3f51b102-1 -n shop --on-running=Hold",
		ValidArgsFunction: a.completeRevisions,
		RunE: func(c *cobra.Command, args []string) error {
			err := o.parse(a, c, args)
			if err == nil {
				err = a.revisionRollback(c.Context(), o)
			}
			return listOnError(a.streams.Out, o.output, report.NewRevisionRunReport(nil), err)
		},
	}
	listOnFlagError(a, c, report.NewRevisionRunReport(nil))
	flags := c.Flags()
	flags.SortFlags = false
	o.addFamily(c)
	flags.BoolVar(&o.all, "all", false, "every upgrade of the namespace that can be rolled back")
	flags.BoolVarP(&o.yes, "yes", "y", false, "do not ask")
	o.addOnRunning(c)
	o.retention.addTo(c, "a new revision")
	flags.Var(&o.timeout, "timeout", "end after this time; the same command goes on with it (default: no limit)")
	o.output.addTo(c)
	return c
}

func (o *revisionRollbackOptions) parse(a *app, c *cobra.Command, args []string) error {
	if err := o.parseNamespace(a, c); err != nil {
		return err
	}
	switch {
	case len(args) > 0 && o.all:
		return usagef("choose by NAME or by --all, one of them")
	case len(args) == 0 && !o.all:
		return usagef("which revisions? give NAME... or --all; `%s status` shows what there is", c.Parent().CommandPath())
	case o.all && o.namespace == "":
		return usagef("--all is of one namespace: give --namespace")
	}
	for _, name := range args {
		bare := name[strings.LastIndex(name, "/")+1:]
		if bare == "" {
			return usagef("%q is not the name of a controllerrevision", name)
		}
		if !slices.Contains(o.names, bare) {
			o.names = append(o.names, bare)
		}
	}
	if o.namespace != "" {
		return nil
	}
	var err error
	if o.namespace, _, err = a.cluster.ToRawKubeConfigLoader().Namespace(); err != nil {
		return badKubeconfig(err)
	}
	return nil
}

func (a *app) revisionRollback(ctx context.Context, o *revisionRollbackOptions) error {
	if !o.yes && !a.canAsk() {
		return a.refuseUnasked("rollback")
	}
	ctx, cancel := o.timeout.limit(ctx)
	defer cancel()
	began := time.Now()
	steps := &steps{console: a.console}
	policy := o.policy()
	policy.Retention = o.retention.duration()
	s, err := a.connectRevisions(ctx, permission.RevisionRollback, &o.revisionScope, revision.Options{Policy: policy, Progress: steps.moved})
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
			return &exitError{Refused, err}
		}
		if !o.yes {
			a.console.printf("Roll back %s in namespace %s on %s? [y/N] ",
				report.Count(int64(len(meant)), "old revision", "old revisions"), o.namespace, s.where())
			if err := a.confirm(ctx); err != nil {
				return err
			}
		}
	}
	p := &revisionPass{session: s}
	said := a.sayEnding(ctx)
	steps.begin("rolling back", len(meant))
	p.results, p.err = s.Advance(ctx, o.namespace, wishes)
	steps.end()
	said()
	for _, r := range p.results {
		action := revision.Action("")
		if report.Waits(r) {
			action = revision.Deferred
		}
		p.counts.Add(action, r.Phase)
	}
	if err := a.unknown(items, p.results); err != nil {
		return err
	}
	return a.endRevisions(ctx, o.output, p, began)
}

// inCharge is an error where the manager has an upgrade of a revision under way: it
// would lead everybody forward again. Where its kind is not installed, or is not to be
// seen, there is nothing to say.
func (s *revisionSession) inCharge(ctx context.Context, namespace string, meant []revision.Item) error {
	var upgrades v1alpha1.ControllerRevisionUpgradeList
	body, err := s.client.Get().AbsPath("apis", v1alpha1.GroupVersion.Group, v1alpha1.GroupVersion.Version,
		"namespaces", namespace, "controllerrevisionupgrades").Do(ctx).Raw()
	if err != nil || json.Unmarshal(body, &upgrades) != nil {
		return ctx.Err()
	}
	for _, one := range upgrades.Items {
		named := slices.ContainsFunc(meant, func(i revision.Item) bool { return i.Name == one.Spec.TargetName })
		if named && !revision.Phase(one.Status.Phase).Ended() {
			return &problem{
				message: fmt.Sprintf("controllerrevisionupgrade %s/%s is in charge of controllerrevision %s: the manager would lead everybody forward again", namespace, one.Name, one.Spec.TargetName),
				remedy:  fmt.Sprintf(`roll back there: kubectl patch controllerrevisionupgrade %s -n %s --type=merge -p '{"spec":{"rollback":true}}'`, one.Name, namespace),
			}
		}
	}
	return nil
}

// wishes are for the names that were given, or for whatever has a successor. Meant are
// the items among them.
func (o *revisionRollbackOptions) wishes(items []revision.Item) (meant []revision.Item, wishes []revision.Request) {
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
func (a *app) unknown(items []revision.Item, results []revision.Result) error {
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
		remedy := "see what can be rolled back: " + a.hint("revision status -n "+r.Namespace)
		if near := suggest(r.Name, known); len(near) > 0 {
			remedy = "did you mean " + strings.Join(near, " or ") + "?"
		}
		return &problem{
			reason:  report.ReasonNotFound,
			message: fmt.Sprintf("no such controllerrevision: %s/%s, and none that has taken its place", r.Namespace, r.Name),
			remedy:  remedy,
		}
	}
	return nil
}

// completeRevisions completes the names of what can be rolled back.
func (a *app) completeRevisions(c *cobra.Command, given []string, toComplete string) ([]string, cobra.ShellCompDirective) {
	ctx, cancel := context.WithTimeout(c.Context(), dialTimeout)
	defer cancel()
	o := &revisionRollbackOptions{names: given}
	o.addFamily(&cobra.Command{})
	if err := o.parse(a, c, []string{"any"}); err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	s, err := a.connectRevisions(ctx, permission.RevisionRollback, &o.revisionScope, revision.Options{})
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
