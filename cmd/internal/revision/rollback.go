package revision

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/godwit-dev/godwit/api/v1alpha1"
	"github.com/godwit-dev/godwit/cmd/internal/frame"
	"github.com/godwit-dev/godwit/cmd/internal/render"
	"github.com/godwit-dev/godwit/cmd/internal/revision/revisionpermission"
	"github.com/godwit-dev/godwit/cmd/internal/revision/revisionreport"
	"github.com/godwit-dev/godwit/revision"
	"github.com/godwit-dev/godwit/revision/decision"
)

type rollbackOptions struct {
	*frame.App
	selection
	policyFlags
	names     []string
	all       bool
	change    frame.ChangeFlags
	retention retentionFlag
	output    frame.Output
}

func rollbackCommand(a *frame.App) *cobra.Command {
	o := &rollbackOptions{App: a}
	c := &cobra.Command{
		Use:   "rollback {NAME... | --all} [-n NAMESPACE]",
		Short: "Repoint references to the old revisions, until these are deleted",
		Long: "Repoint all references to a new revision to the old one, and delete the new one after the\n" +
			"retention: run the command again after the time that it prints. No trigger upgrades the\n" +
			"old revision again; `" + a.Program + " revision run` does. NAME is an old revision, as\n" +
			"`" + a.Program + " revision status` lists it. Without --namespace, the command uses the namespace\n" +
			"of the kubeconfig, as kubectl does.\n\n" +
			"The command refuses to roll back if a run has deleted the old revision after its\n" +
			"retention.\n\n" +
			"Exit codes: 0 done or nothing to do; 1 deferred, since a virtual machine is running;\n" +
			"3 refused, and nothing written; 4 some revisions could not be rolled back; 2 error;\n" +
			"124 --timeout; 130 interrupted.",
		Example: "  # All upgrades of a namespace\n  " + a.Program + " revision rollback --all -n shop\n\n" +
			"  # One upgrade, although the virtual machine is running\n  " + a.Program + " revision rollback web-u1.medium-5d0c2cf4-6d2b-4a47-8f0e-7d2f3f51b102-1 -n shop --on-running=Hold",
		ValidArgsFunction: completeRevisions(a),
		RunE: func(c *cobra.Command, args []string) error {
			if err := o.parse(a, c, args); err != nil {
				return err
			}
			return o.Change(c.Context(), &o.change, o.plan)
		},
	}
	AddFamilyFlag(c, &o.family)
	frame.AddAll(c, &o.all, "all upgrades of the namespace that can be rolled back")
	o.change.AddYesTo(c)
	o.addOnRunning(c)
	o.retention.addTo(c)
	o.change.AddTimeoutTo(c)
	o.output.AddTo(c, revisionreport.NewRunReport(nil))
	return c
}

func (o *rollbackOptions) parse(a *frame.App, c *cobra.Command, args []string) error {
	var err error
	if o.namespace, err = a.GivenNamespace(c); err != nil {
		return err
	}
	switch {
	case len(args) > 0 && o.all:
		return frame.Usagef("NAME and --all are mutually exclusive")
	case len(args) == 0 && !o.all:
		return frame.Usagef("specify NAME... or --all; `%s status` lists the upgrades", c.Parent().CommandPath())
	case o.all && o.namespace == "":
		return frame.Usagef("specify --namespace: --all rolls back one namespace")
	}
	for _, name := range args {
		bare, err := bareName(name)
		if err != nil {
			return err
		}
		if !slices.Contains(o.names, bare) {
			o.names = append(o.names, bare)
		}
	}
	return o.defaultNamespace(a)
}

// rollback is a planned rollback.
type rollback struct {
	*rollbackOptions
	*pass
	steps    *steps
	items    []decision.Item // of the scan
	meant    []decision.Item // those of the scan that are rolled back
	requests []revision.Request
	results  []revision.Result
	began    time.Time
}

// plan scans the namespace for the revisions to roll back.
func (o *rollbackOptions) plan(ctx context.Context) (frame.Change, error) {
	r := &rollback{rollbackOptions: o, steps: &steps{console: o.Console}, began: time.Now()}
	policy := o.policy()
	policy.Retention = o.retention.duration()
	s, err := connect(ctx, o.App, revisionpermission.Rollback, &o.selection, revision.Options{Policy: policy, Progress: r.steps.update})
	if err != nil {
		return nil, err
	}
	r.pass = &pass{session: s, remedies: o.Remedies()}
	if r.items, _, err = s.scan(ctx); err != nil {
		return nil, err
	}
	r.meant, r.requests = o.requests(r.items)
	if len(r.meant) > 0 {
		if err := errors.Join(s.missing(ctx, o.namespace), s.upgradedByManager(ctx, o.namespace, r.meant)); err != nil {
			return nil, frame.Refuse(err)
		}
		printNotKept(o.App, s.installed)
	}
	return r, nil
}

// printNotKept prints what KubeVirt does with a revision that was rolled back.
func printNotKept(a *frame.App, installed decision.Software) {
	if installed.Upgrades && installed.Reads == nil {
		a.Console.Printf("! a rollback lasts only while virt-controller is stopped: KubeVirt v1.3 to v1.6 upgrades the old revisions again, " +
			"and v1.5 and v1.6 then delete those that a spec names. Without virt-controller, virtual machines that run go on, and none starts, stops or migrates\n")
	}
}

// Question implements frame.Change.
func (r *rollback) Question() (string, error) {
	if len(r.meant) == 0 {
		return "", nil
	}
	return fmt.Sprintf("Roll back %s in namespace %s on %s?",
		render.Count(int64(len(r.meant)), "old revision", "old revisions"), r.namespace, r.session.Where()), nil
}

// Run implements frame.Change.
func (r *rollback) Run(ctx context.Context) {
	r.steps.begin("rolling back", len(r.meant))
	r.results, r.err = r.session.Advance(ctx, r.namespace, r.requests)
	r.steps.end()
}

// End implements frame.Change.
func (r *rollback) End(ctx context.Context) error {
	for _, one := range r.results {
		r.addRollback(one)
	}
	if err := r.unknown(r.items, r.results); err != nil {
		return err
	}
	return end(ctx, r.App, r.output, r.pass, r.began)
}

// addRollback adds the result of one rollback.
func (p *pass) addRollback(r revision.Result) {
	action := decision.Action("")
	if revisionreport.Waits(r) {
		action = decision.Deferred
	}
	p.counts.Add(action, r.Phase)
	run := revisionreport.NewRun(r, p.remedies)
	run.Remedy = p.remedies.Text(r.RollbackFix())
	p.rows = append(p.rows, p.rowOf(r, run))
}

// upgradedByManager returns an error if the manager is upgrading one of the revisions: it would repoint the references
// to the new revision again. It returns nil if the kind of these upgrades is not installed, or if the user can't list
// them.
func (s *session) upgradedByManager(ctx context.Context, namespace string, meant []decision.Item) error {
	var upgrades v1alpha1.ControllerRevisionUpgradeList
	body, err := s.Client.Get().AbsPath("apis", v1alpha1.GroupVersion.Group, v1alpha1.GroupVersion.Version,
		"namespaces", namespace, "controllerrevisionupgrades").Do(ctx).Raw()
	if err != nil || json.Unmarshal(body, &upgrades) != nil {
		return ctx.Err()
	}
	for _, one := range upgrades.Items {
		named := slices.ContainsFunc(meant, func(i decision.Item) bool { return i.Name == one.Spec.TargetName })
		if named && !revision.Phase(one.Status.Phase).Ended() {
			return &frame.ActionableError{
				Message: fmt.Sprintf("controllerrevisionupgrade %s/%s upgrades controllerrevision %s: the manager would repoint the references to the new revision again", namespace, one.Name, one.Spec.TargetName),
				Remedy:  fmt.Sprintf(`have the manager roll back: kubectl patch controllerrevisionupgrade %s -n %s%s --type=merge -p '{"spec":{"rollback":true}}'`, one.Name, namespace, s.clusterFlags),
			}
		}
	}
	return nil
}

// requests returns the requests for the named revisions or, with --all, for all revisions with a replacement, including
// those of a newer release. It also returns the items of the scan for these revisions.
func (o *rollbackOptions) requests(items []decision.Item) (meant []decision.Item, requests []revision.Request) {
	names := o.names
	for _, i := range items {
		switch {
		case o.all && (i.Replacement != "" || i.Reason == decision.ReasonNewerFormat):
			names, meant = append(names, i.Name), append(meant, i)
		case slices.Contains(names, i.Name):
			meant = append(meant, i)
		}
	}
	for _, name := range names {
		requests = append(requests, revision.Request{Name: name, Rollback: true})
	}
	return meant, requests
}

// unknown returns an error if neither a revision nor an annotation of one has the name.
func (o *rollbackOptions) unknown(items []decision.Item, results []revision.Result) error {
	for _, r := range results {
		if r.Reason != decision.ReasonSourceGone || len(results) > 1 {
			continue
		}
		var known []string
		for _, i := range items {
			if i.Replacement != "" {
				known = append(known, i.Name)
			}
		}
		return &frame.ActionableError{
			Reason:  render.ReasonNotFound,
			Message: fmt.Sprintf("controllerrevision %s/%s not found, and no revision replaced it", r.Namespace, r.Name),
			Remedy:  frame.DidYouMean(frame.Suggest(r.Name, known), "list what can be rolled back: "+o.Hint("revision status -n "+r.Namespace)),
		}
	}
	return nil
}

// completeRevisions completes the names of the revisions that can be rolled back.
func completeRevisions(a *frame.App) cobra.CompletionFunc {
	return func(c *cobra.Command, given []string, toComplete string) ([]string, cobra.ShellCompDirective) {
		return frame.CompleteNames(func(ctx context.Context) ([]string, error) {
			o := &rollbackOptions{App: a}
			AddFamilyFlag(&cobra.Command{}, &o.family)
			if err := o.parse(a, c, []string{"any"}); err != nil {
				return nil, err
			}
			s, err := connect(ctx, a, revisionpermission.Rollback, &o.selection, revision.Options{})
			if err != nil {
				return nil, err
			}
			var names []string
			_, err = s.scanEach(ctx, func(i decision.Item) {
				if i.Replacement != "" {
					names = append(names, i.Name)
				}
			})
			return names, err
		})(c, given, toComplete)
	}
}
