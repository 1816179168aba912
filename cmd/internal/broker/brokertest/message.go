// Package brokertest reads what the processes of tests send to a broker.
package brokertest

import (
	"context"
	"testing"
	"time"

	"github.com/godwit-dev/godwit/cmd/hub/kafka"
	"github.com/godwit-dev/godwit/cmd/hub/message"
)

// FirstMessage waits up to a timeout for the first message of a topic.
func FirstMessage(t *testing.T, brokers []string, topic string, within time.Duration) (first message.Envelope) {
	t.Helper()
	transport, err := kafka.New(kafka.Options{Brokers: brokers, ClientID: "test"})
	if err != nil {
		t.Fatal(err)
	}
	defer transport.Close()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	_ = transport.Receive(ctx, "test", []string{topic}, func(_ context.Context, _ string, e message.Envelope) error {
		if first.Value == nil {
			first = e
		}
		cancel()
		return nil
	})
	if first.Value == nil {
		t.Fatalf("topic %s has no message after %s", topic, within)
	}
	return first
}
