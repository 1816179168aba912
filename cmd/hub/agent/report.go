package agent

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"

	"github.com/godwit-dev/godwit/cmd/hub"
	"github.com/godwit-dev/godwit/cmd/hub/message"
	"github.com/godwit-dev/godwit/internal/quote"
)

const (
	// reportValidity is how long a report is valid. The manager compares attempts to find out whether a report still
	// matters.
	reportValidity = 24 * time.Hour
	// maxMissing bounds the missing objects in a report. A later report names the rest.
	maxMissing = 500
	// retryPause is the pause between two attempts to store or to send.
	retryPause = time.Second
)

// statusOf returns the message of a report.
func statusOf(p progress, key *message.OpeningKey) message.StatusBundle {
	b := message.StatusBundle{
		Finished: p.report.Finished, ErrMessage: p.report.Error.String(), ErrReason: p.report.Error.Reason,
		ManagedClusters: p.report.Clusters, Done: p.report.Done, Gone: p.report.Gone,
		Warnings: p.report.Warnings, Certificates: p.report.Certificates, DeniedRequests: p.report.DeniedRequests[:min(len(p.report.DeniedRequests), hub.MaxDeniedRequests)],
		FailedClusters:  slices.Sorted(maps.Keys(p.report.ClusterErrors)),
		BootstrapSecret: p.bootstrap, Missing: p.missing[:min(len(p.missing), maxMissing)],
	}
	b.ClusterErrors, b.ClusterReasons = hub.Texts(p.report.ClusterErrors)
	if key != nil {
		b.SealingKey = key.Key().Bytes()
	}
	return b
}

// clipLengths are the lengths that messages of clusters are cut to until a report fits.
var clipLengths = []int{240, 100, 30}

// send sends a report once.
func (a *Agent) send(ctx context.Context, m *migration, p progress) error {
	b := statusOf(p, m.get().key)
	h := message.Header{
		Type: message.TypeStatus, Migration: m.uid, From: a.Hub, To: message.ManagerName,
		Stage: p.report.Stage, Attempt: p.report.Attempt, Batch: m.nextBatch(), ValidFor: reportValidity,
	}
	for i, length := range clipLengths {
		b.ErrMessage = clip(b.ErrMessage, clipLengths[0])
		b.ClusterErrors = clipAll(b.ClusterErrors, length)
		if i > 0 {
			// The names are in ClusterErrors as well, whose texts begin with the reasons.
			b.FailedClusters, b.ClusterReasons = nil, nil
			b.Gone = clipAll(b.Gone, length/3) // these names are in Done as well
		}
		data, err := message.Encode(b)
		if err != nil {
			return err
		}
		e, err := message.Write(h, data, a.Identity, nil)
		if errors.Is(err, message.ErrTooLarge) && i < len(clipLengths)-1 {
			continue
		}
		if err != nil {
			return err
		}
		return a.Transport.Send(ctx, message.StatusTopic(a.Hub), m.uid, e)
	}
	return nil
}

func clipAll(messages map[string]string, length int) map[string]string {
	short := make(map[string]string, len(messages))
	for name, text := range messages {
		short[name] = clip(text, length)
	}
	return short
}

func clip(text string, length int) string { return quote.Clip(strings.ToValidUTF8(text, "?"), length) }

// answer sends the last report, or the progress of the running execution.
func (a *Agent) answer(ctx context.Context, m *migration) {
	m.mutex.Lock()
	p := m.progress
	if r := m.stored.task.Inbox.Report; r != nil {
		p = progress{report: *r, bootstrap: m.stored.task.Bootstrap}
	}
	m.mutex.Unlock()
	if p.report.Attempt == 0 {
		return // the execution has not begun; it will report its begin
	}
	if err := a.send(ctx, m, p); err != nil && ctx.Err() == nil {
		// The manager asks again.
		logr.FromContextOrDiscard(ctx).Error(err, "Could not repeat a report", "migration", m.uid)
	}
}

// finish stores the final report, and retries until the brokers have accepted it. It returns true, and stores nothing, if
// a newer command has arrived.
func (a *Agent) finish(ctx context.Context, m *migration, p progress) (superseded bool) {
	log := logr.FromContextOrDiscard(ctx)
	a.retryUntilDone(ctx, "Could not store a report", m, func() error {
		return a.update(ctx, m, func(s *stored) bool {
			inbox := s.task.Inbox.Answer(p.report)
			superseded = inbox.Report == nil
			s.task.Inbox, s.task.Bootstrap = inbox, p.bootstrap
			if !s.task.keepsKey(a.Clock.Now()) {
				s.key = nil
			}
			m.takesOver = m.takesOver && superseded
			return !superseded
		})
	})
	if superseded || ctx.Err() != nil {
		return superseded
	}
	log.Info("Finished a command", "migration", m.uid, "stage", p.report.Stage, "attempt", p.report.Attempt,
		"done", len(p.report.Done), "failed", len(p.report.ClusterErrors), "error", p.report.Error)
	a.retryUntilDone(ctx, "Could not send a report", m, func() error { return a.send(ctx, m, p) })
	return false
}

// retryUntilDone calls a function until it succeeds or the context ends.
func (a *Agent) retryUntilDone(ctx context.Context, failed string, m *migration, do func() error) {
	for {
		err := do()
		if err == nil || ctx.Err() != nil {
			return
		}
		logr.FromContextOrDiscard(ctx).Error(err, failed, "migration", m.uid)
		select {
		case <-ctx.Done():
			return
		case <-a.Clock.After(retryPause):
		}
	}
}

// copyOf returns a deep copy of a report: the execution still changes the original.
func copyOf(r hub.Report) hub.Report {
	r.ClusterErrors, r.Gone, r.Certificates = maps.Clone(r.ClusterErrors), maps.Clone(r.Gone), maps.Clone(r.Certificates)
	r.Done, r.Clusters = slices.Clone(r.Done), slices.Clone(r.Clusters)
	return r
}
