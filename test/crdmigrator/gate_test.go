package crdmigrator_test

import (
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
)

const (
	// heldLabel marks the objects whose writes wait at the gate, refusedLabel
	// those the gate refuses: the latter shows that a server knows the gate.
	heldLabel    = "test.godwit.dev/held"
	refusedLabel = "test.godwit.dev/refused"
)

// admissionGate is a validating webhook that holds writes of labelled objects
// until it is opened.
type admissionGate struct {
	t      *testing.T
	opened chan struct{}
	open   func()
	held   atomic.Int64
}

func newAdmissionGate(t *testing.T, config *rest.Config, group string) *admissionGate {
	t.Helper()
	g := &admissionGate{t: t, opened: make(chan struct{})}
	g.open = sync.OnceFunc(func() { close(g.opened) })
	server := httptest.NewTLSServer(http.HandlerFunc(g.review))
	t.Cleanup(func() { g.open(); server.Close() })

	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	_, err = clients.AdmissionregistrationV1().ValidatingWebhookConfigurations().Create(t.Context(),
		&admissionregistrationv1.ValidatingWebhookConfiguration{
			ObjectMeta: metav1.ObjectMeta{Name: "gate." + group},
			Webhooks: []admissionregistrationv1.ValidatingWebhook{{
				Name:                    "gate." + group,
				ClientConfig:            admissionregistrationv1.WebhookClientConfig{URL: &server.URL, CABundle: ca},
				SideEffects:             ptr.To(admissionregistrationv1.SideEffectClassNone),
				AdmissionReviewVersions: []string{"v1"},
				TimeoutSeconds:          ptr.To[int32](30), // the longest there is
				Rules: []admissionregistrationv1.RuleWithOperations{{
					Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update},
					Rule:       admissionregistrationv1.Rule{APIGroups: []string{group}, APIVersions: []string{"*"}, Resources: []string{"*"}},
				}},
			}},
		}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func (g *admissionGate) review(w http.ResponseWriter, r *http.Request) {
	var review admissionv1.AdmissionReview
	var object metav1.PartialObjectMetadata
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil || json.Unmarshal(review.Request.Object.Raw, &object) != nil {
		http.Error(w, "not a review", http.StatusBadRequest)
		return
	}
	if _, ok := object.Labels[heldLabel]; ok {
		g.held.Add(1)
		select {
		case <-g.opened:
		case <-r.Context().Done():
			return
		}
	}
	_, refused := object.Labels[refusedLabel]
	review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: !refused}
	if refused {
		review.Response.Result = &metav1.Status{Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden}
	}
	review.Request = nil
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(review); err != nil {
		g.t.Log(err)
	}
}

// awaitInstalled waits until the server that config names asks the gate.
func (g *admissionGate) awaitInstalled(w *widgets, config *rest.Config) {
	g.t.Helper()
	probe := w.object("v1", "gate-probe")
	probe.SetLabels(map[string]string{refusedLabel: "yes"})
	for deadline := time.Now().Add(30 * time.Second); ; {
		_, err := w.through(config, "v1").Create(g.t.Context(), probe, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if apierrors.IsForbidden(err) {
			return
		}
		if time.Now().After(deadline) {
			g.t.Fatalf("the server does not ask the webhook: %v", err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func (g *admissionGate) awaitHeld(n int64) {
	g.t.Helper()
	for deadline := time.Now().Add(20 * time.Second); g.held.Load() < n; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			g.t.Fatalf("%d writes wait in admission, want %d", g.held.Load(), n)
		}
	}
}
