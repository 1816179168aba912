package rbac

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-dev/godwit/cmd/internal/crd/crdpermission"
	"github.com/godwit-dev/godwit/cmd/internal/permission"
	"github.com/godwit-dev/godwit/cmd/internal/revision/revisionpermission"
	"github.com/godwit-dev/godwit/internal/storageversion/decision"
	"github.com/godwit-dev/godwit/revision/kubevirt"
)

var alice = []rbacv1.Subject{permission.Subject("alice")}

// atoms are single permissions, as an authorizer knows them.
func atoms(roles []permission.Role) []string {
	var all []string
	for _, role := range roles {
		for _, rule := range role.Rules {
			names := rule.ResourceNames
			if len(names) == 0 {
				names = []string{""}
			}
			for _, group := range rule.APIGroups {
				for _, resource := range rule.Resources {
					for _, verb := range rule.Verbs {
						for _, name := range names {
							all = append(all, strings.Join([]string{role.Namespace, group, resource, verb, name}, "|"))
						}
					}
				}
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// The roles of a command allow what its list says, however few rules say it, and
// nothing else.
func TestRolesAllowExactlyTheList(t *testing.T) {
	family := kubevirt.Family{}.Describe()
	scopes := map[string]permission.Scope{
		"one CRD":       {CRDs: []string{"widgets.example.com"}},
		"several CRDs":  {CRDs: []string{"widgets.example.com", "gadgets.example.com", "geese.example.org"}, Write: decision.WriteStatusPatch},
		"all CRDs":      {CRDs: []string{"widgets.example.com", "gadgets.example.com"}, Listed: true},
		"an API group":  {APIGroups: []string{"example.com"}, Write: decision.WriteUpdate},
		"a namespace":   {Family: family, Namespace: "shop"},
		"the namespace": {Family: family, Namespace: "kube-system"},
		"everywhere":    {Family: family},
	}
	for name, scope := range scopes {
		for _, c := range commands {
			if (c.Of == permission.CRDs) == (scope.Family.Name != "") {
				continue
			}
			var want []permission.Role
			for _, p := range c.Permissions(scope) {
				want = permission.Add(want, p.Namespace, rbacv1.PolicyRule{
					APIGroups: []string{p.Resource.Group}, Resources: []string{p.Resource.Resource}, ResourceNames: p.Names, Verbs: p.Verbs,
				})
			}
			got := permission.Roles(c.Permissions(scope))
			if diff := cmp.Diff(atoms(want), atoms(got)); diff != "" {
				t.Errorf("%s of %s: permissions (-list +roles):\n%s", c, name, diff)
			}
		}
	}
}

func TestListsFollowTheCommand(t *testing.T) {
	family := kubevirt.Family{}.Describe()
	crd := permission.Scope{CRDs: []string{"widgets.example.com"}}
	shop := permission.Scope{Family: family, Namespace: "shop"}
	const (
		widgets   = "|example.com|widgets|"
		revisions = "shop|apps|controllerrevisions|"
	)
	for name, test := range map[string]struct {
		command    permission.Command
		scope      permission.Scope
		has, lacks []string
		reason     string
	}{
		"plan of CRDs": {crdpermission.Plan, crd, []string{widgets + "list|", "kube-system|coordination.k8s.io|leases|list|"}, []string{widgets + "patch|", "|apiextensions.k8s.io|customresourcedefinitions|patch|"},
			"a plan writes nothing"},
		"run of CRDs": {crdpermission.Run, crd, []string{widgets + "patch|", "|apiextensions.k8s.io|customresourcedefinitions/status|patch|widgets.example.com"}, []string{"|apiextensions.k8s.io|customresourcedefinitions/status|patch|"},
			"it trims what it migrates and nothing else"},
		"another write": {crdpermission.Run, permission.Scope{CRDs: crd.CRDs, Write: decision.WriteStatusPatch}, []string{"|example.com|widgets/status|patch|", widgets + "patch|"}, nil,
			"managedFields are cleaned by a patch of the object, whatever the write"},
		"all CRDs": {crdpermission.Plan, permission.Scope{CRDs: crd.CRDs, Listed: true}, []string{"|apiextensions.k8s.io|customresourcedefinitions|list|", "|apiextensions.k8s.io|customresourcedefinitions|get|"}, nil,
			"RBAC does not restrict a list by name"},
		"verify": {crdpermission.Verify, crd, []string{"|apiextensions.k8s.io|customresourcedefinitions|get|widgets.example.com"}, []string{widgets + "list|", "|apiextensions.k8s.io|customresourcedefinitions|get|"},
			"etcd has the objects"},
		"check": {crdpermission.Check, crd, []string{"|apiextensions.k8s.io|customresourcedefinitions|update|widgets.example.com", widgets + "list|"}, []string{"|apiextensions.k8s.io|customresourcedefinitions|update|"},
			"a dry run takes the permission of the write"},
		"status": {revisionpermission.Status, shop, []string{revisions + "list|"}, []string{revisions + "patch|"},
			"it only reads"},
		"run of revisions": {revisionpermission.Run, shop, []string{revisions + "create|", "shop|kubevirt.io|virtualmachines/status|patch|", "shop|snapshot.kubevirt.io|virtualmachinesnapshots/finalizers|update|"}, []string{"|apps|controllerrevisions|create|"},
			"new revisions block the deletion of their owner"},
		"rollback": {revisionpermission.Rollback, shop, []string{revisions + "delete|", revisions + "create|", "shop|kubevirt.io|virtualmachines|patch|", "shop|kubevirt.io|virtualmachines/finalizers|update|"}, []string{"|apps|controllerrevisions|create|"},
			"it creates the revision that a restore needs, if that is gone"},
		"fix": {revisionpermission.Fix, shop, []string{revisions + "update|", "shop|kubevirt.io|virtualmachines|get|", "shop|kubevirt.io|virtualmachines/finalizers|update|"}, []string{revisions + "delete|", revisions + "list|", "shop|kubevirt.io|virtualmachines|patch|"},
			"it writes one revision, and reads its owner"},
	} {
		got := atoms(permission.Roles(test.command.Permissions(test.scope)))
		for _, want := range test.has {
			if !slices.Contains(got, want) {
				t.Errorf("%s: %q is missing (%s) in %q", name, want, test.reason, got)
			}
		}
		for _, unwanted := range test.lacks {
			if slices.Contains(got, unwanted) {
				t.Errorf("%s: %q is too much: %s", name, unwanted, test.reason)
			}
		}
	}
}

// A role of one manifest never replaces a role of another one that allows something
// else, or allows it to another subject.
func TestRolesOfDifferentManifestsHaveDifferentNames(t *testing.T) {
	family := kubevirt.Family{}.Describe()
	type manifest struct {
		command  permission.Command
		scope    permission.Scope
		subjects []rbacv1.Subject
	}
	content := map[string]string{}
	for _, m := range []manifest{
		{revisionpermission.Run, permission.Scope{Family: family, Namespace: "shop"}, alice},
		{revisionpermission.Run, permission.Scope{Family: family, Namespace: "edge"}, alice},
		{revisionpermission.Run, permission.Scope{Family: family}, alice},
		{crdpermission.Run, permission.Scope{CRDs: []string{"widgets.example.com"}}, alice},
		{crdpermission.Run, permission.Scope{CRDs: []string{"gadgets.example.com"}}, alice},
		{crdpermission.Run, permission.Scope{CRDs: []string{"gadgets.example.com"}}, []rbacv1.Subject{permission.Subject("Alice")}},
		{crdpermission.Run, permission.Scope{CRDs: []string{"gadgets.example.com"}}, []rbacv1.Subject{permission.Group("alice")}},
		{crdpermission.Run, permission.Scope{CRDs: []string{"gadgets.example.com"}}, []rbacv1.Subject{permission.Subject("system:serviceaccount:a:alice")}},
		{crdpermission.Run, permission.Scope{CRDs: []string{"gadgets.example.com"}}, []rbacv1.Subject{permission.Subject("system:serviceaccount:b:alice")}},
	} {
		objects, err := permission.Manifest(m.command, m.scope, m.subjects)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range objects {
			key := strings.Join([]string{o.GetObjectKind().GroupVersionKind().Kind, o.GetNamespace(), o.GetName()}, "/")
			var text bytes.Buffer
			if err := permission.Write(&text, []client.Object{o}); err != nil {
				t.Fatal(err)
			}
			if there, ok := content[key]; ok && there != text.String() {
				t.Errorf("two manifests have %s:\n%s\n%s", key, there, text.String())
			}
			content[key] = text.String()
		}
	}
}
