// Package rbac has the command that prints roles: `godwit rbac`. It takes the flags of all domains.
//
// commands.go names the commands whose permissions are known, and rbac.go is the command line.
package rbac

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/godwit-dev/godwit/cmd/internal/crd"
	"github.com/godwit-dev/godwit/cmd/internal/crd/crdpermission"
	"github.com/godwit-dev/godwit/cmd/internal/frame"
	"github.com/godwit-dev/godwit/cmd/internal/operator"
	"github.com/godwit-dev/godwit/cmd/internal/permission"
	"github.com/godwit-dev/godwit/cmd/internal/resource"
	"github.com/godwit-dev/godwit/cmd/internal/revision"
	"github.com/godwit-dev/godwit/cmd/internal/revision/revisionpermission"
	"github.com/godwit-dev/godwit/internal/storageversion/decision"
)

const (
	// forManager is the value of --for for `godwit manager`.
	forManager = "manager"
	// everyGroup is RBAC's wildcard for API groups.
	everyGroup = "*"
)

type rbacOptions struct {
	crd.Selection
	command         frame.Choice
	users           []string
	groups          []string
	serviceAccounts []string
	apiGroups       []string
	allGroups       bool
	controller      frame.Choice
	family          frame.Choice
	everywhere      bool
	installation    string
	write           frame.WriteFlag
	dependents      []string
}

// Command is `godwit rbac`.
func Command(a *frame.App) *cobra.Command {
	o := &rbacOptions{}
	c := &cobra.Command{
		Use:   "rbac [--for=COMMAND] {--user=NAME | --group=NAME | --serviceaccount=NAMESPACE:NAME}... [CRD... | -l SELECTOR | --all | -n NAMESPACE | -A]",
		Short: "Print the roles that a command or the manager needs",
		Long: "Print the roles and bindings that give users, groups or ServiceAccounts the permissions of\n" +
			"one command, and no other permissions.\n\n" +
			"plan and the commands of `" + a.Program + " crd` need CRDs. Name them, or use --selector or --all to read their\n" +
			"names from the cluster. With --api-group, the roles also cover CRDs that you add to the API\n" +
			"group later. The commands of `" + a.Program + " revision` need --namespace or --all-namespaces. Those of\n" +
			"`" + a.Program + " externalname` need CRDs, and take --namespace. Those of `" + a.Program + " resource` need\n" +
			"resources, as for kubectl, or --all, and take --namespace.\n\n" +
			"--for=manager prints the roles of `" + a.Program + " manager` for the custom resources of some API\n" +
			"groups. It is the default if you give no user and no group. With --all-groups, the manager can\n" +
			"write every object of the cluster: give API groups instead where you can.\n\n" +
			"cluster-plan, cluster-run and cluster-enroll are for the global hub. cluster-hub lets a user read\n" +
			"a hub for a preflight: apply it on both hubs. A user with cluster-enroll can act as any hub.\n\n" +
			"cluster-rejoin is for a cluster whose hub is lost. It can patch every object there, to remove that hub as\n" +
			"the owner. --godwit-namespace is the namespace of the cluster's agents.\n\n" +
			"--for=hub-agent prints the roles of `" + a.Program + " agent`. The namespace of its\n" +
			"ServiceAccount is the namespace of the agent.\n\n" +
			"crd-run can patch the CRDs that it migrates, to trim status.storedVersions. crd-check can\n" +
			"create CRDs and update the named CRDs, for its dry run. crd-doctor can list every object of the\n" +
			"cluster, Secrets included: RBAC has no permission for metadata alone. With --dependents, crd-run can\n" +
			"repair ownerReferences of these resources.",
		Example: "  # Let alice upgrade the revisions of one namespace\n" +
			"  " + a.Program + " rbac --user=alice -n shop | kubectl apply -f -\n\n" +
			"  # Let a group plan the migration of all CRDs\n" +
			"  " + a.Program + " rbac --for=crd-plan --group=platform --all | kubectl apply -f -\n\n" +
			"  # Give the manager the permissions for two API groups\n" +
			"  " + a.Program + " rbac --api-group=example.com --api-group=gateway.networking.k8s.io | kubectl apply -f -\n\n" +
			"  # Give the agent of a hub its permissions\n" +
			"  " + a.Program + " rbac --for=hub-agent --serviceaccount=godwit-agent:godwit | kubectl apply -f -",
		ValidArgsFunction: crd.CompleteNames(a),
		RunE: func(c *cobra.Command, args []string) error {
			if err := o.parse(a, c, args); err != nil {
				return err
			}
			if o.command.Value == forManager {
				return permission.Write(a.Streams.Out, o.manager().Objects())
			}
			return printPermissions(c.Context(), a, o)
		},
	}
	o.addFlags(c)
	return c
}

func (o *rbacOptions) addFlags(c *cobra.Command) {
	flags := c.Flags()
	names := []string{forManager}
	for _, one := range commands {
		names = append(names, one.Name)
	}
	o.command = frame.Choice{Allowed: names, Kind: "command"}
	o.command.AddTo(c, "for", "", "the command that needs the permissions: "+strings.Join(names, ", ")+
		" (default: manager without a user or a group; otherwise revision-run with a namespace, crd-run with CRDs)")
	flags.StringArrayVar(&o.users, "user", nil, "name of a user, as the API server authenticates it; repeat the flag for several")
	flags.StringArrayVar(&o.groups, "group", nil, "name of a group of users; repeat the flag for several")
	flags.StringArrayVar(&o.serviceAccounts, "serviceaccount", nil, "a ServiceAccount as NAMESPACE:NAME; repeat the flag for several (default for the manager: godwit:godwit)")
	o.AddTo(c)
	frame.AddAll(c, &o.All, "all CRDs or resources that the cluster has now")
	flags.StringArrayVar(&o.apiGroups, "api-group", nil, "all CRDs of an API group; repeat the flag for several")
	flags.BoolVar(&o.allGroups, "all-groups", false, "all API groups; only for the manager")
	frame.AddAllNamespaces(c, &o.everywhere)
	flags.StringVar(&o.installation, "godwit-namespace", "", "namespace of the manager; with cluster-hub, of the agent of a hub; with resource-run, of the journal; with plan, of the migrations that cluster-move carries out (default: "+permission.ManagerNamespace+", "+permission.AgentNamespace+", kube-system, none)")
	o.controller = frame.Choice{Value: operator.StorageVersionMigrator, Allowed: operator.Controllers, Kind: "string"}
	o.controller.AddTo(c, "controller", "", "controller of the manager that needs the permissions")
	revision.AddFamilyFlag(c, &o.family)
	o.write.AddTo(c)
	flags.StringArrayVar(&o.dependents, "dependents", nil, "a resource whose ownerReferences crd-run repairs, such as configmaps or deployments.apps; repeat the flag for several")
}

// parse checks what can be checked without a cluster.
func (o *rbacOptions) parse(a *frame.App, c *cobra.Command, args []string) error {
	namespaced := c.Flags().Changed("namespace") || o.everywhere
	ofCRDs := len(args) > 0 || o.Selector != "" || o.All || len(o.apiGroups) > 0
	o.infer(namespaced, ofCRDs)
	if err := o.checkSubjects(); err != nil {
		return err
	}
	switch {
	case o.command.Value == forManager:
		return o.parseManager(namespaced, args)
	case len(o.users)+len(o.groups)+len(o.serviceAccounts) == 0:
		return frame.Usagef("specify --user, --group or --serviceaccount")
	case o.allGroups:
		return frame.Usagef("--all-groups is only for the manager: use --all for all CRDs")
	case o.command.Value == "":
		return frame.Usagef("specify --for, CRDs or --namespace")
	}
	switch o.needed().Of {
	case permission.CRDs:
		return o.parseCRDs(c, ofCRDs, args)
	case permission.Resources:
		return o.parseResources(a, c, args)
	case permission.ManagedResources:
		return o.parseManagedResources(a, c, args)
	case permission.Migrations, permission.Hub:
		return o.parseClusters(a, c, ofCRDs)
	case permission.Agent:
		return o.parseAgent(a, namespaced, ofCRDs)
	case permission.Namespaces:
	}
	return o.parseNamespaces(a, c, ofCRDs)
}

func (o *rbacOptions) parseCRDs(c *cobra.Command, ofCRDs bool, args []string) error {
	switch {
	case o.everywhere:
		return frame.Usagef("remove --all-namespaces: CRDs are not namespaced")
	case len(o.dependents) > 0 && o.command.Value != crdpermission.Run.Name:
		return frame.Usagef("--dependents is only for --for=%s", crdpermission.Run)
	case ofCRDs && o.command.Value == crdpermission.Doctor.Name:
		return frame.Usagef("--for=%s takes no CRDs: the command reads all objects of the cluster", crdpermission.Doctor)
	case !ofCRDs && !slices.Contains([]string{crdpermission.Verify.Name, crdpermission.Doctor.Name}, o.command.Value):
		return frame.Usagef("specify NAME..., --selector, --all or --api-group")
	}
	if err := o.checkAPIGroups(); err != nil {
		return err
	}
	return o.Selection.Parse(c, args, true)
}

func (o *rbacOptions) checkSubjects() error {
	for _, one := range o.serviceAccounts {
		if namespace, name, ok := strings.Cut(one, ":"); !ok || namespace == "" || name == "" || strings.Contains(name, ":") {
			return frame.Usagef("invalid argument %q for \"--serviceaccount\": write it as NAMESPACE:NAME", one)
		}
	}
	if slices.Contains(o.users, "") || slices.Contains(o.groups, "") {
		return frame.Usagef("--user and --group need a name")
	}
	return nil
}

// infer returns the command if --for is not set.
func (o *rbacOptions) infer(namespaced, ofCRDs bool) {
	person := len(o.users)+len(o.groups) > 0
	switch {
	case o.command.Value != "":
	case person && namespaced && !ofCRDs:
		o.command.Value = revisionpermission.Run.Name
	case person && ofCRDs && !namespaced:
		o.command.Value = crdpermission.Run.Name
	case !person:
		o.command.Value = forManager
	}
}

func (o *rbacOptions) parseNamespaces(a *frame.App, c *cobra.Command, ofCRDs bool) error {
	if ofCRDs {
		return frame.Usagef("--for=%s takes --namespace or --all-namespaces, and no CRDs", o.command.Value)
	}
	return o.oneNamespaceOrAll(a, c)
}

// oneNamespaceOrAll requires --namespace or --all-namespaces.
func (o *rbacOptions) oneNamespaceOrAll(a *frame.App, c *cobra.Command) error {
	namespace, err := a.GivenNamespace(c)
	if err == nil && namespace == "" && !o.everywhere {
		return frame.Usagef("specify --namespace or --all-namespaces")
	}
	return err
}

// parseClusters takes the namespace of the migrations, where the command is about some.
func (o *rbacOptions) parseClusters(a *frame.App, c *cobra.Command, ofCRDs bool) error {
	o.installation = cmp.Or(o.installation, o.needed().Installation)
	switch {
	case ofCRDs:
		return frame.Usagef("--for=%s takes no CRDs", o.command.Value)
	case o.needed().Of == permission.Migrations:
		return o.oneNamespaceOrAll(a, c)
	case c.Flags().Changed("namespace") || o.everywhere:
		return frame.Usagef("--for=%s takes no namespace of migrations; --godwit-namespace is that of the manager, or of the agent", o.command.Value)
	}
	return nil
}

// parseManagedResources takes the CRDs of managed resources, in one namespace or in all.
func (o *rbacOptions) parseManagedResources(a *frame.App, c *cobra.Command, args []string) error {
	switch {
	case len(args) == 0:
		return frame.Usagef("specify the CRDs of the managed resources")
	case o.Selector != "" || o.All || len(o.apiGroups) > 0:
		return frame.Usagef("--for=%s takes the names of CRDs", o.command.Value)
	}
	o.Names = args
	return o.parseNamespace(a, c)
}

// parseResources takes the resources, and the namespace of their objects.
func (o *rbacOptions) parseResources(a *frame.App, c *cobra.Command, args []string) error {
	if o.Selector != "" || len(o.apiGroups) > 0 || (len(args) > 0) == o.All {
		return frame.Usagef("--for=%s takes resources, as in secrets deployments.apps, or --all", o.command.Value)
	}
	o.Names = args
	return o.parseNamespace(a, c)
}

// parseNamespace takes one namespace or all, which is the default.
func (o *rbacOptions) parseNamespace(a *frame.App, c *cobra.Command) error {
	namespace, err := a.GivenNamespace(c)
	o.everywhere = namespace == ""
	return err
}

// parseAgent takes the namespace of the agent from its ServiceAccount.
func (o *rbacOptions) parseAgent(a *frame.App, namespaced, ofCRDs bool) error {
	switch {
	case len(o.users)+len(o.groups) > 0 || len(o.serviceAccounts) != 1:
		return frame.Usagef("specify --serviceaccount=NAMESPACE:NAME: the agent of a hub runs as one ServiceAccount")
	case ofCRDs || namespaced:
		return frame.Usagef("--for=%s takes no CRDs and no namespace: the agent is in the namespace of its ServiceAccount", o.command.Value)
	}
	*a.Cluster.Namespace, _, _ = strings.Cut(o.serviceAccounts[0], ":")
	return nil
}

func (o *rbacOptions) parseManager(namespaced bool, args []string) error {
	switch ofGroups := o.controller.Value == operator.StorageVersionMigrator; {
	case len(o.users)+len(o.groups) > 0:
		return frame.Usagef("specify --serviceaccount, or another --for: the manager runs as a ServiceAccount")
	case len(o.serviceAccounts) > 1:
		return frame.Usagef("the manager runs as one ServiceAccount")
	case len(args) > 0 || o.Selector != "" || o.All || namespaced:
		return frame.Usagef("specify --api-group=GROUP (repeat it for several) or --all-groups: the roles of the manager are for API groups")
	case !ofGroups && (o.allGroups || len(o.apiGroups) > 0):
		return frame.Usagef("--api-group and --all-groups are only for %s", operator.StorageVersionMigrator)
	case ofGroups && o.allGroups && len(o.apiGroups) > 0:
		return frame.Usagef("--api-group and --all-groups are mutually exclusive")
	case ofGroups && !o.allGroups && len(o.apiGroups) == 0:
		return frame.Usagef("specify --api-group=GROUP (repeat it for several) or --all-groups")
	}
	return o.checkAPIGroups()
}

// checkAPIGroups refuses "", which would be the core group with every Secret in it.
func (o *rbacOptions) checkAPIGroups() error {
	for _, group := range o.apiGroups {
		if !strings.Contains(group, ".") || len(validation.IsDNS1123Subdomain(group)) > 0 {
			return frame.Usagef("%q is not an API group of custom resources: write it like example.com; --all-groups, only for the manager, means every group", group)
		}
	}
	return nil
}

// manager returns the ServiceAccount and the features of the manager.
func (o *rbacOptions) manager() operator.Rights {
	r := operator.Rights{
		Namespace: "godwit", ServiceAccount: "godwit", Feature: o.controller.Value, Groups: o.apiGroups, Writes: []decision.Write{o.write.Write()},
	}
	if len(o.serviceAccounts) > 0 {
		r.Namespace, r.ServiceAccount, _ = strings.Cut(o.serviceAccounts[0], ":")
	}
	if o.allGroups {
		r.Groups = []string{everyGroup}
	}
	return r
}

func (o *rbacOptions) subjects() []rbacv1.Subject {
	var all []rbacv1.Subject
	for _, name := range o.users {
		all = append(all, permission.Subject(name))
	}
	for _, name := range o.groups {
		all = append(all, permission.Group(name))
	}
	for _, one := range o.serviceAccounts {
		namespace, name, _ := strings.Cut(one, ":")
		all = append(all, permission.ServiceAccount(namespace, name))
	}
	return all
}

// printPermissions prints the roles. It reads only the names of CRDs from a cluster, and only for a selector or --all.
func printPermissions(ctx context.Context, a *frame.App, o *rbacOptions) error {
	scope := permission.Scope{
		CRDs: o.Names, APIGroups: o.apiGroups, Listed: len(o.Names) == 0, Write: o.write.Write(), Dependents: o.dependents, Family: revision.Families[o.family.Value].Describe(), Installation: o.installation,
	}
	if !o.everywhere {
		scope.Namespace = *a.Cluster.Namespace
	}
	switch {
	case o.needed().Of == permission.Resources:
		var err error
		if scope.Resources, err = resource.Named(ctx, a, o.Names, o.All); err != nil {
			return err
		}
		scope.CRDs = nil
	case o.Selector != "" || o.All:
		var err error
		if scope.CRDs, err = crd.NamesOf(ctx, a, o.Selection); err != nil {
			return err
		}
	}
	objects, err := permission.Manifest(o.needed(), scope, o.subjects())
	if err != nil {
		return err
	}
	return permission.Write(a.Streams.Out, objects)
}
