package crdmigrator_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/internal/kube/kubetest"
	"github.com/godwit-dev/godwit/internal/storageversion"
	"github.com/godwit-dev/godwit/internal/storageversion/decision"
	"github.com/godwit-dev/godwit/internal/storageversion/preflight"
	"github.com/godwit-dev/godwit/test/controlplane"
	"github.com/godwit-dev/godwit/test/policy"
)

// withPreflight returns options with the preflight.
func withPreflight(p decision.Policy) storageversion.Options {
	p.Settle = -1
	return storageversion.Options{Policy: p, Preflight: preflight.Run, CheckReadable: true}
}

func (w *widgets) mustPlan(config *rest.Config, o storageversion.Options) decision.Plan {
	w.t.Helper()
	plan, err := newMigrator(w.t, config, o).Plan(w.t.Context(), w.name)
	if err != nil {
		w.t.Fatal(err)
	}
	return plan
}

// namespace makes a namespace for the test, with n objects.
func (w *widgets) namespace(name string, n int) string {
	w.t.Helper()
	prefix, _, _ := strings.Cut(w.group, ".")
	name = prefix[max(0, len(prefix)-40):] + "-" + name
	_, err := w.admission().CoreV1().Namespaces().Create(w.t.Context(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	for i := range n {
		if _, err := w.in(name, "v1").Create(w.t.Context(), w.object("v1", fmt.Sprintf("w-%d", i)), metav1.CreateOptions{}); err != nil {
			w.t.Fatal(err)
		}
	}
	return name
}

func (w *widgets) in(namespace, version string) dynamic.ResourceInterface {
	w.t.Helper()
	client, err := dynamic.NewForConfig(w.config)
	if err != nil {
		w.t.Fatal(err)
	}
	return client.Resource(schema.GroupVersionResource{Group: w.group, Version: version, Resource: w.plural}).Namespace(namespace)
}

// policy denies updates of objects for which the expression is false.
func (w *widgets) policy(expression string) string {
	w.t.Helper()
	name := "policy-of-" + w.group
	w.deny(policy.Policy{Name: name}, admissionregistrationv1.Validation{Expression: expression, Message: "the audit is not over"})
	return name
}

// mutator is a mutating webhook on updates that applies one JSON patch.
func (w *widgets) mutator(patch string) string {
	w.t.Helper()
	e := newEndpoint(w.t, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		var review admissionv1.AdmissionReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil || review.Request == nil {
			http.Error(rw, "not a review", http.StatusBadRequest)
			return
		}
		review.Response = &admissionv1.AdmissionResponse{
			UID: review.Request.UID, Allowed: true, Patch: []byte(patch), PatchType: ptr.To(admissionv1.PatchTypeJSONPatch),
		}
		review.Request = nil
		rw.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(rw).Encode(review)
	}))
	name := "paint." + w.group
	_, err := w.admission().AdmissionregistrationV1().MutatingWebhookConfigurations().Create(w.t.Context(),
		&admissionregistrationv1.MutatingWebhookConfiguration{
			ObjectMeta: metav1.ObjectMeta{Name: "painters-of-" + w.group},
			Webhooks: []admissionregistrationv1.MutatingWebhook{{
				Name:                    name,
				ClientConfig:            admissionregistrationv1.WebhookClientConfig{URL: &e.url, CABundle: e.ca},
				Rules:                   w.updates(),
				SideEffects:             ptr.To(admissionregistrationv1.SideEffectClassNone),
				AdmissionReviewVersions: []string{"v1"},
			}},
		}, metav1.CreateOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	return name
}

// tryUpdate is a dry run of an update that changes nothing.
func (w *widgets) tryUpdate(namespace, name string) (map[string]any, error) {
	o, err := w.in(namespace, "v1").Patch(w.t.Context(), name, types.MergePatchType, []byte("{}"),
		metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
	if err != nil {
		return nil, err
	}
	return o.Object, nil
}

func mustSay(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%q lacks %q", text, part)
		}
	}
}

// TestPlanNamesTheWebhookThatDeniesAndAWriteThatPasses: a policy denies one namespace of
// three. The plan is Blocked and names the policy. Each remedy works: one migrates the
// other namespaces, the other writes objects in a way that the policy allows.
func TestPlanNamesTheWebhookThatDeniesAndAWriteThatPasses(t *testing.T) {
	t.Parallel()
	w := newWidgets(t, shared)
	audited := w.namespace("audited", 3)
	w.namespace("blue", 2)
	w.fill("v1", 2)
	w.flip()
	policy := w.policy(fmt.Sprintf("object.metadata.namespace != %q", audited))
	await(t, "the policy to be in force", func() bool { _, err := w.tryUpdate(audited, "w-0"); return err != nil })

	plan := w.mustPlan(w.config, withPreflight(decision.Policy{}))
	mustBeBlocked(t, plan, decision.ReasonAdmissionDenied, 1)
	mustSay(t, plan.Blockers[0].Message, "ValidatingAdmissionPolicy "+policy, audited+"/w-0 (1 of 3 objects tried)", "the audit is not over")
	mustSay(t, kubetest.Words(plan.Blockers[0].Fix), "which was tried and passes: RunMigration{CRD:"+w.name+" Write:StatusPatch",
		"AcceptDenials:true", "Edit{Object:{Resource:validatingadmissionpolicy Namespace: Name:"+policy, `request.userInfo.username != "`)
	want := &decision.PreflightSummary{Write: decision.WritePatch, Tried: 3, Accepted: 2, Refused: 1, AllSeen: true}
	if diff := cmp.Diff(want, plan.Preflight); diff != "" {
		t.Errorf("preflight (-want +got):\n%s", diff)
	}
	w.mustHaveBeenWritten("a preflight writes nothing", 7, 1)

	accepting := withPreflight(decision.Policy{AcceptDenials: true})
	plan = w.mustPlan(w.config, accepting)
	if plan.State != decision.Ready || len(plan.Warnings) != 1 || plan.Warnings[0].Reason != decision.ReasonAdmissionDenied {
		t.Errorf("with --accept-denials: %s, warnings %+v, want Ready and the denial as a warning", plan.State, plan.Warnings)
	}
	report := w.mustMigrate(newMigrator(t, w.config, accepting))
	if want := (godwit.Counts{Migrated: 4, Failed: 3}); report.Storage.Counts != want || report.Trimmed {
		t.Errorf("with --accept-denials: %+v, trimmed %v, want %+v and not trimmed", report.Storage.Counts, report.Trimmed, want)
	}

	past := withPreflight(decision.Policy{Write: decision.WriteStatusPatch})
	if plan = w.mustPlan(w.config, past); plan.State != decision.Ready || len(plan.Warnings) > 0 || plan.Preflight.Tried != 1 {
		t.Errorf("past the policy: %s, warnings %+v, preflight %+v, want Ready after trying the one namespace that is left",
			plan.State, plan.Warnings, plan.Preflight)
	}
	if report = w.mustMigrate(newMigrator(t, w.config, past)); report.Storage.Counts.Migrated != 3 || !report.Trimmed {
		t.Errorf("past the policy: %+v, trimmed %v, want 3 migrated and trimmed", report.Storage.Counts, report.Trimmed)
	}
	w.mustBeStored("in the end", map[string]int{"v2": 7})
}

// TestPlanTriesTheWritesOfTheCRD: a policy denies a write of the CRD itself, without which a run would write each object and
// then fail. The plan is Blocked by it, also where the user accepts denials of objects.
func TestPlanTriesTheWritesOfTheCRD(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		resource, accepts string
		says              []string
	}{
		"status": {
			"customresourcedefinitions/status", "size(object.status.storedVersions) != 1",
			[]string{"that a run needs (its status)"},
		},
		"annotations": {
			"customresourcedefinitions", "!has(object.metadata.annotations) || !object.metadata.annotations.exists(a, a.contains('checkpoint'))",
			[]string{"that a run needs (its checkpoint, an annotation)"},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWidgets(t, shared)
			w.fill("v1", 2)
			w.flip()
			p := policy.Policy{Name: "crds-of-" + w.group, Group: crdsGroup, Resource: c.resource, Names: []string{w.name},
				Validations: []admissionregistrationv1.Validation{{Expression: c.accepts, Message: "ask the platform team"}}}
			if err := p.Create(t.Context(), w.admission()); err != nil {
				t.Fatal(err)
			}
			o := withPreflight(decision.Policy{AcceptDenials: true})
			await(t, "the policy to be in force", func() bool { return w.mustPlan(w.config, o).State == decision.Blocked })

			plan := w.mustPlan(w.config, o)
			mustBeBlocked(t, plan, decision.ReasonAdmissionDenied, 1)
			mustSay(t, plan.Blockers[0].Message, append(c.says, "ValidatingAdmissionPolicy "+p.Name, w.name, "ask the platform team")...)
			mustSay(t, kubetest.Words(plan.Blockers[0].Fix), "Edit{Object:{Resource:validatingadmissionpolicy Namespace: Name:"+p.Name)
			w.mustBeStored("before the first write", map[string]int{"v1": 2})

			if name == "status" {
				o.NoTrim = true
				if plan := w.mustPlan(w.config, o); plan.State != decision.Ready {
					t.Errorf("a run that does not trim: %s, %+v, want Ready", plan.State, plan.Blockers)
				}
				o.NoTrim = false
			}

			if err := p.Delete(t.Context(), w.admission()); err != nil {
				t.Fatal(err)
			}
			await(t, "the policy to be gone", func() bool { return w.mustPlan(w.config, o).State == decision.Ready })
			if report := w.mustMigrate(newMigrator(t, w.config, o)); !report.Trimmed {
				t.Errorf("without the policy: %+v, want a trim", report)
			}
		})
	}
}

// TestExemptionAllowsTheMigration applies the condition of the plan's remedy, for the
// user that it names.
func TestExemptionAllowsTheMigration(t *testing.T) {
	t.Parallel()
	w := newWidgets(t, shared)
	w.fill("v1", 2)
	bare := version("v2", true, true)
	bare.Subresources = nil
	w.setVersions(version("v1", true, false), bare)
	w.awaitStoring("v2")
	policy := w.policy("false")
	w.awaitRefused("w-0000", apierrors.IsInvalid)
	user, config := w.user(w.migrationPermissions()...)

	plan := w.mustPlan(config, withPreflight(decision.Policy{}))
	mustBeBlocked(t, plan, decision.ReasonAdmissionDenied, 1)
	if remedy := kubetest.Words(plan.Blockers[0].Fix); strings.Contains(remedy, "StatusPatch") {
		t.Errorf("remedy = %q, want no write of the status, which v2 does not have", remedy)
	}
	_, rest, _ := strings.Cut(plan.Blockers[0].Fix.String(), "expression: '")
	expression, _, _ := strings.Cut(rest, "'}")
	if want := fmt.Sprintf("request.userInfo.username != %q", user); expression != want {
		t.Fatalf("the plan suggests %q, want %q", expression, want)
	}
	exemption, err := json.Marshal(map[string]any{"spec": map[string]any{
		"matchConditions": []any{map[string]any{"name": "godwit", "expression": expression}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = w.admission().AdmissionregistrationV1().ValidatingAdmissionPolicies().Patch(t.Context(), policy,
		types.MergePatchType, exemption, metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	await(t, "the exemption to be in force", func() bool {
		return w.mustPlan(config, withPreflight(decision.Policy{})).State == decision.Ready
	})
	if _, err := w.tryUpdate(metav1.NamespaceDefault, "w-0000"); err == nil {
		t.Error("the exemption also applies to other users")
	}
}

// TestPlanReportsMutations: a mutating webhook would change every migrated object.
func TestPlanReportsMutations(t *testing.T) {
	t.Parallel()
	w := newWidgets(t, shared)
	w.fill("v1", 3)
	w.flip()
	webhook := w.mutator(`[{"op":"replace","path":"/spec/color","value":"red"},{"op":"add","path":"/metadata/annotations","value":{"example.com/by":"painter"}}]`)
	await(t, "the webhook to be asked", func() bool {
		o, err := w.tryUpdate(metav1.NamespaceDefault, "w-0000")
		return err == nil && o["spec"].(map[string]any)["color"] == "red"
	})

	plan := w.mustPlan(w.config, withPreflight(decision.Policy{}))
	mustBeBlocked(t, plan, decision.ReasonAdmissionMutates, 1)
	blocker := plan.Blockers[0]
	mustSay(t, blocker.Message, "metadata.annotations, spec.color on default/w-0000 (1 of 1 object tried)",
		"by webhook "+webhook+" of MutatingWebhookConfiguration painters-of-"+w.group)
	mustSay(t, kubetest.Words(blocker.Fix), "tried and passes: RunMigration{CRD:"+w.name+" Write:StatusPatch",
		"Edit{Object:{Resource:mutatingwebhookconfiguration Namespace: Name:painters-of-"+w.group)
	w.mustHaveBeenWritten("a preflight writes nothing", 3, 1)

	// The plan of a user who may neither list webhooks nor write the status.
	_, config := w.user(w.migrationPermissions()...)
	plan = w.mustPlan(config, withPreflight(decision.Policy{}))
	mustBeBlocked(t, plan, decision.ReasonAdmissionMutates, 1)
	mustSay(t, plan.Blockers[0].Message, "spec.color", "the origin is unknown: ", "mutatingwebhookconfigurations")
	mustSay(t, plan.Blockers[0].Fix.String(), "with the permission to patch widgets."+w.group+"/status")

	// A user who accepts the change.
	plan = w.mustPlan(w.config, withPreflight(decision.Policy{AcceptChanges: []string{"spec.color", "metadata.annotations"}}))
	if plan.State != decision.Ready || len(plan.Warnings) != 1 || plan.Warnings[0].Reason != decision.ReasonAdmissionMutates {
		t.Errorf("accepted: %s, warnings %+v, want Ready with one warning", plan.State, plan.Warnings)
	}

	past := withPreflight(decision.Policy{Write: decision.WriteStatusPatch})
	if plan = w.mustPlan(w.config, past); plan.State != decision.Ready || len(plan.Warnings) > 0 {
		t.Errorf("past the webhook: %s, warnings %+v, want Ready without", plan.State, plan.Warnings)
	}
}

// TestPreflightTriesTheConfiguredWrite: the dry run is of the configured write, and
// conversion, pruning and defaults do not count as a mutation.
func TestPreflightTriesTheConfiguredWrite(t *testing.T) {
	t.Parallel()
	for _, write := range decision.Writes {
		t.Run(string(write), func(t *testing.T) {
			t.Parallel()
			w := newWidgets(t, shared)
			w.fill("v1", 2)
			next := version("v2", true, true)
			if err := json.Unmarshal([]byte(`{"type":"object","properties":{
				"spec":{"type":"object","properties":{"color":{"type":"string"},"size":{"type":"integer","default":3}}},
				"status":{"type":"object"}}}`), next.Schema.OpenAPIV3Schema); err != nil {
				t.Fatal(err)
			}
			next.Schema.OpenAPIV3Schema.XPreserveUnknownFields = nil
			w.setVersions(version("v1", true, false), next)
			w.awaitStoring("v2")
			_, config := w.user(w.permissionsOf(write)...)
			config, wire := tap(config)
			plan := w.mustPlan(config, withPreflight(decision.Policy{Write: write, AcceptLosses: []string{"spec.of"}}))
			want := &decision.PreflightSummary{Write: write, Tried: 1, Accepted: 1, AllSeen: true}
			if diff := cmp.Diff(want, plan.Preflight); diff != "" || plan.State != decision.Ready {
				t.Errorf("%s, preflight (-want +got):\n%s\n%+v", plan.State, diff, plan.Warnings)
			}
			if n := wire.writesTo(w.group); n != 1+1+2 {
				t.Errorf("%d dry runs, want that of the write, one through v1, which loses spec.of, and then one of both objects", n)
			}
			w.mustHaveBeenWritten("a preflight writes nothing", 2, 1)
		})
	}
}

// TestPlanReportsAWebhookThatIsDown: the preflight ends at the first objects of the
// webhook.
func TestPlanReportsAWebhookThatIsDown(t *testing.T) {
	t.Parallel()
	w := newWidgets(t, shared)
	for i := range 8 {
		w.namespace(fmt.Sprint(i), 1)
	}
	w.fill("v1", 1)
	w.flip()
	h := w.newWebhook(allow)
	h.down()
	w.awaitRefused("w-0000", apierrors.IsInternalError)

	plan := w.mustPlan(w.config, withPreflight(decision.Policy{}))
	mustBeBlocked(t, plan, decision.ReasonWebhookUnavailable, 1)
	mustSay(t, plan.Blockers[0].Message, "webhook "+h.name, "connection refused")
	mustSay(t, kubetest.Words(plan.Blockers[0].Fix), "Show{Object:{Resource:validatingwebhookconfiguration Namespace: Name:"+h.name, "tried and passes", "AcceptDenials:true")
	if plan.Preflight.Tried >= 9 || plan.Preflight.Tried+plan.Preflight.NamespacesLeftOut != 9 || len(plan.Warnings) > 0 {
		t.Errorf("preflight %+v, warnings %+v, want fewer than 9 namespaces tried and no warning about that", plan.Preflight, plan.Warnings)
	}

	h.up(t)
	if plan = w.mustPlan(w.config, withPreflight(decision.Policy{})); plan.State != decision.Ready || plan.Preflight.Accepted != 9 {
		t.Errorf("with the webhook up: %s, preflight %+v, want Ready and 9 accepted", plan.State, plan.Preflight)
	}
}

// TestPlanReportsAConversionWebhookThatIsDown: the preflight tries no object, because
// none can be read.
func TestPlanReportsAConversionWebhookThatIsDown(t *testing.T) {
	t.Parallel()
	w := newWidgets(t, shared)
	w.fill("v1", 1)
	_, err := controlplane.UpdateCRD(t.Context(), w.config, w.name, func(crd *apiextensionsv1.CustomResourceDefinition) {
		crd.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{version("v1", true, false), version("v2", true, true)}
		crd.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{
			Strategy: apiextensionsv1.WebhookConverter,
			Webhook: &apiextensionsv1.WebhookConversion{
				ClientConfig:             &apiextensionsv1.WebhookClientConfig{URL: new("https://127.0.0.1:1/convert")},
				ConversionReviewVersions: []string{"v1"},
			},
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	var plan decision.Plan
	await(t, "the conversion to be asked for", func() bool {
		plan = w.mustPlan(w.config, withPreflight(decision.Policy{}))
		return plan.Objects == nil
	})
	mustBeBlocked(t, plan, decision.ReasonWebhookUnavailable, 1)
	mustSay(t, plan.Blockers[0].Message, "the conversion webhook of "+w.name, "connection refused")
}

// TestPreflightIsBoundedInTime: a webhook does not answer within the limit.
func TestPreflightIsBoundedInTime(t *testing.T) {
	t.Parallel()
	w := newWidgets(t, shared)
	w.fill("v1", 1)
	w.flip()
	h := w.newWebhook(deny("w-0000"))
	w.awaitRefused("w-0000", denied)
	over := make(chan struct{})
	defer close(over)
	h.setDecide(func(string) string { <-over; return "" })

	// The API server's own timeout, after 30 s, would be reported as WebhookUnavailable.
	plan := w.mustPlan(w.config, withPreflight(decision.Policy{}))
	if plan.State != decision.Ready || len(plan.Warnings) != 1 || plan.Warnings[0].Reason != decision.ReasonPreflightIncomplete {
		t.Fatalf("plan: %s, warnings %+v, want Ready and %s", plan.State, plan.Warnings, decision.ReasonPreflightIncomplete)
	}
	mustSay(t, plan.Warnings[0].Message, "no answer within 12s")
}

// TestPreflightFindsNamespacesAfterABigOne: the pages that the preflight reads end
// within a namespace with many objects. For a user who may list namespaces, it tries the
// others as well. For any other user, it reports that there may be others.
func TestPreflightFindsNamespacesAfterABigOne(t *testing.T) {
	t.Parallel()
	w := newWidgets(t, shared)
	w.fill("v1", 30) // in default, which comes before the test's own
	late := []string{w.namespace("late", 1), w.namespace("later", 1)}
	w.flip()
	o := withPreflight(decision.Policy{})
	o.PageObjects = 5

	config, wire := tap(w.config)
	plan := w.mustPlan(config, o)
	tried := wire.namespacesWritten(w.group)
	if want := append([]string{metav1.NamespaceDefault}, late...); !slices.Equal(tried, want) || !plan.Preflight.AllSeen {
		t.Errorf("tried %v, all seen %v, want %v and all", tried, plan.Preflight.AllSeen, want)
	}

	plan = w.mustPlan(w.withoutLeases(), o)
	if plan.State != decision.Ready || len(plan.Warnings) != 1 {
		t.Fatalf("plan: %s, warnings %+v, want Ready and one warning", plan.State, plan.Warnings)
	}
	mustSay(t, plan.Warnings[0].Message, "one object was tried in 1 namespace, and there may be others")
	mustSay(t, kubetest.Words(plan.Warnings[0].Fix), "RunMigration{CRD:"+w.name+" Write: DryRun:true")
}

// TestPreflightIsSkippedWithoutPermission: without the permission to write objects, a
// dry run fails as well, and the plan reports Forbidden already.
func TestPreflightIsSkippedWithoutPermission(t *testing.T) {
	t.Parallel()
	w := newWidgets(t, shared)
	w.fill("v1", 2)
	w.flip()
	_, config := w.user(readCRD, permission{"list", w.group, w.plural})
	config, wire := tap(config)
	plan := w.mustPlan(config, withPreflight(decision.Policy{}))
	mustBeBlocked(t, plan, decision.ReasonForbidden, 3)
	if n := wire.writesTo(w.group); n != 0 || plan.Preflight != nil {
		t.Errorf("%d writes tried, preflight %+v, want none", n, plan.Preflight)
	}
}

// namespacesWritten names the namespaces of the objects of a group that were written, sorted.
func (w *wire) namespacesWritten(group string) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var names []string
	for _, e := range w.exchanges {
		_, path, ok := strings.Cut(e.path, "/namespaces/")
		if ok && e.method != http.MethodGet && strings.HasPrefix(e.path, "/apis/"+group+"/") {
			namespace, _, _ := strings.Cut(path, "/")
			names = append(names, namespace)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
