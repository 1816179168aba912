package bridge_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/crdmigrator/advise"
	"github.com/godwit-dev/godwit/crdmigrator/bridge"
	"github.com/godwit-dev/godwit/crdmigrator/releasecheck"
	"github.com/godwit-dev/godwit/internal/fixtest"
	"github.com/godwit-dev/godwit/internal/kube/kubetest"
)

// has makes versions: * is the storage version, - is not served, and :a,b are fields, of which none means all.
func has(versions ...string) kubetest.Edit {
	all := make([]apiextensionsv1.CustomResourceDefinitionVersion, len(versions))
	for i, text := range versions {
		name, fields, closed := strings.Cut(text, ":")
		schema := &apiextensionsv1.JSONSchemaProps{Type: "object"}
		if closed {
			spec := apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{}}
			for field := range strings.SplitSeq(fields, ",") {
				field, required := strings.CutSuffix(field, "!")
				spec.Properties[field] = apiextensionsv1.JSONSchemaProps{Type: "string"}
				if required {
					spec.Required = append(spec.Required, field)
				}
			}
			schema.Properties = map[string]apiextensionsv1.JSONSchemaProps{"spec": spec}
		} else {
			schema.XPreserveUnknownFields = new(true)
		}
		all[i] = apiextensionsv1.CustomResourceDefinitionVersion{
			Name: strings.TrimRight(name, "*-"), Storage: strings.Contains(name, "*"), Served: !strings.Contains(name, "-"),
			Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: schema},
		}
	}
	return kubetest.Versions(all...)
}

func stored(versions ...string) kubetest.Edit { return kubetest.Stored(versions...) }

func webhook(crd *apiextensionsv1.CustomResourceDefinition) {
	crd.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{
		Strategy: apiextensionsv1.WebhookConverter,
		Webhook: &apiextensionsv1.WebhookConversion{
			ConversionReviewVersions: []string{"v1"},
			ClientConfig:             &apiextensionsv1.WebhookClientConfig{Service: &apiextensionsv1.ServiceReference{Namespace: "shop", Name: "converter"}},
		},
	}
}

// shared means that kubectl applies the conversion, and an injector has written the CA bundle.
func shared(crd *apiextensionsv1.CustomResourceDefinition) {
	webhook(crd)
	entry := func(manager string, operation metav1.ManagedFieldsOperationType, fields string) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{Manager: manager, Operation: operation, APIVersion: "apiextensions.k8s.io/v1", FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(fields)}
	}
	crd.ManagedFields = []metav1.ManagedFieldsEntry{
		entry("kubectl", metav1.ManagedFieldsOperationApply, `{"f:spec":{"f:conversion":{"f:strategy":{}},"f:versions":{}}}`),
		entry("injector", metav1.ManagedFieldsOperationUpdate, `{"f:spec":{"f:conversion":{"f:webhook":{"f:clientConfig":{"f:caBundle":{}}}}}}`),
	}
}

func version(name string) kubetest.Edit {
	return func(crd *apiextensionsv1.CustomResourceDefinition) {
		crd.Labels = map[string]string{"app.kubernetes.io/version": name}
	}
}

// lines are the result, the steps with their versions, and the findings.
func lines(b bridge.Bridge) []string {
	all := []string{strings.TrimSpace(string(b.Result) + " " + b.Target)}
	for _, s := range b.Steps {
		words := []string{string(s.Kind)}
		if s.Manifest != nil {
			for _, v := range s.Manifest.Spec.Versions {
				word := v.Name
				if v.Storage {
					word += "*"
				}
				if !v.Served {
					word += "-"
				}
				words = append(words, word)
			}
		}
		all = append(all, strings.Join(words, " "))
	}
	for _, f := range b.Findings {
		word := "note "
		if f.Severity == godwit.Blocks {
			word = "blocks "
		}
		all = append(all, word+f.Reason.Name)
	}
	return all
}

func TestFor(t *testing.T) {
	crd := kubetest.Widgets
	cases := map[string]struct {
		reason  string
		live    *apiextensionsv1.CustomResourceDefinition
		next    *apiextensionsv1.CustomResourceDefinition
		answers map[string]advise.Answer
		want    []string
	}{
		"new": {reason: "no object exists", next: crd(has("v1*")), want: []string{"NotNeeded"}},
		"same": {reason: "nothing changes", live: crd(has("v1*"), stored("v1")), next: crd(has("v1*")),
			want: []string{"NotNeeded"}},
		"next has both": {reason: "the API server accepts it, and its controller converts", live: crd(has("v1*"), stored("v1")), next: crd(has("v1", "v2*")),
			want: []string{"NotNeeded", "note MigrateAfterNext"}},
		"one skipped": {reason: "the live release has the new version, and does not store it", live: crd(has("v1*", "v2"), stored("v1")), next: crd(has("v2*")),
			want: []string{"Ready v2", "Store v1 v2*", "Migrate", "Unserve v1- v2*", "Remove v2*", "note StepsReady"}},
		"not served": {reason: "objects are written at the storage version", live: crd(has("v1*", "v2-"), stored("v1")), next: crd(has("v2*")),
			want: []string{"Ready v2", "Store v1 v2*", "Migrate", "Unserve v1- v2*", "Remove v2*", "note StepsReady"}},
		"all skipped": {reason: "the live release does not know the new version", live: crd(has("v1*"), stored("v1")), next: crd(has("v2*")),
			want: []string{"Ready v2", "Serve v1* v2", "Store v1 v2*", "Migrate", "Unserve v1- v2*", "Remove v2*", "note StepsReady"}},
		"stored before": {reason: "objects of an older release were never migrated", live: crd(has("v0-", "v1*"), stored("v0", "v1")), next: crd(has("v1", "v2*")),
			want: []string{"Ready v1", "Migrate", "Remove v1*", "note StepsReady", "note MigrateAfterNext"}},
		"served, not stored": {reason: "clients lose a version", live: crd(has("v1", "v2*"), stored("v2")), next: crd(has("v2*")),
			want: []string{"Ready v2", "Unserve v1- v2*", "Remove v2*", "note StepsReady"}},
		"any common version": {reason: "v2 is in both, although neither stores it", live: crd(has("v1*", "v2"), stored("v1")), next: crd(has("v2", "v3*")),
			want: []string{"Ready v2", "Store v1 v2*", "Migrate", "Unserve v1- v2*", "Remove v2*", "note StepsReady", "note MigrateAfterNext"}},
		"webhook of the live release": {reason: "it knows both", live: crd(has("v1*:color", "v2:paint"), stored("v1"), webhook), next: crd(has("v2*:paint")),
			want: []string{"Ready v2", "Store v1 v2*", "Migrate", "Unserve v1- v2*", "Remove v2*", "note ControllerNeeded", "note StepsReady"}},
		"webhook of two field managers": {reason: "an apply without it would leave the CA bundle alone", live: crd(has("v1*:color", "v2:paint"), stored("v1"), shared), next: crd(has("v2*:paint")),
			want: []string{"Ready v2", "Store v1 v2*", "Migrate", "Unserve v1- v2*", "Remove v2*", "Unconvert", "note ControllerNeeded", "note StepsReady"}},
		"webhook of two field managers, several versions": {reason: "it converts until the next release is there", live: crd(has("v1*", "v2", "v3"), stored("v1"), shared), next: crd(has("v2*", "v3")),
			want: []string{"Ready v2", "Store v1 v2* v3", "Migrate", "Unserve v1- v2* v3", "Remove v2* v3", "note ControllerNeeded", "note StepsReady"}},
		"webhook of two field managers that stays": {reason: "the next release has one", live: crd(has("v1*", "v2"), stored("v1"), shared), next: crd(has("v2*"), webhook),
			want: []string{"Ready v2", "Store v1 v2*", "Migrate", "Unserve v1- v2*", "Remove v2*", "note ControllerNeeded", "note StepsReady"}},
		"webhook that does not know the new version": {reason: "no release that was given converts", live: crd(has("v1*"), stored("v1"), webhook), next: crd(has("v2*"), webhook),
			want: []string{"Blocked v2", "blocks ConverterNeeded"}},
		"fields differ, no webhook": {reason: "color would be dropped", live: crd(has("v1*:color", "v2:paint"), stored("v1")), next: crd(has("v2*:paint")),
			want: []string{"Blocked v2", "blocks FieldsMayBeLost"}},
		"fields differ, new version": {reason: "the schema of the next release counts", live: crd(has("v1*:color"), stored("v1")), next: crd(has("v2*:paint")),
			want: []string{"Blocked v2", "blocks FieldsMayBeLost"}},
		"fields that no user needs": {reason: "the user says so", live: crd(has("v1*:color", "v2:paint"), stored("v1")), next: crd(has("v2*:paint")),
			answers: map[string]advise.Answer{"spec.color": advise.Unused},
			want:    []string{"Ready v2", "Store v1 v2*", "Migrate", "Unserve v1- v2*", "Remove v2*", "note StepsReady"}},
		"more fields": {reason: "none is lost", live: crd(has("v1*:color", "v2:color,paint"), stored("v1")), next: crd(has("v2*:color,paint")),
			want: []string{"Ready v2", "Store v1 v2*", "Migrate", "Unserve v1- v2*", "Remove v2*", "note StepsReady"}},
		"stricter": {reason: "objects without paint are invalid", live: crd(has("v1*:color", "v2:color,paint!"), stored("v1")), next: crd(has("v2*:color,paint!")),
			want: []string{"Ready v2", "Store v1 v2*", "Migrate", "Unserve v1- v2*", "Remove v2*", "note ObjectsMayBeInvalid", "note StepsReady"}},
		"next drops fields": {reason: "of a version that stays", live: crd(has("v1*:color,paint"), stored("v1")), next: crd(has("v1*:paint")),
			want: []string{"NotNeeded", "note NextDropsFields"}},
		"another kind": {reason: "it has the same name by chance", live: crd(has("v1*"), stored("v1")),
			next: crd(has("v2*"), func(crd *apiextensionsv1.CustomResourceDefinition) { crd.Spec.Names.Kind = "Gadget" }),
			want: []string{"Blocked", "blocks ImmutableField"}},
		"stored at a version that is gone": {reason: "the live CRD must be rescued first", live: crd(has("v1*"), stored("v0", "v1")), next: crd(has("v1*")),
			want: []string{"Blocked", "blocks StoredVersionRemoved"}},
		"invalid": {reason: "no steps help", live: crd(has("v1*"), stored("v1")), next: crd(has("v1")),
			want: []string{"Blocked", "blocks NoStorageVersion"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			f := bridge.Facts{Live: c.live, Next: c.next, Answers: c.answers}
			got, err := bridge.For(f)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, lines(got)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.reason, diff)
			}
			if err := fixtest.All(got.Findings); err != nil {
				t.Error(err)
			}
			for _, one := range got.Findings {
				if !strings.Contains(one.Message, "widgets.example.com") || len(one.Fix) == 0 {
					t.Errorf("finding %+v has no name of the CRD, or no fix", one)
				}
			}
			for _, s := range got.Steps {
				if s.Manifest != nil && (s.Manifest.Spec.Conversion != nil || s.Manifest.Name != c.next.Name) {
					t.Errorf("step %s writes spec.conversion, or another CRD", s.Kind)
				}
			}
		})
	}
}

// TestConverter: the fix names the release that has to run in between.
func TestConverter(t *testing.T) {
	live := kubetest.Widgets(has("v1*"), stored("v1"), webhook, version("1.0"))
	next := kubetest.Widgets(has("v3*"), webhook, version("3.0"))
	cases := map[string]struct {
		reason  string
		between []bridge.Release
		want    string
	}{
		"no release is given":    {"the labels limit the choice", nil, "between the live one (1.0) and the next one (3.0)"},
		"it converts":            {"it has v1 and v3", []bridge.Release{{Name: "two.yaml", CRD: kubetest.Widgets(has("v1", "v3*"), webhook)}}, "install the release of two.yaml, with its controller, which converts v1 to v3"},
		"it has no webhook":      {"its versions do not convert", []bridge.Release{{Name: "two.yaml", CRD: kubetest.Widgets(has("v1", "v3*"))}}, "between the live one"},
		"it lacks the old one":   {"it can't read the objects", []bridge.Release{{Name: "two.yaml", CRD: kubetest.Widgets(has("v3*"), webhook)}}, "between the live one"},
		"it lacks each next one": {"the next release could not read its objects", []bridge.Release{{Name: "two.yaml", CRD: kubetest.Widgets(has("v1", "v2*"), webhook)}}, "between the live one"},
	}
	for name, c := range cases {
		b, err := bridge.For(bridge.Facts{Live: live, Next: next, Between: c.between})
		if err != nil || len(b.Findings) != 1 || !strings.Contains(b.Findings[0].Fix.String(), c.want) {
			t.Errorf("%s: %s: findings %+v, %v, want a fix with %q", name, c.reason, b.Findings, err, c.want)
		}
		if err := fixtest.All(b.Findings); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestEachStepIsAccepted applies the steps to a model of the API server, for all combinations of versions, storage versions
// and stored versions.
func TestEachStepIsAccepted(t *testing.T) {
	pool := []string{"v1", "v2", "v3"}
	ready := 0
	each := func(do func(versions []string, storage string)) {
		for mask := 1; mask < 1<<len(pool); mask++ {
			var versions []string
			for i, v := range pool {
				if mask&(1<<i) != 0 {
					versions = append(versions, v)
				}
			}
			for _, storage := range versions {
				do(versions, storage)
			}
		}
	}
	each(func(versions []string, storage string) {
		for mask := range 1 << len(versions) {
			at := []string{}
			for i, v := range versions {
				if mask&(1<<i) != 0 || v == storage {
					at = append(at, v)
				}
			}
			each(func(next []string, nextStorage string) {
				live := kubetest.Widgets(has(mark(versions, storage)...), stored(at...))
				b, err := bridge.For(bridge.Facts{Live: live, Next: kubetest.Widgets(has(mark(next, nextStorage)...))})
				if err != nil || b.Result == bridge.Blocked {
					t.Fatalf("%v stored %v to %v: %s, %v", versions, at, next, b.Result, err)
				}
				if b.Result == bridge.Ready {
					ready++
				}
				for _, s := range b.Steps {
					play(t, live, s)
				}
				play(t, live, bridge.Step{Kind: "Next", Manifest: kubetest.Widgets(has(mark(next, nextStorage)...))})
			})
		}
	})
	if ready < 100 {
		t.Errorf("%d bridges, want more than 100", ready)
	}
}

func mark(versions []string, storage string) []string {
	all := make([]string, len(versions))
	for i, v := range versions {
		all[i] = v
		if v == storage {
			all[i] += "*"
		}
	}
	return all
}

// play changes the CRD as the API server does, and fails where it refuses.
func play(t *testing.T, live *apiextensionsv1.CustomResourceDefinition, s bridge.Step) {
	t.Helper()
	if s.Manifest == nil {
		for _, v := range live.Spec.Versions {
			if v.Storage {
				live.Status.StoredVersions = []string{v.Name}
			}
		}
		return
	}
	for _, r := range releasecheck.For(releasecheck.Facts{Live: live, Next: s.Manifest}).Reasons {
		if r.Result != releasecheck.Safe {
			t.Fatalf("step %s: %s: %s", s.Kind, r.Reason, r.Message)
		}
	}
	live.Spec.Versions = s.Manifest.Spec.Versions
	for _, v := range live.Spec.Versions {
		if v.Storage && live.Status.StoredVersions[len(live.Status.StoredVersions)-1] != v.Name {
			kept := []string{}
			for _, old := range live.Status.StoredVersions {
				if old != v.Name {
					kept = append(kept, old)
				}
			}
			kept = append(kept, v.Name)
			live.Status.StoredVersions = kept
		}
	}
}
