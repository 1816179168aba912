package fieldmigration

import (
	"context"
	"encoding/json"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/godwit-dev/godwit/internal/kube"
)

// Webhook returns a mutating webhook that applies a migration to each created or updated object, and denies nothing.
// Register it with the webhook server of a manager. Set reinvocationPolicy: IfNeeded in its configuration, so that it
// also sees the changes of other webhooks.
func Webhook(a Applier) *admission.Webhook {
	return &admission.Webhook{Handler: admission.HandlerFunc(func(_ context.Context, r admission.Request) admission.Response {
		if r.Operation != admissionv1.Create && r.Operation != admissionv1.Update {
			return admission.Allowed("")
		}
		o, err := kube.Decode(r.Object.Raw)
		if err != nil {
			return admission.Errored(http.StatusBadRequest, err)
		}
		return respond(r.Object.Raw, o, a)
	})}
}

// respond answers with a patch of the migration's changes.
func respond(raw []byte, o *unstructured.Unstructured, a Applier) admission.Response {
	changed, err := a.Apply(o)
	switch {
	case err != nil:
		// The path or a field has another type: validation follows, and says which.
		return admission.Allowed("").WithWarnings("fields are not migrated: " + err.Error())
	case !changed:
		return admission.Allowed("")
	}
	after, err := json.Marshal(o.Object)
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, err)
	}
	return admission.PatchResponseFromRaw(raw, after)
}
