package crdmigrator_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/internal/storageversion"
	"github.com/godwit-dev/godwit/internal/storageversion/decision"
)

// crdsGroup is the API group of CRDs.
const crdsGroup = "apiextensions.k8s.io"

// permission is a verb on a resource; a subresource comes after a slash.
type permission struct {
	verb, group, resource string
}

// readCRD is the least permission that a plan needs.
var readCRD = permission{"get", crdsGroup, "customresourcedefinitions"}

// migrationPermissions are all that a migration needs.
func (w *widgets) migrationPermissions() []permission {
	return []permission{
		readCRD,
		{"list", w.group, w.plural},
		{"patch", w.group, w.plural},
		{"patch", crdsGroup, "customresourcedefinitions"},
		{"patch", crdsGroup, "customresourcedefinitions/status"},
	}
}

// user makes a user with some permissions and no others.
func (w *widgets) user(permissions ...permission) (name string, config *rest.Config) {
	w.t.Helper()
	name = "user-of-" + w.group
	config, err := w.plane.AddUser(name)
	if err != nil {
		w.t.Fatal(err)
	}
	w.grant(config, name, permissions...)
	return name, config
}

// grant grants permissions to a user, and returns when the server applies them.
func (w *widgets) grant(config *rest.Config, user string, permissions ...permission) {
	w.t.Helper()
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{GenerateName: "permissions-of-" + w.group + "-"}}
	for _, r := range permissions {
		role.Rules = append(role.Rules, rbacv1.PolicyRule{
			Verbs: []string{r.verb}, APIGroups: []string{r.group}, Resources: []string{r.resource},
		})
	}
	admin, err := kubernetes.NewForConfig(w.plane.Config())
	if err != nil {
		w.t.Fatal(err)
	}
	if role, err = admin.RbacV1().ClusterRoles().Create(w.t.Context(), role, metav1.CreateOptions{}); err != nil {
		w.t.Fatal(err)
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role.Name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	}
	if _, err := admin.RbacV1().ClusterRoleBindings().Create(w.t.Context(), binding, metav1.CreateOptions{}); err != nil {
		w.t.Fatal(err)
	}
	for _, r := range permissions {
		w.awaitAllowed(config, r)
	}
}

func (w *widgets) awaitAllowed(config *rest.Config, r permission) {
	w.t.Helper()
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		w.t.Fatal(err)
	}
	resource, subresource, _ := strings.Cut(r.resource, "/")
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: r.verb, Group: r.group, Resource: resource, Subresource: subresource},
	}}
	await(w.t, "permission "+r.verb+" "+r.resource, func() bool {
		answer, err := clients.AuthorizationV1().SelfSubjectAccessReviews().Create(w.t.Context(), review, metav1.CreateOptions{})
		return err == nil && answer.Status.Allowed
	})
}

// awaitLimit allows for a busy machine: conditions take seconds on an idle one.
const awaitLimit = 5 * time.Minute

// await polls until the condition is true: less often the longer it takes, because a
// condition costs requests, and the other tests need the processor.
func await(t *testing.T, what string, holds func() bool) {
	t.Helper()
	pause, deadline := 20*time.Millisecond, time.Now().Add(awaitLimit)
	for !holds() {
		if time.Now().After(deadline) {
			t.Fatalf("waited %v for %s", awaitLimit, what)
		}
		time.Sleep(pause)
		pause = min(pause*3/2, 300*time.Millisecond)
	}
}

// withoutLeases is a user with all permissions that a migration needs, but not to read the
// API servers' leases, so that only the settle time decides when a run begins: with
// quickSettle at once, not after the next renewal.
func (w *widgets) withoutLeases() *rest.Config {
	w.t.Helper()
	_, config := w.user(w.migrationPermissions()...)
	return config
}

// quickMigrator begins as soon as the API server has adopted a change.
func (w *widgets) quickMigrator(o storageversion.Options) *storageversion.Migrator {
	w.t.Helper()
	o.Policy = quickSettle
	return newMigrator(w.t, w.withoutLeases(), o)
}

// TestPlanAndRunNameMissingPermissions: the plan names the missing permissions, and the
// commands of its remedies grant exactly these.
func TestPlanAndRunNameMissingPermissions(t *testing.T) {
	t.Parallel()
	w := newWidgets(t, shared)
	w.fill("v1", 20)
	w.flip()
	user, config := w.user(readCRD)
	m := newMigrator(t, config, storageversion.Options{Policy: quickSettle})

	facts, err := m.Observe(t.Context(), w.name)
	if err != nil {
		t.Fatal(err)
	}
	if facts.Objects != nil || facts.Servers != nil {
		t.Errorf("without the permission to list: %v objects, servers %v, want neither", facts.Objects, facts.Servers)
	}
	plan, err := m.Plan(t.Context(), w.name)
	if err != nil {
		t.Fatal(err)
	}
	wants := []string{
		"list widgets." + w.group,
		"patch widgets." + w.group,
		"patch customresourcedefinitions.apiextensions.k8s.io/status " + w.name,
		"patch customresourcedefinitions.apiextensions.k8s.io " + w.name,
	}
	mustBeBlocked(t, plan, decision.ReasonForbidden, len(wants))
	for i, b := range plan.Blockers {
		if want := user + " may not " + wants[i]; b.Message != want {
			t.Errorf("blocker %d = %q, want it to name %q", i, b.Message, want)
		}
	}
	var blocked *decision.BlockedError
	if _, err := m.Run(t.Context(), plan, nil); !errors.As(err, &blocked) {
		t.Errorf("running a blocked plan: %v, want BlockedError", err)
	}
	w.mustBeStored("a blocked plan writes nothing", map[string]int{"v1": 20})

	for _, b := range plan.Blockers {
		w.grant(config, user, permissionOf(t, b, user))
	}
	if plan, err = m.Plan(t.Context(), w.name); err != nil {
		t.Fatal(err)
	}
	if plan.State != decision.Ready || plan.Objects == nil || *plan.Objects != 20 {
		t.Errorf("with the permissions granted, plan = %+v, want Ready with 20 objects", plan)
	}
	w.mustMigrate(m)
	w.mustBeStored("with the permissions granted", map[string]int{"v2": 20})
	w.mustHaveStoredVersions("with the permissions granted", "v2")
}

// permissionOf is the permission that the fix of a blocker grants.
func permissionOf(t *testing.T, b godwit.Finding, user string) permission {
	t.Helper()
	for _, a := range b.Fix.Actions() {
		if g, ok := a.(godwit.GrantPermission); ok && g.User == user {
			return permission{g.Verb, g.Group, g.Resource}
		}
	}
	t.Errorf("the fix %q grants nothing to %s", b.Fix, user)
	return permission{}
}

func mustBeBlocked(t *testing.T, plan decision.Plan, reason *godwit.Reason, n int) {
	t.Helper()
	if plan.State != decision.Blocked || len(plan.Blockers) != n {
		t.Fatalf("plan is %s by %+v, want Blocked by %d × %s", plan.State, plan.Blockers, n, reason)
	}
	for _, b := range plan.Blockers {
		if b.Reason != reason || b.Message == "" || b.Fix.String() == "" {
			t.Errorf("blocker %+v, want reason %s, a message and a fix", b, reason)
		}
	}
}

// TestSettleTimeDecidesWithoutLeases: without the permission to read the leases, a run
// waits for the settle time since the change, and then migrates.
func TestSettleTimeDecidesWithoutLeases(t *testing.T) {
	t.Parallel()
	const settle = 10 * time.Second // longer than a plan and a run take on a busy machine
	w := newWidgets(t, shared)
	w.fill("v1", 20)
	m := newMigrator(t, w.withoutLeases(), storageversion.Options{Policy: decision.Policy{Settle: settle}})
	began := time.Now().Truncate(time.Second) // the API server's times are cut to it
	w.flip()

	plan, err := m.Plan(t.Context(), w.name)
	if err != nil {
		t.Fatal(err)
	}
	_, err = m.Run(t.Context(), plan, nil)
	var notSettled *decision.NotSettledError
	if !errors.As(err, &notSettled) {
		t.Fatalf("run right after the flip: %v, want NotSettledError", err)
	}
	if len(notSettled.Servers) != 0 || notSettled.Until.Before(began.Add(settle)) {
		t.Errorf("waits until %v for servers %v, want at least %v and no server", notSettled.Until, notSettled.Servers, began.Add(settle))
	}
	w.mustBeStored("before the settle time is over", map[string]int{"v1": 20})

	w.mustMigrate(m)
	if waited := time.Since(began); waited < settle {
		t.Errorf("migrated %v after the flip, want at least %v", waited, settle)
	}
	w.mustBeStored("in the end", map[string]int{"v2": 20})
	w.mustHaveStoredVersions("in the end", "v2")
}
