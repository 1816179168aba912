package status_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	kstatus "github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"

	"github.com/godwit-dev/godwit/cmd/internal/status"
)

// TestKstatusReadsEachState: clients such as `flux` and Argo CD wait for objects by kstatus.
func TestKstatusReadsEachState(t *testing.T) {
	for state, want := range map[status.State]kstatus.Status{
		status.StateSuspended:   kstatus.InProgressStatus,
		status.StateReady:       kstatus.CurrentStatus,
		status.StateReconciling: kstatus.InProgressStatus,
		status.StateStalled:     kstatus.FailedStatus,
	} {
		w := newWidget()
		status.Summary{State: status.StateReady, Reason: "Succeeded", Message: "before"}.Apply(w)
		status.Summary{State: state, Reason: "Because", Message: "now"}.Apply(w)
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(w)
		if err != nil {
			t.Fatal(err)
		}
		got, err := kstatus.Compute(&unstructured.Unstructured{Object: content})
		if err != nil || got.Status != want {
			t.Errorf("state %q: kstatus says %v, %v, want %s", state, got, err, want)
		}
		if len(w.Status.Conditions) != 3 || w.Status.ObservedGeneration != 1 {
			t.Errorf("state %q: %+v", state, w.Status)
		}
		for _, c := range w.Status.Conditions {
			if c.Reason != "Because" || c.Message != "now" || c.ObservedGeneration != 1 {
				t.Errorf("state %q: %+v", state, c)
			}
		}
	}
}

// TestConditionAcceptsAnyMessage: a message may quote a webhook. The API server refuses a status with a longer one.
func TestConditionAcceptsAnyMessage(t *testing.T) {
	const limit = 32768
	for name, test := range map[string]struct{ message, want string }{
		"short":            {"no", "no"},
		"of the limit":     {strings.Repeat("n", limit), strings.Repeat("n", limit)},
		"longer":           {strings.Repeat("n", limit+1), strings.Repeat("n", limit-3) + "…"},
		"cut in character": {strings.Repeat("n", limit-4) + "éééé", strings.Repeat("n", limit-4) + "…"},
		"invalid UTF-8":    {"n\xff", "n"},
	} {
		w := newWidget()
		s := status.Summary{State: status.StateStalled, Reason: "Refused", Message: test.message}
		s.Apply(w)
		for _, c := range w.Status.Conditions {
			if c.Message != test.want || len(c.Message) > limit {
				t.Errorf("%s: the message of %s has %d bytes, want %d", name, c.Type, len(c.Message), len(test.want))
			}
		}
		if !s.Same(w.Status.Conditions) {
			t.Errorf("%s: the summary differs from its own conditions", name)
		}
	}
}

func TestSame(t *testing.T) {
	w := newWidget()
	s := status.Summary{State: status.StateReconciling, Reason: "Upgrading", Message: "wait"}
	if s.Same(w.Status.Conditions) || s.SameReason(w.Status.Conditions) {
		t.Error("an object without conditions has the reason")
	}
	s.Apply(w)
	if !s.Same(w.Status.Conditions) || !s.SameReason(w.Status.Conditions) {
		t.Error("the summary differs from its own conditions")
	}
	s.Message = "wait longer"
	if s.Same(w.Status.Conditions) || !s.SameReason(w.Status.Conditions) {
		t.Error("want another message, and the same reason")
	}
	s.Reason = "Failed"
	if s.SameReason(w.Status.Conditions) {
		t.Error("want another reason")
	}
}

func TestAnnounce(t *testing.T) {
	for name, test := range map[string]struct {
		summary status.Summary
		want    string
	}{
		"ready":       {status.Summary{State: status.StateReady, Reason: "Succeeded"}, "Normal Succeeded "},
		"stalled":     {status.Summary{State: status.StateStalled, Reason: "Refused"}, "Warning Refused "},
		"reconciling": {status.Summary{State: status.StateReconciling, Reason: "Settling"}, "Normal Settling "},
		"retried":     {status.Summary{State: status.StateReconciling, Reason: "Failed", Warning: true}, "Warning Failed "},
		"suspended":   {status.Summary{Reason: "Suspended"}, "Normal Suspended "},
		"long":        {status.Summary{State: status.StateReady, Reason: "R", Message: strings.Repeat("é", 1000)}, "Normal R é"},
	} {
		recorder := events.NewFakeRecorder(1)
		test.summary.Announce(recorder, newWidget(), "Upgrade")
		got := <-recorder.Events
		if !strings.HasPrefix(got, test.want) || len(got) > len("Normal R ")+1024+len(test.summary.Reason) || !utf8.ValidString(got) {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func TestErrorHasASummary(t *testing.T) {
	err := fmt.Errorf("scan: %w", status.NewStalledError("CRDNotFound", "install it"))
	s, found := status.FromError(err)
	if want := (status.Summary{State: status.StateStalled, Reason: "CRDNotFound", Message: "install it"}); !found || s != want {
		t.Errorf("%+v, %v", s, found)
	}
	if !strings.Contains(err.Error(), "CRDNotFound: install it") {
		t.Error(err)
	}
	if _, found := status.FromError(errors.New("another error")); found {
		t.Error("any error has a summary")
	}
}
