package check

import (
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/cmd/internal/frame"
	"github.com/godwit-dev/godwit/crdmigrator/bridge"
	"github.com/godwit-dev/godwit/crdmigrator/releasecheck"
	"github.com/godwit-dev/godwit/internal/storageversion/decision"
)

// found is a CRD of a release, and what one finding leads to.
func found(result releasecheck.Result, reason *godwit.Reason, steps bridge.Result) release {
	f := releasecheck.Finding{Result: result, Finding: godwit.Finding{Reason: reason}}
	return release{
		live: &apiextensionsv1.CustomResourceDefinition{}, check: releasecheck.Check{Result: releasecheck.Safe}.With(f), steps: bridge.Bridge{Result: steps},
	}
}

var (
	safe      = found(releasecheck.Safe, releasecheck.ReasonStoredVersionsTrusted, bridge.NotNeeded)
	forbidden = release{check: found(releasecheck.Unknown, decision.ReasonForbidden, unread).check}
	stored    = found(releasecheck.Refused, releasecheck.ReasonStoredVersionRemoved, bridge.Ready)
	blocked   = found(releasecheck.Refused, releasecheck.ReasonStoredVersionRemoved, bridge.Blocked)
	unsafe    = found(releasecheck.Unsafe, releasecheck.ReasonNoServedVersion, bridge.NotNeeded)
	// stale has steps that end one reason, and another reason.
	stale = release{live: stored.live, steps: stored.steps, check: found(releasecheck.Unsafe, releasecheck.ReasonManagedFieldsRemovedVersion, bridge.Ready).check.
		With(releasecheck.Finding{Result: releasecheck.Unknown, Finding: godwit.Finding{Reason: releasecheck.ReasonReferencesUnread}})}
	another = release{check: releasecheck.Check{Result: releasecheck.Safe}, steps: bridge.Bridge{Result: bridge.NotNeeded}} // not in the cluster
)

func TestExitCode(t *testing.T) {
	for name, c := range map[string]struct {
		reason        string
		all           []release
		steps         string
		written       bool
		check, bridge frame.Code
	}{
		"all safe":              {"", []release{safe, another}, "", false, frame.OK, frame.OK},
		"one unknown":           {"bridge could do nothing then", []release{safe, forbidden}, "", false, frame.Pending, frame.Error},
		"refused and unknown":   {"refused outweighs unknown", []release{stored, forbidden}, "", false, frame.Refused, frame.Error},
		"unsafe":                {"as bad as refused, and no steps help", []release{unsafe}, "", false, frame.Refused, frame.OK},
		"steps, not written":    {"the release is not safe", []release{safe, stored}, "", false, frame.Refused, frame.Pending},
		"steps, written":        {"it is after the steps", []release{safe, stored}, "steps", true, frame.OK, frame.OK},
		"not all of it ends":    {"what is unknown stays so", []release{stale}, "steps", true, frame.Pending, frame.OK},
		"blocked":               {"", []release{stored, blocked}, "steps", false, frame.Refused, frame.Refused},
		"blocked, safe as such": {"the user has asked for steps", []release{found(releasecheck.Safe, releasecheck.ReasonFieldsMayBeLost, bridge.Blocked)}, "steps", false, frame.Refused, frame.Refused},
		"not needed":            {"", []release{safe}, "steps", false, frame.OK, frame.OK},
		"no CRD of the cluster": {"bridge took that for a mistake", []release{another}, "steps", false, frame.OK, frame.Refused},
	} {
		o := &options{steps: c.steps}
		if got := o.exitCode(c.all, c.written); got != c.check {
			t.Errorf("%s: exit code %d of check, want %d: %s", name, got, c.check, c.reason)
		}
		if got := o.bridgeCode(c.all, c.written); got != c.bridge {
			t.Errorf("%s: exit code %d of bridge, want %d: %s", name, got, c.bridge, c.reason)
		}
	}
}

// TestSteps: what keeps the steps from being made adds a reason, and leaves the result as it is. A reason that the check has is
// not there twice.
func TestSteps(t *testing.T) {
	version := func(name string, storage bool, fields ...string) apiextensionsv1.CustomResourceDefinitionVersion {
		spec := apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{}}
		for _, f := range fields {
			spec.Properties[f] = apiextensionsv1.JSONSchemaProps{Type: "string"}
		}
		return apiextensionsv1.CustomResourceDefinitionVersion{Name: name, Served: true, Storage: storage, Schema: &apiextensionsv1.CustomResourceValidation{
			OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"spec": spec}},
		}}
	}
	crd := func(stored string, versions ...apiextensionsv1.CustomResourceDefinitionVersion) *apiextensionsv1.CustomResourceDefinition {
		c := &apiextensionsv1.CustomResourceDefinition{}
		c.Name, c.Spec.Group = "widgets.example.com", "example.com"
		c.Spec.Names.Plural, c.Spec.Names.Kind, c.Spec.Scope = "widgets", "Widget", apiextensionsv1.NamespaceScoped
		c.Spec.Versions, c.Status.StoredVersions = versions, []string{stored}
		return c
	}
	live := crd("v1", version("v1", true, "color"))
	for name, c := range map[string]struct {
		next    *apiextensionsv1.CustomResourceDefinition
		result  bridge.Result
		reasons []*godwit.Reason
	}{
		"ready":     {crd("", version("v2", true, "color")), bridge.Ready, []*godwit.Reason{releasecheck.ReasonStoredVersionRemoved, releasecheck.ReasonRemovedWhileServed, bridge.ReasonStepsReady}},
		"blocked":   {crd("", version("v2", true)), bridge.Blocked, []*godwit.Reason{releasecheck.ReasonStoredVersionRemoved, releasecheck.ReasonFieldsMayBeLost, releasecheck.ReasonRemovedWhileServed, releasecheck.ReasonFieldsMayBeLost}},
		"erroneous": {crd("", version("v1", false)), bridge.Blocked, []*godwit.Reason{decision.ReasonNoStorageVersion}},
	} {
		r := release{live: live, check: releasecheck.For(releasecheck.Facts{Live: live, Next: c.next})}
		r.Name, r.CRD = live.Name, c.next
		if err := r.decideSteps(); err != nil {
			t.Fatal(err)
		}
		if r.check.Result != releasecheck.Refused || r.steps.Result != c.result || len(r.check.Reasons) != len(c.reasons) {
			t.Errorf("%s: %s, steps %s, %d reasons: %v", name, r.check.Result, r.steps.Result, len(r.check.Reasons), r.check.Reasons)
			continue
		}
		for i, f := range r.check.Reasons {
			if f.Reason != c.reasons[i] {
				t.Errorf("%s: reason %d is %s, want %s", name, i, f.Reason, c.reasons[i])
			}
		}
	}
}
