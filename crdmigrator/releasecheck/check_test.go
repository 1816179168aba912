package releasecheck

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/internal/fixtest"
	"github.com/godwit-dev/godwit/internal/kube"
	"github.com/godwit-dev/godwit/internal/kube/kubetest"
	"github.com/godwit-dev/godwit/internal/storageversion/decision"
	"github.com/godwit-dev/godwit/internal/storageversion/values"
)

// at is a version of a CRD: * stores, - is not served.
func at(flags string) apiextensionsv1.CustomResourceDefinitionVersion {
	return apiextensionsv1.CustomResourceDefinitionVersion{
		Name: strings.TrimRight(flags, "*-"), Storage: strings.Contains(flags, "*"), Served: !strings.Contains(flags, "-"),
		Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object"}},
	}
}

func has(flags ...string) kubetest.Edit {
	return func(crd *apiextensionsv1.CustomResourceDefinition) {
		crd.Spec.Versions = nil
		for _, f := range flags {
			crd.Spec.Versions = append(crd.Spec.Versions, at(f))
		}
	}
}

// fields gives a version's schema one field, so that it differs from the others.
func fields(version, name string) kubetest.Edit {
	return func(crd *apiextensionsv1.CustomResourceDefinition) {
		schema := versionOf(crd, version).Schema.OpenAPIV3Schema
		schema.Properties = map[string]apiextensionsv1.JSONSchemaProps{name: {Type: "string"}}
	}
}

func conversion(c apiextensionsv1.CustomResourceConversion) kubetest.Edit {
	return func(crd *apiextensionsv1.CustomResourceDefinition) { crd.Spec.Conversion = &c }
}

// webhook is a complete conversion by a webhook.
func webhook(edits ...func(*apiextensionsv1.WebhookConversion)) kubetest.Edit {
	w := &apiextensionsv1.WebhookConversion{
		ClientConfig:             &apiextensionsv1.WebhookClientConfig{URL: new("https://example.com/convert")},
		ConversionReviewVersions: []string{"v1"},
	}
	for _, e := range edits {
		e(w)
	}
	return conversion(apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.WebhookConverter, Webhook: w})
}

// resultsOf writes a check as RESULT and what each reason amounts to.
func resultsOf(c Check) []string {
	lines := []string{string(c.Result) + " removes " + strings.Join(c.RemovedVersions, ",")}
	for _, r := range c.Reasons {
		lines = append(lines, string(r.Result)+" "+r.Reason.Name)
	}
	return lines
}

func TestFor(t *testing.T) {
	live := func(edits ...kubetest.Edit) *apiextensionsv1.CustomResourceDefinition {
		return kubetest.Widgets(append([]kubetest.Edit{has("v1", "v2*"), kubetest.Stored("v2")}, edits...)...)
	}
	next := func(edits ...kubetest.Edit) *apiextensionsv1.CustomResourceDefinition {
		return kubetest.Widgets(append([]kubetest.Edit{kubetest.Stored()}, edits...)...)
	}
	n := func(n int64) *int64 { return &n }
	accepted := DryRun{Accepted: true}
	list := []decision.Grant{{Verb: "list", Resource: kubetest.Resource}}

	cases := map[string]struct {
		reason string
		facts  Facts
		want   []string
	}{
		"new": {
			reason: "what is not there is created",
			facts:  Facts{Next: next(has("v1*")), DryRun: accepted},
			want:   []string{"Safe removes "},
		},
		"same": {
			reason: "nothing changes",
			facts:  Facts{Live: live(), Next: next(has("v1", "v2*")), DryRun: accepted},
			want:   []string{"Safe removes "},
		},
		"added": {
			reason: "an additional version changes nothing for clients",
			facts:  Facts{Live: live(has("v1*"), kubetest.Stored("v1")), Next: next(has("v1*", "v2"))},
			want:   []string{"Safe removes "},
		},
		"flipped": {
			reason: "old objects stay readable as long as their version stays",
			facts:  Facts{Live: live(has("v1*", "v2"), kubetest.Stored("v1")), Next: next(has("v1", "v2*"))},
			want:   []string{"Safe removes "},
		},
		"removed before the migration": {
			reason: "the API server's own guard",
			facts:  Facts{Live: live(kubetest.Stored("v1", "v2")), Next: next(has("v2*"))},
			want:   []string{"Refused removes v1", "Refused StoredVersionRemoved", "Safe RemovedWhileServed"},
		},
		"flipped and removed at once": {
			reason: "it is stored at v1 until the moment it goes",
			facts:  Facts{Live: live(has("v1-*", "v2"), kubetest.Stored("v1")), Next: next(has("v2*"))},
			want:   []string{"Refused removes v1", "Refused StoredVersionRemoved"},
		},
		"stored version already gone": {
			reason: "any change of such a CRD is refused, though this one removes nothing",
			facts:  Facts{Live: live(kubetest.Stored("v0", "v2")), Next: next(has("v1", "v2*"))},
			want:   []string{"Refused removes ", "Refused StoredVersionRemoved"},
		},
		"removed after the migration, without objects": {
			reason: "no object can become unreadable",
			facts:  Facts{Live: live(), Next: next(has("v2*")), Objects: n(0)},
			want:   []string{"Safe removes v1"},
		},
		"removed after migration and cleanup": {
			reason: "storedVersions is a claim, and the note says so",
			facts:  Facts{Live: live(has("v1-", "v2*")), Next: next(has("v2*")), Objects: n(3)},
			want:   []string{"Safe removes v1", "Safe StoredVersionsTrusted"},
		},
		"removed while served": {
			reason: "clients find out by a 404",
			facts:  Facts{Live: live(), Next: next(has("v2*")), Objects: n(3)},
			want:   []string{"Safe removes v1", "Safe StoredVersionsTrusted", "Safe RemovedWhileServed"},
		},
		"managedFields name it": {
			reason: "one object that can no longer be applied is enough",
			facts:  Facts{Live: live(has("v1-", "v2*")), Next: next(has("v2*")), Objects: n(3), Stale: 1, StaleExample: "ns/a"},
			want:   []string{"Unsafe removes v1", "Unsafe ManagedFieldsRemovedVersion", "Safe StoredVersionsTrusted"},
		},
		"objects may not be listed": {
			reason: "what managedFields name is not known",
			facts:  Facts{Live: live(has("v1-", "v2*")), Next: next(has("v2*")), Denied: list, User: "alice"},
			want:   []string{"Unknown removes v1", "Unknown Forbidden"},
		},
		"objects can't be listed": {
			reason: "what managedFields name is not known",
			facts:  Facts{Live: live(has("v1-", "v2*")), Next: next(has("v2*")), Unread: &decision.UnlistedError{Finding: godwit.Finding{Reason: decision.ReasonWebhookUnavailable, Message: "the webhook is down", Fix: godwit.Do("bring it up")}}},
			want:   []string{"Unknown removes v1", "Unknown ObjectsUnread"},
		},
		"CRD may not be read": {
			reason: "a file that is wrong by itself is refused all the same",
			facts: Facts{Next: next(has("v1", "v2")), User: "alice",
				Denied: []decision.Grant{{Verb: "get", Resource: kube.CRDs, Name: "widgets.example.com"}}},
			want: []string{"Refused removes ", "Refused NoStorageVersion", "Unknown Forbidden"},
		},
		"storedVersions without the storage version": {
			reason: "the API server always lists it: another client altered the list",
			facts:  Facts{Live: live(has("v1-", "v2", "v3*")), Next: next(has("v2", "v3*")), Objects: n(3)},
			want:   []string{"Unknown removes v1", "Unknown StoredVersionsDoubtful"},
		},
		"storedVersions trimmed by a migration that failed": {
			reason: "Kubernetes 1.37 does so, with objects left at the old version",
			facts:  Facts{Live: live(has("v1-", "v2*"), migrating(kube.MigrationFailed)), Next: next(has("v2*")), Objects: n(3)},
			want:   []string{"Unknown removes v1", "Unknown StoredVersionsDoubtful"},
		},
		"storage version removed behind an altered list": {
			reason: "the API server does not notice, and objects were written at it to this day",
			facts:  Facts{Live: live(has("v1*", "v2")), Next: next(has("v2*")), Objects: n(3)},
			want:   []string{"Unsafe removes v1", "Unsafe StoredAtRemovedVersion", "Safe RemovedWhileServed"},
		},
		"altered list, no objects": {
			reason: "no object can become unreadable",
			facts:  Facts{Live: live(has("v1*", "v2")), Next: next(has("v2*")), Objects: n(0)},
			want:   []string{"Safe removes v1"},
		},
		"altered list, nothing removed": {
			reason: "the next write of the spec fixes it",
			facts:  Facts{Live: live(has("v1*", "v2")), Next: next(has("v1*", "v2"))},
			want:   []string{"Safe removes "},
		},
		"terminating": {
			reason: "it ends, with all objects, and the API server accepts changes until then",
			facts:  Facts{Live: live(terminating), Next: next(has("v1", "v2*"))},
			want:   []string{"Unknown removes ", "Unknown Terminating"},
		},
		"no storage version": {
			reason: "the API server wants exactly one",
			facts:  Facts{Live: live(), Next: next(has("v1", "v2"))},
			want:   []string{"Refused removes ", "Refused NoStorageVersion"},
		},
		"two storage versions": {
			reason: "the API server wants exactly one",
			facts:  Facts{Live: live(), Next: next(has("v1*", "v2*"))},
			want:   []string{"Refused removes ", "Refused SeveralStorageVersions"},
		},
		"no version": {
			reason: "an empty list stores nothing, too",
			facts:  Facts{Next: next(has())},
			want:   []string{"Refused removes ", "Refused NoStorageVersion"},
		},
		"version twice": {
			reason: "names are unique",
			facts:  Facts{Live: live(), Next: next(has("v1", "v1", "v2*"))},
			want:   []string{"Refused removes ", "Refused InvalidVersion"},
		},
		"odd version": {
			reason: "a version is part of URLs",
			facts:  Facts{Next: next(has("1.0*"))},
			want:   []string{"Refused removes ", "Refused InvalidVersion"},
		},
		"no schema": {
			reason: "each version has one",
			facts:  Facts{Live: live(), Next: next(has("v1", "v2*"), func(crd *apiextensionsv1.CustomResourceDefinition) { crd.Spec.Versions[0].Schema = nil })},
			want:   []string{"Refused removes ", "Refused InvalidVersion"},
		},
		"no schema, as before": {
			reason: "the API server forgives what was there",
			facts:  Facts{Live: kubetest.Widgets(kubetest.Stored("v2")), Next: kubetest.Widgets()},
			want:   []string{"Safe removes "},
		},
		"none served": {
			reason: "the API server accepts it, and no client can read an object",
			facts:  Facts{Live: live(), Next: next(has("v1-", "v2*-")), Objects: n(3)},
			want:   []string{"Unsafe removes ", "Unsafe NoServedVersion"},
		},
		"none served, unread": {
			reason: "without the permission to count, objects may exist",
			facts:  Facts{Live: live(), Next: next(has("v1-", "v2*-")), Denied: list},
			want:   []string{"Unsafe removes ", "Unsafe NoServedVersion", "Unknown Forbidden"},
		},
		"none served, no objects": {
			reason: "no object can become unreadable",
			facts:  Facts{Live: live(), Next: next(has("v1-", "v2*-")), Objects: n(0)},
			want:   []string{"Safe removes ", "Safe NoServedVersion"},
		},
		"storage version not served": {
			reason: "objects are converted and readable; only a migration is impossible",
			facts:  Facts{Live: live(), Next: next(has("v1", "v2*-"))},
			want:   []string{"Safe removes ", "Safe UnservedStorageVersion"},
		},
		"group": {
			reason: "it is part of the name, and of every key",
			facts:  Facts{Live: live(), Next: next(has("v1", "v2*"), func(crd *apiextensionsv1.CustomResourceDefinition) { crd.Spec.Group = "example.org" })},
			want:   []string{"Refused removes ", "Refused ImmutableField"},
		},
		"kind and scope": {
			reason: "each is named",
			facts: Facts{Live: live(func(crd *apiextensionsv1.CustomResourceDefinition) { crd.Spec.Scope = apiextensionsv1.NamespaceScoped }), Next: next(has("v1", "v2*"), func(crd *apiextensionsv1.CustomResourceDefinition) {
				crd.Spec.Names.Kind, crd.Spec.Scope = "Gadget", apiextensionsv1.ClusterScoped
			})},
			want: []string{"Refused removes ", "Refused ImmutableField", "Refused ImmutableField"},
		},
		"kind, not yet established": {
			reason: "the API server still lets it change",
			facts: Facts{Live: live(kubetest.Conditions()), Next: next(has("v1", "v2*"), func(crd *apiextensionsv1.CustomResourceDefinition) {
				crd.Spec.Names.Kind = "Gadget"
			})},
			want: []string{"Safe removes "},
		},
		"name of a new one": {
			reason: "it is plural and group",
			facts:  Facts{Next: next(has("v1*"), func(crd *apiextensionsv1.CustomResourceDefinition) { crd.Spec.Names.Plural = "gadgets" })},
			want:   []string{"Refused removes ", "Refused ImmutableField"},
		},
		"webhook": {
			reason: "a complete one",
			facts:  Facts{Live: live(), Next: next(has("v1", "v2*"), webhook())},
			want:   []string{"Safe removes "},
		},
		"webhook without an address": {
			reason: "the API server has no address to call",
			facts:  Facts{Live: live(), Next: next(has("v1", "v2*"), webhook(func(w *apiextensionsv1.WebhookConversion) { w.ClientConfig = nil }))},
			want:   []string{"Refused removes ", "Refused InvalidConversion"},
		},
		"webhook with two addresses": {
			reason: "which?",
			facts: Facts{Live: live(), Next: next(has("v1", "v2*"), webhook(func(w *apiextensionsv1.WebhookConversion) {
				w.ClientConfig.Service = &apiextensionsv1.ServiceReference{Namespace: "a", Name: "b"}
			}))},
			want: []string{"Refused removes ", "Refused InvalidConversion"},
		},
		"webhook of a future protocol": {
			reason: "the API server supports v1 and v1beta1",
			facts: Facts{Live: live(), Next: next(has("v1", "v2*"), webhook(func(w *apiextensionsv1.WebhookConversion) {
				w.ConversionReviewVersions = []string{"v9"}
			}))},
			want: []string{"Refused removes ", "Refused InvalidConversion"},
		},
		"webhook and strategy None": {
			reason: "one of them is a mistake",
			facts: Facts{Live: live(), Next: next(has("v1", "v2*"), webhook(), func(crd *apiextensionsv1.CustomResourceDefinition) {
				crd.Spec.Conversion.Strategy = apiextensionsv1.NoneConverter
			})},
			want: []string{"Refused removes ", "Refused InvalidConversion"},
		},
		"odd strategy": {
			reason: "there are two",
			facts:  Facts{Live: live(), Next: next(has("v1", "v2*"), conversion(apiextensionsv1.CustomResourceConversion{}))},
			want:   []string{"Refused removes ", "Refused InvalidConversion"},
		},
		"webhook goes": {
			reason: "the API server does not mind that fields are lost",
			facts:  Facts{Live: live(webhook()), Next: next(has("v1", "v2*"), fields("v1", "colour"))},
			want:   []string{"Safe removes ", "Safe FieldsMayBeLost"},
		},
		"webhook goes, equal schemas": {
			reason: "there was nothing to convert",
			facts:  Facts{Live: live(webhook()), Next: next(has("v1", "v2*"))},
			want:   []string{"Safe removes "},
		},
		"flipped between schemas": {
			reason: "what v2 does not know is pruned from what is written",
			facts:  Facts{Live: live(has("v1*", "v2"), kubetest.Stored("v1"), fields("v1", "colour")), Next: next(has("v1", "v2*"), fields("v1", "colour"))},
			want:   []string{"Safe removes ", "Safe FieldsMayBeLost"},
		},
		"dropped within a version": {
			reason: "the next write drops the value of an object that is stored at the same version",
			facts:  Facts{Live: live(fields("v2", "colour")), Next: next(has("v1", "v2*"))},
			want:   []string{"Safe removes ", "Safe FieldsMayBeLost"},
		},
		"an object has a value": {
			reason: "it is known which values are dropped",
			facts: Facts{
				Live: live(has("v1*", "v2"), kubetest.Stored("v1"), fields("v1", "colour")), Next: next(has("v1", "v2*"), fields("v1", "colour")),
				Values: &Values{Compared: 3, Losses: []values.Loss{{Path: "spec.colour", Objects: 2, Examples: []string{"ns/a", "ns/b"}}}},
			},
			want: []string{"Unsafe removes ", "Unsafe FieldsWouldBeLost"},
		},
		"no object has a value": {
			reason: "a client may write one before the release",
			facts: Facts{
				Live: live(has("v1*", "v2"), kubetest.Stored("v1"), fields("v1", "colour")), Next: next(has("v1", "v2*"), fields("v1", "colour")),
				Values: &Values{Compared: 3},
			},
			want: []string{"Safe removes ", "Safe FieldsMayBeLost"},
		},
		"values that no client sees": {
			reason: "an unserved version shows no object as it is stored",
			facts: Facts{
				Live: live(has("v1*", "v2"), kubetest.Stored("v1"), fields("v1", "colour")), Next: next(has("v1", "v2*"), fields("v1", "colour")),
				Values: &Values{Uncompared: []string{"v1"}},
			},
			want: []string{"Unknown removes ", "Unknown FieldsMayBeLost"},
		},
		"the server knows more": {
			reason: "schemas are its business",
			facts:  Facts{Live: live(), Next: next(has("v1", "v2*")), DryRun: DryRun{Refusal: "not structural"}},
			want:   []string{"Refused removes ", "Refused ServerRefused"},
		},
		"refused as it may be applied": {
			reason: "the user may have another tool",
			facts:  Facts{Live: live(), Next: next(has("v1", "v2*")), DryRun: accepted, Applied: DryRun{Refusal: "invalid"}, AppliedBy: "helm upgrade", AppliedUnsure: true},
			want:   []string{"Unknown removes ", "Unknown ServerRefused"},
		},
		"the server says the same": {
			reason: "once is enough",
			facts:  Facts{Live: live(), Next: next(has("v1", "v2")), DryRun: DryRun{Refusal: "must have exactly one version marked as storage version"}},
			want:   []string{"Refused removes ", "Refused NoStorageVersion"},
		},
		"no dry run": {
			reason: "a result about versions needs no permission to write",
			facts:  Facts{Live: live(), Next: next(has("v1", "v2*")), DryRun: DryRun{Skipped: "alice may not update"}},
			want:   []string{"Safe removes ", "Safe NotDryRun"},
		},
		"not asked how it is applied": {
			reason: "an update does not show what an apply keeps",
			facts:  Facts{Live: live(), Next: next(has("v1", "v2*")), DryRun: accepted, Applied: DryRun{Skipped: "alice may not patch"}},
			want:   []string{"Safe removes ", "Safe NotDryRun"},
		},
		"refused as it is applied": {
			reason: "the tools keep what the file does not name",
			facts:  Facts{Live: live(), Next: next(has("v1", "v2*")), DryRun: accepted, Applied: DryRun{Refusal: "invalid"}, AppliedBy: "kubectl apply"},
			want:   []string{"Refused removes ", "Refused ServerRefused"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := For(tc.facts)
			if diff := cmp.Diff(tc.want, resultsOf(got)); diff != "" {
				t.Errorf("%s\ncheck (-want +got):\n%s", tc.reason, diff)
			}
			for _, r := range got.Reasons {
				if err := fixtest.Check(r.Finding); err != nil {
					t.Error(err)
				}
				if len(r.Fix) == 0 || !strings.Contains(r.Message, "widgets.example.com") {
					t.Errorf("reason %+v: it must name the CRD and a remedy", r)
				}
			}
		})
	}
}

// TestCheckRemedies checks the remedy of the first reason.
func TestCheckRemedies(t *testing.T) {
	three, run := int64(3), "RunMigration{CRD:widgets.example.com "
	cases := map[string]struct {
		reason   string
		facts    Facts
		has, not string
	}{
		"old version": {
			reason: "its objects can be migrated now",
			facts:  Facts{Live: kubetest.Widgets(has("v1", "v2*")), Next: kubetest.Widgets(has("v2*"))},
			has:    "before this release migrate: " + run, not: "one more release",
		},
		"storage version": {
			reason: "a run migrates to it: another must be stored first",
			facts:  Facts{Live: kubetest.Widgets(has("v1*", "v2"), kubetest.Stored("v1")), Next: kubetest.Widgets(has("v2*"))},
			has:    "keep v1 for one more release",
		},
		"lost version": {
			reason: "it must come back to be read",
			facts:  Facts{Live: kubetest.Widgets(has("v2*"), kubetest.Stored("v0", "v2")), Next: kubetest.Widgets(has("v2*"))},
			has:    "add version v0 with served: false",
		},
		"stale and not served": {
			reason: "a run cleans what is not served",
			facts:  Facts{Live: kubetest.Widgets(has("v1-", "v2*"), kubetest.Stored("v2")), Next: kubetest.Widgets(has("v2*")), Objects: &three, Stale: 1},
			has:    run, not: "release first",
		},
		"stale and served": {
			reason: "a run leaves what is served",
			facts:  Facts{Live: kubetest.Widgets(has("v1", "v2*"), kubetest.Stored("v2")), Next: kubetest.Widgets(has("v2*")), Objects: &three, Stale: 1},
			has:    "release first a CRD that does not serve v1",
		},
		"what is left of a webhook": {
			reason: "no file without spec.conversion is accepted",
			facts: Facts{
				Live: kubetest.Widgets(has("v1*"), kubetest.Stored("v1"), func(crd *apiextensionsv1.CustomResourceDefinition) {
					crd.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.WebhookConverter}
				}),
				Next: kubetest.Widgets(has("v1*")), DryRun: DryRun{Accepted: true}, Applied: DryRun{Refusal: "spec.conversion.strategy: Required value"}, AppliedBy: "kubectl apply --server-side",
			},
			has: "remove the conversion webhook", not: "fix the file",
		},
		"may not list": {
			reason: "the grant is all that is missing",
			facts:  Facts{Live: kubetest.Widgets(has("v1-", "v2*"), kubetest.Stored("v2")), Next: kubetest.Widgets(has("v2*")), Denied: []decision.Grant{{Verb: "list", Resource: kubetest.Resource}}, User: "alice"},
			has:    "GrantPermission{User:alice Verb:list Group:example.com Resource:widgets ",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			first := For(tc.facts).Reasons[0]
			if err := fixtest.Check(first.Finding); err != nil {
				t.Error(err)
			}
			remedy := kubetest.Words(first.Fix)
			if !strings.Contains(remedy, tc.has) || tc.not != "" && strings.Contains(remedy, tc.not) {
				t.Errorf("%s\nremedy %q, want it to say %q and not %q", tc.reason, remedy, tc.has, tc.not)
			}
		})
	}
}

func TestDryRunOf(t *testing.T) {
	group := schema.GroupResource{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"}
	const asked, refused, skipped = "accepted", "refused", "skipped"
	cases := map[string]struct {
		reason string
		err    error
		want   string
	}{
		"accepted":                {"it would be", nil, asked},
		"invalid":                 {"the API server's own rules", apierrors.NewInvalid(schema.GroupKind{}, "a", nil), refused},
		"denied":                  {"a policy's", apierrors.NewForbidden(group, "a", errors.New("no")), refused},
		"bad request":             {"it does not decode", apierrors.NewBadRequest("strict decoding error"), refused},
		"webhook without dry run": {"it was not asked", apierrors.NewBadRequest(`admission webhook "x" does not support dry run`), skipped},
		"webhook down":            {"it may be up at the release", apierrors.NewInternalError(errors.New("failed calling webhook")), skipped},
		"busy":                    {"it may have time at the release", apierrors.NewTooManyRequests("later", 1), skipped},
		"changed in this moment":  {"it says nothing of the file", apierrors.NewConflict(group, "a", errors.New("changed")), skipped},
		"deleted in this moment":  {"it says nothing of the file", apierrors.NewNotFound(group, "a"), skipped},
		"created in this moment":  {"it says nothing of the file", apierrors.NewAlreadyExists(group, "a"), skipped},
		"no server":               {"then nothing else can be asked, either", errors.New("connection refused"), ""},
		"an unexpected answer":    {"what is not accepted is refused", &apierrors.StatusError{ErrStatus: metav1.Status{Code: 418}}, refused},
	}
	for name, tc := range cases {
		r, err := dryRunOf(tc.err)
		got := ""
		switch {
		case r.Accepted:
			got = asked
		case r.Refusal != "":
			got = refused
		case r.Skipped != "":
			got = skipped
		}
		if got != tc.want || (err != nil) != (tc.want == "") {
			t.Errorf("%s: %+v, %v, want %s: %s", name, r, err, tc.want, tc.reason)
		}
	}
}

// TestUnserveTestsTheNames: the list of versions may change before the command runs.
func TestUnserveTestsTheNames(t *testing.T) {
	f := Facts{Next: kubetest.Widgets(), Live: kubetest.Widgets(), Objects: new(int64(3)), Stale: 1, StaleExample: "w", StaleVersions: []string{"v1"}}
	f.Next.Spec.Versions = f.Next.Spec.Versions[1:]
	reasons := checkObjects(f)
	if len(reasons) != 1 {
		t.Fatalf("%d reasons", len(reasons))
	}
	for _, want := range []string{
		"Patch{Object:{Resource:crd Namespace: Name:" + f.Live.Name + "} Subresource: Type:json Body:[",
		`{"op": "test", "path": "/spec/versions/0/name", "value": "v1"}, {"op": "replace", "path": "/spec/versions/0/served", "value": false}`,
	} {
		if !strings.Contains(kubetest.Words(reasons[0].Fix), want) {
			t.Errorf("the remedy %q lacks %q", kubetest.Words(reasons[0].Fix), want)
		}
	}
}

// TestManagedFieldsNameFewerVersionsThanAreRemoved: only versions that entries still
// name are said, and only these are to be unserved.
func TestManagedFieldsNameFewerVersionsThanAreRemoved(t *testing.T) {
	f := Facts{Next: kubetest.Widgets(), Live: kubetest.Widgets(), Objects: new(int64(3)), Stale: 1, StaleExample: "w", StaleVersions: []string{"v1"}}
	v0 := f.Live.Spec.Versions[0]
	v0.Name = "v0"
	f.Live.Spec.Versions = append(f.Live.Spec.Versions, v0)
	f.Next.Spec.Versions = f.Next.Spec.Versions[1:]
	r := checkObjects(f)[0]
	if !strings.Contains(r.Message, ", name v1: ") || strings.Contains(kubetest.Words(r.Fix), "v0") {
		t.Errorf("message %q, remedy %q: want them to name v1 alone", r.Message, kubetest.Words(r.Fix))
	}
}

// migrating adds what Kubernetes' own migrator says.
func migrating(reason string) kubetest.Edit {
	return func(crd *apiextensionsv1.CustomResourceDefinition) {
		crd.Status.Conditions = append(crd.Status.Conditions, apiextensionsv1.CustomResourceDefinitionCondition{
			Type: apiextensionsv1.StorageMigrating, Status: apiextensionsv1.ConditionFalse, Reason: reason,
		})
	}
}

func terminating(crd *apiextensionsv1.CustomResourceDefinition) {
	crd.DeletionTimestamp = &metav1.Time{Time: kubetest.Flip}
}

// TestTooLargeForEtcd: the dry run of the API server accepts a CRD that etcd refuses by default.
func TestTooLargeForEtcd(t *testing.T) {
	crd := func(bytes int) *apiextensionsv1.CustomResourceDefinition {
		return kubetest.Widgets(has("v1*"), func(crd *apiextensionsv1.CustomResourceDefinition) {
			crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Description = strings.Repeat("x", bytes)
		})
	}
	if c := For(Facts{Next: crd(1_200_000), DryRun: DryRun{Accepted: true}}); c.Result != Safe {
		t.Errorf("1.2 MB: %+v, want it safe", c)
	}
	c := For(Facts{Next: crd(3_000_000), DryRun: DryRun{Accepted: true}})
	if c.Result != Unknown || len(c.Reasons) != 1 || c.Reasons[0].Reason != ReasonTooLarge || !strings.Contains(c.Reasons[0].Message, "3000") {
		t.Errorf("3 MB: %.600v, want TooLarge", c)
	}
}
