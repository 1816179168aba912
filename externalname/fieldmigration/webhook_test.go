package fieldmigration_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/godwit-dev/godwit/externalname/fieldmigration"
)

func TestWebhook(t *testing.T) {
	cases := map[string]struct {
		reason    string
		operation admissionv1.Operation
		object    string
		patches   map[string]any
		warns     bool
		refuses   bool
	}{
		"create": {
			reason: "an old client creates an object", operation: admissionv1.Create,
			object:  `{"kind":"Database","spec":{"forProvider":{"region":"us1","size":7}}}`,
			patches: map[string]any{"/spec/forProvider/size": nil, "/spec/forProvider/disk": map[string]any{"sizeGB": 7.0}},
		},
		"migrated": {
			reason: "no patch, so that an empty write stays empty", operation: admissionv1.Update,
			object: `{"kind":"Database","spec":{"forProvider":{"region":"us1"}}}`,
		},
		"delete": {
			reason: "there is no object to migrate", operation: admissionv1.Delete,
		},
		"another type": {
			reason: "validation refuses it with a better message", operation: admissionv1.Create,
			object: `{"kind":"Database","spec":{"forProvider":{"size":"seven"}}}`, warns: true,
		},
		"no JSON": {
			reason: "it is no request of an API server", operation: admissionv1.Create, object: `{`, refuses: true,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			request := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
				Operation: tc.operation, Object: runtime.RawExtension{Raw: []byte(tc.object)},
			}}
			answer := fieldmigration.Webhook(databases).Handle(t.Context(), request)
			if answer.Allowed == tc.refuses || len(answer.Warnings) > 0 != tc.warns {
				t.Errorf("%s: %+v", tc.reason, answer)
			}
			var patches []struct {
				Path  string `json:"path"`
				Value any    `json:"value"`
			}
			if answer.Patch != nil {
				if err := json.Unmarshal(answer.Patch, &patches); err != nil {
					t.Fatal(err)
				}
			}
			got := map[string]any{}
			for _, p := range patches {
				got[p.Path] = p.Value
			}
			if diff := cmp.Diff(tc.patches, got); diff != "" && len(got)+len(tc.patches) > 0 {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
