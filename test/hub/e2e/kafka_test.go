package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/sasl/plain"

	hubkafka "github.com/godwit-dev/godwit/cmd/hub/kafka"
	"github.com/godwit-dev/godwit/cmd/hub/message"
	"github.com/godwit-dev/godwit/test/kafka"
)

const (
	topic = "godwit.hub.hub1.spec"
	group = "hub1"
)

func startBroker(t *testing.T, o kafka.Options) *kafka.Broker {
	t.Helper()
	broker, err := kafka.Start(t.Context(), o)
	if errors.Is(err, kafka.ErrMissing) && !kafka.Required() {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := broker.Stop(); err != nil {
			t.Error(err)
		}
	})
	return broker
}

func newTransport(t *testing.T, broker *kafka.Broker, o hubkafka.Options) *hubkafka.Transport {
	t.Helper()
	o.Brokers, o.DeliveryTimeout = []string{broker.Address()}, patience
	transport, err := hubkafka.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(transport.Close)
	return transport
}

func envelope(id string, size int) message.Envelope {
	return message.Envelope{Attributes: map[string]string{"ce_id": id}, Value: slices.Repeat([]byte("x"), size)}
}

// receive returns the ids of the messages until the last one. As the agents do, it calls again after an error: the broker
// may be away.
func receive(t *testing.T, transport *hubkafka.Transport, last string) []string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var got []string
	done := false
	for !done {
		err := transport.Receive(ctx, group, []string{topic}, func(_ context.Context, _ string, e message.Envelope) error {
			got = append(got, e.Attributes["ce_id"])
			if done = e.Attributes["ce_id"] == last; done {
				cancel()
			}
			return nil
		})
		if !done && ctx.Err() != nil {
			t.Fatalf("receive until %s: %v after %v", last, err, got)
		}
	}
	return got
}

// TestBroker: what the tests of cmd/hub/kafka show with a broker in the process holds with Apache Kafka: the order, the largest
// message, the offset after what was handled, and all of it across a crash of the broker.
//
// Matrix: H35.
func TestBroker(t *testing.T) {
	broker := startBroker(t, kafka.Options{})
	transport := newTransport(t, broker, hubkafka.Options{ClientID: "hub1"})
	for range 2 { // again: the topic exists
		if err := transport.EnsureTopics(t.Context(), topic); err != nil {
			t.Fatal(err)
		}
	}
	send := func(ids ...string) {
		t.Helper()
		for _, id := range ids {
			if err := transport.Send(t.Context(), topic, "migration", envelope(id, 100)); err != nil {
				t.Fatal(err)
			}
		}
	}
	mustReceive := func(when string, want ...string) {
		t.Helper()
		if diff := cmp.Diff(want, receive(t, transport, want[len(want)-1])); diff != "" {
			t.Errorf("%s (-want +got):\n%s", when, diff)
		}
	}

	first := make([]string, 50)
	for i := range first {
		first[i] = fmt.Sprintf("first-%02d", i)
	}
	send(first...)
	mustReceive("in the order of the sender", first...)

	if err := transport.Send(t.Context(), topic, "migration", envelope("largest", message.MaxBytes-16)); err != nil {
		t.Errorf("send the largest message: %v", err)
	}
	send("last")
	mustReceive("what was handled is not delivered again", "largest", "last")

	send("before-1", "before-2")
	if err := broker.Kill(); err != nil {
		t.Fatal(err)
	}
	// While the broker is away, a send waits for it, and the producer keeps the message.
	sent := make(chan error, 1)
	go func() { sent <- transport.Send(t.Context(), topic, "migration", envelope("while-away", 100)) }()
	select {
	case err := <-sent:
		t.Fatalf("a message was sent while the broker is away: %v", err)
	case <-time.After(time.Second):
	}
	if err := broker.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-sent; err != nil {
		t.Fatal(err)
	}
	send("after")
	mustReceive("nothing is lost, doubled or out of order after a crash of the broker", "before-1", "before-2", "while-away", "after")
}

// TestBrokerRefuses: whom the broker refuses gets one error with the client, the operation and the topic.
//
// Matrix: H36.
func TestBrokerRefuses(t *testing.T) {
	const admin, stranger, password = "admin", "stranger", "secret"
	users := fmt.Sprintf("username=%[1]q password=%[3]q user_%[1]s=%[3]q user_%[2]s=%[3]q", admin, stranger, password)
	broker := startBroker(t, kafka.Options{Properties: []string{
		"listener.security.protocol.map=CLIENTS:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
		"sasl.enabled.mechanisms=PLAIN",
		"sasl.mechanism.inter.broker.protocol=PLAIN",
		"listener.name.clients.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required " + users + ";",
		"authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer",
		// The controller's listener knows its clients by no name.
		"super.users=User:" + admin + ";User:ANONYMOUS",
	}})
	as := func(user, password string) *hubkafka.Transport {
		return newTransport(t, broker, hubkafka.Options{ClientID: user, SASL: plain.Auth{User: user, Pass: password}.AsMechanism()})
	}
	if err := as(admin, password).EnsureTopics(t.Context(), topic); err != nil {
		t.Fatal(err)
	}
	if err := as(admin, password).Send(t.Context(), topic, "migration", envelope("hello", 100)); err != nil {
		t.Fatal(err)
	}

	write := func(tr *hubkafka.Transport) error {
		return tr.Send(t.Context(), topic, "migration", envelope("x", 100))
	}
	read := func(tr *hubkafka.Transport) error {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		return tr.Receive(ctx, group, []string{topic}, func(context.Context, string, message.Envelope) error {
			return errors.New("a message was received")
		})
	}
	create := func(tr *hubkafka.Transport) error { return tr.EnsureTopics(t.Context(), "new") }
	cases := map[string]struct {
		user, password string
		do             func(*hubkafka.Transport) error
		want           string
	}{
		"Write":         {stranger, password, write, "does not let stranger write topic " + topic},
		"Read":          {stranger, password, read, "does not let stranger read topic"},
		"Create":        {stranger, password, create, "does not let stranger create topic new"},
		"WrongPassword": {admin, "wrong", read, "does not let admin read topic " + topic},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			err := tc.do(as(tc.user, tc.password))
			if f := (*hubkafka.ForbiddenError)(nil); !errors.As(err, &f) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error is %v, want one with %q", err, tc.want)
			}
		})
	}
}
