package crdmigrator_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/internal/storageversion"
	"github.com/godwit-dev/godwit/internal/storageversion/decision"
	"github.com/godwit-dev/godwit/internal/storageversion/evidence"
)

// unlucky are the writes whose answers are lost: of every fifth object, and all
// of the CRD.
var unlucky = regexp.MustCompile(`/w-00\d[05](/|$)|/customresourcedefinitions/`)

// loseFirst loses the first answer to each unlucky write, after the server has carried
// it out. The client gets the result of the loss instead.
func (w *wire) loseFirst(lost func(*http.Request, *http.Response) (*http.Response, error)) *atomic.Int64 {
	var n atomic.Int64
	var seen sync.Map
	w.after = func(req *http.Request, resp *http.Response) (*http.Response, error) {
		if req.Method == http.MethodGet || !unlucky.MatchString(req.URL.Path) {
			return resp, nil
		}
		if _, again := seen.LoadOrStore(req.URL.Path, true); again {
			return resp, nil
		}
		n.Add(1)
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
		return lost(req, resp)
	}
	return &n
}

func cut(*http.Request, *http.Response) (*http.Response, error) {
	return nil, io.ErrUnexpectedEOF
}

// timedOut is the API server's answer to a write that exceeds its request timeout.
func timedOut(req *http.Request, _ *http.Response) (*http.Response, error) {
	const status = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Timeout","code":504,` +
		`"message":"Timeout: request did not complete within requested timeout - context deadline exceeded"}`
	return &http.Response{
		StatusCode: http.StatusGatewayTimeout, Request: req, ProtoMajor: 2,
		Header: http.Header{"Content-Type": {"application/json"}},
		Body:   io.NopCloser(strings.NewReader(status)),
	}, nil
}

// TestLostAnswersAreNoFailures: the server carries out a write of an object or of the
// CRD, and its answer never arrives.
func TestLostAnswersAreNoFailures(t *testing.T) {
	t.Parallel()
	losses := map[string]func(*http.Request, *http.Response) (*http.Response, error){"cut connection": cut, "504": timedOut}
	for name, loss := range losses {
		for _, write := range decision.Writes {
			t.Run(name+" "+string(write), func(t *testing.T) {
				t.Parallel()
				w := newWidgets(t, shared)
				w.fill("v1", 20)
				w.flip()
				_, config := w.user(w.permissionsOf(write)...)
				config, wire := tap(config)
				n := wire.loseFirst(loss)
				m := newMigrator(t, config, storageversion.Options{PageObjects: 10, Policy: decision.Policy{Settle: -1, Write: write}})
				report := w.mustMigrate(m)
				want := godwit.Counts{Migrated: 16, Skipped: 4} // the next attempt sees only that the object changed
				if report.Storage.Counts != want {
					t.Errorf("run: %+v, want %+v", report.Storage, want)
				}
				w.mustBeMigrated(report, 20)
				w.mustBeWrittenOnce()
				if n.Load() != 4+2 {
					t.Errorf("%d answers were lost, want those of 4 objects, of the checkpoint and of the trim", n.Load())
				}
				if _, ok := w.crd().Annotations[evidence.CheckpointAnnotation]; ok {
					t.Error("the checkpoint outlived the migration")
				}
			})
		}
	}
}

// TestServerThatClosesConnections: an API server that rebalances its clients sends
// GOAWAY on some of their connections.
func TestServerThatClosesConnections(t *testing.T) {
	t.Parallel()
	plane := ownPlane(t, "--goaway-chance=0.02") // the most it takes
	w := newWidgets(t, plane)
	w.fill("v1", 600)
	w.flip()
	config := w.withoutLeases()
	dials := countDials(config)
	m := newMigrator(t, config, storageversion.Options{Policy: quickSettle, PageObjects: 100})
	report := w.mustMigrate(m)
	if want := (godwit.Counts{Migrated: 600}); report.Storage.Counts != want {
		t.Errorf("run: %+v, want %+v", report.Storage.Counts, want)
	}
	w.mustBeMigrated(report, 600)
	w.mustBeWrittenOnce()
	if dials.Load() < 2 {
		t.Error("the server closed no connection, want some")
	}
}

func countDials(config *rest.Config) *atomic.Int64 {
	var n atomic.Int64
	config.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		n.Add(1)
		return (&net.Dialer{}).DialContext(ctx, network, address)
	}
	return &n
}

// TestCancelledBeforeTheTrim: a leader that loses its lease when the trim is due does
// not send it. The next leader uses the checkpoint, and sends only the trim.
func TestCancelledBeforeTheTrim(t *testing.T) {
	t.Parallel()
	for _, due := range []string{"/status", ""} { // the trim, and the end of the checkpoint before it
		t.Run("at the CRD"+due, func(t *testing.T) {
			t.Parallel()
			w := newWidgets(t, shared)
			w.fill("v1", 40)
			w.flip()
			config, wire := tap(w.withoutLeases())
			m := newMigrator(t, config, storageversion.Options{Policy: quickSettle})
			var saved atomic.Bool
			h := wire.haltBefore(t, func(r *http.Request) bool {
				if r.Method != http.MethodPatch || !strings.HasSuffix(r.URL.Path, w.name+due) {
					return false
				}
				return due != "" || saved.Swap(true) // the first saves the checkpoint
			})
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			run := w.pauseAt(ctx, m, h, nil)
			cancel()
			report, err := run.resume()
			if !errors.Is(err, context.Canceled) || report.Trimmed {
				t.Errorf("run: %v, trimmed %v, want context.Canceled and not trimmed", err, report.Trimmed)
			}
			w.mustHaveStoredVersions("after the cancelled run", "v1,v2")

			before := wire.writesTo(w.group)
			report = w.mustMigrate(m)
			if want := (godwit.Counts{Skipped: 40}); report.Storage.Counts != want {
				t.Errorf("second run: %+v, want %+v", report.Storage.Counts, want)
			}
			if n := wire.writesTo(w.group) - before; n != 0 {
				t.Errorf("second run sent %d writes, want none", n)
			}
			w.mustBeMigrated(report, 40)
		})
	}
}
