package crdmigrator_test

import (
	"cmp"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/godwit-dev/godwit/crdmigrator"
	"github.com/godwit-dev/godwit/internal/storageversion"
	"github.com/godwit-dev/godwit/internal/storageversion/decision"
)

var (
	// eventPermissions are in the namespace default, where events about
	// cluster-scoped objects are.
	eventPermissions = []permission{{"create", "events.k8s.io", "events"}, {"patch", "events.k8s.io", "events"}}
	// endpointPermissions are in the namespace default, where the addresses of the API servers are.
	endpointPermissions = []permission{{"list", "discovery.k8s.io", "endpointslices"}}
	// leasePermissions are in kube-system, where the API servers renew their leases.
	leasePermissions = []permission{{"list", "coordination.k8s.io", "leases"}}
	// toSeeOthers lets two migrators avoid the same work, and is optional.
	toSeeOthers = permission{"list", "storagemigration.k8s.io", "storageversionmigrations"}
)

// grantIn grants permissions in one namespace, and returns when the server applies them.
func (w *widgets) grantIn(namespace string, config *rest.Config, user string, permissions ...permission) {
	w.t.Helper()
	admin, err := kubernetes.NewForConfig(w.plane.Config())
	if err != nil {
		w.t.Fatal(err)
	}
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{GenerateName: "permissions-of-" + w.group + "-"}}
	for _, r := range permissions {
		role.Rules = append(role.Rules, rbacv1.PolicyRule{Verbs: []string{r.verb}, APIGroups: []string{r.group}, Resources: []string{r.resource}})
	}
	if role, err = admin.RbacV1().Roles(namespace).Create(w.t.Context(), role, metav1.CreateOptions{}); err != nil {
		w.t.Fatal(err)
	}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role.Name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	}
	if _, err := admin.RbacV1().RoleBindings(namespace).Create(w.t.Context(), binding, metav1.CreateOptions{}); err != nil {
		w.t.Fatal(err)
	}
	theirs, err := kubernetes.NewForConfig(config)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, r := range permissions {
		review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
			ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: namespace, Verb: r.verb, Group: r.group, Resource: r.resource},
		}}
		await(w.t, "permission "+r.verb+" "+r.resource+" in "+namespace, func() bool {
			answer, err := theirs.AuthorizationV1().SelfSubjectAccessReviews().Create(w.t.Context(), review, metav1.CreateOptions{})
			return err == nil && answer.Status.Allowed
		})
	}
}

// TestReconcileNeedsExactlyThesePermissions: from a failure to the trim, an operator uses
// exactly the permissions that it was granted.
func TestReconcileNeedsExactlyThesePermissions(t *testing.T) {
	t.Parallel()
	w := newWidgets(t, shared)
	w.fill("v1", 10)
	w.flip()
	w.optIn()
	h := w.newWebhook(deny("w-0003"))
	w.awaitRefused("w-0003", denied)
	name, user := w.user(w.selectorPermissions()...)
	w.grantIn(metav1.NamespaceDefault, user, name, slices.Concat(eventPermissions, endpointPermissions)...)
	w.grantIn(metav1.NamespaceSystem, user, name, leasePermissions...)
	user, wire := tap(user)
	o := w.selectingAs(user, func(o *operator) { o.migrator.Recorder = o.manager.GetEventRecorder("crdmigrator") })
	o.start()
	await(o.t, "an event that is emitted again", func() bool {
		return wire.count(func(e exchange) bool { return e.method == http.MethodPatch && strings.Contains(e.path, "/events/") }) > 0
	})
	h.setDecide(allow)
	o.awaitAnnotation(crdmigrator.ObservedGenerationAnnotation, strconv.FormatInt(w.crd().Generation, 10))
	w.mustHaveStoredVersions("with these permissions", "v2")

	refused := wire.count(func(e exchange) bool {
		return e.code == http.StatusForbidden && !strings.HasSuffix(e.path, "/"+toSeeOthers.resource)
	})
	if refused > 0 {
		t.Errorf("%d requests were refused", refused)
	}
	byName := func(a, b permission) int {
		return cmp.Or(strings.Compare(a.group, b.group), strings.Compare(a.resource, b.resource), strings.Compare(a.verb, b.verb))
	}
	want := slices.SortedFunc(slices.Values(slices.Concat(w.selectorPermissions(), eventPermissions, leasePermissions, endpointPermissions)), byName)
	got := slices.DeleteFunc(slices.SortedFunc(maps.Keys(o.asked()), byName), func(r permission) bool { return r == toSeeOthers })
	if diff := gocmp.Diff(want, got, gocmp.AllowUnexported(permission{})); diff != "" {
		t.Errorf("permissions (-granted +used):\n%s", diff)
	}
}

// asked returns the permissions that the operator's requests need, without those that
// every user has: discovery, and reviews of its own access.
func (o *operator) asked() map[permission]bool {
	asked := map[permission]bool{}
	for _, request := range o.requests.matching(func(string) bool { return true }) {
		r, ok := permissionFor(request)
		if !ok {
			continue
		}
		asked[r] = true
		if strings.Contains(request, "sendInitialEvents=true") {
			r.verb = "list" // which an informer does where the server can't send a list as events
			asked[r] = true
		}
	}
	return asked
}

// permissionFor reads a line of the request log: /apis/group/version, perhaps
// /namespaces/namespace, /resource, perhaps /name and /subresource.
func permissionFor(request string) (r permission, ok bool) {
	method, uri, _ := strings.Cut(request, " ")
	path, query, _ := strings.Cut(uri, "?")
	parts := strings.Split(strings.TrimPrefix(path, "/apis/"), "/")
	if !strings.HasPrefix(path, "/apis/") || len(parts) < 3 || parts[0] == "authorization.k8s.io" || parts[0] == "authentication.k8s.io" {
		return permission{}, false
	}
	r.group, parts = parts[0], parts[2:]
	if parts[0] == "namespaces" && len(parts) > 2 {
		parts = parts[2:]
	}
	r.resource = parts[0]
	if len(parts) > 2 {
		r.resource += "/" + parts[2]
	}
	r.verb = map[string]string{http.MethodPost: "create", http.MethodPut: "update", http.MethodPatch: "patch", http.MethodDelete: "delete"}[method]
	switch {
	case r.verb != "":
	case strings.Contains(query, "watch=true"):
		r.verb = "watch"
	case len(parts) == 1:
		r.verb = "list"
	default:
		r.verb = "get"
	}
	return r, true
}

// TestReconcileNamesTheMissingPermission before the first write, in its error and in an
// event.
func TestReconcileNamesTheMissingPermission(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		missing permission
		named   string
	}{
		"trim":       {permission{"patch", crdsGroup, "customresourcedefinitions/status"}, "patch customresourcedefinitions.apiextensions.k8s.io/status"},
		"checkpoint": {permission{"patch", crdsGroup, "customresourcedefinitions"}, "patch customresourcedefinitions.apiextensions.k8s.io "},
		"update":     {permission{verb: "update"}, "update widgets."},
		"get":        {permission{verb: "get"}, "get widgets."},
		"list":       {permission{verb: "list"}, "list widgets."},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWidgets(t, shared)
			w.fill("v1", 5)
			w.flip()
			w.optIn()
			if test.missing.group == "" {
				test.missing.group, test.missing.resource = w.group, w.plural
			}
			permissions := slices.DeleteFunc(w.selectorPermissions(), func(r permission) bool { return r == test.missing })
			_, user := w.user(permissions...)
			before := w.crd().ResourceVersion
			said := &recorder{}
			o := w.selectingAs(user, func(o *operator) { o.migrator.Recorder = said })
			if _, err := o.reconcile(t.Context()); err == nil || !strings.Contains(err.Error(), test.named) {
				t.Errorf("reconcile without the permission: %v, want an error that names %q", err, test.named)
			}
			events := said.warnings()
			if len(events) != 1 || events[0].reason != crdmigrator.EventFailed || !strings.Contains(events[0].note, test.named) {
				t.Errorf("events: %+v, want one that names %q", events, test.named)
			}
			if n := o.updates(); n != 0 || w.crd().ResourceVersion != before {
				t.Errorf("%d updates, and the CRD went from resourceVersion %s to %s, want neither", n, before, w.crd().ResourceVersion)
			}
			w.mustBeStored("without the permission", map[string]int{"v1": 5})
			w.mustHaveStoredVersions("without the permission", "v1,v2")
		})
	}
}

// TestUpdateReportsWhyItCouldNotRead: an update begins with a read, and the report has the
// server's message when that is refused.
func TestUpdateReportsWhyItCouldNotRead(t *testing.T) {
	t.Parallel()
	w := newWidgets(t, shared)
	w.fill("v1", 3)
	w.flip()
	plan, err := newMigrator(t, w.config, storageversion.Options{Policy: quickSettle}).Plan(t.Context(), w.name)
	if err != nil {
		t.Fatal(err)
	}
	_, blind := w.user(slices.DeleteFunc(w.selectorPermissions(), func(r permission) bool { return r == permission{"get", w.group, w.plural} })...)
	m := newMigrator(t, blind, storageversion.Options{
		Policy:   decision.Policy{Settle: -1, SettleFromSight: true, Write: crdmigrator.WriteUpdate},
		Attempts: 1, // a server that has just started has the same message
	})
	report, err := m.Run(t.Context(), plan, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range report.Storage.Failures {
		if !strings.Contains(f.Message, "cannot get resource") {
			t.Errorf("message of %s = %q, want the missing permission", f.Name, f.Message)
		}
	}
	if n := len(report.Storage.Failures); n != 3 {
		t.Errorf("%d failures, want one of each object", n)
	}
}
