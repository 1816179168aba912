package cli

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

	"github.com/godwit-dev/godwit/cmd/internal/permission"
	"github.com/godwit-dev/godwit/cmd/internal/report"
	"github.com/godwit-dev/godwit/revision"
	"github.com/godwit-dev/godwit/revision/kubevirt"
)

// families by name.
var families = map[string]revision.Family{kubevirt.Name: kubevirt.Family{}}

// software that a family belongs to, for messages.
var software = map[string]string{kubevirt.Name: "KubeVirt"}

func (a *app) revisionCommand() *cobra.Command {
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
	parent(c)
	c.AddCommand(a.revisionPlanCommand(), a.revisionRunCommand(), a.revisionStatusCommand(), a.revisionRollbackCommand())
	return c
}

// revisionScope is which revisions a command is about.
type revisionScope struct {
	family     choice
	everywhere bool
	namespace  string // empty: all
	selector   string
	selected   labels.Selector
}

func (o *revisionScope) addTo(c *cobra.Command) {
	o.addFamily(c)
	c.Flags().BoolVarP(&o.everywhere, "all-namespaces", "A", false, "revisions of all namespaces")
	c.Flags().StringVarP(&o.selector, "selector", "l", "", "only revisions that an object with these labels refers to, as in kubectl")
	_ = c.RegisterFlagCompletionFunc("selector", cobra.NoFileCompletions)
}

func (o *revisionScope) addFamily(c *cobra.Command) {
	o.family = choice{value: kubevirt.Name, allowed: slices.Sorted(maps.Keys(families)), kind: "string"}
	o.family.addTo(c, "family", "", "which stashed objects")
}

// parse checks what can be checked without a cluster.
func (o *revisionScope) parse(a *app, c *cobra.Command) error {
	if err := noArguments(c, c.Flags().Args()); err != nil {
		return &usageError{err}
	}
	if err := o.parseNamespace(a, c); err != nil {
		return err
	}
	if o.everywhere && o.namespace != "" {
		return usagef("choose --all-namespaces or --namespace, one of them")
	}
	if o.selector == "" {
		return nil
	}
	var err error
	if o.selected, err = labels.Parse(o.selector); err != nil {
		return usagef("invalid argument %q for \"-l, --selector\": %v", o.selector, err)
	}
	return nil
}

// parseNamespace takes a namespace that was typed. The one of the kubeconfig's context
// would hide most of a cluster from whoever asks what is left in it.
func (o *revisionScope) parseNamespace(a *app, c *cobra.Command) error {
	if !c.Flags().Changed("namespace") {
		return nil
	}
	if o.namespace = *a.cluster.Namespace; o.namespace == "" {
		return usagef("--namespace has no name; all namespaces are --all-namespaces")
	}
	return nil
}

// whole: nothing of the cluster is left out, so that something can be said about it.
func (o *revisionScope) whole() bool { return o.namespace == "" && o.selected == nil }

func (o *revisionScope) scope() revision.Scope {
	return revision.Scope{Namespace: o.namespace, Selector: o.selected}
}

// revisionPolicy are the flags of revision.Policy that a plan depends on.
type revisionPolicy struct {
	target    string
	onRunning choice
	losses    choice
}

const (
	lossFail  = "Fail"
	lossAllow = "Allow"
)

func (o *revisionPolicy) addTo(c *cobra.Command) {
	c.Flags().StringVar(&o.target, "target-version", "", "`version` to upgrade to (default: the storage version of the definition)")
	_ = c.RegisterFlagCompletionFunc("target-version", cobra.NoFileCompletions)
	o.addOnRunning(c)
	o.losses = choice{value: lossFail, allowed: []string{lossFail, lossAllow}, kind: "string"}
	o.losses.addTo(c, "loss-policy", "", "fields that the target version does not know; Fail: leave the revision as it is; Allow: carry them along unread")
}

func (o *revisionPolicy) addOnRunning(c *cobra.Command) {
	o.onRunning = choice{value: string(revision.Defer), allowed: []string{string(revision.Defer), string(revision.Hold)}, kind: "string"}
	o.onRunning.addTo(c, "on-running", "", "a virtual machine that runs; Defer: leave it until it stops; Hold: upgrade, and keep the old revision until it stops")
}

func (o *revisionPolicy) policy() revision.Policy {
	return revision.Policy{Target: o.target, OnRunning: revision.OnRunning(o.onRunning.value), AllowLosses: o.losses.value == lossAllow}
}

// revisionSession is a connection over which revisions of one family are upgraded.
type revisionSession struct {
	*connection
	*revision.Upgrader
	family revision.Family
	scope  *revisionScope
}

// connectRevisions makes sure that there is something to upgrade, and something to
// upgrade to.
func (a *app) connectRevisions(ctx context.Context, p permission.Command, scope *revisionScope, o revision.Options) (*revisionSession, error) {
	c, err := a.dial(ctx, a.purposeOf(p, scope))
	if err != nil {
		return nil, err
	}
	s := &revisionSession{connection: c, family: families[scope.family.value], scope: scope}
	if s.Upgrader, err = revision.New(c.config, s.family, o); err != nil {
		return nil, badKubeconfig(err)
	}
	definitions, err := s.CRDs(ctx)
	if err != nil {
		return nil, s.explain(ctx, err)
	}
	if o.Target == "" {
		a.sayAhead(s.family.Describe(), definitions)
	}
	return s, s.checkDefinitions(definitions, o.Target)
}

// sayAhead says what can be converted where a definition stores a version that nothing can
// be converted to.
func (a *app) sayAhead(d revision.Description, definitions map[schema.GroupResource]revision.CRD) {
	if ahead := revision.UnknownStorageVersions(d, definitions); len(ahead) > 0 {
		older := slices.DeleteFunc(slices.Clone(d.Versions), func(v string) bool { return slices.Contains(d.Targets, v) })
		a.console.printf("! the definitions store %s; this release of godwit converts %s to %s and upgrades to that; a later release may convert to %[1]s\n",
			strings.Join(ahead, ", "), strings.Join(older, ", "), strings.Join(d.Targets, ", "))
	}
}

func (s *revisionSession) checkDefinitions(definitions map[schema.GroupResource]revision.CRD, target string) error {
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
		return &exitError{Refused, fmt.Errorf("customresourcedefinition %s does not serve %s; leave --target-version out; %s", r, target, helps)}
	}
	if found {
		return nil
	}
	return &problem{
		reason:  report.ReasonNotFound,
		message: fmt.Sprintf("%s is not installed on %s: there is no customresourcedefinition %s", software[s.scope.family.value], s.where(), known[0]),
		remedy:  "choose another cluster by --context",
	}
}

// look finds what is to be done about every revision in scope and, if that is the
// whole cluster, which versions can be dropped.
func (s *revisionSession) look(ctx context.Context) ([]revision.Item, *revision.Inventory, error) {
	var items []revision.Item
	if s.scope.whole() {
		survey, err := s.InventoryEach(ctx, func(i revision.Item) error {
			items = append(items, i)
			return nil
		})
		if err != nil {
			return nil, nil, s.explain(ctx, err)
		}
		return items, &survey, nil
	}
	for i, err := range s.Plan(ctx, s.scope.scope()) {
		if err != nil {
			return nil, nil, s.explain(ctx, err)
		}
		items = append(items, i)
	}
	if len(items) == 0 {
		return nil, nil, s.nothing(ctx)
	}
	return items, nil, nil
}

// nothing: a namespace or a selector with a typo must not pass as "nothing left to
// do".
func (s *revisionSession) nothing(ctx context.Context) error {
	if s.scope.selected != nil {
		return &problem{
			reason:  report.ReasonNotFound,
			message: fmt.Sprintf("nothing that refers to a revision of %s on %s matches --selector %s", s.scope.family.value, s.where(), s.scope.selector),
			remedy:  "see the labels: kubectl get virtualmachines -A --show-labels",
		}
	}
	err := s.client.Get().AbsPath("/api/v1/namespaces", s.scope.namespace).MaxRetries(0).Do(ctx).Error()
	if apierrors.IsNotFound(err) {
		return &problem{
			reason:  report.ReasonNotFound,
			message: fmt.Sprintf("there is no namespace %s on %s", s.scope.namespace, s.where()),
			remedy:  "see what there is: kubectl get namespaces",
		}
	}
	return nil // who may not ask is not told
}

// explain knows which permissions these commands need.
func (s *revisionSession) explain(ctx context.Context, err error) error {
	if ctx.Err() == nil && apierrors.IsForbidden(err) {
		namespace := s.scope.namespace
		if namespace == "" {
			namespace = metav1.NamespaceDefault
		}
		if missing := s.missing(ctx, namespace); missing != nil {
			return missing
		}
	}
	return s.connection.explain(ctx, err)
}
