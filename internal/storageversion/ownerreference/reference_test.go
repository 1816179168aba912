package ownerreference

import (
	"encoding/json"
	"slices"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/internal/fixtest"
	"github.com/godwit-dev/godwit/internal/kube/kubetest"
	"github.com/godwit-dev/godwit/internal/quicklist"
	"github.com/godwit-dev/godwit/internal/storageversion/decision"
)

// widgets serves v2 and v3, and stores v3.
func widgets(edits ...kubetest.Edit) *apiextensionsv1.CustomResourceDefinition {
	return kubetest.Widgets(append([]kubetest.Edit{kubetest.Versions(
		apiextensionsv1.CustomResourceDefinitionVersion{Name: "v1"},
		apiextensionsv1.CustomResourceDefinitionVersion{Name: "v2", Served: true},
		apiextensionsv1.CustomResourceDefinitionVersion{Name: "v3", Served: true, Storage: true},
	), func(crd *apiextensionsv1.CustomResourceDefinition) { crd.Spec.Scope = apiextensionsv1.NamespaceScoped }}, edits...)...)
}

func TestNames(t *testing.T) {
	references := []metav1.OwnerReference{
		{APIVersion: "example.com/v1", Kind: "Widget"},
		{APIVersion: "example.com/v2", Kind: "Widget"},
		{APIVersion: "example.com/v3", Kind: "Widget"},
		{APIVersion: "example.com/v0", Kind: "Widget"},
		{APIVersion: "example.com/v1", Kind: "Gadget"},
		{APIVersion: "v1", Kind: "Widget"},
		{APIVersion: "a/b/c", Kind: "Widget"},
	}
	for scope, want := range map[Scope][]int{ServedVersions: {0, 3}, StorageVersion: {0, 1, 3}} {
		if got := OwnersOf(widgets(), scope).Outdated(references); !slices.Equal(got, want) {
			t.Errorf("scope %d: places %v, want %v", scope, got, want)
		}
	}
}

func TestDecide(t *testing.T) {
	there := Existing{{UID: "u", Namespace: "ns", Name: "w"}: {}, {UID: "c", Name: "w"}: {}}
	reference := func(uid, name string) metav1.OwnerReference {
		return metav1.OwnerReference{APIVersion: "example.com/v1", Kind: "Widget", Name: name, UID: types.UID(uid)}
	}
	clusterScoped := func(crd *apiextensionsv1.CustomResourceDefinition) { crd.Spec.Scope = apiextensionsv1.ClusterScoped }
	storageUnserved := func(crd *apiextensionsv1.CustomResourceDefinition) { crd.Spec.Versions[2].Served = false }
	cases := map[string]struct {
		reason    string
		crd       *apiextensionsv1.CustomResourceDefinition
		reference metav1.OwnerReference
		namespace string
		existing  Existing
		want      Decision
	}{
		"exists":            {"the garbage collector finds it at the new version", widgets(), reference("u", "w"), "ns", there, Repair},
		"gone":              {"the garbage collector would delete the dependent", widgets(), reference("x", "w"), "ns", there, OwnerGone},
		"another name":      {"the garbage collector reads the owner by its name", widgets(), reference("u", "x"), "ns", there, OwnerGone},
		"another namespace": {"the garbage collector reads the owner in the namespace of the dependent", widgets(), reference("u", "w"), "other", there, OwnerGone},
		"cluster-scoped":    {"a namespaced dependent may have such an owner", widgets(clusterScoped), reference("c", "w"), "ns", there, Repair},
		"not listed":        {"whether it exists is not known", widgets(), reference("u", "w"), "ns", nil, OwnersUnread},
		"storage unserved":  {"no version is the one to name", widgets(storageUnserved), reference("u", "w"), "ns", there, NoTarget},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := OwnersOf(c.crd, ServedVersions).Decide(c.reference, c.namespace, c.existing); got != c.want {
				t.Errorf("%s: got %d, want %d", c.reason, got, c.want)
			}
		})
	}
}

func TestOperations(t *testing.T) {
	d := &Dependent{Resource: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, ObjectMeta: metav1.ObjectMeta{
		UID: "d", OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", UID: "p"}, {APIVersion: "example.com/v1", Kind: "Widget", UID: "u"}},
	}}
	body, err := json.Marshal(OwnersOf(widgets(), ServedVersions).Operations(d, []int{1}))
	if err != nil {
		t.Fatal(err)
	}
	const want = `[{"op":"test","path":"/metadata/uid","value":"d"},` +
		`{"op":"test","path":"/metadata/ownerReferences/1/uid","value":"u"},` +
		`{"op":"test","path":"/metadata/ownerReferences/1/apiVersion","value":"example.com/v1"},` +
		`{"op":"replace","path":"/metadata/ownerReferences/1/apiVersion","value":"example.com/v3"}]`
	if string(body) != want {
		t.Errorf("got  %s\nwant %s", body, want)
	}
}

func TestUnreadOf(t *testing.T) {
	resource := schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}
	answer := func(code int32, reason metav1.StatusReason, words string) error {
		return &apierrors.StatusError{ErrStatus: metav1.Status{Code: code, Reason: reason, Message: words}}
	}
	const converts = "conversion webhook for example.com/v1, Kind=Widget failed: "
	for name, c := range map[string]struct {
		err  error
		want *godwit.Reason
	}{
		"no permission":      {answer(403, metav1.StatusReasonForbidden, `widgets.example.com is forbidden: User "alice" cannot list resource "widgets" in API group "example.com" at the cluster scope`), decision.ReasonForbidden},
		"not there":          {answer(404, metav1.StatusReasonNotFound, "the server could not find the requested resource"), decision.ReasonNotServed},
		"load":               {answer(429, metav1.StatusReasonTooManyRequests, "busy"), decision.ReasonThrottled},
		"broken":             {answer(500, metav1.StatusReasonInternalError, "etcdserver: no leader"), decision.ReasonServerError},
		"slow":               {quicklist.ErrOver, decision.ReasonTimeout},
		"webhook away":       {answer(500, metav1.StatusReasonInternalError, converts+`Post "https://hooks.op.svc:443/": dial tcp 10.0.0.1:443: connect: connection refused`), decision.ReasonWebhookUnavailable},
		"webhook refuses":    {answer(500, metav1.StatusReasonInternalError, converts+"no paint left"), decision.ReasonConversionFailed},
		"unreadable":         {answer(500, metav1.StatusReasonStoreReadError, "failed to read one or more widgets.example.com from the storage"), decision.ReasonUnreadableObjects},
		"refused by a proxy": {answer(400, metav1.StatusReasonBadRequest, "no"), decision.ReasonListRefused},
	} {
		u := UnreadOf(resource, c.err)
		if u.Reason != c.want || len(u.Fix) == 0 {
			t.Errorf("%s: %s with %d ways, want %s", name, u.Reason, len(u.Fix), c.want)
		}
		if err := fixtest.Check(u.Finding); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestUnserved: no version is served, so that no owner can be listed.
func TestUnserved(t *testing.T) {
	crd := widgets()
	for i := range crd.Spec.Versions {
		crd.Spec.Versions[i].Served = false
	}
	_, unread, err := (&Scanner{}).ReadOwners(t.Context(), OwnersOf(crd, ServedVersions))
	if err != nil || unread == nil || unread.Reason != decision.ReasonStorageVersionNotServed {
		t.Fatalf("%+v, %v", unread, err)
	}
	if err := fixtest.Check(unread.Finding); err != nil {
		t.Error(err)
	}
}

// TestVisit: an object that several API groups serve is found once.
func TestVisit(t *testing.T) {
	f := NewFinder([]Owners{OwnersOf(widgets(), ServedVersions)})
	o := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{UID: "d", OwnerReferences: []metav1.OwnerReference{{APIVersion: "example.com/v1", Kind: "Widget"}}}}
	for _, group := range []string{"a.io", "b.io"} {
		f.Visit(schema.GroupVersionResource{Group: group, Version: "v1", Resource: "gadgets"}, o)
	}
	if got := len(f.Found["widgets.example.com"]); got != 1 {
		t.Errorf("found %d dependents, want 1", got)
	}
}
