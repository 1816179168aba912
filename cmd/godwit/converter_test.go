package main

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/godwit-dev/godwit/test/controlplane"
)

// conversionWebhook is a script's. It changes nothing but the version of an object.
type conversionWebhook struct {
	address string
	server  *httptest.Server
	hangs   atomic.Bool
	asked   atomic.Int64
	ended   chan struct{} // closed with the script, for what hangs
}

// webhookKey is where a script's environment holds its conversion webhook.
type webhookKey struct{}

func newConversionWebhook(e *testscript.Env) {
	h := &conversionWebhook{ended: make(chan struct{})}
	e.Values[webhookKey{}] = h
	e.Defer(func() {
		close(h.ended)
		h.stop()
	})
}

func (h *conversionWebhook) stop() {
	if h.server != nil {
		h.server.Close()
		h.server = nil
	}
}

func (h *conversionWebhook) start() error {
	if h.server != nil {
		return nil
	}
	if h.address == "" {
		address, err := controlplane.FreeAddress()
		if err != nil {
			return err
		}
		h.address = address
	}
	listener, err := net.Listen("tcp", h.address)
	if err != nil {
		return err
	}
	h.server = &httptest.Server{Listener: listener, Config: &http.Server{Handler: h}}
	h.server.StartTLS()
	return nil
}

func (h *conversionWebhook) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var review apiextensionsv1.ConversionReview
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil || review.Request == nil {
		http.Error(w, "not a review", http.StatusBadRequest)
		return
	}
	h.asked.Add(1)
	if h.hangs.Load() {
		select {
		case <-r.Context().Done():
		case <-h.ended:
		}
		return
	}
	response := &apiextensionsv1.ConversionResponse{UID: review.Request.UID, Result: metav1.Status{Status: metav1.StatusSuccess}}
	for _, raw := range review.Request.Objects {
		o := &unstructured.Unstructured{}
		if err := json.Unmarshal(raw.Raw, &o.Object); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		o.SetAPIVersion(review.Request.DesiredAPIVersion)
		response.ConvertedObjects = append(response.ConvertedObjects, runtime.RawExtension{Object: o})
	}
	review.Request, review.Response = nil, response
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(review) // the API server reports what it could not read
}

// converter PLURAL up|down|hang: the CRD has a conversion webhook, at $WEBHOOK, which
// converts, refuses connections, or never answers. The API server reads the objects of
// v2 anew.
func converter(ts *testscript.TestScript, args []string) error {
	h := ts.Value(webhookKey{}).(*conversionWebhook)
	plural, state := args[0], args[1]
	if err := h.start(); err != nil {
		return err
	}
	ts.Setenv("WEBHOOK", h.server.URL)
	if err := h.register(ts, plural); err != nil {
		return err
	}
	h.hangs.Store(state == "hang")
	asked := h.asked.Load()
	if state == "down" {
		h.stop()
	}
	client, err := dynamic.NewForConfig(clusterOf(ts).Config())
	if err != nil {
		return err
	}
	objects := client.Resource(schema.GroupVersionResource{Group: ts.Getenv("GROUP"), Version: "v2", Resource: plural})
	return eventually(func() error {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_, err := objects.List(ctx, metav1.ListOptions{Limit: 1})
		switch {
		case state == "up":
			return err
		case state == "hang" && h.asked.Load() == asked:
			return errors.New("the API server does not ask the webhook")
		case err == nil:
			return errors.New("the API server lists objects")
		case state == "down" && !strings.Contains(err.Error(), "connection refused"):
			return err
		}
		return nil
	})
}

// register has the API server ask the webhook. The description of a version changes
// each time, upon which the API server forgets the objects.
func (h *conversionWebhook) register(ts *testscript.TestScript, plural string) error {
	url := h.server.URL
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: h.server.Certificate().Raw})
	_, err := controlplane.UpdateCRD(context.Background(), clusterOf(ts).Config(), plural+"."+ts.Getenv("GROUP"), func(crd *apiextensionsv1.CustomResourceDefinition) {
		last := &crd.Spec.Versions[len(crd.Spec.Versions)-1]
		last.Schema.OpenAPIV3Schema.Description = fmt.Sprintf("generation %d", crd.Generation)
		crd.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{
			Strategy: apiextensionsv1.WebhookConverter,
			Webhook: &apiextensionsv1.WebhookConversion{
				ClientConfig:             &apiextensionsv1.WebhookClientConfig{URL: &url, CABundle: ca},
				ConversionReviewVersions: []string{"v1"},
			},
		}
	})
	return err
}
