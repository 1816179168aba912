package crdmigrator_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/crdmigrator"
)

// crdsGroup is where CustomResourceDefinitions are.
const crdsGroup = "apiextensions.k8s.io"

// right is a verb on a resource; a subresource comes after a slash.
type right struct {
	verb, group, resource string
}

// readCRD is what planning takes at least.
var readCRD = right{"get", crdsGroup, "customresourcedefinitions"}

// migrationRights are all that a migration needs.
func (w *widgets) migrationRights() []right {
	return []right{
		readCRD,
		{"list", w.group, w.plural},
		{"patch", w.group, w.plural},
		{"patch", crdsGroup, "customresourcedefinitions"},
		{"patch", crdsGroup, "customresourcedefinitions/status"},
	}
}

// user makes a user with some rights and no others.
func (w *widgets) user(rights ...right) (name string, config *rest.Config) {
	w.t.Helper()
	name = "user-of-" + w.group
	config, err := w.plane.AddUser(name)
	if err != nil {
		w.t.Fatal(err)
	}
	w.grant(config, name, rights...)
	return name, config
}

// grant gives rights to a user and returns when the server knows of them.
func (w *widgets) grant(config *rest.Config, user string, rights ...right) {
	w.t.Helper()
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{GenerateName: "rights-of-" + w.group + "-"}}
	for _, r := range rights {
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
	for _, r := range rights {
		w.awaitAllowed(config, r)
	}
}

func (w *widgets) awaitAllowed(config *rest.Config, r right) {
	w.t.Helper()
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		w.t.Fatal(err)
	}
	resource, subresource, _ := strings.Cut(r.resource, "/")
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: r.verb, Group: r.group, Resource: resource, Subresource: subresource},
	}}
	await(w.t, "right "+r.verb+" "+r.resource, func() bool {
		answer, err := clients.AuthorizationV1().SelfSubjectAccessReviews().Create(w.t.Context(), review, metav1.CreateOptions{})
		return err == nil && answer.Status.Allowed
	})
}

// patience is for a machine that has much else to do: what is waited for takes
// seconds on an idle one.
const patience = 2 * time.Minute

// await polls until the condition holds: neither a server nor a reconciler tells
// anybody that it is done.
func await(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !holds(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited %v for %s", patience, what)
		}
	}
}

// withoutLeases is a user who has all the rights that a migration needs. It may
// not read the API servers' leases, so that for it time alone decides when to
// begin: with quickSettle that is at once, not after the next renewal.
func (w *widgets) withoutLeases() *rest.Config {
	w.t.Helper()
	_, config := w.user(w.migrationRights()...)
	return config
}

// quickMigrator begins as soon as the server in front has adopted a change.
func (w *widgets) quickMigrator(o crdmigrator.Options) *crdmigrator.Migrator {
	w.t.Helper()
	o.Policy = quickSettle
	return newMigrator(w.t, w.withoutLeases(), o)
}

// TestMissingRightsAreNamedWithTheirGrants: the plan says which rights are
// missing, and the commands it offers grant exactly these.
func TestMissingRightsAreNamedWithTheirGrants(t *testing.T) {
	t.Parallel()
	w := newWidgets(t, shared)
	w.fill("v1", 20)
	w.flip()
	user, config := w.user(readCRD)
	m := newMigrator(t, config, crdmigrator.Options{Policy: quickSettle})

	facts, err := m.Observe(t.Context(), w.name)
	if err != nil {
		t.Fatal(err)
	}
	if facts.Objects != nil || facts.Servers != nil {
		t.Errorf("without the right to list: %v objects, servers %v, want neither", facts.Objects, facts.Servers)
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
	mustBeBlocked(t, plan, crdmigrator.ReasonForbidden, len(wants))
	for i, b := range plan.Blockers {
		if want := user + " may not " + wants[i]; b.Message != want {
			t.Errorf("blocker %d says %q, want %q", i, b.Message, want)
		}
	}
	var blocked *crdmigrator.BlockedError
	if _, err := m.Run(t.Context(), plan, nil); !errors.As(err, &blocked) {
		t.Errorf("running a blocked plan: %v, want BlockedError", err)
	}
	w.mustBeStored("a blocked plan writes nothing", map[string]int{"v1": 20})

	for _, b := range plan.Blockers {
		w.grant(config, user, rightOf(t, b, user))
	}
	if plan, err = m.Plan(t.Context(), w.name); err != nil {
		t.Fatal(err)
	}
	if plan.State != crdmigrator.Ready || plan.Objects == nil || *plan.Objects != 20 {
		t.Errorf("with the offered rights granted, plan = %+v, want Ready with 20 objects", plan)
	}
	w.mustMigrate(m)
	w.mustBeStored("with the offered rights granted", map[string]int{"v2": 20})
	w.mustHaveStoredVersions("with the offered rights granted", "v2")
}

// rightOf reads the right out of the kubectl commands of a remedy.
func rightOf(t *testing.T, b godwit.Blocker, user string) right {
	t.Helper()
	var r right
	for field := range strings.FieldsSeq(b.Remedy) {
		if verb, ok := strings.CutPrefix(field, "--verb="); ok {
			r.verb = verb
		}
		if resource, ok := strings.CutPrefix(field, "--resource="); ok {
			// kubectl's form is resource.group/subresource.
			resource, subresource, found := strings.Cut(resource, "/")
			parsed := schema.ParseGroupResource(resource)
			r.group, r.resource = parsed.Group, parsed.Resource
			if found {
				r.resource += "/" + subresource
			}
		}
	}
	if r.verb == "" || r.resource == "" || !strings.Contains(b.Remedy, "--user="+user) {
		t.Errorf("remedy %q grants nothing to %s", b.Remedy, user)
	}
	return r
}

func mustBeBlocked(t *testing.T, plan crdmigrator.Plan, reason string, n int) {
	t.Helper()
	if plan.State != crdmigrator.Blocked || len(plan.Blockers) != n {
		t.Fatalf("plan is %s by %+v, want Blocked by %d × %s", plan.State, plan.Blockers, n, reason)
	}
	for _, b := range plan.Blockers {
		if b.Reason != reason || b.Message == "" || b.Remedy == "" {
			t.Errorf("blocker %+v, want reason %s, a message and a remedy", b, reason)
		}
	}
}

// TestTimeAloneDecidesWithoutLeases: whoever may not read the leases waits for
// the settle time, counted from the change, and then migrates.
func TestTimeAloneDecidesWithoutLeases(t *testing.T) {
	t.Parallel()
	const settle = 3 * time.Second
	w := newWidgets(t, shared)
	w.fill("v1", 20)
	m := newMigrator(t, w.withoutLeases(), crdmigrator.Options{Policy: crdmigrator.Policy{Settle: settle}})
	began := time.Now().Truncate(time.Second) // the API server's times are cut to it
	w.flip()

	plan, err := m.Plan(t.Context(), w.name)
	if err != nil {
		t.Fatal(err)
	}
	_, err = m.Run(t.Context(), plan, nil)
	var notSettled *crdmigrator.NotSettledError
	if !errors.As(err, &notSettled) {
		t.Fatalf("run right after the flip: %v, want NotSettledError", err)
	}
	if len(notSettled.Servers) != 0 || notSettled.Until.Before(began.Add(settle)) {
		t.Errorf("waits until %v for %v, want at least %v for nobody", notSettled.Until, notSettled.Servers, began.Add(settle))
	}
	w.mustBeStored("before the settle time is over", map[string]int{"v1": 20})

	w.mustMigrate(m)
	if waited := time.Since(began); waited < settle {
		t.Errorf("migrated %v after the flip, want at least %v", waited, settle)
	}
	w.mustBeStored("in the end", map[string]int{"v2": 20})
	w.mustHaveStoredVersions("in the end", "v2")
}
