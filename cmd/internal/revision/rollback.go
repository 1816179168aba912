package revision

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

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
		Use:   "rollback {NAME... [-n NAMESPACE] | --all {-n NAMESPACE | -A}}",
		Short: "Repoint references to the old revisions, until these are deleted",
		Long: "Repoint all references to a new revision to the old one, and delete the new one after the\n" +
			"retention: run the command again after the time that it prints. No trigger upgrades the\n" +
			"old revision again; `" + a.Program + " revision run` does. NAME is an old revision, as\n" +
			"`" + a.Program + " revision status` lists it. Without --namespace, the command uses the namespace\n" +
			"of the kubeconfig, as kubectl does.\n\n" +
			"With --all-namespaces, the command rolls back one namespace after the other. An error ends\n" +
			"a namespace, and the command rolls back the others, unless the API server does not answer.\n\n" +
			"The command refuses to roll back if a run has deleted the old revision after its\n" +
			"retention.\n\n" +
			"Exit codes: 0 done or nothing to do; 1 deferred, since a virtual machine is running;\n" +
			"3 refused, and nothing written; 4 some revisions could not be rolled back; 2 error;\n" +
			"124 --timeout; 130 interrupted.",
		Example: "  # All upgrades of a namespace\n  " + a.Program + " revision rollback --all -n shop\n\n" +
			"  # One upgrade, although the virtual machine is running\n  " + a.Program + " revision rollback web-u1.medium-5d0c2cf4-6d2b-4a47-8f0e-7d2f3f51b102-1 -n shop --on-running=Hold\n\n" +
			"  # The whole cluster, in a script\n  " + a.Program + " revision rollback --all -A --yes -o json",
		ValidArgsFunction: completeRevisions(a),
		RunE: func(c *cobra.Command, args []string) error {
			if err := o.parse(a, c, args); err != nil {
				return err
			}
			return o.Change(c.Context(), &o.change, o.plan)
		},
	}
	AddFamilyFlag(c, &o.family)
	frame.AddAll(c, &o.all, "all upgrades of the namespace, or of all namespaces, that can be rolled back")
	frame.AddAllNamespaces(c, &o.everywhere)
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
	case len(args) > 0 && o.everywhere:
		return frame.Usagef("NAME and --all-namespaces are mutually exclusive")
	case len(args) == 0 && !o.all:
		return frame.Usagef("specify NAME... or --all; `%s status` lists the upgrades", c.Parent().CommandPath())
	case o.all && o.namespace == "" && !o.everywhere:
		return frame.Usagef("specify --namespace or --all-namespaces")
	case o.everywhere:
		return nil
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
	known    []string // the revisions that can be rolled back, for a name that is not found
	targets  []target // in order
	advance  func(context.Context, string, []revision.Request) ([]revision.Result, error)
	notFound error
	began    time.Time
}

// target is a namespace with revisions to roll back.
type target struct {
	namespace string
	items     []decision.Item // of the scan
}

// plan scans for the revisions to roll back.
func (o *rollbackOptions) plan(ctx context.Context) (frame.Change, error) {
	r := &rollback{rollbackOptions: o, steps: &steps{console: o.Console}, began: time.Now()}
	policy := o.policy()
	policy.Retention = o.retention.duration()
	s, err := connect(ctx, o.App, revisionpermission.Rollback, &o.selection, revision.Options{Policy: policy, Progress: r.steps.update})
	if err != nil {
		return nil, err
	}
	r.pass, r.advance = &pass{session: s, remedies: o.Remedies()}, s.Advance
	if !o.all {
		r.targets = []target{{namespace: o.namespace}} // also for a name that the scan does not find
	}
	if _, err := s.scanEach(ctx, r.addItem); err != nil {
		return nil, err
	}
	if err := r.refused(ctx); err != nil {
		return nil, frame.Refuse(err)
	}
	if r.count() > 0 {
		printNotKept(o.App, s.installed)
	}
	return r, nil
}

// printNotKept prints what KubeVirt does with a revision that was rolled back.
func printNotKept(a *frame.App, installed decision.Software) {
	if installed.Upgrades && installed.ReadsAll() {
		a.Console.Printf("! a rollback lasts only while virt-controller is stopped: KubeVirt v1.3 to v1.6 upgrades the old revisions again, " +
			"and v1.5 and v1.6 then delete those that a spec names. Without virt-controller, virtual machines that run go on, and none starts, stops or migrates\n")
	}
}

// addItem adds a revision of the scan if it is named or, with --all, if it has a replacement or is of a newer release.
func (r *rollback) addItem(i decision.Item) {
	if !r.all && i.Replacement != "" {
		r.known = append(r.known, i.Name)
	}
	meant := slices.Contains(r.names, i.Name)
	if r.all {
		meant = i.Replacement != "" || i.Reason == decision.ReasonNewerFormat
	}
	if !meant {
		return
	}
	last := len(r.targets) - 1
	if last < 0 || r.targets[last].namespace != i.Namespace {
		r.targets = append(r.targets, target{namespace: i.Namespace})
		last++
	}
	r.targets[last].items = append(r.targets[last].items, i)
}

// count returns the number of revisions that the scan found.
func (r *rollback) count() (n int) {
	for _, t := range r.targets {
		n += len(t.items)
	}
	return n
}

// maxRefusals bounds the namespaces of which a refusal names an upgrade.
const maxRefusals = 5

// refused returns an error if the user lacks permissions, or if the manager is upgrading one of the revisions.
func (r *rollback) refused(ctx context.Context) error {
	if r.count() == 0 {
		return nil
	}
	all, refusals := r.session.missing(ctx, r.targets[0].namespace), 0
	for _, t := range r.targets {
		if err := r.session.upgradedByManager(ctx, t); err != nil {
			all, refusals = errors.Join(all, err), refusals+1
		}
		if refusals == maxRefusals {
			break
		}
	}
	return all
}

// Question implements frame.Change.
func (r *rollback) Question() (string, error) {
	n := r.count()
	if n == 0 {
		return "", nil
	}
	where := "namespace " + r.targets[0].namespace
	if more := len(r.targets); more > 1 {
		where = render.Count(int64(more), "namespace", "namespaces")
	}
	return fmt.Sprintf("Roll back %s in %s on %s?", render.Count(int64(n), "old revision", "old revisions"), where, r.session.Where()), nil
}

// Run implements frame.Change.
func (r *rollback) Run(ctx context.Context) {
	r.steps.begin("rolling back", r.count())
	defer r.steps.end()
	stopped := false
	for _, t := range r.targets {
		if stopped {
			r.addUntried(t, nil)
			continue
		}
		results, err := r.advance(ctx, t.namespace, r.requests(t))
		if err != nil {
			_, unreachable := frame.Unreachable(err)
			stopped = unreachable || ctx.Err() != nil
			r.err = errors.Join(r.err, fmt.Errorf("roll back namespace %s: %w", t.namespace, err))
		}
		if results == nil {
			r.addUntried(t, err)
		}
		for _, one := range results {
			r.addRollback(one)
		}
		if !r.all && len(results) == 1 && results[0].Reason == decision.ReasonSourceGone {
			r.notFound = r.unknown(results[0])
		}
	}
}

// End implements frame.Change.
func (r *rollback) End(ctx context.Context) error {
	if r.notFound != nil {
		return r.notFound
	}
	return end(ctx, r.App, r.output, r.pass, r.began)
}

// requests returns the requests for a namespace.
func (r *rollback) requests(t target) []revision.Request {
	names := r.names
	for _, i := range t.items {
		if r.all {
			names = append(names, i.Name)
		}
	}
	requests := make([]revision.Request, len(names))
	for n, name := range names {
		requests[n] = revision.Request{Name: name, Rollback: true}
	}
	return requests
}

// addUntried adds the revisions of a namespace in which no rollback began. err ended the scan of the namespace, or is nil.
func (r *rollback) addUntried(t target, err error) {
	for _, i := range t.items {
		untried := decision.Item{Namespace: i.Namespace, Name: i.Name, Owner: i.Owner, Replacement: i.Replacement}
		switch {
		case apierrors.IsForbidden(err):
			untried.Reason, untried.Message = decision.ReasonForbidden, err.Error()
		case err != nil:
			untried.Reason, untried.Message = decision.ReasonUnanswered, err.Error()
		}
		r.addRollback(revision.Result{Item: untried, Phase: revision.Pending})
	}
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

// upgradedByManager returns an error if the manager is upgrading one of the revisions of a namespace: it would repoint the references
// to the new revision again. It returns nil if the kind of these upgrades is not installed, or if the user can't list
// them.
func (s *session) upgradedByManager(ctx context.Context, t target) error {
	var upgrades v1alpha1.ControllerRevisionUpgradeList
	body, err := s.Client.Get().AbsPath("apis", v1alpha1.GroupVersion.Group, v1alpha1.GroupVersion.Version,
		"namespaces", t.namespace, "controllerrevisionupgrades").Do(ctx).Raw()
	if err != nil || json.Unmarshal(body, &upgrades) != nil {
		return ctx.Err()
	}
	for _, one := range upgrades.Items {
		named := slices.ContainsFunc(t.items, func(i decision.Item) bool { return i.Name == one.Spec.TargetName })
		if named && !revision.Phase(one.Status.Phase).Ended() {
			return &frame.ActionableError{
				Message: fmt.Sprintf("controllerrevisionupgrade %s/%s upgrades controllerrevision %s: the manager would repoint the references to the new revision again", t.namespace, one.Name, one.Spec.TargetName),
				Remedy:  fmt.Sprintf(`have the manager roll back: kubectl patch controllerrevisionupgrade %s -n %s%s --type=merge -p '{"spec":{"rollback":true}}'`, one.Name, t.namespace, s.clusterFlags),
			}
		}
	}
	return nil
}

// unknown returns the error for the only name if neither a revision nor an annotation of one has it.
func (r *rollback) unknown(one revision.Result) error {
	return &frame.ActionableError{
		Reason:  render.ReasonNotFound,
		Message: fmt.Sprintf("controllerrevision %s/%s not found, and no revision replaced it", one.Namespace, one.Name),
		Remedy:  frame.DidYouMean(frame.Suggest(one.Name, r.known), "list what can be rolled back: "+r.Hint("revision status -n "+one.Namespace)),
	}
}

// completeRevisions completes the names of the revisions that can be rolled back.
func completeRevisions(a *frame.App) cobra.CompletionFunc {
	return func(c *cobra.Command, given []string, toComplete string) ([]string, cobra.ShellCompDirective) {
		return frame.CompleteNames(func(ctx context.Context) ([]string, error) {
			o := &rollbackOptions{App: a}
			AddFamilyFlag(&cobra.Command{}, &o.family)
			o.everywhere, _ = c.Flags().GetBool("all-namespaces")
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
