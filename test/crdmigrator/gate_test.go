package crdmigrator_test

import (
	"encoding/json"
	"fmt"
	"sync"
	"sync/atomic"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
)

const (
	// heldLabel marks the objects whose writes wait at the gate, refusedLabel
	// those that the gate refuses, which shows that a server uses the gate.
	heldLabel    = "test.godwit.dev/held"
	refusedLabel = "test.godwit.dev/refused"
)

// admissionGate is a webhook that holds updates of labelled objects until it is
// opened.
type admissionGate struct {
	w      *widgets
	opened chan struct{}
	open   func()
	held   atomic.Int64
}

func (w *widgets) newAdmissionGate() *admissionGate {
	w.t.Helper()
	g := &admissionGate{w: w, opened: make(chan struct{})}
	g.open = sync.OnceFunc(func() { close(g.opened) })
	w.newReviewer(g.review)
	w.t.Cleanup(g.open) // before the webhook stops, which waits for held requests
	return g
}

func (g *admissionGate) review(r *admissionv1.AdmissionRequest) (refusal string) {
	var object metav1.PartialObjectMetadata
	if err := json.Unmarshal(r.Object.Raw, &object); err != nil {
		return err.Error()
	}
	if _, ok := object.Labels[heldLabel]; ok {
		g.held.Add(1)
		<-g.opened
	}
	if _, ok := object.Labels[refusedLabel]; ok {
		return "the gate is installed"
	}
	return ""
}

// awaitInstalled waits until the server of config calls the gate.
func (g *admissionGate) awaitInstalled(config *rest.Config, name string) {
	g.w.t.Helper()
	probe := fmt.Appendf(nil, `{"metadata":{"labels":{%q:"yes"}}}`, refusedLabel)
	await(g.w.t, "the server to call the webhook", func() bool {
		_, err := g.w.through(config, "v1").Patch(g.w.t.Context(), name, types.MergePatchType, probe,
			metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
		return denied(err)
	})
}

func (g *admissionGate) awaitHeld(n int64) {
	g.w.t.Helper()
	await(g.w.t, fmt.Sprintf("%d writes in admission", n), func() bool { return g.held.Load() >= n })
}
