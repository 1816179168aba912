package revision

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/godwit-dev/godwit/cmd/internal/cli"
	"github.com/godwit-dev/godwit/cmd/internal/permission"
	"github.com/godwit-dev/godwit/cmd/internal/report"
	"github.com/godwit-dev/godwit/revision"
	"github.com/godwit-dev/godwit/revision/kubevirt"
)

// Families by name.
var Families = map[string]revision.Family{kubevirt.Name: kubevirt.Family{}}

// software that a family belongs to, for messages.
var software = map[string]string{kubevirt.Name: "KubeVirt"}

// Command is `godwit revision`.
func Command(a *cli.App) *cobra.Command {
	c := &cobra.Command{
		Use:   "revision",
		Short: "Upgrade objects that are stashed in ControllerRevisions",
		Long: "KubeVirt keeps of each VirtualMachine a copy of its instance type and its preference,\n" +
			"in ControllerRevisions, at the version of the API that was current at the time. Such a\n" +
			"version can't be dropped while a copy speaks it, and no tool that migrates what is in\n" +
			"etcd looks into the copies. The commands below find them, have revisions at the current\n" +
			"version take their place, and tell which versions nothing speaks any more. How far an\n" +
			"upgrade is stands on the revisions themselves: any machine can go on with it, and so\n" +
			"can the manager.",
	}
	cli.Parent(c)
	c.AddCommand(planCommand(a), runCommand(a), statusCommand(a), rollbackCommand(a), fixCommand(a))
	return c
}

// selection is which revisions a command is about.
type selection struct {
	family     cli.Choice
	everywhere bool
	namespace  string // empty: all
	selector   string
	selected   labels.Selector
}

func (o *selection) addTo(c *cobra.Command) {
	AddFamilyFlag(c, &o.family)
	c.Flags().BoolVarP(&o.everywhere, "all-namespaces", "A", false, "revisions of all namespaces")
	c.Flags().StringVarP(&o.selector, "selector", "l", "", "only revisions that an object with these labels refers to, as in kubectl")
	_ = c.RegisterFlagCompletionFunc("selector", cobra.NoFileCompletions)
}

// AddFamilyFlag registers the flag --family.
func AddFamilyFlag(c *cobra.Command, family *cli.Choice) {
	*family = cli.Choice{Value: kubevirt.Name, Allowed: slices.Sorted(maps.Keys(Families)), Kind: "string"}
	family.AddTo(c, "family", "", "which stashed objects")
}

// parse checks what can be checked without a cluster.
func (o *selection) parse(a *cli.App, c *cobra.Command) error {
	if err := cli.NoArguments(c, c.Flags().Args()); err != nil {
		return cli.Usage(err)
	}
	if err := o.parseNamespace(a, c); err != nil {
		return err
	}
	if o.everywhere && o.namespace != "" {
		return cli.Usagef("choose --all-namespaces or --namespace, one of them")
	}
	if o.selector == "" {
		return nil
	}
	var err error
	if o.selected, err = labels.Parse(o.selector); err != nil {
		return cli.Usagef("invalid argument %q for \"-l, --selector\": %v", o.selector, err)
	}
	return nil
}

// parseNamespace takes a namespace that was typed. The one of the kubeconfig's context
// would hide most of a cluster from whoever asks what is left in it.
func (o *selection) parseNamespace(a *cli.App, c *cobra.Command) error {
	if !c.Flags().Changed("namespace") {
		return nil
	}
	if o.namespace = *a.Cluster.Namespace; o.namespace == "" {
		return cli.Usagef("--namespace has no name; all namespaces are --all-namespaces")
	}
	return nil
}

// whole: nothing of the cluster is left out, so that something can be said about it.
func (o *selection) whole() bool { return o.namespace == "" && o.selected == nil }

func (o *selection) scope() revision.Scope {
	return revision.Scope{Namespace: o.namespace, Selector: o.selected}
}

// policyFlags are the flags of revision.Policy that a plan depends on.
type policyFlags struct {
	target    string
	onRunning cli.Choice
	losses    cli.Choice
}

const (
	lossFail  = "Fail"
	lossAllow = "Allow"
)

func (o *policyFlags) addTo(c *cobra.Command) {
	c.Flags().StringVar(&o.target, "target-version", "", "`version` to upgrade to (default: the storage version of the definition)")
	_ = c.RegisterFlagCompletionFunc("target-version", cobra.NoFileCompletions)
	o.addOnRunning(c)
	o.losses = cli.Choice{Value: lossFail, Allowed: []string{lossFail, lossAllow}, Kind: "string"}
	o.losses.AddTo(c, "loss-policy", "", "fields that the target version does not know; Fail: leave the revision as it is; Allow: carry them along unread")
}

func (o *policyFlags) addOnRunning(c *cobra.Command) {
	o.onRunning = cli.Choice{Value: string(revision.Defer), Allowed: []string{string(revision.Defer), string(revision.Hold)}, Kind: "string"}
	o.onRunning.AddTo(c, "on-running", "", "a virtual machine that runs; Defer: leave it until it stops; Hold: upgrade, and keep the old revision until it stops")
}

func (o *policyFlags) policy() revision.Policy {
	return revision.Policy{Target: o.target, OnRunning: revision.OnRunning(o.onRunning.Value), AllowLosses: o.losses.Value == lossAllow}
}

// session is a connection over which revisions of one family are upgraded.
type session struct {
	*cli.Connection
	*revision.Upgrader
	family revision.Family
	scope  *selection
	// clusterFlags are those of printed commands.
	clusterFlags string
}

// connect makes sure that there is something to upgrade, and something to
// upgrade to.
func connect(ctx context.Context, a *cli.App, p permission.Command, scope *selection, o revision.Options) (*session, error) {
	c, err := a.Dial(ctx, purposeOf(a, p, scope))
	if err != nil {
		return nil, err
	}
	s := &session{Connection: c, family: Families[scope.family.Value], scope: scope, clusterFlags: a.ClusterFlags()}
	if s.Upgrader, err = revision.New(c.Config, s.family, o); err != nil {
		return nil, cli.BadKubeconfig(err)
	}
	definitions, err := s.CRDs(ctx)
	if err != nil {
		return nil, s.explain(ctx, err)
	}
	if o.Target == "" {
		sayAhead(a, s.family.Describe(), definitions)
	}
	return s, s.checkDefinitions(definitions, o.Target)
}

// sayAhead says what can be converted where a definition stores a version that nothing can
// be converted to.
func sayAhead(a *cli.App, d revision.Description, definitions map[schema.GroupResource]revision.CRD) {
	if ahead := revision.UnknownStorageVersions(d, definitions); len(ahead) > 0 {
		older := slices.DeleteFunc(slices.Clone(d.Versions), func(v string) bool { return slices.Contains(d.Targets, v) })
		a.Console.Printf("! the definitions store %s; this release of godwit converts %s to %s and upgrades to that; a later release may convert to %[1]s\n",
			strings.Join(ahead, ", "), strings.Join(older, ", "), strings.Join(d.Targets, ", "))
	}
}

func (s *session) checkDefinitions(definitions map[schema.GroupResource]revision.CRD, target string) error {
	known := slices.SortedFunc(maps.Keys(definitions), func(a, b schema.GroupResource) int { return strings.Compare(a.String(), b.String()) })
	found := false
	for _, r := range known {
		d := definitions[r]
		if found = found || d.Found; target == "" || !d.Found || slices.Contains(d.ServedVersions, target) {
			continue
		}
		helps := "none that it serves is one that data can be converted to"
		if reachable := d.Reachable(s.family.Describe().Targets); len(reachable) > 0 {
			helps = "or give one that data can be converted to: " + strings.Join(reachable, ", ")
		}
		return cli.Refuse(fmt.Errorf("customresourcedefinition %s does not serve %s; leave --target-version out; %s", r, target, helps))
	}
	if found {
		return nil
	}
	return &cli.ActionableError{
		Reason:  report.ReasonNotFound,
		Message: fmt.Sprintf("%s is not installed on %s: there is no customresourcedefinition %s", software[s.scope.family.Value], s.Where(), known[0]),
		Remedy:  "choose another cluster by --context",
	}
}

// look finds what is to be done about every revision in scope and, if that is the
// whole cluster, which versions can be dropped.
func (s *session) look(ctx context.Context) ([]revision.Item, *revision.Inventory, error) {
	var items []revision.Item
	survey, err := s.lookEach(ctx, func(i revision.Item) { items = append(items, i) })
	return items, survey, err
}

// lookEach is the same, and keeps no item.
func (s *session) lookEach(ctx context.Context, each func(revision.Item)) (*revision.Inventory, error) {
	if s.scope.whole() {
		survey, err := s.InventoryEach(ctx, func(i revision.Item) error {
			each(i)
			return nil
		})
		if err != nil {
			return nil, s.explain(ctx, err)
		}
		return &survey, nil
	}
	found := false
	for i, err := range s.Plan(ctx, s.scope.scope()) {
		if err != nil {
			return nil, s.explain(ctx, err)
		}
		found = true
		each(i)
	}
	if !found {
		return nil, s.nothing(ctx)
	}
	return nil, nil
}

// nothing: a namespace or a selector with a typo must not pass as "nothing left to
// do".
func (s *session) nothing(ctx context.Context) error {
	if s.scope.selected != nil {
		return &cli.ActionableError{
			Reason:  report.ReasonNotFound,
			Message: fmt.Sprintf("nothing that refers to a revision of %s on %s matches --selector %s", s.scope.family.Value, s.Where(), s.scope.selector),
			Remedy:  "see the labels: kubectl get virtualmachines -A --show-labels" + s.clusterFlags,
		}
	}
	err := s.Client.Get().AbsPath("/api/v1/namespaces", s.scope.namespace).MaxRetries(0).Do(ctx).Error()
	if apierrors.IsNotFound(err) {
		return &cli.ActionableError{
			Reason:  report.ReasonNotFound,
			Message: fmt.Sprintf("there is no namespace %s on %s", s.scope.namespace, s.Where()),
			Remedy:  "see what there is: kubectl get namespaces" + s.clusterFlags,
		}
	}
	return nil // who may not ask is not told
}

// explain knows which permissions these commands need.
func (s *session) explain(ctx context.Context, err error) error {
	if ctx.Err() == nil && apierrors.IsForbidden(err) {
		namespace := s.scope.namespace
		if namespace == "" {
			namespace = metav1.NamespaceDefault
		}
		if missing := s.missing(ctx, namespace); missing != nil {
			return missing
		}
	}
	return s.Connection.Explain(ctx, err)
}
