package kafka

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
)

// behindInterval is how often [Transport.AwaitCaughtUp] asks the broker.
const behindInterval = 200 * time.Millisecond

// AwaitCaughtUp waits until a group has handled all messages that were in a topic at the call. It does not wait for
// messages that are written meanwhile. It returns an error if the broker refuses or the context ends.
func (t *Transport) AwaitCaughtUp(ctx context.Context, group, topic string) error {
	admin := kadm.NewClient(t.producer)
	starts, err := admin.ListStartOffsets(ctx, topic)
	if err == nil {
		err = starts.Error()
	}
	if err != nil {
		return t.explain(operationOffsets, topic, "", err)
	}
	ends, err := admin.ListEndOffsets(ctx, topic)
	if err == nil {
		err = ends.Error()
	}
	if err != nil {
		return t.explain(operationOffsets, topic, "", err)
	}
	for {
		handled, err := admin.FetchOffsetsForTopics(ctx, group, topic)
		if err != nil {
			return t.explain(operationOffsets, topic, group, err)
		}
		if hasHandledAll(starts, ends, handled) {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(behindInterval):
		}
	}
}

// hasHandledAll reports whether a group has handled each partition up to its end. Messages that the broker has deleted
// count as handled.
func hasHandledAll(starts, ends kadm.ListedOffsets, handled kadm.OffsetResponses) bool {
	all := true
	ends.Each(func(end kadm.ListedOffset) {
		start, _ := starts.Lookup(end.Topic, end.Partition)
		done, ok := handled.Lookup(end.Topic, end.Partition)
		if end.Offset > start.Offset && (!ok || done.Err != nil || done.At < end.Offset) {
			all = false
		}
	})
	return all
}
