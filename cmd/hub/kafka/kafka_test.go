package kafka

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/sasl/scram"

	"github.com/godwit-dev/godwit/cmd/hub/message"
)

const (
	topic = "godwit.hub.hub1.spec"
	group = "hub1"
	// timeout is for a busy machine.
	timeout = time.Minute
)

func newBroker(t *testing.T, options ...kfake.Opt) *kfake.Cluster {
	t.Helper()
	broker, err := kfake.NewCluster(append([]kfake.Opt{kfake.NumBrokers(1)}, options...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(broker.Close)
	return broker
}

func newTransport(t *testing.T, o Options, broker *kfake.Cluster) *Transport {
	t.Helper()
	o.Brokers = broker.ListenAddrs()
	if o.ClientID == "" {
		o.ClientID = "hub1"
	}
	transport, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(transport.Close)
	return transport
}

func text(s string) message.Envelope {
	return message.Envelope{Attributes: map[string]string{"ce_id": s}, Value: []byte(s)}
}

// bounded is the context of a test.
func bounded(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	t.Cleanup(cancel)
	return ctx
}

func send(t *testing.T, transport *Transport, values ...string) {
	t.Helper()
	for _, v := range values {
		if err := transport.Send(bounded(t), topic, "migration", text(v)); err != nil {
			t.Fatal(err)
		}
	}
}

// receive returns the messages up to the last one, which the handler refuses to go beyond.
func receive(t *testing.T, transport *Transport, last string) []string {
	t.Helper()
	ctx, cancel := context.WithCancel(bounded(t))
	defer cancel()
	var got []string
	err := transport.Receive(ctx, group, []string{topic}, func(_ context.Context, _ string, e message.Envelope) error {
		got = append(got, string(e.Value))
		if string(e.Value) != e.Attributes["ce_id"] {
			t.Errorf("attributes of %s are %v", e.Value, e.Attributes)
		}
		if string(e.Value) == last {
			cancel()
		}
		return nil
	})
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("receive: %v after %v", err, got)
	}
	return got
}

func mustBe(t *testing.T, when string, got []string, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", when, diff)
	}
}

func numbers(n int) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf("%03d", i)
	}
	return list
}

// TestOrder: messages of a migration arrive in the order in which they were sent, and what
// was handled is not delivered again.
func TestOrder(t *testing.T) {
	transport := newTransport(t, Options{}, newBroker(t, kfake.SeedTopics(3, topic)))
	sent := numbers(50)
	send(t, transport, sent...)
	mustBe(t, "first call", receive(t, transport, "049"), sent...)
	send(t, transport, "more")
	mustBe(t, "second call", receive(t, transport, "more"), "more")
}

// TestCommitAfterHandling: a message that could not be stored is delivered again, with
// those after it; those before it are not.
func TestCommitAfterHandling(t *testing.T) {
	transport := newTransport(t, Options{}, newBroker(t, kfake.SeedTopics(1, topic)))
	send(t, transport, numbers(5)...)
	full := errors.New("the API server refuses")
	var got []string
	err := transport.Receive(bounded(t), group, []string{topic}, func(_ context.Context, _ string, e message.Envelope) error {
		got = append(got, string(e.Value))
		if string(e.Value) == "002" {
			return full
		}
		return nil
	})
	if !errors.Is(err, full) {
		t.Fatalf("receive: %v, want the error of the handler", err)
	}
	mustBe(t, "until the failure", got, "000", "001", "002")
	mustBe(t, "after the failure", receive(t, transport, "004"), "002", "003", "004")
}

// TestFaults: what goes wrong at the broker is tried again without a loss, a change of the
// order, or a message that is there twice.
func TestFaults(t *testing.T) {
	cases := map[string]struct {
		reason string
		faults []kfake.Fault
	}{
		"LostRequest":   {"The broker never acted on the write.", []kfake.Fault{{Keys: []kmsg.Key{kmsg.Produce}, Err: kerr.NotLeaderForPartition, Count: 2}}},
		"LostAnswer":    {"The broker wrote, and its answer is lost: a producer that is not idempotent writes twice.", []kfake.Fault{{Keys: []kmsg.Key{kmsg.Produce}, Err: kerr.RequestTimedOut, Count: 2}}},
		"FewReplicas":   {"The write is not on all replicas.", []kfake.Fault{{Keys: []kmsg.Key{kmsg.Produce}, Err: kerr.NotEnoughReplicasAfterAppend, Count: 1}}},
		"LateFetch":     {"Reads fail for a while.", []kfake.Fault{{Keys: []kmsg.Key{kmsg.Fetch}, Err: kerr.NotLeaderForPartition, Count: 3}}},
		"NoCoordinator": {"The group's coordinator moves.", []kfake.Fault{{Keys: []kmsg.Key{kmsg.JoinGroup, kmsg.SyncGroup}, Err: kerr.NotCoordinator, Count: 2}}},
		"LostCommit":    {"The commit of offsets fails at first.", []kfake.Fault{{Keys: []kmsg.Key{kmsg.OffsetCommit}, Err: kerr.CoordinatorLoadInProgress, Count: 1}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			broker := newBroker(t, kfake.SeedTopics(1, topic))
			transport := newTransport(t, Options{}, broker)
			broker.Fault(tc.faults...)
			sent := numbers(10)
			send(t, transport, sent...)
			mustBe(t, tc.reason, receive(t, transport, "009"), sent...)
		})
	}
}

// TestBrokerAway: a send fails in bounded time while the broker is away, and both sides
// continue when it is back.
//
// Matrix: H35.
func TestBrokerAway(t *testing.T) {
	var mu sync.Mutex
	away := false
	broker := newBroker(t, kfake.SeedTopics(1, topic))
	broker.Control(func(kmsg.Request) (kmsg.Response, error, bool) {
		broker.KeepControl()
		mu.Lock()
		defer mu.Unlock()
		if !away {
			return nil, nil, false
		}
		return nil, errors.New("the connection is reset"), true
	})
	set := func(b bool) { mu.Lock(); away = b; mu.Unlock() }
	transport := newTransport(t, Options{DeliveryTimeout: time.Second}, broker)
	send(t, transport, "before")

	got := make(chan string, 10)
	ctx, cancel := context.WithCancel(bounded(t))
	done := make(chan error, 1)
	go func() {
		for {
			err := transport.Receive(ctx, group, []string{topic}, func(_ context.Context, _ string, e message.Envelope) error {
				got <- string(e.Value)
				return nil
			})
			if ctx.Err() != nil {
				done <- err
				return
			}
		}
	}()
	if v := <-got; v != "before" {
		t.Fatalf("received %s", v)
	}
	set(true)
	began := time.Now()
	if err := transport.Send(bounded(t), topic, "migration", text("lost")); err == nil {
		t.Error("a message was sent while the broker is away")
	} else if took := time.Since(began); took > timeout/2 {
		t.Errorf("the send failed after %s", took)
	}
	set(false)
	transport.options.DeliveryTimeout = timeout
	send(t, transport, "after")
	for v := ""; v != "after"; {
		select {
		case v = <-got:
		case err := <-done:
			t.Fatalf("receive: %v", err)
		}
		// The commit of the first may have failed; whether the second arrived is not known to
		// its sender.
		if !slices.Contains([]string{"before", "lost", "after"}, v) {
			t.Errorf("received %q, want after", v)
		}
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("receive: %v", err)
	}
}

// TestMissingACL: a client without an ACL gets one error that says who may not do what.
//
// Matrix: H36.
func TestMissingACL(t *testing.T) {
	const password = "secret"
	acl := func(resource kmsg.ACLResourceType, name string, operation kmsg.ACLOperation) kfake.ACL {
		return kfake.ACL{Resource: resource, Name: name, Pattern: kmsg.ACLResourcePatternTypeLiteral, Operation: operation, Allow: true}
	}
	const mechanism = "SCRAM-SHA-256"
	broker := newBroker(t, kfake.EnableSASL(), kfake.EnableACLs(), kfake.SeedTopics(1, topic),
		kfake.User(mechanism, "reader", password, acl(kmsg.ACLResourceTypeTopic, topic, kmsg.ACLOperationRead), acl(kmsg.ACLResourceTypeGroup, group, kmsg.ACLOperationRead)),
		kfake.User(mechanism, "writer", password, acl(kmsg.ACLResourceTypeTopic, topic, kmsg.ACLOperationWrite)),
		kfake.User(mechanism, "groupless", password, acl(kmsg.ACLResourceTypeTopic, topic, kmsg.ACLOperationRead)),
		kfake.User(mechanism, "stranger", password),
	)
	as := func(user, password string) *Transport {
		return newTransport(t, Options{ClientID: user, SASL: scram.Auth{User: user, Pass: password}.AsSha256Mechanism(), DeliveryTimeout: 10 * time.Second}, broker)
	}
	send(t, as("writer", password), "hello")
	mustBe(t, "reader", receive(t, as("reader", password), "hello"), "hello")

	read := func(tr *Transport) error {
		return tr.Receive(bounded(t), group, []string{topic}, func(context.Context, string, message.Envelope) error { return nil })
	}
	write := func(tr *Transport) error { return tr.Send(bounded(t), topic, "migration", text("x")) }
	cases := map[string]struct {
		user, password string
		do             func(*Transport) error
		want           string
	}{
		"ReaderWrites":  {"reader", password, write, "does not let reader write topic " + topic + ": add an ACL that allows its user Write on this topic"},
		"WriterReads":   {"writer", password, read, "does not let writer read topic " + topic},
		"WithoutGroup":  {"groupless", password, read, "does not let groupless read topic " + topic + ": add an ACL that allows its user Read on group " + group},
		"Stranger":      {"stranger", password, write, "does not let stranger write topic " + topic},
		"StrangerMakes": {"stranger", password, func(tr *Transport) error { return tr.EnsureTopics(bounded(t), "new") }, "does not let stranger create topic new"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			err := tc.do(as(tc.user, tc.password))
			if f := (*ForbiddenError)(nil); !errors.As(err, &f) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error is %v, want one with %q", err, tc.want)
			}
		})
	}
}

// TestWrongPassword: an operation whose credentials are refused does not wait until its end. Its error names the broker, the client and what
// to do.
//
// Matrix: H124.
func TestWrongPassword(t *testing.T) {
	broker := newBroker(t, kfake.EnableSASL(), kfake.User("SCRAM-SHA-256", "hub1", "secret"), kfake.SeedTopics(1, topic))
	// The broker of the tests closes the connection, and Kafka answers with an error.
	broker.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.SASLAuthenticate}, Err: kerr.SaslAuthenticationFailed, TopLevel: true, Count: -1})
	// The context of the test ends an operation that waits.
	transport := newTransport(t, Options{SASL: scram.Auth{User: "hub1", Pass: "wrong"}.AsSha256Mechanism(), DeliveryTimeout: 2 * timeout}, broker)
	for operation, do := range map[string]func(context.Context) error{
		"read": func(ctx context.Context) error {
			return transport.Receive(ctx, group, []string{topic}, func(context.Context, string, message.Envelope) error { return nil })
		},
		"write":  func(ctx context.Context) error { return transport.Send(ctx, topic, "migration", text("x")) },
		"create": func(ctx context.Context) error { return transport.EnsureTopics(ctx, topic) },
	} {
		t.Run(operation, func(t *testing.T) {
			ctx := bounded(t)
			err := do(ctx)
			want := "broker " + broker.ListenAddrs()[0] + " does not let hub1 " + operation + " topic " + topic + ": correct its user or password"
			if f := (*ForbiddenError)(nil); !errors.As(err, &f) || !strings.Contains(err.Error(), want) || ctx.Err() != nil {
				t.Errorf("error is %v, %v, want one at once with %q", err, ctx.Err(), want)
			}
		})
	}
}

// TestTopics: topics are created so that nothing in them is compacted, and a compacted one
// is refused.
func TestTopics(t *testing.T) {
	broker := newBroker(t)
	transport := newTransport(t, Options{}, broker)
	for range 2 { // again: they exist
		if err := transport.EnsureTopics(bounded(t), topic, "godwit.migration.hub2"); err != nil {
			t.Fatal(err)
		}
	}
	send(t, transport, "x")
	if err := broker.CreateTopic("compacted", 1, map[string]string{"cleanup.policy": "compact"}); err != nil {
		t.Fatal(err)
	}
	if err := transport.EnsureTopics(bounded(t), "compacted"); err == nil || !strings.Contains(err.Error(), "cleanup.policy=compact") {
		t.Errorf("a compacted topic: %v, want an error that says so", err)
	}
}

// TestNewTopic: a busy broker does not know a topic yet that it has just created. For one that exists, the same answer is an error.
func TestNewTopic(t *testing.T) {
	broker := newBroker(t)
	transport := newTransport(t, Options{}, broker)
	unknown := kfake.Fault{Keys: []kmsg.Key{kmsg.DescribeConfigs}, Err: kerr.UnknownTopicOrPartition, Count: 1}
	broker.Fault(unknown)
	if err := transport.EnsureTopics(bounded(t), topic); err != nil {
		t.Errorf("a new topic: %v", err)
	}
	broker.Fault(unknown)
	if err := transport.EnsureTopics(bounded(t), topic); err == nil {
		t.Error("a topic that exists and is not known is no error")
	}
}

// TestLargest: the largest envelope fits into a message.
func TestLargest(t *testing.T) {
	transport := newTransport(t, Options{}, newBroker(t))
	if err := transport.EnsureTopics(bounded(t), topic); err != nil {
		t.Fatal(err)
	}
	e := message.Envelope{Attributes: map[string]string{"ce_id": "large"}, Value: slices.Repeat([]byte("x"), message.MaxBytes-16)}
	if err := transport.Send(bounded(t), topic, "migration", e); err != nil {
		t.Errorf("send %d bytes: %v", e.Size(), err)
	}
}
