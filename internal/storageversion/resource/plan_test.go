package resource

import (
	"errors"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/internal/apierror"
	"github.com/godwit-dev/godwit/internal/fixtest"
	"github.com/godwit-dev/godwit/internal/kube"
	"github.com/godwit-dev/godwit/internal/quicklist"
	"github.com/godwit-dev/godwit/internal/storageversion/decision"
)

func secrets() Resource {
	return Resource{GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: "secrets"}, Stored: true, verbs: []string{"list", "patch"}}
}

func with(change func(*Resource)) Resource {
	r := secrets()
	change(&r)
	return r
}

func TestPlanFor(t *testing.T) {
	some, none := int64(3), int64(0)
	crd := &apiextensionsv1.CustomResourceDefinition{
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v2", Served: true, Storage: true}}},
	}
	old, trimmed := crd.DeepCopy(), crd.DeepCopy()
	old.Status.StoredVersions, trimmed.Status.StoredVersions = []string{"v1", "v2"}, []string{"v2"}
	unreadable := &apierrors.StatusError{ErrStatus: metav1.Status{Code: 500, Reason: metav1.StatusReasonStoreReadError, Message: "failed to read one or more secrets from the storage"}}
	for name, test := range map[string]struct {
		facts  Facts
		state  decision.State
		reason *godwit.Reason // of the blocker; nil for none
	}{
		"objects":             {Facts{Resource: secrets(), Objects: &some}, decision.Ready, nil},
		"uncounted":           {Facts{Resource: secrets()}, decision.Ready, nil},
		"none":                {Facts{Resource: secrets(), Objects: &none}, decision.Clean, nil},
		"aggregated":          {Facts{Resource: with(func(r *Resource) { r.Aggregated = "default/metrics" })}, decision.Blocked, ReasonAggregated},
		"virtual":             {Facts{Resource: with(func(r *Resource) { r.Stored = false })}, decision.Blocked, ReasonNotInEtcd},
		"events":              {Facts{Resource: with(func(r *Resource) { r.Resource = "events" })}, decision.Blocked, ReasonExpires},
		"read only":           {Facts{Resource: with(func(r *Resource) { r.verbs = []string{"get"} })}, decision.Blocked, ReasonNotWritable},
		"old stored versions": {Facts{Resource: secrets(), CRD: old}, decision.Blocked, ReasonOldStoredVersions},
		"a migrated CRD":      {Facts{Resource: secrets(), CRD: trimmed}, decision.Ready, nil},
		"forbidden":           {Facts{Resource: secrets(), Denied: []kube.Grant{{Verb: "patch", Resource: schema.GroupResource{Resource: "secrets"}}}}, decision.Blocked, decision.ReasonForbidden},
		"a stale lease":       {Facts{Resource: secrets(), Stale: []Server{{Name: "a", Renewed: time.Unix(0, 0)}}, Now: time.Unix(60, 0)}, decision.Blocked, decision.ReasonServerLeaseStale},
		"throttled":           {Facts{Resource: secrets(), ListError: apierrors.NewTooManyRequestsError("busy")}, decision.StateUnknown, decision.ReasonThrottled},
		"unreadable":          {Facts{Resource: secrets(), ListError: unreadable}, decision.StateUnknown, ReasonUnreadableObjects},
		"slow":                {Facts{Resource: secrets(), ListError: quicklist.ErrOver}, decision.StateUnknown, decision.ReasonTimeout},
		"refused":             {Facts{Resource: secrets(), ListError: apierrors.NewBadRequest("no")}, decision.StateUnknown, decision.ReasonListRefused},
		"an internal error":   {Facts{Resource: secrets(), ListError: apierrors.NewInternalError(errors.New("etcd"))}, decision.StateUnknown, decision.ReasonServerError},
	} {
		p := PlanFor(test.facts)
		if p.State != test.state {
			t.Errorf("%s: %s, want %s", name, p.State, test.state)
		}
		if got := len(p.Blockers); (got > 0) != (test.reason != nil) || got > 0 && p.Blockers[0].Reason != test.reason {
			t.Errorf("%s: blockers %+v, want reason %q", name, p.Blockers, test.reason)
		}
		if err := fixtest.All(p.Blockers); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if stale := test.reason == decision.ReasonServerLeaseStale; len(p.Refusals()) > 0 == (stale || test.reason == nil) {
			t.Errorf("%s: %d refusals; a run waits for stale leases and refuses all else", name, len(p.Refusals()))
		}
	}
}

func TestDenials(t *testing.T) {
	webhook := apierror.Origin{Kind: apierror.Webhook, Name: "x.example.com"}
	policy := apierror.Origin{Kind: "ValidatingAdmissionPolicy", Name: "freeze", Binding: "all"}
	for name, c := range map[string]struct {
		reason, want *godwit.Reason
		by           apierror.Origin
		user         string
	}{
		"by a webhook":        {decision.ReasonAdmissionDenied, ReasonAdmissionDenied, webhook, "jane"},
		"by a policy":         {decision.ReasonAdmissionDenied, ReasonAdmissionDenied, policy, ""},
		"by a plugin":         {decision.ReasonAdmissionDenied, ReasonAdmissionDenied, apierror.Origin{}, "jane"},
		"without a webhook":   {decision.ReasonWebhookUnavailable, ReasonWebhookUnavailable, webhook, "jane"},
		"without a converter": {decision.ReasonWebhookUnavailable, ReasonWebhookUnavailable, apierror.Origin{Kind: apierror.Conversion, Name: "x"}, "jane"},
		"invalid":             {decision.ReasonObjectInvalid, ReasonObjectInvalid, apierror.Origin{}, "jane"},
	} {
		f := denial(secrets(), c.by, []godwit.Failure{{Namespace: "ns", Name: "s", Finding: godwit.Finding{Reason: c.reason, Message: "no"}}}, 3, c.user)
		if f.Reason != c.want || len(f.Fix) < 2 {
			t.Errorf("%s: %s with %d ways", name, f.Reason, len(f.Fix))
		}
		if err := fixtest.Check(f); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestNotFound(t *testing.T) {
	group := func(name string) schema.GroupVersion { return schema.GroupVersion{Group: name, Version: "v1"} }
	c := Catalog{
		failed:   map[schema.GroupVersion]error{group("down.example.com"): errors.New("down"), group("metrics.example.com"): errors.New("down")},
		services: map[schema.GroupVersion]apiService{group("metrics.example.com"): {service: "default/metrics"}},
	}
	for argument, want := range map[string]*godwit.Reason{
		"pods/status": ReasonNotInEtcd, "gadgets": ReasonResourceNotFound,
		"gadgets.down.example.com": ReasonDiscoveryFailed, "pods.metrics.example.com": ReasonAggregated,
	} {
		f := c.NotFound(argument)
		if f.Reason != want {
			t.Errorf("%s: %s, want %s", argument, f.Reason, want)
		}
		if err := fixtest.Check(f); err != nil {
			t.Errorf("%s: %v", argument, err)
		}
	}
	if err := fixtest.Check(godwit.Finding{Reason: ReasonResourceNotFound, Fix: DidYouMean("secrets", "pods")}); err != nil {
		t.Error(err)
	}
	if err := fixtest.Check(godwit.Finding{Reason: ReasonConfigurationNotLoaded, Fix: BindMonitoring("jane")}); err != nil {
		t.Error(err)
	}
}

func TestCatalogFind(t *testing.T) {
	entry := func(group, version string, preferred bool, names ...string) named {
		return named{
			Resource: Resource{GroupVersionResource: schema.GroupVersionResource{Group: group, Version: version, Resource: names[0]}, Stored: true, verbs: []string{"list", "patch"}},
			names:    names, preferred: preferred,
		}
	}
	c := Catalog{resources: []named{
		entry("", "v1", true, "events", "event", "ev"),
		entry("autoscaling", "v1", false, "horizontalpodautoscalers", "horizontalpodautoscaler", "hpa"),
		entry("autoscaling", "v2", true, "horizontalpodautoscalers", "horizontalpodautoscaler", "hpa"),
		entry("events.k8s.io", "v1", true, "events", "event", "ev"),
		entry("example.com", "v1", false, "widgets", "widget"),
	}}
	for argument, want := range map[string]string{
		"events":                              "/v1, Resource=events",
		"ev.events.k8s.io":                    "events.k8s.io/v1, Resource=events",
		"hpa":                                 "autoscaling/v2, Resource=horizontalpodautoscalers",
		"HorizontalPodAutoscaler.autoscaling": "autoscaling/v2, Resource=horizontalpodautoscalers",
		"horizontalpodautoscalers.v1.autoscaling": "autoscaling/v1, Resource=horizontalpodautoscalers",
		"widgets":                   "example.com/v1, Resource=widgets",
		"widgets.other.example.com": "",
		"gadgets":                   "",
		"":                          "",
	} {
		got := ""
		if r, ok := c.Find(argument); ok {
			got = r.String()
		}
		if got != want {
			t.Errorf("%q is %q, want %q", argument, got, want)
		}
	}
	var all []string
	for _, r := range c.All() {
		all = append(all, r.Name()+"@"+r.Version)
	}
	if got := strings.Join(all, " "); got != "horizontalpodautoscalers.autoscaling@v2 widgets.example.com@v1" {
		t.Errorf("all are %s: events expire, and each has one version", got)
	}
}

func TestRecordHolds(t *testing.T) {
	left := record{Servers: []string{"a_1", "b_2"}, Configuration: "sha256:1"}
	for name, test := range map[string]struct {
		servers       []string
		configuration string
		want          bool
	}{
		"the same":              {[]string{"a_1", "b_2"}, "sha256:1", true},
		"a server restarted":    {[]string{"a_1", "b_3"}, "sha256:1", false},
		"a server more":         {[]string{"a_1", "b_2", "c_1"}, "sha256:1", false},
		"another configuration": {[]string{"a_1", "b_2"}, "sha256:2", false},
		"leases can't be read":  {nil, "sha256:1", false},
	} {
		if got := left.holds(test.servers, test.configuration); got != test.want {
			t.Errorf("%s: holds = %v, want %v", name, got, test.want)
		}
	}
	if new(record).holds(nil, "") {
		t.Error("an empty record holds")
	}
}
