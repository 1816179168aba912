package operator

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/godwit-dev/godwit/api/v1alpha1"
	"github.com/godwit-dev/godwit/cmd/internal/permission"
	"github.com/godwit-dev/godwit/cmd/internal/revision/revisionpermission"
	"github.com/godwit-dev/godwit/internal/storageversion/decision"
	"github.com/godwit-dev/godwit/revision/kubevirt"
)

// serviceAccount makes a namespace and a ServiceAccount's credentials in it, with
// the rights that `godwit rbac` prints, but for those that drop says.
func (c *cluster) serviceAccount(drop func(rbacv1.PolicyRule) bool) (namespace string, user *rest.Config) {
	c.t.Helper()
	return c.serviceAccountOf(StorageVersionMigrator, drop)
}

// serviceAccountOf does so for a feature.
func (c *cluster) serviceAccountOf(feature string, drop func(rbacv1.PolicyRule) bool) (namespace string, user *rest.Config) {
	c.t.Helper()
	namespace = strings.ReplaceAll(c.group, ".", "-")
	if err := c.Create(c.t.Context(), &corev1.Namespace{ObjectMeta: objectMeta(namespace)}); err != nil {
		c.t.Fatal(err)
	}
	for _, o := range (Rights{Namespace: namespace, ServiceAccount: namespace, Feature: feature, Groups: []string{c.group}}).Objects() {
		if role, ok := o.(*rbacv1.ClusterRole); ok {
			role.Rules = slices.DeleteFunc(role.Rules, drop)
		}
		if err := c.Create(c.t.Context(), o); err != nil {
			c.t.Fatal(err)
		}
	}
	user, err := c.plane.AddUser("system:serviceaccount:" + namespace + ":" + namespace)
	if err != nil {
		c.t.Fatal(err)
	}
	return namespace, user
}

// TestManagerRunsWithItsOwnPermissions, leader election and events included.
func TestManagerRunsWithItsOwnPermissions(t *testing.T) {
	c := newCluster(t)
	namespace, user := c.serviceAccount(func(rbacv1.PolicyRule) bool { return false })
	geese := c.define("geese", 20, optedIn)
	p := c.manageAs(user, "storageVersionMigrator: {scopes: [{group: "+c.group+"}], defaults: {settle: 0s}}", electIn+"="+namespace)
	c.flip(geese)
	c.awaitReason(geese, decision.ReasonSucceeded.Name)
	c.mustBeStored(geese, map[string]int{"v2": 20, "v1": 0})
	c.unlabel(geese)
	c.await("the crdmigration to go", func() bool { return c.migration(geese) == nil })
	p.mustEnd()
	for line := range strings.Lines(p.stderr.String()) {
		if strings.Contains(line, "forbidden") {
			t.Errorf("a right is missing: %s", line)
		}
	}
}

// TestMissingPermissionIsABlockerThatNamesTheGrant, and the migration continues once the
// permission is granted.
func TestMissingPermissionIsABlockerThatNamesTheGrant(t *testing.T) {
	c := newCluster(t)
	trim := func(r rbacv1.PolicyRule) bool {
		return slices.Contains(r.Resources, "customresourcedefinitions/status")
	}
	_, user := c.serviceAccount(trim)
	geese := c.define("geese", 5, optedIn)
	c.manageAs(user, "storageVersionMigrator: {scopes: [{group: "+c.group+"}], defaults: {settle: 0s}}")
	c.flip(geese)
	m := c.awaitReason(geese, decision.ReasonBlocked.Name)
	blocked := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionBlocked)
	if blocked == nil || blocked.Reason != decision.ReasonForbidden.Name || len(m.Status.Blockers) != 1 ||
		!strings.Contains(m.Status.Blockers[0].Remedy, "kubectl create clusterrole ") {
		t.Errorf("blocked by %+v, condition %+v", m.Status.Blockers, blocked)
	}
	c.mustBeStored(geese, map[string]int{"v1": 5})

	role := &rbacv1.ClusterRole{ObjectMeta: objectMeta("trim-of-" + c.group), Rules: []rbacv1.PolicyRule{
		rule("apiextensions.k8s.io", "customresourcedefinitions/status", "patch"),
	}}
	if err := c.Create(t.Context(), role); err != nil {
		t.Fatal(err)
	}
	name := strings.ReplaceAll(c.group, ".", "-")
	binding := &rbacv1.ClusterRoleBinding{ObjectMeta: objectMeta(role.Name), RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: name, Name: name}}}
	if err := c.Create(t.Context(), binding); err != nil {
		t.Fatal(err)
	}
	c.awaitReason(geese, decision.ReasonSucceeded.Name)
}

func TestPermissionsFollowTheWrite(t *testing.T) {
	for _, test := range []struct {
		writes []decision.Write
		verbs  string
		status bool
	}{
		{nil, "list,patch", false},
		{[]decision.Write{decision.WritePatch}, "list,patch", false},
		{[]decision.Write{decision.WriteUpdate}, "get,list,patch,update", false},
		{[]decision.Write{decision.WriteStatusPatch}, "list,patch", true},
		{[]decision.Write{decision.WriteStatusApply, decision.WriteUpdate}, "get,list,patch,update", true},
	} {
		verbs, status := (Rights{Writes: test.writes}).verbs()
		if got := strings.Join(verbs, ","); got != test.verbs || status != test.status {
			t.Errorf("%v: %s, status %v, want %s, %v", test.writes, got, status, test.verbs, test.status)
		}
	}
}

// TestOneRoleInEachNamespace: a manager may be where it needs something in any case,
// and two roles of one name can't be.
func TestOneRoleInEachNamespace(t *testing.T) {
	for _, namespace := range []string{"godwit", metav1.NamespaceSystem, metav1.NamespaceDefault} {
		rules := map[string]int{}
		for _, o := range (Rights{Namespace: namespace, ServiceAccount: "godwit"}).Objects() {
			role, ok := o.(*rbacv1.Role)
			if !ok {
				continue
			}
			if _, twice := rules[role.Namespace]; twice {
				t.Errorf("manager in %s: two roles in %s", namespace, role.Namespace)
			}
			rules[role.Namespace] = len(role.Rules)
		}
		want := map[string]int{metav1.NamespaceSystem: 1, metav1.NamespaceDefault: 2} // leases; endpointslices and events
		want[namespace] += 2                                                          // its lease, its events
		if diff := cmp.Diff(want, rules); diff != "" {
			t.Errorf("manager in %s: rules by namespace (-want +got):\n%s", namespace, diff)
		}
	}
}

// TestManagerHasThePermissionsOfARun: it does what `godwit revision run` does, everywhere.
func TestManagerHasThePermissionsOfARun(t *testing.T) {
	role, _ := Rights{Feature: RevisionUpgrader}.Objects()[0].(*rbacv1.ClusterRole)
	for _, p := range revisionpermission.Run.Permissions(permission.Scope{Family: kubevirt.Family{}.Describe()}) {
		for _, verb := range p.Verbs {
			if !slices.ContainsFunc(role.Rules, func(r rbacv1.PolicyRule) bool {
				return slices.Contains(r.APIGroups, p.Resource.Group) && slices.Contains(r.Resources, p.Resource.Resource) && slices.Contains(r.Verbs, verb)
			}) {
				t.Errorf("the manager has no permission to %s %s, which a run needs", verb, p.Resource)
			}
		}
	}
}

// TestOwnKindIsMigratedByTheSameWrite, which needs another verb.
func TestOwnKindIsMigratedByTheSameWrite(t *testing.T) {
	for write, want := range map[decision.Write]bool{decision.WritePatch: false, decision.WriteUpdate: true} {
		role, _ := Rights{Writes: []decision.Write{write}}.Objects()[0].(*rbacv1.ClusterRole)
		got := slices.ContainsFunc(role.Rules, func(r rbacv1.PolicyRule) bool {
			return slices.Contains(r.Resources, "crdmigrations") && slices.Contains(r.Verbs, "update")
		})
		if got != want {
			t.Errorf("%s: update of crdmigrations is %v, want %v", write, got, want)
		}
	}
}
