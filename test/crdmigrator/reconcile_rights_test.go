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
)

var (
	// eventRights are in the namespace default, where events about objects go
	// that have no namespace.
	eventRights = []right{{"create", "events.k8s.io", "events"}, {"patch", "events.k8s.io", "events"}}
	// leaseRights are in kube-system, where the API servers renew their leases.
	leaseRights = []right{{"list", "coordination.k8s.io", "leases"}}
	// toSeeOthers spares two migrators the same work. Nothing depends on it.
	toSeeOthers = right{"list", "storagemigration.k8s.io", "storageversionmigrations"}
)

// grantIn gives rights in one namespace and returns when the server knows of them.
func (w *widgets) grantIn(namespace string, config *rest.Config, user string, rights ...right) {
	w.t.Helper()
	admin, err := kubernetes.NewForConfig(w.plane.Config())
	if err != nil {
		w.t.Fatal(err)
	}
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{GenerateName: "rights-of-" + w.group + "-"}}
	for _, r := range rights {
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
	for _, r := range rights {
		review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
			ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: namespace, Verb: r.verb, Group: r.group, Resource: r.resource},
		}}
		await(w.t, "right "+r.verb+" "+r.resource+" in "+namespace, func() bool {
			answer, err := theirs.AuthorizationV1().SelfSubjectAccessReviews().Create(w.t.Context(), review, metav1.CreateOptions{})
			return err == nil && answer.Status.Allowed
		})
	}
}

// TestReconcileNeedsExactlyTheseRights: what an operator asks for on its way
// through a failure to the trim is what it was granted, neither more nor less.
func TestReconcileNeedsExactlyTheseRights(t *testing.T) {
	t.Parallel()
	w := newWidgets(t, shared)
	w.fill("v1", 10)
	w.flip()
	w.optIn()
	h := w.newWebhook(deny("w-0003"))
	w.awaitRefused("w-0003", denied)
	name, user := w.user(w.selectorRights()...)
	w.grantIn(metav1.NamespaceDefault, user, name, eventRights...)
	w.grantIn(metav1.NamespaceSystem, user, name, leaseRights...)
	user, wire := tap(user)
	o := w.selectingAs(user, func(o *operator) { o.migrator.Recorder = o.manager.GetEventRecorder("crdmigrator") })
	o.start()
	await(o.t, "an event that is told again", func() bool {
		return wire.count(func(e exchange) bool { return e.method == http.MethodPatch && strings.Contains(e.path, "/events/") }) > 0
	})
	h.decide(allow)
	o.awaitAnnotation(crdmigrator.ObservedGenerationAnnotation, strconv.FormatInt(w.crd().Generation, 10))
	w.mustHaveStoredVersions("with these rights", "v2")

	refused := wire.count(func(e exchange) bool {
		return e.code == http.StatusForbidden && !strings.HasSuffix(e.path, "/"+toSeeOthers.resource)
	})
	if refused > 0 {
		t.Errorf("%d requests were refused", refused)
	}
	byName := func(a, b right) int {
		return cmp.Or(strings.Compare(a.group, b.group), strings.Compare(a.resource, b.resource), strings.Compare(a.verb, b.verb))
	}
	want := slices.SortedFunc(slices.Values(slices.Concat(w.selectorRights(), eventRights, leaseRights)), byName)
	got := slices.DeleteFunc(slices.SortedFunc(maps.Keys(o.asked()), byName), func(r right) bool { return r == toSeeOthers })
	if diff := gocmp.Diff(want, got, gocmp.AllowUnexported(right{})); diff != "" {
		t.Errorf("granted and asked for differ (-granted +asked for):\n%s", diff)
	}
}

// asked are the rights that the operator's requests take, beside those that every
// user has: to discover what is served, and to ask about itself.
func (o *operator) asked() map[right]bool {
	asked := map[right]bool{}
	for _, request := range o.requests.matching(func(string) bool { return true }) {
		r, ok := rightFor(request)
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

// rightFor reads a line of the request log: /apis/group/version, perhaps
// /namespaces/namespace, /resource, perhaps /name and /subresource.
func rightFor(request string) (r right, ok bool) {
	method, uri, _ := strings.Cut(request, " ")
	path, query, _ := strings.Cut(uri, "?")
	parts := strings.Split(strings.TrimPrefix(path, "/apis/"), "/")
	if !strings.HasPrefix(path, "/apis/") || len(parts) < 3 || parts[0] == "authorization.k8s.io" || parts[0] == "authentication.k8s.io" {
		return right{}, false
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

// TestReconcileNamesTheMissingRight: a right that is missing is found before the
// first write, and somebody who may grant it gets to know which.
func TestReconcileNamesTheMissingRight(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		missing right
		named   string
	}{
		"trim":       {right{"patch", crdsGroup, "customresourcedefinitions/status"}, "patch customresourcedefinitions.apiextensions.k8s.io/status"},
		"checkpoint": {right{"patch", crdsGroup, "customresourcedefinitions"}, "patch customresourcedefinitions.apiextensions.k8s.io "},
		"update":     {right{verb: "update"}, "update widgets."},
		"get":        {right{verb: "get"}, "get widgets."},
		"list":       {right{verb: "list"}, "list widgets."},
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
			rights := slices.DeleteFunc(w.selectorRights(), func(r right) bool { return r == test.missing })
			_, user := w.user(rights...)
			before := w.crd().ResourceVersion
			said := &recorder{}
			o := w.selectingAs(user, func(o *operator) { o.migrator.Recorder = said })
			if _, err := o.reconcile(t.Context()); err == nil || !strings.Contains(err.Error(), test.named) {
				t.Errorf("without the right: %v, want an error that names %q", err, test.named)
			}
			events := said.warnings()
			if len(events) != 1 || events[0].reason != crdmigrator.EventFailed || !strings.Contains(events[0].note, test.named) {
				t.Errorf("events: %+v, want one that names %q", events, test.named)
			}
			if n := o.updates(); n != 0 || w.crd().ResourceVersion != before {
				t.Errorf("%d updates, and the CRD went from resourceVersion %s to %s, want neither", n, before, w.crd().ResourceVersion)
			}
			w.mustBeStored("without the right", map[string]int{"v1": 5})
			w.mustHaveStoredVersions("without the right", "v1,v2")
		})
	}
}

// TestUpdateSaysWhyItCouldNotRead: an update begins with a read, whose refusal is
// to reach a person as the server worded it.
func TestUpdateSaysWhyItCouldNotRead(t *testing.T) {
	t.Parallel()
	w := newWidgets(t, shared)
	w.fill("v1", 3)
	w.flip()
	plan, err := newMigrator(t, w.config, crdmigrator.Options{Policy: quickSettle}).Plan(t.Context(), w.name)
	if err != nil {
		t.Fatal(err)
	}
	_, blind := w.user(slices.DeleteFunc(w.selectorRights(), func(r right) bool { return r == right{"get", w.group, w.plural} })...)
	m := newMigrator(t, blind, crdmigrator.Options{
		Policy:   crdmigrator.Policy{Settle: -1, SettleFromSight: true, Write: crdmigrator.WriteUpdate},
		Attempts: 1, // a server that has only just started words it alike
	})
	report, err := m.Run(t.Context(), plan, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range report.Storage.Failures {
		if !strings.Contains(f.Reason, "cannot get resource") {
			t.Errorf("%s failed for the reason %q, want the right that is missing", f.Name, f.Reason)
		}
	}
	if n := len(report.Storage.Failures); n != 3 {
		t.Errorf("%d failures, want one of each object", n)
	}
}
