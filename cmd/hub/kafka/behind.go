package kafka

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
)

// behindInterval is how often [Transport.CaughtUp] asks the broker.
const behindInterval = 200 * time.Millisecond

// CaughtUp returns when a group has handled all that was in a topic when it was called, or
// with an error when the broker refuses or the context ends. What is written to the topic
// meanwhile is not waited for.
func (t *Transport) CaughtUp(ctx context.Context, group, topic string) error {
	admin := kadm.NewClient(t.producer)
	starts, err := admin.ListStartOffsets(ctx, topic)
	if err == nil {
		err = starts.Error()
	}
	if err != nil {
		return t.explain("read the offsets of", topic, err)
	}
	ends, err := admin.ListEndOffsets(ctx, topic)
	if err == nil {
		err = ends.Error()
	}
	if err != nil {
		return t.explain("read the offsets of", topic, err)
	}
	for {
		handled, err := admin.FetchOffsetsForTopics(ctx, group, topic)
		if err != nil {
			return t.explain(fmt.Sprintf("read the offsets of group %s in", group), topic, err)
		}
		if reached(starts, ends, handled) {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(behindInterval):
		}
	}
}

// reached reports whether a group has handled each partition up to its end. What a broker
// has deleted can't be handled.
func reached(starts, ends kadm.ListedOffsets, handled kadm.OffsetResponses) bool {
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
