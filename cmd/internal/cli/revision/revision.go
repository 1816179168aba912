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
		Short: "Upgrade objects that ControllerRevisions store",
		Long: "KubeVirt stores the instance type and the preference of each VirtualMachine in\n" +
			"ControllerRevisions, at the API version of that time. You can't drop an API version while\n" +
			"a ControllerRevision stores an object at it. A storage version migration does not change\n" +
			"these objects.\n\n" +
			"The commands below list the old revisions, replace them by revisions at the target\n" +
			"version, and report which versions you can drop. Annotations of the revisions say how far\n" +
			"an upgrade is, so that this command on another machine, or the manager, resumes it.",
	}
	cli.Parent(c)
	c.AddCommand(planCommand(a), runCommand(a), statusCommand(a), rollbackCommand(a), fixCommand(a))
	return c
}

// selection chooses the revisions of a command.
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
	family.AddTo(c, "family", "", "which kind of stored objects")
}

// parse checks what can be checked without a cluster.
func (o *selection) parse(a *cli.App, c *cobra.Command) error {
	if err := cli.NoArguments(c, c.Flags().Args()); err != nil {
		return cli.Usage(err)
	}
	var err error
	if o.namespace, err = a.GivenNamespace(c); err != nil {
		return err
	}
	if o.everywhere && o.namespace != "" {
		return cli.Usagef("choose --all-namespaces or --namespace, one of them")
	}
	o.selected, err = cli.ParseSelector(o.selector)
	return err
}

// defaultNamespace is that of the kubeconfig's context, for a command that changes named revisions.
func (o *selection) defaultNamespace(a *cli.App) error {
	if o.namespace != "" {
		return nil
	}
	var err error
	if o.namespace, _, err = a.Cluster.ToRawKubeConfigLoader().Namespace(); err != nil {
		return cli.BadKubeconfig(err)
	}
	return nil
}

// bareName is the name in an argument, which may have the resource before it, as kubectl prints it.
func bareName(argument string) (string, error) {
	bare := argument[strings.LastIndex(argument, "/")+1:]
	if bare == "" {
		return "", cli.Usagef("%q is not the name of a controllerrevision", argument)
	}
	return bare, nil
}

// whole reports whether the command reads the whole cluster, so that it can say which versions
// can be dropped.
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
	c.Flags().StringVar(&o.target, "target-version", "", "`version` to upgrade to (default: the storage version of the CRD)")
	_ = c.RegisterFlagCompletionFunc("target-version", cobra.NoFileCompletions)
	o.addOnRunning(c)
	o.losses = cli.Choice{Value: lossFail, Allowed: []string{lossFail, lossAllow}, Kind: "string"}
	o.losses.AddTo(c, "loss-policy", "", "fields that the target version does not have; Fail: do not upgrade the revision; Allow: keep the fields, which no reader uses")
}

func (o *policyFlags) addOnRunning(c *cobra.Command) {
	o.onRunning = cli.Choice{Value: string(revision.Defer), Allowed: []string{string(revision.Defer), string(revision.Hold)}, Kind: "string"}
	o.onRunning.AddTo(c, "on-running", "", "virtual machines that run; Defer: upgrade after they stop; Hold: upgrade now, and keep the old revision until they stop")
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

// connect returns an error if the software of the family is not installed, or if no CRD serves the
// target version.
func connect(ctx context.Context, a *cli.App, p permission.Command, scope *selection, o revision.Options) (*session, error) {
	c, err := a.Dial(ctx, purposeOf(a, p, scope))
	if err != nil {
		return nil, err
	}
	s := &session{Connection: c, family: Families[scope.family.Value], scope: scope, clusterFlags: a.ClusterFlags()}
	if s.Upgrader, err = revision.New(c.Config, s.family, o); err != nil {
		return nil, cli.BadKubeconfig(err)
	}
	crds, err := s.CRDs(ctx)
	if err != nil {
		return nil, s.explain(ctx, err)
	}
	if o.Target == "" {
		sayUnknownStorageVersions(a, s.family.Describe(), crds)
	}
	return s, s.checkCRDs(crds, o.Target)
}

// sayUnknownStorageVersions says to which version this release upgrades if the CRDs store a
// version that it does not know.
func sayUnknownStorageVersions(a *cli.App, d revision.Description, crds map[schema.GroupResource]revision.CRD) {
	if unknown := revision.UnknownStorageVersions(d, crds); len(unknown) > 0 {
		older := slices.DeleteFunc(slices.Clone(d.Versions), func(v string) bool { return slices.Contains(d.Targets, v) })
		a.Console.Printf("! the CRDs store %s; this release of godwit converts %s to %s and upgrades to that; a later release may convert to %[1]s\n",
			strings.Join(unknown, ", "), strings.Join(older, ", "), strings.Join(d.Targets, ", "))
	}
}

func (s *session) checkCRDs(crds map[schema.GroupResource]revision.CRD, target string) error {
	known := slices.SortedFunc(maps.Keys(crds), func(a, b schema.GroupResource) int { return strings.Compare(a.String(), b.String()) })
	found := false
	for _, r := range known {
		d := crds[r]
		if found = found || d.Found; target == "" || !d.Found || slices.Contains(d.ServedVersions, target) {
			continue
		}
		helps := "data can be converted to none of the versions that it serves"
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

// scan returns the item of every revision in scope and, if the scope is the whole cluster, the
// inventory.
func (s *session) scan(ctx context.Context) ([]revision.Item, *revision.Inventory, error) {
	var items []revision.Item
	inventory, err := s.scanEach(ctx, func(i revision.Item) { items = append(items, i) })
	return items, inventory, err
}

// scanEach calls each with every item, and keeps none.
func (s *session) scanEach(ctx context.Context, each func(revision.Item)) (*revision.Inventory, error) {
	if s.scope.whole() {
		inventory, err := s.InventoryEach(ctx, func(i revision.Item) error {
			each(i)
			return nil
		})
		if err != nil {
			return nil, s.explain(ctx, err)
		}
		return &inventory, nil
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
		return nil, s.emptyScope(ctx)
	}
	return nil, nil
}

// emptyScope is the error of a scope without revisions: a namespace or a selector with a typo must
// not pass as "nothing left to do".
func (s *session) emptyScope(ctx context.Context) error {
	if s.scope.selected != nil {
		return &cli.ActionableError{
			Reason:  report.ReasonNotFound,
			Message: fmt.Sprintf("no object that refers to a revision of %s on %s matches --selector %s", s.scope.family.Value, s.Where(), s.scope.selector),
			Remedy:  "list the labels: kubectl get virtualmachines -A --show-labels" + s.clusterFlags,
		}
	}
	err := s.Client.Get().AbsPath("/api/v1/namespaces", s.scope.namespace).MaxRetries(0).Do(ctx).Error()
	if apierrors.IsNotFound(err) {
		return &cli.ActionableError{
			Reason:  report.ReasonNotFound,
			Message: fmt.Sprintf("there is no namespace %s on %s", s.scope.namespace, s.Where()),
			Remedy:  "list the namespaces: kubectl get namespaces" + s.clusterFlags,
		}
	}
	return nil // without the permission to read namespaces, the empty scope is no error
}

// explain names the permissions of the command that are missing.
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
