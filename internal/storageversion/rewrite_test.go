package storageversion

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"syscall"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/internal/kube"
	"github.com/godwit-dev/godwit/internal/kube/kubetest"
	"github.com/godwit-dev/godwit/internal/storageversion/decision"
	"github.com/godwit-dev/godwit/internal/storageversion/evidence"
	"github.com/godwit-dev/godwit/internal/storageversion/listing"
	"github.com/godwit-dev/godwit/internal/storageversion/managedfields"
	"github.com/godwit-dev/godwit/internal/storageversion/recent"
)

func TestDone(t *testing.T) {
	object := func(namespace, name, rv string) *metav1.PartialObjectMetadata {
		return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, ResourceVersion: rv}}
	}
	const c = "100"
	cases := map[string]struct {
		reason string
		c      string
		cursor string
		object *metav1.PartialObjectMetadata
		want   bool
		fails  bool
	}{
		"old":                        {"written before C", c, "", object("ns", "b", "50"), false, false},
		"at C":                       {"C was read when it was already there", c, "", object("ns", "b", "100"), false, false},
		"new":                        {"written after every server had adopted", c, "", object("ns", "b", "101"), true, false},
		"before the cursor":          {"the run before did it", c, "ns/b", object("ns", "a", "50"), true, false},
		"at the cursor":              {"the cursor is the last that was done", c, "ns/b", object("ns", "b", "50"), true, false},
		"after the cursor":           {"not reached", c, "ns/b", object("ns", "c", "50"), false, false},
		"longer than the cursor":     {"a prefix comes first", c, "ns/b", object("ns", "b-1", "50"), false, false},
		"a namespace that looks on":  {"the store compares byte by byte: - sorts before /", c, "ns/b", object("ns-1", "z", "50"), true, false},
		"a namespace that comes on":  {"digits sort after /", c, "ns/b", object("ns1", "a", "50"), false, false},
		"new, after the cursor":      {"either evidence is enough", c, "ns/b", object("ns", "c", "101"), true, false},
		"cluster-scoped":             {"the name alone is the key", c, "b", object("", "a", "50"), true, false},
		"no C":                       {"a dry run asks about every object, wherever a run stopped", "", "ns/b", object("ns", "a", "50"), false, false},
		"garbage in C":               {"an error, not a skip", "soon", "", object("ns", "a", "50"), false, true},
		"an object without version":  {"an error, not a skip", c, "", object("ns", "a", ""), false, true},
		"garbage beneath the cursor": {"the cursor needs no versions", c, "ns/b", object("ns", "a", ""), true, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := (&Migrator{}).newRewriter()
			r.epoch.Store(&epoch{})
			r.baseline.Store(&evidence.Baseline{Since: tc.c, Cursor: tc.cursor})
			got, err := r.done(tc.object)
			if (err != nil) != tc.fails {
				t.Fatalf("error %v, want one: %t: %s", err, tc.fails, tc.reason)
			}
			if got != tc.want {
				t.Errorf("done = %t, want %t: %s", got, tc.want, tc.reason)
			}
		})
	}
}

// The cursor that a run saves must not let the same run skip what it has not
// reached: only the cursor of the run before counts.
func TestDoneIgnoresTheCursorOfTheSameRun(t *testing.T) {
	r := (&Migrator{}).newRewriter()
	r.epoch.Store(&epoch{})
	r.baseline.Store(&evidence.Baseline{Since: "100"})
	e := evidence.NewRun("widgets.example.com", nil, time.Now, &r.baseline)
	e.AdvanceCursor("ns/z")
	o := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a", ResourceVersion: "50"}}
	if done, err := r.done(o); done || err != nil {
		t.Errorf("done = %t, %v; a list that started again would be skipped", done, err)
	}
}

// What a resourceVersion proves is not asked of the memory, which would keep it.
func TestProofGoesBeforeMemory(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Now())
	r := (&Migrator{options: Options{Recent: recent.New(clock)}}).newRewriter()
	r.epoch.Store(&epoch{key: kube.Generation{UID: "crd", Generation: 1}})
	r.baseline.Store(&evidence.Baseline{Since: "5"})
	proven := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{UID: "proven", ResourceVersion: "7"}}
	elided := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{UID: "elided", ResourceVersion: "3"}}
	for _, o := range []*metav1.PartialObjectMetadata{proven, elided} {
		r.recent.Add(recent.Of(r.epoch.Load().key, o))
	}
	clock.SetTime(clock.Now().Add(40 * time.Minute))
	r.recent.Add(recent.Write{CRD: kube.Generation{UID: "crd", Generation: 1}, Object: "another"})
	for name, o := range map[string]*metav1.PartialObjectMetadata{"proven": proven, "elided": elided} {
		if done, err := r.done(o); !done || err != nil {
			t.Errorf("%s: done is %v, %v", name, done, err)
		}
	}
	clock.SetTime(clock.Now().Add(40 * time.Minute))
	r.recent.Sweep()
	if r.recent.Has(recent.Of(r.epoch.Load().key, proven)) || !r.recent.Has(recent.Of(r.epoch.Load().key, elided)) {
		t.Errorf("%d writes are remembered, want that of the object that nothing else proves, and the other one no more", r.recent.Len())
	}
}

// unreadable is how a list that meets unreadable objects ends.
func unreadable(why string) error {
	err := apierrors.NewInternalError(errors.New(why))
	err.ErrStatus.Reason = metav1.StatusReasonStoreReadError
	return err
}

func TestRetry(t *testing.T) {
	cases := map[string]struct {
		reason string
		err    error
		want   bool
	}{
		"conflict":             {"an empty patch has nothing to conflict with: the server gave up in its own loop", apierrors.NewConflict(kubetest.Resource, "a", errors.New("modified")), true},
		"still there":          {"a 404 for an object that is listed", errStillListed, true},
		"still there, wrapped": {"by a caller that adds words", fmt.Errorf("rewrite a: %w", errStillListed), true},
		"throttled":            {"the server says later", apierrors.NewTooManyRequests("later", 1), true},
		"webhook down":         {"a 500 may pass", apierrors.NewInternalError(errors.New("webhook")), true},
		"forbidden":            {"asking again changes nothing", apierrors.NewForbidden(kubetest.Resource, "a", errors.New("no")), false},
		"invalid":              {"nor here", apierrors.NewGenericServerResponse(http.StatusUnprocessableEntity, "patch", kubetest.Resource, "a", "", 0, false), false},
		"unconverted":          {"its webhook may come back", unreadable("/registry/a: conversion webhook for example.com/v1, Kind=Widget failed: Post"), true},
		"undecodable":          {"what is in etcd stays as it is", unreadable("/registry/a: invalid character"), false},
		"incomplete list":      {"the reader that made it makes the next one", &listing.IncompleteError{Reader: true}, false},
		"bad versions":         {"nor here", fmt.Errorf("compare: %w", errors.New("not well formed")), false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if _, got := retry(tc.err); got != tc.want {
				t.Errorf("retried = %t, want %t: %s", got, tc.want, tc.reason)
			}
		})
	}
}

// TestFailureReason: programs read the reason, so it is a documented constant whatever the
// API server's words are.
func TestFailureReason(t *testing.T) {
	answer := func(code int32, reason metav1.StatusReason, message string) error {
		return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: code, Reason: reason, Message: message}}
	}
	for want, err := range map[*godwit.Reason]error{
		decision.ReasonAdmissionDenied:    answer(403, metav1.StatusReasonForbidden, `admission webhook "freeze.example.com" denied the request: frozen`),
		decision.ReasonWebhookUnavailable: answer(500, metav1.StatusReasonInternalError, `Internal error occurred: failed calling webhook "a.example.com": failed to call webhook: connection refused`),
		decision.ReasonForbidden:          answer(403, metav1.StatusReasonForbidden, `geese.example.com "a" is forbidden: User "alice" cannot patch resource "geese" in API group "example.com" in the namespace "shop"`),
		decision.ReasonNotServed:          fmt.Errorf("1 attempt: %w", errStillListed),
		decision.ReasonConflict:           answer(409, metav1.StatusReasonConflict, "the object has been modified"),
		decision.ReasonThrottled:          answer(429, metav1.StatusReasonTooManyRequests, "too many requests"),
		decision.ReasonTimeout:            answer(504, metav1.StatusReasonTimeout, "timeout"),
		decision.ReasonServerError:        answer(503, metav1.StatusReasonServiceUnavailable, "etcd has no leader"),
		decision.ReasonObjectInvalid:      answer(422, metav1.StatusReasonInvalid, "spec.size: Required value"),
		decision.ReasonObjectTooLarge:     managedfields.ErrDropped,
		decision.ReasonManagedFieldsKept:  fmt.Errorf("cleanup: %w", managedfields.ErrKept),
		decision.ReasonUnanswered:         &url.Error{Op: "Patch", URL: "https://127.0.0.1", Err: syscall.ECONNREFUSED},
		decision.ReasonFailed:             errors.New("no resourceVersion"),
	} {
		if got := FailureReason(err); got != want {
			t.Errorf("%v: %s, want %s", err, got, want)
		}
	}
}
