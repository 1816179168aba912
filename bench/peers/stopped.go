package main

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/godwit-dev/godwit/bench/internal/frame"
	"github.com/godwit-dev/godwit/bench/internal/widget"
	"github.com/godwit-dev/godwit/test/controlplane"
	"github.com/godwit-dev/godwit/test/process"
)

const (
	// heldWrites is the number of held writes per resource. After it continues, the server needs only a moment for all of them.
	heldWrites = 50
	// holdLimit is the time for which the writes wait. The server is stopped for most of it. It is shorter than the 34 s that an API
	// server gives a write (requestTimeoutUpperBound in k8s.io/apiserver/pkg/endpoints/handlers), and than the longest time limit of
	// a webhook.
	holdLimit = 25 * time.Second
)

// measureStopped stops a second API server across the change of the storage version, while ordinary writes are in its
// admission. When it continues, it finishes them with the CRD that it knew when they began.
func (b *bench) measureStopped(ctx context.Context, contestants []contestant) (err error) {
	frame.Logf("stopped: a second API server is stopped across the change of the storage version, with %d writes of each resource under way", heldWrites)
	all, err := b.subjects(ctx, "stopped", contestants)
	if err != nil {
		return err
	}
	defer b.finish(ctx, all)
	second, err := b.cluster.StartSecond(ctx, "bench-second")
	if err != nil {
		return err
	}
	defer func() {
		_ = second.Stop()
		err = errors.Join(err, b.removeLease(context.WithoutCancel(ctx), second.Identity()))
	}()
	g := newGate()
	defer g.close()
	remove, err := g.install(ctx, b.cluster.Config())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, remove(context.WithoutCancel(ctx))) }()
	writes, err := connect(ctx, second, all)
	if err != nil {
		return err
	}
	if err := each(ctx, all, func(s *subject) (err error) {
		s.migration, err = s.prepare(ctx, s.resource)
		return err
	}); err != nil {
		return err
	}
	return b.stopAcrossFlip(ctx, all, stoppedServer{second, g, writes})
}

// stoppedServer is the second server, with the writes that are in its admission while it is stopped.
type stoppedServer struct {
	*controlplane.APIServer
	gate   *gate
	writes []func(context.Context) error
}

func (b *bench) stopAcrossFlip(ctx context.Context, all []*subject, second stoppedServer) error {
	answers := second.begin(ctx)
	until := time.Now().Add(holdLimit)
	if err := second.gate.awaitHeld(ctx, len(second.writes)); err != nil {
		return err
	}
	if err := second.Pause(ctx); err != nil {
		return err
	}
	if err := together(ctx, all, func(s *subject) (err error) {
		if err := s.resource.FlipAndProbe(ctx); err != nil {
			return err
		}
		if err := s.migration.begin(ctx); err != nil {
			return err
		}
		s.residue.During, err = s.readState(ctx, s.wait(ctx, max(0, time.Until(until).Round(time.Second))))
		return err
	}); err != nil {
		return err
	}
	second.gate.open()
	if err := second.Continue(); err != nil {
		return err
	}
	if err := answers(); err != nil {
		return err
	}
	return together(ctx, all, func(s *subject) (err error) {
		s.residue.After, err = s.readState(ctx, s.wait(ctx, recoveryLimit))
		return err
	})
}

// connect opens the connections for the writes, and returns them once the server sends writes to the gate.
func connect(ctx context.Context, second *controlplane.APIServer, all []*subject) ([]func(context.Context) error, error) {
	config := second.Config()
	config.QPS = -1
	clients, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	var writes []func(context.Context) error
	for _, s := range all {
		if err := controlplane.AwaitServed(ctx, config, s.resource.CRD()); err != nil {
			return nil, err
		}
		objects := clients.Resource(schema.GroupVersionResource{Group: s.resource.Group(), Version: "v1", Resource: widget.Plural}).Namespace(widget.Namespace)
		write := func(ctx context.Context, i int, label string, o metav1.PatchOptions) error {
			patch := fmt.Appendf(nil, `{"metadata":{"labels":{%q:%q}}}`, gateLabel, label)
			_, err := objects.Patch(ctx, widget.Name(i), types.MergePatchType, patch, o)
			return err
		}
		if err := process.Poll(ctx, "the second server to use the gate", func(ctx context.Context) error {
			err := write(ctx, 0, refuse, metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
			if err != nil && strings.Contains(err.Error(), "denied the request") {
				return nil
			}
			return fmt.Errorf("a write is answered with %v", err) //nolint:errorlint // nil where it should be denied
		}); err != nil {
			return nil, err
		}
		for i := range min(heldWrites, s.resource.Len()) {
			writes = append(writes, func(ctx context.Context) error { return write(ctx, i, hold, metav1.PatchOptions{}) })
		}
	}
	return writes, nil
}

// begin sends the writes. The function that it returns waits for the answers to all of them.
func (s stoppedServer) begin(ctx context.Context) func() error {
	errs := make([]error, len(s.writes))
	var answered sync.WaitGroup
	for i, write := range s.writes {
		answered.Go(func() { errs[i] = write(ctx) })
	}
	return func() error {
		answered.Wait()
		failed := slices.DeleteFunc(errs, func(err error) bool { return err == nil })
		frame.Logf("stopped: the server has answered %d writes that were under way in it, %d of them with an error", len(s.writes), len(failed))
		if len(failed) == len(s.writes) {
			return fmt.Errorf("write through the server that was stopped: %w", failed[0])
		}
		return nil
	}
}

// removeLease removes the lease of a server that does not come back, so that Godwit does not wait for that server.
func (b *bench) removeLease(ctx context.Context, identity string) error {
	clients, err := kubernetes.NewForConfig(b.cluster.Config())
	if err != nil {
		return err
	}
	err = clients.CoordinationV1().Leases(metav1.NamespaceSystem).Delete(ctx, identity, metav1.DeleteOptions{})
	if apierrors.IsNotFound(err) {
		return nil // the server has removed it
	}
	return err
}

// gateLabel is set by the writes that the API server sends to the gate. Before the gate opens, no stored object has the label, so that
// the gate sees no write of a contestant.
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

// awaitHeld returns when n writes wait at the gate.
func (g *gate) awaitHeld(ctx context.Context, n int) error {
	return process.Poll(ctx, "writes at the gate", func(context.Context) error {
		if held := g.held.Load(); held < int64(n) {
			return fmt.Errorf("the gate holds %d of %d writes", held, n)
		}
		return nil
	})
}
