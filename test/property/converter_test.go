package property

import (
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"

	"github.com/godwit-dev/godwit/test/policy"
)

// convert starts the conversion webhook of the play, and returns the conversion of its CRD. A lossy one drops the field secret on the
// way to v2.
func (p *play) convert() *apiextensionsv1.CustomResourceConversion {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review apiextensionsv1.ConversionReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil || review.Request == nil {
			http.Error(w, "not a review", http.StatusBadRequest)
			return
		}
		response := &apiextensionsv1.ConversionResponse{UID: review.Request.UID, Result: metav1.Status{Status: metav1.StatusSuccess}}
		for _, raw := range review.Request.Objects {
			o := &unstructured.Unstructured{}
			if err := json.Unmarshal(raw.Raw, &o.Object); err != nil {
				response.Result = metav1.Status{Status: metav1.StatusFailure, Message: err.Error()}
			}
			o.SetAPIVersion(review.Request.DesiredAPIVersion)
			if p.lossy && strings.HasSuffix(o.GetAPIVersion(), "/v2") {
				unstructured.RemoveNestedField(o.Object, "spec", "secret")
			}
			response.ConvertedObjects = append(response.ConvertedObjects, runtime.RawExtension{Object: o})
		}
		review.Request, review.Response = nil, response
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(review) // the API server reports what it could not read
	}))
	p.t.Cleanup(server.Close)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	return &apiextensionsv1.CustomResourceConversion{
		Strategy: apiextensionsv1.WebhookConverter,
		Webhook: &apiextensionsv1.WebhookConversion{
			ClientConfig: &apiextensionsv1.WebhookClientConfig{URL: &server.URL, CABundle: ca}, ConversionReviewVersions: []string{"v1"},
		},
	}
}

// deny has a policy deny each write of some objects for a while. It is gone when the play ends.
func (p *play) deny(done <-chan struct{}) {
	random := p.actor(400)
	if random.IntN(2) == 0 {
		return
	}
	clients, err := kubernetes.NewForConfig(plane.Config())
	if err != nil {
		p.t.Error(err)
		return
	}
	denies := policy.Policy{
		Name: "deny." + p.group, Group: p.group, Resource: "things", Names: []string{nameOf(0), nameOf(still), nameOf(objects - 1)},
		Validations: []admissionv1.Validation{{Expression: "false", Message: "not now"}},
	}
	if err := denies.Create(p.t.Context(), clients); err != nil {
		p.t.Error(err)
		return
	}
	select {
	case <-done:
	case <-time.After(time.Duration(500+random.IntN(2000)) * time.Millisecond):
	}
	if err := denies.Delete(p.t.Context(), clients); err != nil {
		p.t.Error(err)
	}
}
