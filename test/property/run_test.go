package property

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/godwit-dev/godwit/internal/storageversion"
	"github.com/godwit-dev/godwit/internal/storageversion/decision"
)

// migrate plans and runs until the play ends. Each run is killed at a random time. Before the CRD is created again, a run may wait
// for that, with its plan or with one of its writes.
func (p *play) migrate(ctx context.Context, i int) {
	random := p.actor(100 + i)
	for ctx.Err() == nil {
		config := plane.Config()
		if random.IntN(2) == 0 {
			config = second.Config()
		}
		w := &witness{play: p}
		within, waits, write := 50*time.Millisecond+upTo(random, p.pace.run), random.IntN(3), 1+random.Int64N(objects+4)
		if p.recreates && !isClosed(p.deleted) && waits > 0 {
			w.keepsPlan, within = waits == 1, p.pace.play
			if !w.keepsPlan {
				w.stalls = write
			}
		}
		m := p.migrator(config, w, storageversion.Options{PageObjects: int64(3 + random.IntN(10))})
		run, cancel := context.WithTimeout(ctx, within)
		p.runOnce(run, m, w)
		if run.Err() != nil {
			p.kills.Add(1)
		}
		cancel()
		wait(ctx, p.pace.pause/75)
	}
}

// runOnce runs until the run ends: with the same plan until the change has settled, and with another plan after a change of the CRD.
func (p *play) runOnce(ctx context.Context, m *storageversion.Migrator, w *witness) {
	p.runs.Add(1)
	for err := decision.ErrChanged; errors.Is(err, decision.ErrChanged) && ctx.Err() == nil; wait(ctx, p.pace.pause/15) {
		var plan decision.Plan
		if plan, err = m.Plan(ctx, p.crd); err != nil {
			return
		}
		if w.keepsPlan {
			plan = p.lastPlan(ctx, m, plan)
		}
		for unsettled := (*decision.NotSettledError)(nil); ctx.Err() == nil; wait(ctx, p.pace.pause/15) {
			if plan.UID != p.log.present() {
				p.outdated.Add(1)
			}
			w.begin(plan.UID)
			if _, err = m.Run(ctx, plan, nil); !errors.As(err, &unsettled) || errors.Is(err, decision.ErrChanged) {
				break
			}
		}
	}
}

// lastPlan returns the last plan of the CRD before it was deleted, when it was created again. The first plan is given.
func (p *play) lastPlan(ctx context.Context, m *storageversion.Migrator, plan decision.Plan) decision.Plan {
	for !isClosed(p.deleted) && ctx.Err() == nil {
		wait(ctx, p.pace.pause/30)
		if next, err := m.Plan(ctx, p.crd); err == nil && next.UID == plan.UID && len(next.HardBlockers()) == 0 {
			plan = next
		}
	}
	p.awaitRecreated(ctx)
	return plan
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// migrator is that of a run.
func (p *play) migrator(config *rest.Config, w *witness, o storageversion.Options) *storageversion.Migrator {
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { w.next = next; return w })
	o.Settle = p.settle
	m, err := storageversion.New(config, o)
	if err != nil {
		p.t.Error(err)
	}
	return m
}

// witness logs the writes of runs.
type witness struct {
	*play

	next      http.RoundTripper
	keepsPlan bool  // the run begins with its plan when the CRD was created again
	stalls    int64 // the number of the write that is sent when the CRD was created again; 0 for none
	writes    atomic.Int64
	run       atomic.Pointer[act]
	read      atomic.Pointer[time.Time] // when the last answered request for the CRD was sent
}

// act is a write of a run.
type act struct {
	planned  types.UID // of the CRD for which the run was planned
	began    time.Time // the run
	path     string
	read     time.Time // the CRD, before the write
	sent     time.Time
	answered time.Time // zero if the run was killed before
	uid      types.UID // of what was written; empty without an answer
}

// begin is called before each run.
func (w *witness) begin(planned types.UID) { w.run.Store(&act{planned: planned, began: time.Now()}) }

// RoundTrip hides the identity leases from the runs of a quick play, which need not wait for their renewals: the settle time and the
// server that answers decide when such a run writes.
func (w *witness) RoundTrip(r *http.Request) (*http.Response, error) {
	if w.settle != 0 && strings.HasSuffix(r.URL.Path, "/leases") {
		return &http.Response{
			StatusCode: http.StatusForbidden, Request: r, ProtoMajor: 2, Header: http.Header{"Content-Type": {"application/json"}},
			Body: http.NoBody,
		}, nil
	}
	a := act{path: r.URL.Path, sent: time.Now()}
	writes := (r.Method == http.MethodPatch || r.Method == http.MethodPut) && !r.URL.Query().Has("dryRun")
	if writes && w.writes.Add(1) == w.stalls {
		w.awaitRecreated(r.Context())
		a.sent = time.Now()
	}
	if writes {
		a.planned, a.began, a.read = w.run.Load().planned, w.run.Load().began, *w.read.Load()
	}
	answer, err := w.next.RoundTrip(r)
	switch {
	case writes:
		return answer, w.log.acted(a, answer, err)
	case err == nil && strings.HasSuffix(r.URL.Path, "/customresourcedefinitions/"+w.crd):
		w.read.Store(&a.sent)
	}
	return answer, err
}

// acted logs a write, unless the API server has refused it. It returns the error of the request, or that of reading the answer.
func (h *history) acted(a act, answer *http.Response, err error) error {
	if err == nil && answer.StatusCode >= http.StatusMultipleChoices {
		return nil
	}
	if err == nil {
		var body []byte
		body, err = io.ReadAll(answer.Body)
		err = errors.Join(err, answer.Body.Close())
		answer.Body = io.NopCloser(bytes.NewReader(body))
		if err == nil {
			a.answered = time.Now()
			a.uid, err = uidIn(body)
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.acts = append(h.acts, a)
	return err
}

// uidIn is the UID of an object, or of its metadata, in JSON or protobuf.
func uidIn(answer []byte) (types.UID, error) {
	var m metav1.PartialObjectMetadata
	message, ok := bytes.CutPrefix(answer, []byte("k8s\x00"))
	if !ok {
		err := json.Unmarshal(answer, &m)
		return m.UID, err
	}
	var envelope runtime.Unknown
	if err := envelope.Unmarshal(message); err != nil {
		return "", fmt.Errorf("read the envelope: %w", err)
	}
	err := m.Unmarshal(envelope.Raw)
	return m.UID, err
}
