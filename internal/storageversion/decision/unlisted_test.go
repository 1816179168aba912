package decision

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/google/go-cmp/cmp"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/internal/fixtest"
	"github.com/godwit-dev/godwit/internal/kube/kubetest"
	"github.com/godwit-dev/godwit/internal/quicklist"
)

func answer(code int32, reason metav1.StatusReason, message string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: code, Reason: reason, Message: message}}
}

func convertedBy(c apiextensionsv1.WebhookClientConfig) edit {
	return func(crd *apiextensionsv1.CustomResourceDefinition) {
		crd.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{
			Strategy: apiextensionsv1.WebhookConverter, Webhook: &apiextensionsv1.WebhookConversion{ClientConfig: &c},
		}
	}
}

// The words of a real API server, 1.37.
const (
	serverForbids = `widgets.example.com is forbidden: User "alice" cannot list resource "widgets" in API group "example.com" at the cluster scope`
	serverReads   = `failed to read one or more widgets.example.com from the storage: StorageError: corrupt object, Code: 7, ` +
		`Key: /registry/example.com/widgets/ns/a, ResourceVersion: 0, AdditionalErrorMsg: object not decodable revision=229: `
	serverDials      = `conversion webhook for example.com/v1, Kind=Widget failed: Post "https://hooks.op.svc:443/?timeout=30s": dial tcp 10.0.0.1:443: connect: connection refused`
	serverIsTold     = `conversion webhook for example.com/v1, Kind=Widget failed: no paint left`
	serverMiscounts  = `conversion webhook for example.com/v1, Kind=Widget returned 0 objects, expected 1`
	serverLacks      = `request to convert CR from an invalid group/version: example.com/v1`
	serverNeedsLoad  = `storage is (re)initializing`
	serverGivesUp    = `the server was unable to return a response in the time allotted, but may still be processing the request`
	serverIsNotThere = `the server could not find the requested resource`
)

func TestUnlisted(t *testing.T) {
	service := convertedBy(apiextensionsv1.WebhookClientConfig{Service: &apiextensionsv1.ServiceReference{Namespace: "op", Name: "hooks"}})
	url := convertedBy(apiextensionsv1.WebhookClientConfig{URL: new("https://hooks.example.com/convert")})
	trimmed := stored("v2")
	cases := map[string]struct {
		reason    string
		crd       []edit
		err       error
		want      *godwit.Reason
		transient bool
		blocks    bool
		message   []string
		remedy    []string
		never     string // in message or remedy
	}{
		"no permission": {
			reason: "the authorizer's own words name the user", err: answer(403, metav1.StatusReasonForbidden, serverForbids), want: ReasonForbidden,
			message: []string{"alice may not list widgets.example.com"}, remedy: []string{"GrantPermission{User:alice Verb:list"},
		},
		"no permission, as a walk retries it": {
			reason: "an API server that starts answers so", err: apierrors.NewServiceUnavailable(serverForbids), want: ReasonForbidden,
			remedy: []string{"User:alice"},
		},
		"403 of a proxy": {
			reason: "no grant is of use", err: answer(403, metav1.StatusReasonForbidden, "unknown"), want: ReasonListRefused,
			never: "GrantPermission",
		},
		"404": {
			reason: "another API server may have the group", err: answer(404, metav1.StatusReasonNotFound, serverIsNotThere), want: ReasonNotServed,
			message: []string{"serves v2", "404"}, remedy: []string{"Show{Object:{Resource:apiservice Namespace: Name:v2.example.com}"}, never: "GrantPermission",
		},
		"429": {
			reason: "load ends", err: answer(429, metav1.StatusReasonTooManyRequests, serverNeedsLoad), want: ReasonThrottled, transient: true,
			message: []string{"429", serverNeedsLoad}, never: "GrantPermission",
		},
		"500": {
			reason: "of no known cause", err: answer(500, metav1.StatusReasonInternalError, "etcdserver: no leader"), want: ReasonServerError, transient: true,
			message: []string{"no leader"}, remedy: []string{"readyz"}, never: "GrantPermission",
		},
		"502 without words": {
			reason: "of a load balancer", err: answer(502, "", ""), want: ReasonServerError, transient: true,
			message: []string{"502"}, never: "GrantPermission",
		},
		"timeout": {
			reason: "without a webhook there is none to name", err: answer(504, metav1.StatusReasonTimeout, serverGivesUp), want: ReasonTimeout, transient: true,
			message: []string{"within 10s"}, never: "webhook",
		},
		"timeout with a conversion webhook": {
			reason: "the API server does not say for whom it waits", crd: []edit{service}, err: answer(504, metav1.StatusReasonTimeout, serverGivesUp),
			want: ReasonTimeout, transient: true,
			message: []string{"may wait for the conversion webhook, service op/hooks"},
			remedy:  []string{"{Resource:endpointslices Namespace:op", "Selector:kubernetes.io/service-name=hooks"},
		},
		"no answer at all": {
			reason: "the limit of one request", crd: []edit{url}, err: fmt.Errorf("list: %w", quicklist.ErrOver), want: ReasonTimeout, transient: true,
			message: []string{"https://hooks.example.com/convert"},
		},
		"webhook away": {
			reason: "its configuration is named, and the answer of the network", crd: []edit{service}, err: answer(500, metav1.StatusReasonStoreReadError, serverReads+serverDials),
			want: ReasonWebhookUnavailable, blocks: true,
			message: []string{"service op/hooks", "connection refused"}, remedy: []string{"{Resource:endpointslices Namespace:op"}, never: "storedVersions",
		},
		"webhook away, storedVersions trimmed": {
			reason: "an object at v2 takes no conversion: there is one at v1", crd: []edit{service, trimmed}, err: answer(500, metav1.StatusReasonStoreReadError, serverReads+serverDials),
			want: ReasonWebhookUnavailable, blocks: true,
			message: []string{"status.storedVersions lists only v2, but at least one object is stored at v1"},
			remedy:  []string{`"value": ["v1", "v2"]`, "RunMigration{CRD:widgets.example.com "},
		},
		"webhook away, before 1.37": {
			reason: "older API servers have no reason for it", crd: []edit{service}, err: answer(500, metav1.StatusReasonInternalError, serverDials),
			want: ReasonWebhookUnavailable, blocks: true,
		},
		"webhook refuses": {
			reason: "it is up: there is nothing to bring up", crd: []edit{service}, err: answer(500, metav1.StatusReasonStoreReadError, serverReads+serverIsTold),
			want: ReasonConversionFailed, blocks: true, message: []string{"no paint left"}, never: "bring the webhook up",
		},
		"webhook answers wrongly": {
			reason: "likewise", crd: []edit{url}, err: answer(500, metav1.StatusReasonStoreReadError, serverReads+serverMiscounts),
			want: ReasonConversionFailed, blocks: true, message: []string{"returned 0 objects, expected 1"},
		},
		"version gone from spec": {
			reason: "the version is known, and so is the whole way back", crd: []edit{trimmed, versions(apiextensionsv1.CustomResourceDefinitionVersion{Name: "v2", Served: true, Storage: true})},
			err:  answer(500, metav1.StatusReasonStoreReadError, serverReads+serverLacks),
			want: ReasonUnreadableObjects, blocks: true,
			message: []string{"/registry/example.com/widgets/ns/a", "spec.versions lacks v1", "status.storedVersions lists only v2, but at least one object is stored at v1"},
			remedy:  []string{"served: false", `"value": ["v1", "v2"]`, "RunMigration{CRD:widgets.example.com "},
		},
		"damaged bytes": {
			reason: "only a backup helps", err: answer(500, metav1.StatusReasonStoreReadError, serverReads+"invalid character 'x'"),
			want: ReasonUnreadableObjects, blocks: true, message: []string{"/registry/example.com/widgets/ns/a"}, remedy: []string{"backup"}, never: "served: false",
		},
		"anything else": {
			reason: "the server's words are all there is", err: answer(http.StatusNotAcceptable, metav1.StatusReasonNotAcceptable, "only text"),
			want: ReasonListRefused, message: []string{"only text"}, never: "GrantPermission",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			u := unlisted(widgetCRD(tc.crd...), tc.err)
			if u.Reason != tc.want || u.Transient() != tc.transient || u.Blocks() != tc.blocks {
				t.Errorf("%s: %s, transient %v, blocks %v; want %s, %v, %v", tc.reason, u.Reason, u.Transient(), u.Blocks(), tc.want, tc.transient, tc.blocks)
			}
			if !errors.Is(u, tc.err) || u.CRD != "widgets.example.com" || u.Message == "" || len(u.Fix) == 0 {
				t.Errorf("%+v lacks the answer, the CRD, the message or the remedy", u)
			}
			if err := fixtest.Check(u.Finding); err != nil {
				t.Error(err)
			}
			for _, part := range tc.message {
				if !strings.Contains(u.Message, part) {
					t.Errorf("%s: message %q, want it to say %q", tc.reason, u.Message, part)
				}
			}
			for _, part := range tc.remedy {
				if !strings.Contains(kubetest.Words(u.Fix), part) {
					t.Errorf("%s: remedy %q, want it to say %q", tc.reason, kubetest.Words(u.Fix), part)
				}
			}
			if tc.never != "" && strings.Contains(u.Message+kubetest.Words(u.Fix), tc.never) {
				t.Errorf("%s: %q, %q must not say %q", tc.reason, u.Message, kubetest.Words(u.Fix), tc.never)
			}
		})
	}
}

func TestUnserved(t *testing.T) {
	v2 := apiextensionsv1.CustomResourceDefinitionVersion{Name: "v2", Storage: true}
	for reason, tc := range map[string]struct {
		crd  edit
		want *godwit.Reason
	}{
		"no list is known to fail":          {func(*apiextensionsv1.CustomResourceDefinition) {}, nil},
		"not established":                   {conditions(), ReasonNotEstablished},
		"no version is the storage version": {versions(apiextensionsv1.CustomResourceDefinitionVersion{Name: "v1", Served: true}), ReasonNoStorageVersion},
		"the storage version is not served": {versions(v2), ReasonStorageVersionNotServed},
	} {
		var got *godwit.Reason
		if u := unserved(widgetCRD(tc.crd)); u != nil {
			got = u.Reason
		}
		if got != tc.want {
			t.Errorf("%s: %q, want %q", reason, got, tc.want)
		}
	}
}

// TestPlanForWhatIsNotListed: an object that was not read is never clean.
func TestPlanForWhatIsNotListed(t *testing.T) {
	because := func(reason *godwit.Reason) *UnlistedError {
		return &UnlistedError{CRD: "widgets.example.com", Finding: godwit.Finding{Reason: reason}}
	}
	trimmed, ten := stored("v2"), int64(10)
	cases := map[string]struct {
		reason   string
		facts    Facts
		policy   Policy
		state    State
		blockers []*godwit.Reason
	}{
		"trimmed, 403": {
			reason: "storedVersions is known, the objects are not",
			facts:  Facts{CRD: widgetCRD(trimmed), Unlisted: because(ReasonForbidden)}, state: StateUnknown,
		},
		"trimmed, 429":      {reason: "for now", facts: Facts{CRD: widgetCRD(trimmed), Unlisted: because(ReasonThrottled)}, state: StateUnknown},
		"trimmed, 404":      {reason: "as little is known", facts: Facts{CRD: widgetCRD(trimmed), Unlisted: because(ReasonNotServed)}, state: StateUnknown},
		"trimmed, 5xx":      {reason: "as little is known", facts: Facts{CRD: widgetCRD(trimmed), Unlisted: because(ReasonServerError)}, state: StateUnknown},
		"trimmed, timeout":  {reason: "as little is known", facts: Facts{CRD: widgetCRD(trimmed), Unlisted: because(ReasonTimeout)}, state: StateUnknown},
		"trimmed, unserved": {reason: "no run can look", facts: Facts{CRD: widgetCRD(trimmed), Unlisted: because(ReasonStorageVersionNotServed)}, state: StateUnknown},
		"trimmed, not established": {
			reason: "a CRD of a moment ago", facts: Facts{CRD: widgetCRD(trimmed, conditions()), Unlisted: because(ReasonNotEstablished)}, state: StateUnknown,
		},
		"trimmed, webhook away": {
			reason: "some object is at another version, whatever storedVersions says",
			facts:  Facts{CRD: widgetCRD(trimmed), Unlisted: because(ReasonWebhookUnavailable)}, state: Blocked, blockers: []*godwit.Reason{ReasonWebhookUnavailable},
		},
		"trimmed, webhook refuses": {
			reason: "likewise", facts: Facts{CRD: widgetCRD(trimmed), Unlisted: because(ReasonConversionFailed)}, state: Blocked, blockers: []*godwit.Reason{ReasonConversionFailed},
		},
		"trimmed, unreadable": {
			reason: "likewise", facts: Facts{CRD: widgetCRD(trimmed), Unlisted: because(ReasonUnreadableObjects)}, state: Blocked, blockers: []*godwit.Reason{ReasonUnreadableObjects},
		},
		"trimmed, counted, the scan failed": {
			reason: "a number is not a look at managedFields",
			facts:  Facts{CRD: widgetCRD(trimmed), Objects: &ten, Unlisted: because(ReasonThrottled)}, state: StateUnknown,
		},
		"trimmed, being deleted": {
			reason: "its objects go with it", facts: Facts{CRD: widgetCRD(trimmed, terminating), Unlisted: because(ReasonUnreadableObjects)}, state: Clean,
		},
		"trimmed, nothing asked about objects": {
			reason: "without the cleanup the objects don't matter",
			facts:  Facts{CRD: widgetCRD(trimmed), Unlisted: because(ReasonThrottled)}, policy: Policy{SkipPhases: []Phase{CleanupManagedFieldsPhase}}, state: Clean,
		},
		"trimmed, unreadable, nothing asked about objects": {
			reason: "it is the rewrite that is not done", facts: Facts{CRD: widgetCRD(trimmed), Unlisted: because(ReasonUnreadableObjects)},
			policy: Policy{SkipPhases: []Phase{CleanupManagedFieldsPhase}}, state: Blocked, blockers: []*godwit.Reason{ReasonUnreadableObjects},
		},
		"old objects, 429": {
			reason: "there is work, and whether a run can do it is not known", facts: Facts{CRD: widgetCRD(), Now: later, Unlisted: because(ReasonThrottled)}, state: StateUnknown,
		},
		"old objects, a webhook that hangs": {
			reason: "it is not Ready", facts: Facts{CRD: widgetCRD(), Now: later, Unlisted: because(ReasonTimeout)}, state: StateUnknown,
		},
		"old objects, webhook away": {
			reason: "a run would fail", facts: Facts{CRD: widgetCRD(), Now: later, Unlisted: because(ReasonWebhookUnavailable)}, state: Blocked, blockers: []*godwit.Reason{ReasonWebhookUnavailable},
		},
		"old objects, 403": {
			reason: "the right is named once", facts: Facts{CRD: widgetCRD(), Now: later, Unlisted: because(ReasonForbidden), Denied: []Grant{{Verb: "list", Resource: widgets}}},
			state: Blocked, blockers: []*godwit.Reason{ReasonForbidden},
		},
		"old objects, 403 without a denial": {
			reason: "the list says more than the review", facts: Facts{CRD: widgetCRD(), Now: later, Unlisted: because(ReasonForbidden)}, state: Blocked, blockers: []*godwit.Reason{ReasonForbidden},
		},
		"old objects, only a cleanup is asked for": {
			reason: "it takes the list, too", facts: Facts{CRD: widgetCRD(), Now: later, Unlisted: because(ReasonThrottled)},
			policy: Policy{SkipPhases: []Phase{StorageVersionMigrationPhase}}, state: StateUnknown,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			plan := PlanFor(tc.facts, tc.policy)
			if plan.State != tc.state || plan.Unlisted != tc.facts.Unlisted {
				t.Errorf("%s: %s, unlisted %v; want %s", tc.reason, plan.State, plan.Unlisted, tc.state)
			}
			if diff := cmp.Diff(tc.blockers, reasons(plan.Blockers)); diff != "" {
				t.Errorf("%s: blockers (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
