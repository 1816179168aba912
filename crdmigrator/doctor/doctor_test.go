package doctor

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/godwit-dev/godwit/internal/fixtest"
	"github.com/godwit-dev/godwit/internal/kube/kubetest"
	"github.com/godwit-dev/godwit/internal/storageversion/ownerreference"
)

// served has v1 in spec.versions, and serves v2 alone.
func served() *apiextensionsv1.CustomResourceDefinition {
	return kubetest.Widgets(kubetest.Versions(
		apiextensionsv1.CustomResourceDefinitionVersion{Name: "v1"},
		apiextensionsv1.CustomResourceDefinitionVersion{Name: "v2", Served: true, Storage: true},
	))
}

// removed has v2 alone.
func removed() *apiextensionsv1.CustomResourceDefinition {
	return kubetest.Widgets(kubetest.Versions(apiextensionsv1.CustomResourceDefinitionVersion{Name: "v2", Served: true, Storage: true}))
}

// narrow serves v1, whose schema lacks a field of v2.
func narrow() *apiextensionsv1.CustomResourceDefinition {
	schema := func(fields ...string) *apiextensionsv1.CustomResourceValidation {
		spec := apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{}}
		for _, f := range fields {
			spec.Properties[f] = apiextensionsv1.JSONSchemaProps{Type: "string"}
		}
		return &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
			Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"spec": spec},
		}}
	}
	return kubetest.Widgets(kubetest.Versions(
		apiextensionsv1.CustomResourceDefinitionVersion{Name: "v1", Served: true, Schema: schema("color")},
		apiextensionsv1.CustomResourceDefinitionVersion{Name: "v2", Served: true, Storage: true, Schema: schema("color", "size")},
	))
}

// owned are objects whose managedFields name v1.
func owned() []VersionUse {
	return []VersionUse{{CRD: "widgets.example.com", Version: "v1", Objects: 2, Example: "ns/w"}}
}

func to(crd *apiextensionsv1.CustomResourceDefinition, service string) *apiextensionsv1.CustomResourceDefinition {
	crd.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.WebhookConverter, Webhook: &apiextensionsv1.WebhookConversion{
		ClientConfig: &apiextensionsv1.WebhookClientConfig{Service: &apiextensionsv1.ServiceReference{Namespace: "ns", Name: service}},
	}}
	return crd
}

func reference(d ownerreference.Decision) Reference {
	return Reference{CRD: "widgets.example.com", Index: 1, Decision: d, Dependent: &ownerreference.Dependent{
		Resource: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c", OwnerReferences: []metav1.OwnerReference{
			{APIVersion: "v1", Kind: "Pod"}, {APIVersion: "example.com/v1", Kind: "Widget", Name: "w", UID: "u"},
		}},
	}}
}

func webhook(groups, resources, versions []string) WebhookConfiguration {
	c := WebhookConfiguration{Resource: "validatingwebhookconfiguration"}
	c.Name = "guard"
	c.Webhooks = append(c.Webhooks, struct {
		Name  string                                       `json:"name"`
		Rules []admissionregistrationv1.RuleWithOperations `json:"rules"`
	}{"a.example.com", []admissionregistrationv1.RuleWithOperations{{Rule: admissionregistrationv1.Rule{APIGroups: groups, APIVersions: versions, Resources: resources}}}})
	return c
}

func match(versions ...string) *admissionregistrationv1.MatchResources {
	m := &admissionregistrationv1.MatchResources{ResourceRules: make([]admissionregistrationv1.NamedRuleWithOperations, 1)}
	m.ResourceRules[0].Rule = admissionregistrationv1.Rule{APIGroups: []string{"example.com"}, APIVersions: versions, Resources: []string{"widgets"}}
	return m
}

func policy(constraints, resources *admissionregistrationv1.MatchResources) AdmissionPolicy {
	p := AdmissionPolicy{Resource: "validatingadmissionpolicy"}
	p.Name, p.Spec.MatchConstraints, p.Spec.MatchResources = "guard", constraints, resources
	return p
}

func parameters(version string) AdmissionPolicy {
	p := policy(nil, nil)
	p.Spec.ParamKind = &admissionregistrationv1.ParamKind{APIVersion: "example.com/" + version, Kind: "Widget"}
	return p
}

func role(rule rbacv1.PolicyRule) Role {
	return Role{ObjectMeta: metav1.ObjectMeta{Name: "viewer"}, Rules: []rbacv1.PolicyRule{rule}}
}

func apiService(version string, labels map[string]string) APIService {
	a := APIService{}
	a.Name, a.Labels, a.Spec.Group, a.Spec.Version = version+".example.com", labels, "example.com", version
	return a
}

// words writes a diagnosis as its state, and each finding as its reason and its fix.
func words(d Diagnosis) []string {
	lines := []string{string(d.State)}
	for _, f := range d.Findings {
		glyph := "!"
		if f.Broken() {
			glyph = "✗"
		}
		lines = append(lines, fmt.Sprintf("%s %s → %s", glyph, f.Reason, kubetest.Words(f.Fix)))
	}
	return lines
}

func TestFor(t *testing.T) {
	of := func(crd *apiextensionsv1.CustomResourceDefinition, f Facts) Facts {
		f.Subjects = []Subject{SubjectOf(crd)}
		return f
	}
	widgets := []string{"widgets"}
	group := []string{"example.com"}
	available := apiService("v1", nil)
	available.Spec.Service = &struct{}{}
	available.Status.Conditions = []metav1.Condition{{Type: "Available", Status: metav1.ConditionTrue}}
	const rescued = "; or if it is gone for good, rescue the objects without it: RescueObjects{CRD:widgets.example.com WithoutWebhook:true Undo:false}"
	const patch = `Patch{Object:{Resource:%s Namespace: Name:%s} Subresource: Type:json Body:%s}`

	cases := map[string]struct {
		reason string
		facts  Facts
		want   []string
	}{
		"nothing":       {"nothing names a version", of(served(), Facts{}), []string{"Clean"}},
		"not looked at": {"what was not read is never good", of(served(), Facts{Unread: []ownerreference.Unread{{Resource: "secrets"}}}), []string{"Unknown"}},
		"reference, version in spec.versions": {
			"a run looks for references by itself", of(served(), Facts{References: []Reference{reference(ownerreference.Repair)}}),
			[]string{"Stale", "✗ OwnerReferenceNotServed → repair them: RunMigration{CRD:widgets.example.com Write: DryRun:false AcceptDenials:false AcceptLosses: AcceptChanges: OwnerReferences:}"},
		},
		"reference, version removed": {
			"the CRD does not show that it had the version", of(removed(), Facts{References: []Reference{reference(ownerreference.Repair)}}),
			[]string{"Stale", "✗ OwnerReferenceNotServed → repair them: RunMigration{CRD:widgets.example.com Write: DryRun:false AcceptDenials:false AcceptLosses: AcceptChanges: OwnerReferences:All}"},
		},
		"reference, owner gone": {
			"a repair would delete the dependent", of(served(), Facts{References: []Reference{reference(ownerreference.OwnerGone)}}),
			[]string{"Stale", "! OwnerGone → to keep configmaps ns/c, remove the reference: Patch{Object:{Resource:configmaps Namespace:ns Name:c} Subresource: Type:json " +
				`Body:[{"op":"test","path":"/metadata/ownerReferences/1/uid","value":"u"},{"op":"remove","path":"/metadata/ownerReferences/1"}]}` +
				"; or to delete it: Delete{Object:{Resource:configmaps Namespace:ns Name:c}}"},
		},
		"webhook, only an old version": {
			"its rule will match nothing", of(served(), Facts{Webhooks: []WebhookConfiguration{webhook(group, widgets, []string{"v1"})}}),
			[]string{"Stale", "✗ WebhookNotServed → if the webhook knows v2, name it in the rule: " + fmt.Sprintf(patch, "validatingwebhookconfiguration", "guard",
				`[{"op":"test","path":"/webhooks/0/name","value":"a.example.com"},{"op":"test","path":"/webhooks/0/rules/0/apiVersions","value":["v1"]},{"op":"replace","path":"/webhooks/0/rules/0/apiVersions","value":["v2"]}]`)},
		},
		"webhook, an old version as well": {
			"the version has no effect", of(served(), Facts{Webhooks: []WebhookConfiguration{webhook(group, widgets, []string{"v1", "v2"})}}),
			[]string{"Stale", "! WebhookNotServed → remove the version from the rule: " + fmt.Sprintf(patch, "validatingwebhookconfiguration", "guard",
				`[{"op":"test","path":"/webhooks/0/name","value":"a.example.com"},{"op":"test","path":"/webhooks/0/rules/0/apiVersions","value":["v1","v2"]},{"op":"replace","path":"/webhooks/0/rules/0/apiVersions","value":["v2"]}]`)},
		},
		"webhook, shared rule": {
			"another resource of the rule may have the version", of(served(), Facts{Webhooks: []WebhookConfiguration{webhook(group, []string{"widgets", "gadgets"}, []string{"v1", "v2"})}}),
			[]string{"Clean"},
		},
		"webhook, every version":  {"no version is named", of(served(), Facts{Webhooks: []WebhookConfiguration{webhook(group, widgets, []string{"*"})}}), []string{"Clean"}},
		"webhook, another group":  {"it is not about the CRD", of(served(), Facts{Webhooks: []WebhookConfiguration{webhook([]string{"x.io"}, widgets, []string{"v1"})}}), []string{"Clean"}},
		"webhook, other resource": {"it is not about the CRD", of(served(), Facts{Webhooks: []WebhookConfiguration{webhook(group, []string{"gadgets"}, []string{"v1"})}}), []string{"Clean"}},
		"role, path": {
			"a path names a version", of(served(), Facts{Roles: []Role{role(rbacv1.PolicyRule{NonResourceURLs: []string{"/apis/example.com/v1/*", "/apis/example.com/v2", "/healthz"}})}}),
			[]string{"Stale", "! RoleNotServed → allow what the rule is meant for: " + fmt.Sprintf(patch, "clusterrole", "viewer",
				`[{"op":"test","path":"/rules/0/nonResourceURLs","value":["/apis/example.com/v1/*","/apis/example.com/v2","/healthz"]},{"op":"replace","path":"/rules/0/nonResourceURLs","value":["/apis/example.com/v2/*","/apis/example.com/v2","/healthz"]}]`)},
		},
		"role, group with a version": {
			"it matches no request", of(served(), Facts{Roles: []Role{role(rbacv1.PolicyRule{APIGroups: []string{"example.com/v1"}, Resources: widgets})}}),
			[]string{"Stale", "! RoleGroupHasVersion → allow what the rule is meant for: " + fmt.Sprintf(patch, "clusterrole", "viewer",
				`[{"op":"test","path":"/rules/0/apiGroups","value":["example.com/v1"]},{"op":"replace","path":"/rules/0/apiGroups","value":["example.com"]}]`)},
		},
		"role, group":  {"no version is named", of(served(), Facts{Roles: []Role{role(rbacv1.PolicyRule{APIGroups: group, Resources: widgets})}}), []string{"Clean"}},
		"APIService":   {"no server serves it", of(served(), Facts{APIServices: []APIService{apiService("v1", nil)}}), []string{"Stale", "✗ APIServiceNotServed → delete it: Delete{Object:{Resource:apiservice Namespace: Name:v1.example.com}}"}},
		"its own":      {"the API server removes it", of(served(), Facts{APIServices: []APIService{apiService("v1", map[string]string{autoManaged: "true"})}}), []string{"Clean"}},
		"served":       {"the CRD serves it", of(served(), Facts{APIServices: []APIService{apiService("v2", nil)}}), []string{"Clean"}},
		"other server": {"another API server serves it", of(served(), Facts{APIServices: []APIService{available}}), []string{"Clean"}},
		"conversion": {
			"equal schemas prove nothing about a webhook, so that none of the ways is to convert without it", of(to(served(), "gone"), Facts{}),
			[]string{"Stale", "✗ ConversionServiceNotFound → install again what has this Service" + rescued},
		},
		"conversion of one version": {
			"nothing is converted", of(to(removed(), "gone"), Facts{}),
			[]string{"Stale", "! ConversionServiceNotFound → install again what has this Service; or if the CRD has only one version, remove the webhook, which converts nothing: " +
				`Patch{Object:{Resource:crd Namespace: Name:widgets.example.com} Subresource: Type:merge Body:{"spec":{"conversion":{"strategy":"None","webhook":null}}}}`},
		},
		"policy, only an old version": {
			"its rule will match nothing", of(served(), Facts{Policies: []AdmissionPolicy{policy(match("v1"), nil)}}),
			[]string{"Stale", "✗ PolicyNotServed → if its expressions fit v2, name it in the rule: " + fmt.Sprintf(patch, "validatingadmissionpolicy", "guard",
				`[{"op":"test","path":"/spec/matchConstraints/resourceRules/0/apiVersions","value":["v1"]},{"op":"replace","path":"/spec/matchConstraints/resourceRules/0/apiVersions","value":["v2"]}]`)},
		},
		"policy, an old version as well": {
			"the version has no effect", of(served(), Facts{Policies: []AdmissionPolicy{policy(match("v1", "v2"), nil)}}),
			[]string{"Stale", "! PolicyNotServed → remove the version from the rule: " + fmt.Sprintf(patch, "validatingadmissionpolicy", "guard",
				`[{"op":"test","path":"/spec/matchConstraints/resourceRules/0/apiVersions","value":["v1","v2"]},{"op":"replace","path":"/spec/matchConstraints/resourceRules/0/apiVersions","value":["v2"]}]`)},
		},
		"policy, served": {"no version is named that is not served", of(served(), Facts{Policies: []AdmissionPolicy{policy(match("v2"), match("*"))}}), []string{"Clean"}},
		"binding, an exclusion": {
			"the policy will apply to what it excludes now", of(served(), Facts{Policies: []AdmissionPolicy{policy(nil, &admissionregistrationv1.MatchResources{ExcludeResourceRules: match("v1").ResourceRules})}}),
			[]string{"Stale", "✗ PolicyNotServed → exclude v2: " + fmt.Sprintf(patch, "validatingadmissionpolicy", "guard",
				`[{"op":"test","path":"/spec/matchResources/excludeResourceRules/0/apiVersions","value":["v1"]},{"op":"replace","path":"/spec/matchResources/excludeResourceRules/0/apiVersions","value":["v2"]}]`)},
		},
		"policy, parameters": {
			"the API server can't read them", of(served(), Facts{Policies: []AdmissionPolicy{parameters("v1"), parameters("v2")}}),
			[]string{"Stale", "✗ PolicyParametersNotServed → if its expressions fit v2, read the parameters at it: " + fmt.Sprintf(patch, "validatingadmissionpolicy", "guard",
				`[{"op":"test","path":"/spec/paramKind/apiVersion","value":"example.com/v1"},{"op":"replace","path":"/spec/paramKind/apiVersion","value":"example.com/v2"}]`)},
		},
		"conversion, service there": {"it exists", of(to(served(), "there"), Facts{Services: map[types.NamespacedName]struct{}{{Namespace: "ns", Name: "there"}: {}}}), []string{"Clean"}},
		"other objects not read":    {"their fault is their own", of(served(), Facts{Unread: []ownerreference.Unread{{Resource: "gears.other.com", Alone: true}, {Resource: "metrics.k8s.io/v1beta1", Alone: true}}}), []string{"Clean"}},
		"own objects not read":      {"who owns what of them is not known", of(served(), Facts{Unread: []ownerreference.Unread{{Resource: "widgets.example.com", Alone: true}}}), []string{"Unknown"}},
		"own group not discovered":  {"a version of it may be served elsewhere", of(served(), Facts{Unread: []ownerreference.Unread{{Resource: "example.com/v9", Alone: true}}}), []string{"Unknown"}},
		"conversion, unread":        {"it may exist", of(to(served(), "gone"), Facts{Unread: []ownerreference.Unread{{Resource: "services"}}}), []string{"Unknown"}},
		"applied": {
			"the next apply fails", of(served(), Facts{Applied: []VersionUse{{CRD: "widgets.example.com", Version: "v1", Objects: 2, Example: "ns/w"}}}),
			[]string{"Stale", "! LastAppliedNotServed → write apiVersion: example.com/v2 in these manifests, and apply them"},
		},
		"managedFields": {
			"v1 lacks a field of v2", of(narrow(), Facts{Owned: owned()}),
			[]string{"Stale", `! ManagedFieldsLackField → add the fields to the schema of v1 in the release of the CRD; or if no client uses v1, stop serving it: Patch{Object:{Resource:crd Namespace: Name:widgets.example.com} Subresource: Type:json Body:[{"op": "test", "path": "/spec/versions/0/name", "value": "v1"}, {"op": "replace", "path": "/spec/versions/0/served", "value": false}]}; ` +
				`then remove the entries: RunMigration{CRD:widgets.example.com Write: DryRun:false AcceptDenials:false AcceptLosses: AcceptChanges: OwnerReferences:}`},
		},
		"managedFields of no object": {"no apply converts to v1", of(narrow(), Facts{}), []string{"Clean"}},
		"managedFields and a webhook": {
			"it may move the field", of(to(narrow(), "there"), Facts{Owned: owned(), Services: map[types.NamespacedName]struct{}{{Namespace: "ns", Name: "there"}: {}}}),
			[]string{"Clean"},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			d := For(c.facts)[0]
			if diff := cmp.Diff(c.want, words(d)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.reason, diff)
			}
			checkFixes(t, d)
		})
	}
}

// checkFixes compares the findings with their reasons.
func checkFixes(t *testing.T, d Diagnosis) {
	t.Helper()
	for _, f := range d.Findings {
		if err := fixtest.Check(f.Finding); err != nil {
			t.Error(err)
		}
	}
}

// TestFixesWithoutVersion: no version is left to name, or the owners are not known.
func TestFixesWithoutVersion(t *testing.T) {
	unserved := SubjectOf(kubetest.Widgets(kubetest.Versions(
		apiextensionsv1.CustomResourceDefinitionVersion{Name: "v1"}, apiextensionsv1.CustomResourceDefinitionVersion{Name: "v2", Storage: true})))
	other := Release(served(), kubetest.Widgets(kubetest.Versions(apiextensionsv1.CustomResourceDefinitionVersion{Name: "v3", Served: true, Storage: true})))
	for _, s := range []Subject{unserved, other} {
		d := For(Facts{
			Subjects:   []Subject{s},
			References: []Reference{reference(ownerreference.NoTarget), reference(ownerreference.OwnersUnread)},
			Applied:    []VersionUse{{CRD: "widgets.example.com", Version: "v1", Objects: 2, Example: "ns/w"}},
			Webhooks:   []WebhookConfiguration{webhook([]string{"example.com"}, []string{"widgets"}, []string{"v1"})},
			Policies:   []AdmissionPolicy{policy(match("v1"), nil), parameters("v1")},
			Roles:      []Role{role(rbacv1.PolicyRule{NonResourceURLs: []string{"/apis/example.com/v1"}})},
		})[0]
		if len(d.Findings) != 7 {
			t.Errorf("%d findings, want 7: %v", len(d.Findings), words(d))
		}
		checkFixes(t, d)
	}
}

// TestChangesOfAppliedObjectsNameTheirOwner: the next apply of the owner conflicts with the change, or sets it back.
func TestChangesOfAppliedObjectsNameTheirOwner(t *testing.T) {
	owned := metav1.ObjectMeta{Name: "owned", ManagedFields: []metav1.ManagedFieldsEntry{{
		Manager: "flux", Operation: metav1.ManagedFieldsOperationApply, FieldsType: "FieldsV1",
		FieldsV1: metav1.NewFieldsV1(`{"f:rules":{},"f:spec":{"f:matchConstraints":{},"f:paramKind":{}},"f:webhooks":{"k:{\"name\":\"a.example.com\"}":{"f:rules":{}}}}`),
	}}}
	r := role(rbacv1.PolicyRule{NonResourceURLs: []string{"/apis/example.com/v1"}})
	w := webhook([]string{"example.com"}, []string{"widgets"}, []string{"v1"})
	p := parameters("v1")
	p.Spec.MatchConstraints = match("v1")
	r.ObjectMeta, w.ObjectMeta, p.ObjectMeta = owned, owned, owned
	crd := kubetest.Widgets(func(crd *apiextensionsv1.CustomResourceDefinition) {
		crd.Spec.Versions[0].Served = false
	})
	d := For(Facts{Subjects: []Subject{SubjectOf(crd)}, Roles: []Role{r}, Webhooks: []WebhookConfiguration{w}, Policies: []AdmissionPolicy{p}})[0]
	if len(d.Findings) != 4 {
		t.Fatalf("%d findings, want 4: %v", len(d.Findings), words(d))
	}
	for _, f := range d.Findings {
		if got := kubetest.Words(f.Fix); !strings.Contains(got, "Owner:{Manager:flux ServerSide:true}") {
			t.Errorf("%s: %s", f.Reason, got)
		}
	}
}

// TestRelease: the versions that count are those of the next release, and a repair comes before it.
func TestRelease(t *testing.T) {
	live := kubetest.Widgets() // serves v1 and v2
	s := Release(live, removed())
	if !s.Drops() {
		t.Error("the release does not serve v1")
	}
	d := For(Facts{Subjects: []Subject{s}, References: []Reference{reference(ownerreference.Repair)}})[0]
	checkFixes(t, d)
	got := words(d)
	want := []string{"Stale", "✗ OwnerReferenceNotServed → before this release, repair them: RunMigration{CRD:widgets.example.com Write: DryRun:false AcceptDenials:false AcceptLosses: AcceptChanges: OwnerReferences:All}"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if s := Release(live, kubetest.Widgets()); s.Drops() {
		t.Error("the release serves every version")
	}
}
