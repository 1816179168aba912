package direct

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/godwit-dev/godwit/cmd/hub/message"
)

// TestTransportDeliversAgain: a message that was not handled is delivered again, in its order, to the next reader.
func TestTransportDeliversAgain(t *testing.T) {
	through := newTransport()
	for _, text := range []string{"one", "two", "three"} {
		if err := through.Send(t.Context(), "topic", "", message.Envelope{Value: []byte(text)}); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	refuse := errors.New("the API server is away")
	handle := func(_ context.Context, topic string, e message.Envelope) error {
		got = append(got, topic+"/"+string(e.Value))
		if len(got) == 2 {
			return refuse
		}
		return nil
	}
	if err := through.Receive(t.Context(), "", []string{"topic"}, handle); !errors.Is(err, refuse) {
		t.Fatalf("a message that is not handled ends the reader with %v", err)
	}
	ctx, stop := context.WithCancel(t.Context())
	err := through.Receive(ctx, "", []string{"topic"}, func(ctx context.Context, topic string, e message.Envelope) error {
		if err := handle(ctx, topic, e); err != nil {
			return err
		}
		if string(e.Value) == "three" {
			stop()
		}
		return nil
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("the second reader ends with %v", err)
	}
	if want := []string{"topic/one", "topic/two", "topic/two", "topic/three"}; !slices.Equal(got, want) {
		t.Errorf("delivered %v, want %v", got, want)
	}
}
