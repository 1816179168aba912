package conformance_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	"github.com/godwit-dev/godwit/externalname/crossplane/conformance"
)

// A proxy answers as the fault says, and the external system carries out what it should.
func TestProxy(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		answer     conformance.Answer
		status     int
		carried    int
		unanswered bool
	}{
		"passes":       {"", http.StatusCreated, 1, false},
		"refused":      {conformance.Refused, http.StatusForbidden, 0, false},
		"server error": {conformance.ServerError, http.StatusInternalServerError, 0, false},
		"conflict":     {conformance.Conflict, http.StatusConflict, 0, false},
		"lost":         {conformance.Lost, 0, 1, true},
		"dropped":      {conformance.Dropped, 0, 0, true},
		"not a call":   {"", http.StatusCreated, 1, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			carried := 0
			target := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				carried++
				w.WriteHeader(http.StatusCreated)
			}))
			defer target.Close()
			to, err := url.Parse(target.URL)
			if err != nil {
				t.Fatal(err)
			}
			proxy := &conformance.Proxy{Target: to, Operation: func(*http.Request) conformance.Operation {
				if name == "not a call" {
					return ""
				}
				return conformance.Create
			}}
			seen, before, after := 0, 0, 0
			proxy.OnCall(func(op conformance.Operation) conformance.Fault {
				seen++
				return conformance.Fault{Answer: tc.answer, Before: func() { before = carried + 1 }, After: func() { after = carried }}
			})
			front := httptest.NewUnstartedServer(proxy)
			front.Config.ErrorLog = nil
			front.Start()
			defer front.Close()
			response, err := front.Client().Post(front.URL, "text/plain", nil)
			if (err != nil) != tc.unanswered || tc.unanswered && !errors.Is(err, io.EOF) {
				t.Fatalf("error is %v", err)
			}
			if err == nil {
				_ = response.Body.Close()
				if response.StatusCode != tc.status {
					t.Errorf("status is %d, want %d", response.StatusCode, tc.status)
				}
			}
			if carried != tc.carried {
				t.Errorf("carried out %d times, want %d", carried, tc.carried)
			}
			if name == "not a call" {
				if seen != 0 {
					t.Error("it was counted")
				}
				return
			}
			if seen != 1 || before != 1 || after != tc.carried {
				t.Errorf("asked %d times; carried out %d before and %d after", seen, before-1, after)
			}
		})
	}
}

// An external system within the process answers as the fault says. An answer that it does not know is one that refuses.
func TestFaultApply(t *testing.T) {
	t.Parallel()
	refused, lost := errors.New("refused"), errors.New("lost")
	as := map[conformance.Answer]error{conformance.Refused: refused, conformance.Lost: lost}
	for name, tc := range map[string]struct {
		answer  conformance.Answer
		want    error
		carried int
	}{
		"passes":          {"", io.ErrNoProgress, 1},
		"refused":         {conformance.Refused, refused, 0},
		"lost":            {conformance.Lost, lost, 1},
		"one without map": {conformance.ServerError, refused, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			carried := 0
			err := conformance.Fault{Answer: tc.answer}.Apply(func() error { carried++; return io.ErrNoProgress }, as)
			if !errors.Is(err, tc.want) || carried != tc.carried {
				t.Errorf("error %v after %d calls, want %v after %d", err, carried, tc.want, tc.carried)
			}
		})
	}
}
