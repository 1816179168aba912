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
	// reportLeft is how long a report is valid. The manager knows by its attempt whether it
	// still matters.
	reportLeft = 24 * time.Hour
	// maxMissing bounds what a report names as missing. The rest is named when that has come.
	maxMissing = 500
	// retryPause is between two attempts to store or to send.
	retryPause = time.Second
)

// statusOf is a report as it travels.
func statusOf(p progress, key *message.OpeningKey) message.StatusBundle {
	b := message.StatusBundle{
		Finished: p.report.Finished, ErrMessage: p.report.Error.String(), ErrReason: p.report.Error.Reason,
		ManagedClusters: p.report.Clusters, Done: p.report.Done,
		FailedClusters:  slices.Sorted(maps.Keys(p.report.ClusterErrors)),
		BootstrapSecret: p.bootstrap, Missing: p.missing[:min(len(p.missing), maxMissing)],
	}
	b.ClusterErrors, b.ClusterReasons = hub.Texts(p.report.ClusterErrors)
	if key != nil {
		b.SealingKey = key.Key().Bytes()
	}
	return b
}

// clipped are the lengths that messages of clusters are cut to until a report fits.
var clipped = []int{240, 100, 30}

// send sends a report once.
func (a *Agent) send(ctx context.Context, m *migration, p progress) error {
	b := statusOf(p, m.get().key)
	h := message.Header{
		Type: message.TypeStatus, Migration: m.uid, From: a.Hub, To: message.ManagerName,
		Stage: p.report.Stage, Attempt: p.report.Attempt, Batch: m.nextBatch(), Left: reportLeft,
	}
	for i, length := range clipped {
		b.ErrMessage = clip(b.ErrMessage, clipped[0])
		b.ClusterErrors = clipAll(b.ClusterErrors, length)
		if i > 0 {
			// The names are in ClusterErrors as well, whose texts begin with the reasons.
			b.FailedClusters, b.ClusterReasons = nil, nil
		}
		data, err := message.Encode(b)
		if err != nil {
			return err
		}
		e, err := message.Write(h, data, a.Identity, nil)
		if errors.Is(err, message.ErrTooLarge) && i < len(clipped)-1 {
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

// answer sends the last report, or what the execution that runs has come to.
func (a *Agent) answer(ctx context.Context, m *migration) {
	m.mutex.Lock()
	p := m.progress
	if r := m.stored.task.Inbox.Report; r != nil {
		p = progress{report: *r, bootstrap: m.stored.task.Bootstrap}
	}
	m.mutex.Unlock()
	if p.report.Attempt == 0 {
		return // the execution has not begun; it reports that it has
	}
	if err := a.send(ctx, m, p); err != nil && ctx.Err() == nil {
		// The manager asks again.
		logr.FromContextOrDiscard(ctx).Error(err, "Could not repeat a report", "migration", m.uid)
	}
}

// finish stores the final report, and sends it until the brokers have it.
func (a *Agent) finish(ctx context.Context, m *migration, p progress) {
	log := logr.FromContextOrDiscard(ctx)
	superseded := false
	a.persevere(ctx, "Could not store a report", m, func() error {
		return a.change(ctx, m, func(s *stored) bool {
			inbox := s.task.Inbox.Answer(p.report)
			superseded = inbox.Report == nil
			s.task.Inbox, s.task.Bootstrap = inbox, p.bootstrap
			if !s.task.keepsKey(a.Clock.Now()) {
				s.key = nil
			}
			return !superseded
		})
	})
	if superseded || ctx.Err() != nil {
		return
	}
	log.Info("Finished a command", "migration", m.uid, "stage", p.report.Stage, "attempt", p.report.Attempt,
		"done", len(p.report.Done), "failed", len(p.report.ClusterErrors), "error", p.report.Error)
	a.persevere(ctx, "Could not send a report", m, func() error { return a.send(ctx, m, p) })
}

// persevere repeats what fails until it succeeds or the context ends.
func (a *Agent) persevere(ctx context.Context, failed string, m *migration, do func() error) {
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

// copyOf shares nothing with a report that an execution goes on to change.
func copyOf(r hub.Report) hub.Report {
	r.ClusterErrors, r.Done, r.Clusters = maps.Clone(r.ClusterErrors), slices.Clone(r.Done), slices.Clone(r.Clusters)
	return r
}
