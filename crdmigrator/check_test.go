package crdmigrator

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// at is a version of a definition: * stores, - is not served.
func at(flags string) apiextensionsv1.CustomResourceDefinitionVersion {
	return apiextensionsv1.CustomResourceDefinitionVersion{
		Name: strings.TrimRight(flags, "*-"), Storage: strings.Contains(flags, "*"), Served: !strings.Contains(flags, "-"),
		Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object"}},
	}
}

func has(flags ...string) edit {
	return func(crd *apiextensionsv1.CustomResourceDefinition) {
		crd.Spec.Versions = nil
		for _, f := range flags {
			crd.Spec.Versions = append(crd.Spec.Versions, at(f))
		}
	}
}

// fields gives a version's schema one field, so that it differs from the others.
func fields(version, name string) edit {
	return func(crd *apiextensionsv1.CustomResourceDefinition) {
		schema := versionOf(crd, version).Schema.OpenAPIV3Schema
		schema.Properties = map[string]apiextensionsv1.JSONSchemaProps{name: {Type: "string"}}
	}
}

func conversion(c apiextensionsv1.CustomResourceConversion) edit {
	return func(crd *apiextensionsv1.CustomResourceDefinition) { crd.Spec.Conversion = &c }
}

// webhook is a complete conversion by a webhook.
func webhook(edits ...func(*apiextensionsv1.WebhookConversion)) edit {
	w := &apiextensionsv1.WebhookConversion{
		ClientConfig:             &apiextensionsv1.WebhookClientConfig{URL: new("https://example.com/convert")},
		ConversionReviewVersions: []string{"v1"},
	}
	for _, e := range edits {
		e(w)
	}
	return conversion(apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.WebhookConverter, Webhook: w})
}

// verdictsOf writes a check as VERDICT and what each reason amounts to.
func verdictsOf(c Check) []string {
	lines := []string{string(c.Verdict) + " removes " + strings.Join(c.RemovedVersions, ",")}
	for _, r := range c.Reasons {
		lines = append(lines, string(r.Verdict)+" "+r.Reason)
	}
	return lines
}

func TestCheckFor(t *testing.T) {
	live := func(edits ...edit) *apiextensionsv1.CustomResourceDefinition {
		return widgetCRD(append([]edit{has("v1", "v2*"), stored("v2")}, edits...)...)
	}
	next := func(edits ...edit) *apiextensionsv1.CustomResourceDefinition {
		return widgetCRD(append([]edit{stored()}, edits...)...)
	}
	n := func(n int64) *int64 { return &n }
	accepted := Rehearsal{Accepted: true}
	list := []Grant{{Verb: "list", Resource: widgets}}

	cases := map[string]struct {
		reason string
		facts  CheckFacts
		want   []string
	}{
		"new": {
			reason: "what is not there is created",
			facts:  CheckFacts{Next: next(has("v1*")), Rehearsal: accepted},
			want:   []string{"Safe removes "},
		},
		"same": {
			reason: "nothing changes",
			facts:  CheckFacts{Live: live(), Next: next(has("v1", "v2*")), Rehearsal: accepted},
			want:   []string{"Safe removes "},
		},
		"added": {
			reason: "a version more harms nobody",
			facts:  CheckFacts{Live: live(has("v1*"), stored("v1")), Next: next(has("v1*", "v2"))},
			want:   []string{"Safe removes "},
		},
		"flipped": {
			reason: "old objects stay readable as long as their version stays",
			facts:  CheckFacts{Live: live(has("v1*", "v2"), stored("v1")), Next: next(has("v1", "v2*"))},
			want:   []string{"Safe removes "},
		},
		"removed before the migration": {
			reason: "the API server's own guard",
			facts:  CheckFacts{Live: live(stored("v1", "v2")), Next: next(has("v2*"))},
			want:   []string{"Refused removes v1", "Refused StoredVersionRemoved", "Safe RemovedWhileServed"},
		},
		"flipped and removed at once": {
			reason: "it is stored at v1 until the moment it goes",
			facts:  CheckFacts{Live: live(has("v1-*", "v2"), stored("v1")), Next: next(has("v2*"))},
			want:   []string{"Refused removes v1", "Refused StoredVersionRemoved"},
		},
		"stored version already gone": {
			reason: "any change of such a definition is refused, though this one removes nothing",
			facts:  CheckFacts{Live: live(stored("v0", "v2")), Next: next(has("v1", "v2*"))},
			want:   []string{"Refused removes ", "Refused StoredVersionRemoved"},
		},
		"removed after the migration, without objects": {
			reason: "there is nothing that could be stranded",
			facts:  CheckFacts{Live: live(), Next: next(has("v2*")), Objects: n(0)},
			want:   []string{"Safe removes v1"},
		},
		"removed after migration and cleanup": {
			reason: "storedVersions is a claim, and the note says so",
			facts:  CheckFacts{Live: live(has("v1-", "v2*")), Next: next(has("v2*")), Objects: n(3)},
			want:   []string{"Safe removes v1", "Safe StoredVersionsTrusted"},
		},
		"removed while served": {
			reason: "clients find out by a 404",
			facts:  CheckFacts{Live: live(), Next: next(has("v2*")), Objects: n(3)},
			want:   []string{"Safe removes v1", "Safe StoredVersionsTrusted", "Safe RemovedWhileServed"},
		},
		"managedFields name it": {
			reason: "one object that can't be applied any more is stranded",
			facts:  CheckFacts{Live: live(has("v1-", "v2*")), Next: next(has("v2*")), Objects: n(3), Stale: 1, StaleExample: "ns/a"},
			want:   []string{"Stranding removes v1", "Stranding ManagedFieldsRemovedVersion", "Safe StoredVersionsTrusted"},
		},
		"objects may not be listed": {
			reason: "what managedFields name is not known",
			facts:  CheckFacts{Live: live(has("v1-", "v2*")), Next: next(has("v2*")), Denied: list, User: "alice"},
			want:   []string{"Unknown removes v1", "Unknown Forbidden"},
		},
		"objects can't be listed": {
			reason: "what managedFields name is not known",
			facts:  CheckFacts{Live: live(has("v1-", "v2*")), Next: next(has("v2*")), Unread: &UnlistedError{Reason: ReasonWebhookUnavailable, Message: "the webhook is down", Remedy: "bring it up"}},
			want:   []string{"Unknown removes v1", "Unknown ObjectsUnread"},
		},
		"definition may not be read": {
			reason: "and yet a file that is wrong by itself is refused",
			facts: CheckFacts{Next: next(has("v1", "v2")), User: "alice",
				Denied: []Grant{{Verb: "get", Resource: definitions, Name: "widgets.example.com"}}},
			want: []string{"Refused removes ", "Refused NoStorageVersion", "Unknown Forbidden"},
		},
		"storedVersions without the storage version": {
			reason: "the API server would have put it there: somebody altered the list",
			facts:  CheckFacts{Live: live(has("v1-", "v2", "v3*")), Next: next(has("v2", "v3*")), Objects: n(3)},
			want:   []string{"Unknown removes v1", "Unknown StoredVersionsDoubtful"},
		},
		"storedVersions trimmed by a migration that failed": {
			reason: "Kubernetes 1.37 does so, with objects left at the old version",
			facts:  CheckFacts{Live: live(has("v1-", "v2*"), migrating("MigrationFailed")), Next: next(has("v2*")), Objects: n(3)},
			want:   []string{"Unknown removes v1", "Unknown StoredVersionsDoubtful"},
		},
		"storage version removed behind an altered list": {
			reason: "the API server does not notice, and objects were written at it to this day",
			facts:  CheckFacts{Live: live(has("v1*", "v2")), Next: next(has("v2*")), Objects: n(3)},
			want:   []string{"Stranding removes v1", "Stranding StoredAtRemovedVersion", "Safe RemovedWhileServed"},
		},
		"altered list, no objects": {
			reason: "there is nothing that could be stranded",
			facts:  CheckFacts{Live: live(has("v1*", "v2")), Next: next(has("v2*")), Objects: n(0)},
			want:   []string{"Safe removes v1"},
		},
		"altered list, nothing removed": {
			reason: "the next write of the spec mends it",
			facts:  CheckFacts{Live: live(has("v1*", "v2")), Next: next(has("v1*", "v2"))},
			want:   []string{"Safe removes "},
		},
		"terminating": {
			reason: "it ends, with all objects, and the API server accepts changes until then",
			facts:  CheckFacts{Live: live(terminating), Next: next(has("v1", "v2*"))},
			want:   []string{"Unknown removes ", "Unknown Terminating"},
		},
		"no storage version": {
			reason: "the API server wants exactly one",
			facts:  CheckFacts{Live: live(), Next: next(has("v1", "v2"))},
			want:   []string{"Refused removes ", "Refused NoStorageVersion"},
		},
		"two storage versions": {
			reason: "the API server wants exactly one",
			facts:  CheckFacts{Live: live(), Next: next(has("v1*", "v2*"))},
			want:   []string{"Refused removes ", "Refused SeveralStorageVersions"},
		},
		"no version": {
			reason: "an empty list stores nothing, too",
			facts:  CheckFacts{Next: next(has())},
			want:   []string{"Refused removes ", "Refused NoStorageVersion"},
		},
		"version twice": {
			reason: "names are unique",
			facts:  CheckFacts{Live: live(), Next: next(has("v1", "v1", "v2*"))},
			want:   []string{"Refused removes ", "Refused InvalidVersion"},
		},
		"odd version": {
			reason: "a version is part of URLs",
			facts:  CheckFacts{Next: next(has("1.0*"))},
			want:   []string{"Refused removes ", "Refused InvalidVersion"},
		},
		"no schema": {
			reason: "each version has one",
			facts:  CheckFacts{Live: live(), Next: next(has("v1", "v2*"), func(crd *apiextensionsv1.CustomResourceDefinition) { crd.Spec.Versions[0].Schema = nil })},
			want:   []string{"Refused removes ", "Refused InvalidVersion"},
		},
		"no schema, as before": {
			reason: "the API server forgives what was there",
			facts:  CheckFacts{Live: widgetCRD(stored("v2")), Next: widgetCRD()},
			want:   []string{"Safe removes "},
		},
		"none served": {
			reason: "the API server accepts it, and nobody can read an object",
			facts:  CheckFacts{Live: live(), Next: next(has("v1-", "v2*-")), Objects: n(3)},
			want:   []string{"Stranding removes ", "Stranding NoServedVersion"},
		},
		"none served, unread": {
			reason: "whoever may not count the objects can't say that there are none",
			facts:  CheckFacts{Live: live(), Next: next(has("v1-", "v2*-")), Denied: list},
			want:   []string{"Stranding removes ", "Stranding NoServedVersion", "Unknown Forbidden"},
		},
		"none served, no objects": {
			reason: "there is nothing that could be stranded",
			facts:  CheckFacts{Live: live(), Next: next(has("v1-", "v2*-")), Objects: n(0)},
			want:   []string{"Safe removes ", "Safe NoServedVersion"},
		},
		"storage version not served": {
			reason: "objects are converted and readable; only a migration is impossible",
			facts:  CheckFacts{Live: live(), Next: next(has("v1", "v2*-"))},
			want:   []string{"Safe removes ", "Safe UnservedStorageVersion"},
		},
		"group": {
			reason: "it is part of the name, and of every key",
			facts:  CheckFacts{Live: live(), Next: next(has("v1", "v2*"), func(crd *apiextensionsv1.CustomResourceDefinition) { crd.Spec.Group = "example.org" })},
			want:   []string{"Refused removes ", "Refused ImmutableField"},
		},
		"kind and scope": {
			reason: "each is named",
			facts: CheckFacts{Live: live(), Next: next(has("v1", "v2*"), func(crd *apiextensionsv1.CustomResourceDefinition) {
				crd.Spec.Names.Kind, crd.Spec.Scope = "Gadget", apiextensionsv1.ClusterScoped
			})},
			want: []string{"Refused removes ", "Refused ImmutableField", "Refused ImmutableField"},
		},
		"kind, not yet established": {
			reason: "the API server still lets it change",
			facts: CheckFacts{Live: live(conditions()), Next: next(has("v1", "v2*"), func(crd *apiextensionsv1.CustomResourceDefinition) {
				crd.Spec.Names.Kind = "Gadget"
			})},
			want: []string{"Safe removes "},
		},
		"name of a new one": {
			reason: "it is plural and group",
			facts:  CheckFacts{Next: next(has("v1*"), func(crd *apiextensionsv1.CustomResourceDefinition) { crd.Spec.Names.Plural = "gadgets" })},
			want:   []string{"Refused removes ", "Refused ImmutableField"},
		},
		"webhook": {
			reason: "a complete one",
			facts:  CheckFacts{Live: live(), Next: next(has("v1", "v2*"), webhook())},
			want:   []string{"Safe removes "},
		},
		"webhook without an address": {
			reason: "nobody to ask",
			facts:  CheckFacts{Live: live(), Next: next(has("v1", "v2*"), webhook(func(w *apiextensionsv1.WebhookConversion) { w.ClientConfig = nil }))},
			want:   []string{"Refused removes ", "Refused InvalidConversion"},
		},
		"webhook with two addresses": {
			reason: "which?",
			facts: CheckFacts{Live: live(), Next: next(has("v1", "v2*"), webhook(func(w *apiextensionsv1.WebhookConversion) {
				w.ClientConfig.Service = &apiextensionsv1.ServiceReference{Namespace: "a", Name: "b"}
			}))},
			want: []string{"Refused removes ", "Refused InvalidConversion"},
		},
		"webhook of a future protocol": {
			reason: "the API server speaks v1 and v1beta1",
			facts: CheckFacts{Live: live(), Next: next(has("v1", "v2*"), webhook(func(w *apiextensionsv1.WebhookConversion) {
				w.ConversionReviewVersions = []string{"v9"}
			}))},
			want: []string{"Refused removes ", "Refused InvalidConversion"},
		},
		"webhook and strategy None": {
			reason: "one of them is a mistake",
			facts: CheckFacts{Live: live(), Next: next(has("v1", "v2*"), webhook(), func(crd *apiextensionsv1.CustomResourceDefinition) {
				crd.Spec.Conversion.Strategy = apiextensionsv1.NoneConverter
			})},
			want: []string{"Refused removes ", "Refused InvalidConversion"},
		},
		"odd strategy": {
			reason: "there are two",
			facts:  CheckFacts{Live: live(), Next: next(has("v1", "v2*"), conversion(apiextensionsv1.CustomResourceConversion{}))},
			want:   []string{"Refused removes ", "Refused InvalidConversion"},
		},
		"webhook goes": {
			reason: "the API server does not mind that fields are lost",
			facts:  CheckFacts{Live: live(webhook()), Next: next(has("v1", "v2*"), fields("v1", "colour"))},
			want:   []string{"Safe removes ", "Safe FieldsMayBeLost"},
		},
		"webhook goes, equal schemas": {
			reason: "there was nothing to convert",
			facts:  CheckFacts{Live: live(webhook()), Next: next(has("v1", "v2*"))},
			want:   []string{"Safe removes "},
		},
		"flipped between schemas": {
			reason: "what v2 does not know is pruned from what is written",
			facts:  CheckFacts{Live: live(has("v1*", "v2"), stored("v1"), fields("v1", "colour")), Next: next(has("v1", "v2*"), fields("v1", "colour"))},
			want:   []string{"Safe removes ", "Safe FieldsMayBeLost"},
		},
		"the server knows more": {
			reason: "schemas are its business",
			facts:  CheckFacts{Live: live(), Next: next(has("v1", "v2*")), Rehearsal: Rehearsal{Refusal: "not structural"}},
			want:   []string{"Refused removes ", "Refused ServerRefused"},
		},
		"the server says the same": {
			reason: "once is enough",
			facts:  CheckFacts{Live: live(), Next: next(has("v1", "v2")), Rehearsal: Rehearsal{Refusal: "must have exactly one version marked as storage version"}},
			want:   []string{"Refused removes ", "Refused NoStorageVersion"},
		},
		"not rehearsed": {
			reason: "a verdict about versions needs no right to write",
			facts:  CheckFacts{Live: live(), Next: next(has("v1", "v2*")), Rehearsal: Rehearsal{Skipped: "alice may not update"}},
			want:   []string{"Safe removes ", "Safe NotRehearsed"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := CheckFor(tc.facts)
			if diff := cmp.Diff(tc.want, verdictsOf(got)); diff != "" {
				t.Errorf("%s\ncheck (-want +got):\n%s", tc.reason, diff)
			}
			for _, r := range got.Reasons {
				if r.Remedy == "" || !strings.Contains(r.Message, "widgets.example.com") {
					t.Errorf("reason %+v: it must name the definition and a remedy", r)
				}
			}
		})
	}
}

// What is to be done first depends on what stands in the way.
func TestCheckRemedies(t *testing.T) {
	three, run := int64(3), "godwit crd run widgets.example.com"
	cases := map[string]struct {
		reason   string
		facts    CheckFacts
		has, not string
	}{
		"old version": {
			reason: "its objects can be migrated now",
			facts:  CheckFacts{Live: widgetCRD(has("v1", "v2*")), Next: widgetCRD(has("v2*"))},
			has:    "before this release run: " + run, not: "one more release",
		},
		"storage version": {
			reason: "a run migrates to it: another must be stored first",
			facts:  CheckFacts{Live: widgetCRD(has("v1*", "v2"), stored("v1")), Next: widgetCRD(has("v2*"))},
			has:    "keep v1 for one more release",
		},
		"lost version": {
			reason: "it must come back to be read",
			facts:  CheckFacts{Live: widgetCRD(has("v2*"), stored("v0", "v2")), Next: widgetCRD(has("v2*"))},
			has:    "add version v0 with served: false",
		},
		"stale and not served": {
			reason: "a run cleans what is not served",
			facts:  CheckFacts{Live: widgetCRD(has("v1-", "v2*"), stored("v2")), Next: widgetCRD(has("v2*")), Objects: &three, Stale: 1},
			has:    run, not: "let a release",
		},
		"stale and served": {
			reason: "a run leaves what is served",
			facts:  CheckFacts{Live: widgetCRD(has("v1", "v2*"), stored("v2")), Next: widgetCRD(has("v2*")), Objects: &three, Stale: 1},
			has:    "let a release come first that does not serve v1",
		},
		"may not list": {
			reason: "the grant can be pasted",
			facts:  CheckFacts{Live: widgetCRD(has("v1-", "v2*"), stored("v2")), Next: widgetCRD(has("v2*")), Denied: []Grant{{Verb: "list", Resource: widgets}}, User: "alice"},
			has:    "--verb=list --resource=widgets.example.com",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			remedy := CheckFor(tc.facts).Reasons[0].Remedy
			if !strings.Contains(remedy, tc.has) || tc.not != "" && strings.Contains(remedy, tc.not) {
				t.Errorf("%s\nremedy %q, want it to say %q and not %q", tc.reason, remedy, tc.has, tc.not)
			}
		})
	}
}

func TestRehearsalOf(t *testing.T) {
	group := schema.GroupResource{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"}
	const asked, refused, skipped = "accepted", "refused", "skipped"
	cases := map[string]struct {
		reason string
		err    error
		want   string
	}{
		"accepted":                  {"it would be", nil, asked},
		"invalid":                   {"the API server's own rules", apierrors.NewInvalid(schema.GroupKind{}, "a", nil), refused},
		"denied":                    {"a policy's", apierrors.NewForbidden(group, "a", errors.New("no")), refused},
		"bad request":               {"it does not decode", apierrors.NewBadRequest("strict decoding error"), refused},
		"webhook without dry run":   {"it was not asked", apierrors.NewBadRequest(`admission webhook "x" does not support dry run`), skipped},
		"webhook down":              {"it may be up at the release", apierrors.NewInternalError(errors.New("failed calling webhook")), skipped},
		"busy":                      {"it may have time at the release", apierrors.NewTooManyRequests("later", 1), skipped},
		"changed in this moment":    {"it says nothing of the file", apierrors.NewConflict(group, "a", errors.New("changed")), skipped},
		"deleted in this moment":    {"it says nothing of the file", apierrors.NewNotFound(group, "a"), skipped},
		"created in this moment":    {"it says nothing of the file", apierrors.NewAlreadyExists(group, "a"), skipped},
		"nobody there":              {"then nothing else can be asked, either", errors.New("connection refused"), ""},
		"an answer nobody expected": {"what is not accepted is refused", &apierrors.StatusError{ErrStatus: metav1.Status{Code: 418}}, refused},
	}
	for name, tc := range cases {
		r, err := rehearsalOf(tc.err)
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
