package rescue

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/godwit-dev/godwit/internal/fixtest"
	"github.com/godwit-dev/godwit/internal/kube/kubetest"
	"github.com/godwit-dev/godwit/internal/storageversion/decision"
)

func TestCompare(t *testing.T) {
	lost := func(path string) []Change {
		return []Change{{Path: path, Lost: true, Objects: 1, Example: "ns/a"}}
	}
	cases := map[string]struct {
		reason, before, after string
		want                  []Change
	}{
		"equal":              {"nothing changes", `{"spec":{"a":1}}`, `{"spec":{"a":1}}`, nil},
		"apiVersion":         {"a conversion changes it", `{"apiVersion":"x/v1"}`, `{"apiVersion":"x/v2"}`, nil},
		"metadata":           {"the schemas do not prune it", `{"metadata":{"managedFields":[1]}}`, `{"metadata":{}}`, nil},
		"field":              {"it is gone", `{"spec":{"a":1,"b":2}}`, `{"spec":{"a":1}}`, lost("spec.b")},
		"all of the spec":    {"each of its fields is", `{"spec":{"a":1}}`, `{}`, lost("spec.a")},
		"empty object":       {"it has no value", `{"spec":{}}`, `{}`, nil},
		"value":              {"another one is no better than none", `{"spec":{"a":1}}`, `{"spec":{"a":2}}`, lost("spec.a")},
		"type":               {"so is another type", `{"spec":{"a":{"b":1}}}`, `{"spec":{"a":"b"}}`, []Change{{Path: "spec.a", Objects: 1, Example: "ns/a"}, {Path: "spec.a.b", Lost: true, Objects: 1, Example: "ns/a"}}},
		"in a list":          {"the items are compared", `{"spec":{"l":[{"a":1},{"a":1,"b":2}]}}`, `{"spec":{"l":[{"a":1},{"a":1}]}}`, lost("spec.l[].b")},
		"item":               {"the list is shorter", `{"spec":{"l":[1,2]}}`, `{"spec":{"l":[1]}}`, lost("spec.l")},
		"null":               {"the API server drops it", `{"spec":{"a":null}}`, `{"spec":{}}`, nil},
		"default":            {"a value is new, and none is lost", `{"spec":{}}`, `{"spec":{"a":1}}`, []Change{{Path: "spec.a", Objects: 1, Example: "ns/a"}}},
		"field of the root":  {"spec is no special name", `{"data":{"a":1}}`, `{"data":{}}`, lost("data.a")},
		"value becomes null": {"null is no value", `{"spec":{"a":1}}`, `{"spec":{"a":null}}`, lost("spec.a")},
	}
	for name, c := range cases {
		found := changes{}
		found.compare("ns/a", decode(t, c.before), decode(t, c.after))
		if diff := cmp.Diff(append([]Change{}, c.want...), found.list()); diff != "" {
			t.Errorf("%s: %s (-want +got):\n%s", name, c.reason, diff)
		}
	}
	found := changes{}
	for _, key := range []string{"ns/a", "ns/b"} {
		found.compare(key, decode(t, `{"spec":{"a":1}}`), decode(t, `{"spec":{}}`))
	}
	if diff := cmp.Diff([]Change{{Path: "spec.a", Lost: true, Objects: 2, Example: "ns/a"}}, found.list()); diff != "" {
		t.Errorf("two objects (-want +got):\n%s", diff)
	}
}

func decode(t *testing.T, text string) map[string]any {
	t.Helper()
	var o map[string]any
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		t.Fatal(err)
	}
	return o
}

func webhook(crd *apiextensionsv1.CustomResourceDefinition) {
	crd.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.WebhookConverter, Webhook: &apiextensionsv1.WebhookConversion{
		ConversionReviewVersions: []string{"v1"}, ClientConfig: &apiextensionsv1.WebhookClientConfig{CABundle: []byte("ca")},
	}}
}

// TestChangeAndRestore: what a rescue changes of a spec it restores, however often each is done.
func TestChangeAndRestore(t *testing.T) {
	for name, missing := range map[string][]string{"one": {"v0"}, "two": {"v0", "v0alpha1"}, "none": nil} {
		for _, without := range []bool{false, true} {
			crd := kubetest.Widgets(webhook)
			before := *crd.Spec.DeepCopy()
			j := newJournal(crd, missing)
			if without {
				j.replaceConverter(crd.Spec)
			}
			j.change(&crd.Spec, nil)
			changed := *crd.Spec.DeepCopy()
			j.change(&crd.Spec, nil)
			if diff := cmp.Diff(changed, crd.Spec); diff != "" {
				t.Errorf("%s: a second change (-want +got):\n%s", name, diff)
			}
			if lost := j.lost(crd); len(lost) > 0 {
				t.Errorf("%s: %v are lost after the change", name, lost)
			}
			for _, v := range crd.Spec.Versions {
				if v.Name != "v2" && v.Name != probeVersion && v.Served && (without || v.Name != "v1") {
					t.Errorf("%s: %s is served", name, v.Name)
				}
			}
			for range 2 {
				j.restore(&crd.Spec)
			}
			if diff := cmp.Diff(before, crd.Spec); diff != "" {
				t.Errorf("%s: the restored spec (-want +got):\n%s", name, diff)
			}
			if want := 1 + len(missing); len(j.lost(crd)) < want {
				t.Errorf("%s: %v are lost after the end, want at least %d", name, j.lost(crd), want)
			}
		}
	}
}

// TestRestoredOwners: owners get back what they had, and keep what they have got.
func TestRestoredOwners(t *testing.T) {
	entry := func(manager, fields string) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{Manager: manager, Operation: metav1.ManagedFieldsOperationApply, APIVersion: "v1", FieldsV1: metav1.NewFieldsV1(fields)}
	}
	j := Journal{Owners: []metav1.ManagedFieldsEntry{entry("flux", `{"f:spec":{"f:versions":{}}}`), entry("helm", `{"f:spec":{"f:scope":{}}}`)}}
	got, err := j.restoredOwners([]metav1.ManagedFieldsEntry{
		entry("flux", `{"f:metadata":{"f:labels":{"f:new":{}}}}`), // without the versions, which the rescue took, and with a label
		entry("godwit", `{"f:spec":{"f:versions":{}}}`), entry("labeller", `{"f:metadata":{}}`),
	})
	want := []metav1.ManagedFieldsEntry{
		entry("flux", `{"f:metadata":{"f:labels":{"f:new":{}}},"f:spec":{"f:versions":{}}}`), entry("helm", `{"f:spec":{"f:scope":{}}}`), entry("labeller", `{"f:metadata":{}}`),
	}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

func TestPlanFor(t *testing.T) {
	status := func(code int32, reason metav1.StatusReason, message string) error {
		return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: code, Reason: reason, Message: message}}
	}
	unreadable := status(500, metav1.StatusReasonStoreReadError, "object not decodable: request to convert CR from an invalid group/version: example.com/v0")
	damagedObject := status(500, metav1.StatusReasonStoreReadError, "object not decodable: invalid character")
	noConverter := status(500, metav1.StatusReasonInternalError, `conversion webhook for example.com/v1, Kind=Widget failed: Post "https://x": connection refused`)
	begun := func(crd *apiextensionsv1.CustomResourceDefinition) {
		j := newJournal(crd, []string{"v0"})
		j.change(&crd.Spec, nil)
		text, _ := json.Marshal(j)
		crd.Annotations = map[string]string{Annotation: string(text)}
	}
	cases := map[string]struct {
		reason  string
		crd     *apiextensionsv1.CustomResourceDefinition
		list    error
		options Options
		want    string // state, missing versions, and blockers
	}{
		"healthy":                  {"nothing is missing", kubetest.Widgets(), nil, Options{}, "Healthy  "},
		"status names a version":   {"objects may be at it", kubetest.Widgets(kubetest.Stored("v0", "v2")), nil, Options{}, "Ready v0 "},
		"API server names it":      {"the status does not", kubetest.Widgets(), unreadable, Options{}, "Ready v0 "},
		"both":                     {"each is added once", kubetest.Widgets(kubetest.Stored("v0", "v0alpha1", "v2")), unreadable, Options{}, "Ready v0,v0alpha1 "},
		"damaged":                  {"no version reads it", kubetest.Widgets(), damagedObject, Options{}, "Blocked  DamagedObjects"},
		"webhook gone":             {"the user has not said so", kubetest.Widgets(webhook), noConverter, Options{}, "Blocked  ConverterGone"},
		"webhook gone for good":    {"the user has", kubetest.Widgets(webhook), noConverter, Options{WithoutWebhook: true}, "Ready  "},
		"webhook answers":          {"it has to convert", kubetest.Widgets(webhook), nil, Options{WithoutWebhook: true}, "Blocked  ConverterAnswers"},
		"no webhook":               {"there is nothing to do without", kubetest.Widgets(), nil, Options{WithoutWebhook: true}, "Blocked  ConverterAnswers"},
		"throttled":                {"nothing is known about the objects", kubetest.Widgets(), status(429, metav1.StatusReasonTooManyRequests, "later"), Options{}, "Blocked  Throttled"},
		"throttled, version known": {"the status says enough", kubetest.Widgets(kubetest.Stored("v0", "v2")), status(429, metav1.StatusReasonTooManyRequests, "later"), Options{}, "Ready v0 "},
		"begun":                    {"it resumes", kubetest.Widgets(begun), nil, Options{}, "Ready v0 "},
		"journal of another CRD":   {"it came with a manifest", kubetest.Widgets(begun, func(crd *apiextensionsv1.CustomResourceDefinition) { crd.UID = "u2" }), nil, Options{}, "Healthy  "},
		"being deleted": {"its objects go with it", kubetest.Widgets(func(crd *apiextensionsv1.CustomResourceDefinition) {
			crd.DeletionTimestamp = &metav1.Time{Time: kubetest.Flip}
		}), nil, Options{}, "Blocked  Terminating"},
		"storage version unserved":   {"objects can't be written", kubetest.Widgets(func(crd *apiextensionsv1.CustomResourceDefinition) { crd.Spec.Versions[1].Served = false }), nil, Options{}, "Blocked  StorageVersionNotServed"},
		"manifest of another":        {"it was meant for that", kubetest.Widgets(), unreadable, Options{Manifest: &apiextensionsv1.CustomResourceDefinition{}}, "Blocked v0 OtherManifest"},
		"manifest lacks the version": {"it has no schema", kubetest.Widgets(), unreadable, Options{Manifest: kubetest.Widgets()}, "Blocked v0 OtherManifest"},
	}
	for name, c := range cases {
		j, err := JournalOf(c.crd)
		if err != nil {
			t.Fatal(err)
		}
		p := PlanFor(Facts{CRD: c.crd, Journal: j, List: c.list}, c.options)
		var reasons []string
		for _, b := range p.Blockers {
			reasons = append(reasons, b.Reason.Name)
			if err := fixtest.Check(b); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if !strings.Contains(b.Message, "widgets.example.com") || len(b.Fix) == 0 {
				t.Errorf("%s: blocker %+v has no name of the CRD, or no fix", name, b)
			}
		}
		if got := string(p.State) + " " + strings.Join(p.Missing, ",") + " " + strings.Join(reasons, ","); got != c.want {
			t.Errorf("%s: %s: plan %q, want %q", name, c.reason, got, c.want)
		}
	}
	for _, e := range []*BlockedError{reverted(kubetest.Widgets(), []string{"v0"}), lossError(kubetest.Widgets(), []Change{{Path: ".spec", Lost: true}}, "v2")} {
		if err := fixtest.Check(e.Blocker); err != nil {
			t.Error(err)
		}
	}
	denied := PlanFor(Facts{CRD: kubetest.Widgets(), List: unreadable, User: "alice", Denied: []decision.Grant{{Verb: "list", Resource: kubetest.Resource}}}, Options{})
	if denied.State != Blocked || denied.Blockers[0].Reason != decision.ReasonForbidden || !strings.Contains(denied.Blockers[0].Message, "alice may not list") {
		t.Errorf("without permission the plan is %+v", denied)
	}
}
