package preflight

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/godwit-dev/godwit/internal/kube"
	"github.com/godwit-dev/godwit/internal/storageversion/decision"
)

// configKinds are the kinds of objects that configure admission and that the API server's
// answer does not name. A ValidatingAdmissionPolicy is not among them: it changes nothing,
// and the answer has the name of its object.
var configKinds = []struct {
	kind, resource string
	versions       []string // an API server serves at least one of them if it has the kind
}{
	{"MutatingWebhookConfiguration", "mutatingwebhookconfigurations", []string{"v1"}},
	{"MutatingAdmissionPolicy", "mutatingadmissionpolicies", []string{"v1", "v1beta1", "v1alpha1"}},
	{"ValidatingWebhookConfiguration", "validatingwebhookconfigurations", []string{"v1"}},
}

// configuration is the part of an object of configKinds that says to which requests it applies.
type configuration struct {
	Metadata metav1.ObjectMeta `json:"metadata"`
	Webhooks []struct {
		Name        string                                       `json:"name"`
		Rules       []admissionregistrationv1.RuleWithOperations `json:"rules"`
		MatchPolicy *admissionregistrationv1.MatchPolicyType     `json:"matchPolicy"`
	} `json:"webhooks"`
	Spec struct {
		MatchConstraints *admissionregistrationv1.MatchResources `json:"matchConstraints"`
	} `json:"spec"`
}

// admissionConfigs lists the webhooks and policies whose rules cover a write. They only
// improve the fixes: if the caller may not read them, it returns none, and the cause.
func admissionConfigs(ctx context.Context, c *kube.Client, r schema.GroupVersionResource, w decision.Write) (configs []admissionConfig, unread string) {
	for _, k := range configKinds {
		found, err := configurations(ctx, c, k.resource, k.versions)
		if err != nil {
			return nil, err.Error()
		}
		for _, f := range found {
			configs = append(configs, f.covering(k.kind, r, w)...)
		}
	}
	return configs, ""
}

func configurations(ctx context.Context, c *kube.Client, resource string, versions []string) ([]configuration, error) {
	for _, version := range versions {
		text, err := kube.Body(kube.Do(ctx, c.Get().AbsPath("apis", admissionregistrationv1.GroupName, version, resource).
			SetHeader("Accept", runtime.ContentTypeJSON)))
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		var list struct {
			Items []configuration `json:"items"`
		}
		if err := json.Unmarshal(text, &list); err != nil {
			return nil, fmt.Errorf("read %s: %w", resource, err)
		}
		return list.Items, nil
	}
	return nil, nil
}

func (c configuration) covering(kind string, r schema.GroupVersionResource, w decision.Write) []admissionConfig {
	var configs []admissionConfig
	for _, h := range c.Webhooks {
		exact := h.MatchPolicy != nil && *h.MatchPolicy == admissionregistrationv1.Exact
		if cover(h.Rules, r, w, exact) {
			configs = append(configs, admissionConfig{kind: kind, object: c.Metadata.Name, name: h.Name})
		}
	}
	if match := c.Spec.MatchConstraints; match != nil {
		var rules []admissionregistrationv1.RuleWithOperations
		for _, named := range match.ResourceRules {
			rules = append(rules, named.RuleWithOperations)
		}
		exact := match.MatchPolicy != nil && *match.MatchPolicy == admissionregistrationv1.Exact
		if cover(rules, r, w, exact) {
			configs = append(configs, admissionConfig{kind: kind, object: c.Metadata.Name, name: c.Metadata.Name})
		}
	}
	return configs
}

// cover reports whether one of the rules is about updates of the resource. Unless they are
// exact, rules for one version cover every other version as well.
func cover(rules []admissionregistrationv1.RuleWithOperations, r schema.GroupVersionResource, w decision.Write, exact bool) bool {
	written := r.Resource
	if sub := w.Subresource(); sub != "" {
		written += "/" + sub
	}
	return slices.ContainsFunc(rules, func(rule admissionregistrationv1.RuleWithOperations) bool {
		updates := slices.ContainsFunc(rule.Operations, func(o admissionregistrationv1.OperationType) bool {
			return o == admissionregistrationv1.Update || o == admissionregistrationv1.OperationAll
		})
		return updates && oneOf(rule.APIGroups, r.Group) && (!exact || oneOf(rule.APIVersions, r.Version)) &&
			slices.ContainsFunc(rule.Resources, func(pattern string) bool { return matchResource(pattern, written) })
	})
}

func oneOf(list []string, name string) bool {
	return slices.Contains(list, name) || slices.Contains(list, "*")
}

// matchResource follows the API server: * is every resource without subresources,
// a/* is a with all of them, */b is the subresource b of all, */* is everything.
func matchResource(pattern, written string) bool {
	resource, sub, _ := strings.Cut(written, "/")
	wantResource, wantSub, _ := strings.Cut(pattern, "/")
	if wantResource != "*" && wantResource != resource {
		return false
	}
	return wantSub == sub || wantSub == "*"
}
