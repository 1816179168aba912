package crdmigrator_test

import (
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/godwit-dev/godwit/crdmigrator"
	"github.com/godwit-dev/godwit/internal/storageversion/decision"
)

// maxNote is the API server's limit for the note of an event, in bytes.
const maxNote = 1024

// reporter is a user who may migrate and write events where those about
// CRDs go.
func (w *widgets) reporter() *rest.Config {
	w.t.Helper()
	name, config := w.user(w.selectorPermissions()...)
	w.grantIn(metav1.NamespaceDefault, config, name, eventPermissions...)
	return config
}

// events returns the events about the CRD.
func (w *widgets) events() []eventsv1.Event {
	w.t.Helper()
	clients, err := kubernetes.NewForConfig(w.config)
	if err != nil {
		w.t.Fatal(err)
	}
	list, err := clients.EventsV1().Events(metav1.NamespaceDefault).List(w.t.Context(), metav1.ListOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	return slices.DeleteFunc(list.Items, func(e eventsv1.Event) bool { return e.Regarding.Name != w.name })
}

// awaitEvent returns the first event for which found is true.
func (w *widgets) awaitEvent(what string, found func(eventsv1.Event) bool) eventsv1.Event {
	w.t.Helper()
	var event eventsv1.Event
	await(w.t, what, func() bool {
		events := w.events()
		i := slices.IndexFunc(events, found)
		if i >= 0 {
			event = events[i]
		}
		return i >= 0
	})
	return event
}

// TestReconcileEventsReachTheCRD: a pass has one event, for any number of failed objects
// and any length of the reason.
func TestReconcileEventsReachTheCRD(t *testing.T) {
	t.Parallel()
	w := newWidgets(t, shared)
	w.fill("v1", 20)
	w.flip()
	w.optIn()
	refusal := strings.Repeat("not on a Friday – ", 500) // 10 kB, with characters that must not be cut in two
	h := w.newWebhook(func(string) string { return refusal })
	w.awaitRefused("w-0000", denied)
	said := &recorder{}
	o := w.selectingAs(w.reporter(), func(o *operator) {
		said.next = o.manager.GetEventRecorder("crdmigrator")
		o.migrator.Recorder = said
	})

	if _, err := o.reconcile(t.Context()); err == nil {
		t.Error("a pass in which every object failed reports no error")
	}
	failed := w.awaitEvent("the event of the failure", func(e eventsv1.Event) bool { return e.Reason == crdmigrator.EventFailed })
	if n := len(failed.Note); failed.Type != corev1.EventTypeWarning || n > maxNote || n < maxNote-utf8.UTFMax || !utf8.ValidString(failed.Note) {
		t.Errorf("event = %s with a note of %d bytes, want a Warning that fills the server's limit: %q", failed.Type, n, failed.Note)
	}
	if !strings.Contains(failed.Note, "20 of 20 objects") || !strings.Contains(failed.Note, "not on a Friday") {
		t.Errorf("note = %q, want the number of failed objects and the reason", failed.Note)
	}

	h.setDecide(allow)
	o.mustReconcile("once it is allowed", reconcile.Result{})
	succeeded := w.awaitEvent("the event of the success", func(e eventsv1.Event) bool { return e.Reason == crdmigrator.EventSucceeded })
	if succeeded.Type != corev1.EventTypeNormal {
		t.Errorf("type of the event of success = %s, want Normal", succeeded.Type)
	}
	for _, e := range []eventsv1.Event{failed, succeeded} {
		got := corev1.ObjectReference{APIVersion: e.Regarding.APIVersion, Kind: e.Regarding.Kind, Name: e.Regarding.Name, UID: e.Regarding.UID}
		want := corev1.ObjectReference{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition", Name: w.name, UID: w.crd().UID}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s regards something else (-want +got):\n%s", e.Reason, diff)
		}
	}

	o.mustReconcile("a CRD that is clean", reconcile.Result{})
	if events := said.all(); len(events) != 2 {
		t.Errorf("events = %+v, want one for each pass that failed or migrated objects", events)
	}
}

// TestReconcileEventsAreNotAggregated: a recorder aggregates similar events and keeps
// the first note. The event of not converging must not disappear in an earlier failure.
func TestReconcileEventsAreNotAggregated(t *testing.T) {
	t.Parallel()
	w := newWidgets(t, shared)
	w.fill("v1", 5)
	w.flip()
	w.optIn()
	h := w.newWebhook(deny("w-0003"))
	w.awaitRefused("w-0003", denied)
	var busy atomic.Bool
	o := w.selectingAs(w.reporter(), func(o *operator) {
		o.migrator.Recorder = o.manager.GetEventRecorder("crdmigrator")
	}, w.conflicting("w-0003", busy.Load))

	for range 2 { // the second does not change the CRD
		if _, err := o.reconcile(t.Context()); err == nil {
			t.Error("a pass with an object denied reports no error")
		}
	}
	w.awaitEvent("the event of the failure", func(e eventsv1.Event) bool { return strings.Contains(e.Note, "not on a Friday") })
	h.setDecide(allow)
	busy.Store(true)
	for range 5 {
		o.mustReconcile("a conflicted pass", reconcile.Result{RequeueAfter: 30 * time.Second})
	}
	w.awaitEvent("the event of not converging", func(e eventsv1.Event) bool {
		return e.Reason == crdmigrator.EventFailed && strings.HasPrefix(e.Note, decision.ReasonNotConverging.Name)
	})
}
