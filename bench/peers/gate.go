package main

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/godwit-dev/godwit/bench/internal/widget"
	"github.com/godwit-dev/godwit/test/process"
)

// gateLabel marks the objects whose updates are sent to the gate, so that it sees no write of a contestant before it is opened.
const gateLabel = "bench.example.com/gate"

// Values of the label: a write that the gate holds, and one that it refuses, which shows that a server uses the gate.
const (
	hold   = "hold"
	refuse = "refuse"
)

// gate is a webhook that holds ordinary writes until it is opened.
type gate struct {
	server *httptest.Server // on the loopback address
	held   atomic.Int64
	opened chan struct{}
	open   func()
}

func newGate() *gate {
	g := &gate{opened: make(chan struct{})}
	g.open = sync.OnceFunc(func() { close(g.opened) })
	g.server = httptest.NewTLSServer(g)
	return g
}

// close lets all writes pass, and stops the webhook.
func (g *gate) close() {
	g.open()
	g.server.Close()
}

func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var review admissionv1.AdmissionReview
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil || review.Request == nil {
		http.Error(w, "not a review", http.StatusBadRequest)
		return
	}
	var object metav1.PartialObjectMetadata
	if err := json.Unmarshal(review.Request.Object.Raw, &object); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true}
	if object.Labels[gateLabel] == refuse {
		review.Response.Allowed, review.Response.Result = false, &metav1.Status{Message: "the gate is installed"}
	} else {
		g.held.Add(1)
		<-g.opened
	}
	review.Request = nil
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(review) // the API server reports what it could not read
}

// install registers the webhook. After 30 s, the longest time limit of a webhook, the API server would let a write pass.
func (g *gate) install(ctx context.Context, admin *rest.Config) (remove func(context.Context) error, err error) {
	clients, err := kubernetes.NewForConfig(admin)
	if err != nil {
		return nil, err
	}
	const name = "gate.bench.example.com"
	ignore, none, limit := admissionregistrationv1.Ignore, admissionregistrationv1.SideEffectClassNone, int32(30)
	configuration := &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name: name,
			ClientConfig: admissionregistrationv1.WebhookClientConfig{
				URL: &g.server.URL, CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: g.server.Certificate().Raw}),
			},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Update},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{"*"}, APIVersions: []string{"*"}, Resources: []string{widget.Plural}},
			}},
			ObjectSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: gateLabel, Operator: metav1.LabelSelectorOpExists}}},
			FailurePolicy:  &ignore, SideEffects: &none, TimeoutSeconds: &limit,
			AdmissionReviewVersions: []string{"v1"},
		}},
	}
	webhooks := clients.AdmissionregistrationV1().ValidatingWebhookConfigurations()
	if _, err := webhooks.Create(ctx, configuration, metav1.CreateOptions{}); err != nil {
		return nil, err
	}
	return func(ctx context.Context) error { return webhooks.Delete(ctx, name, metav1.DeleteOptions{}) }, nil
}

// awaitHeld returns when that many writes wait at the gate.
func (g *gate) awaitHeld(ctx context.Context, n int) error {
	return process.Poll(ctx, "writes at the gate", func(context.Context) error {
		if held := g.held.Load(); held < int64(n) {
			return fmt.Errorf("the gate holds %d of %d writes", held, n)
		}
		return nil
	})
}
