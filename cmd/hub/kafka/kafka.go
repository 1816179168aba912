package kafka

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"

	"github.com/godwit-dev/godwit/cmd/hub/message"
)

const (
	// deliveryTimeout bounds a send. A command that was not sent stays due, so the manager tries again.
	deliveryTimeout = 30 * time.Second
	// maxMessageBytes of a topic: an envelope and what Kafka adds. It is Kafka's default.
	maxMessageBytes = 1 << 20
	// retention of a topic: longer than the longest migration, which has six phases of 24 h.
	retention = 7 * 24 * time.Hour
	// leaderAge is the least interval between two requests for the leaders of partitions, such as after a leader has
	// moved. kgo's default of 5 s saves load that a small client does not cause.
	leaderAge = 250 * time.Millisecond
	// sessionTimeout is how long the group waits for a killed consumer before another one gets its messages. Kafka's
	// least is 6 s; its default of 45 s would be a sixth of a phase.
	sessionTimeout = 10 * time.Second
	// commitTimeout bounds the commit of offsets when a consumer ends.
	commitTimeout = 5 * time.Second
)

// Options of a transport.
type Options struct {
	// Brokers are host:port.
	Brokers []string
	// ClientID names the hub in the logs of the broker.
	ClientID string
	// TLS verifies the names of brokers unless the caller turns it off. Nil means plain text.
	TLS *tls.Config
	// SASL authenticates the client, unless TLS does.
	SASL sasl.Mechanism
	// DeliveryTimeout bounds a send; 30 s unless set.
	DeliveryTimeout time.Duration
}

// Transport sends and receives envelopes.
type Transport struct {
	options    Options
	producer   *kgo.Client
	handshakes *handshakes
}

// New returns a transport, which connects at its first use.
func New(o Options) (*Transport, error) {
	if o.DeliveryTimeout == 0 {
		o.DeliveryTimeout = deliveryTimeout
	}
	t := &Transport{options: o, handshakes: &handshakes{}}
	producer, err := t.client(
		kgo.RequiredAcks(kgo.AllISRAcks()), // idempotent unless it is disabled
		kgo.ProducerBatchMaxBytes(maxMessageBytes),
		kgo.ProducerBatchCompression(kgo.NoCompression()), // sealed data can't be compressed
		kgo.RecordPartitioner(kgo.StickyKeyPartitioner(nil)),
		kgo.UnknownTopicRetries(2),
	)
	if err != nil {
		return nil, err
	}
	t.producer = producer
	return t, nil
}

func (t *Transport) client(more ...kgo.Opt) (*kgo.Client, error) {
	options := append([]kgo.Opt{kgo.SeedBrokers(t.options.Brokers...), kgo.ClientID(t.options.ClientID), kgo.MetadataMinAge(leaderAge), kgo.WithHooks(t.handshakes)}, more...)
	if t.options.TLS != nil {
		options = append(options, kgo.DialTLSConfig(t.options.TLS))
	}
	if t.options.SASL != nil {
		options = append(options, kgo.SASL(t.options.SASL))
	}
	client, err := kgo.NewClient(options...)
	if err != nil {
		return nil, fmt.Errorf("configure the client of Kafka: %w", err)
	}
	return client, nil
}

// Close ends the transport.
func (t *Transport) Close() { t.producer.Close() }

// Send returns when all replicas in sync have the envelope, or after the delivery timeout.
// Messages with one key stay in order, and one that timed out may arrive late or twice.
func (t *Transport) Send(ctx context.Context, topic, key string, e message.Envelope) error {
	record := &kgo.Record{Topic: topic, Key: []byte(key), Value: e.Value}
	for name, value := range e.Attributes {
		record.Headers = append(record.Headers, kgo.RecordHeader{Key: name, Value: []byte(value)})
	}
	slices.SortFunc(record.Headers, func(a, b kgo.RecordHeader) int { return strings.Compare(a.Key, b.Key) })
	ctx, cancel := context.WithTimeout(ctx, t.options.DeliveryTimeout)
	defer cancel()
	refusal := t.handshakes.refusal()
	// If the producer does not know whether the broker has a message, it keeps the message and sends it before any
	// later one. So the caller may stop waiting and send it again.
	sent := make(chan error, 1)
	t.producer.Produce(context.WithoutCancel(ctx), record, func(_ *kgo.Record, err error) { sent <- err })
	for {
		select {
		case err := <-sent:
			if err != nil {
				return t.explain(operationWrite, topic, "", err)
			}
			return nil
		case <-refusal:
			// The client itself retries without end. If one broker refuses and another one does not, the message may arrive.
			refusal = nil
			if err := t.authenticate(ctx, t.producer); err != nil {
				return t.explain(operationWrite, topic, "", err)
			}
		case <-ctx.Done():
			if _, failure := t.refused(); failure != nil {
				return t.explain(operationWrite, topic, "", failure)
			}
			return fmt.Errorf("write topic %s: the broker does not answer; the message may still arrive: %w", topic, ctx.Err())
		}
	}
}

// Handler stores the content of an envelope. It returns an error only if the message must be delivered again. It counts
// a message that can't be read or is forged, and returns nil.
type Handler = func(ctx context.Context, topic string, e message.Envelope) error

// Receive passes the messages of topics to a handler, one after another in the order of their partition. It returns
// when the context ends, the handler fails, or the broker refuses. The caller then calls it again: the group has the
// offsets of handled messages.
func (t *Transport) Receive(ctx context.Context, group string, topics []string, handle Handler) error {
	client, err := t.client(
		kgo.ConsumerGroup(group), kgo.ConsumeTopics(topics...),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.DisableAutoCommit(), kgo.BlockRebalanceOnPoll(),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.SessionTimeout(sessionTimeout), kgo.HeartbeatInterval(sessionTimeout/5),
	)
	if err != nil {
		return err
	}
	defer client.CloseAllowingRebalance()
	all := strings.Join(topics, ", ")
	if err := t.authenticate(ctx, client); err != nil {
		return t.explain(operationRead, all, group, err)
	}
	for {
		fetches := t.poll(ctx, client)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err := fetchError(fetches); err != nil {
			return t.explain(operationRead, all, group, err)
		}
		if _, failure := t.refused(); failure != nil && fetches.NumRecords() == 0 {
			return t.explain(operationRead, all, group, failure)
		}
		if err := t.handle(ctx, client, fetches, handle); err != nil {
			return err
		}
		client.AllowRebalance()
	}
}

// poll returns what has arrived, or nothing after the delivery timeout: the caller then looks whether a broker refuses the client,
// which itself retries without end.
func (t *Transport) poll(ctx context.Context, client *kgo.Client) kgo.Fetches {
	ctx, cancel := context.WithTimeout(ctx, t.options.DeliveryTimeout)
	defer cancel()
	return client.PollFetches(ctx)
}

// authenticate returns an error if all brokers refuse TLS or the credentials: a client would wait forever. It returns nil
// if no broker answers.
func (t *Transport) authenticate(ctx context.Context, client *kgo.Client) error {
	ctx, cancel := context.WithTimeout(ctx, t.options.DeliveryTimeout)
	defer cancel()
	if err := client.Ping(ctx); refuses(err) {
		return err
	}
	return nil
}

// handle commits the offsets of handled messages, even if a later message of the same poll failed.
func (t *Transport) handle(ctx context.Context, client *kgo.Client, fetches kgo.Fetches, handle Handler) error {
	var handled []*kgo.Record
	var failed error
	fetches.EachPartition(func(p kgo.FetchTopicPartition) {
		for _, r := range p.Records {
			if failed != nil || ctx.Err() != nil {
				return
			}
			if err := handle(ctx, r.Topic, envelope(r)); err != nil {
				failed = fmt.Errorf("handle offset %d of topic %s: %w", r.Offset, r.Topic, err)
				return
			}
			handled = append(handled, r)
		}
	})
	if len(handled) == 0 {
		return failed
	}
	// Offsets are committed even while the program ends.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), commitTimeout)
	defer cancel()
	if err := client.CommitRecords(ctx, handled...); err != nil {
		return errors.Join(failed, t.explain(operationCommit, handled[0].Topic, "", err))
	}
	return failed
}

// fetchError returns the first error that a retry does not fix.
func fetchError(fetches kgo.Fetches) error {
	for _, e := range fetches.Errors() {
		var refused *kerr.Error
		if errors.As(e.Err, &refused) && !refused.Retriable || errors.Is(e.Err, kgo.ErrClientClosed) {
			return e.Err
		}
	}
	return nil
}

func envelope(r *kgo.Record) message.Envelope {
	e := message.Envelope{Attributes: make(map[string]string, len(r.Headers)), Value: r.Value}
	for _, h := range r.Headers {
		e.Attributes[h.Key] = string(h.Value)
	}
	return e
}

// refused returns the broker that refuses the client at present, and its error; nil if there is none. A client dials again within a
// delivery timeout.
func (t *Transport) refused() (broker string, err error) {
	return t.handshakes.failure(2 * t.options.DeliveryTimeout)
}

// explain adds to an error of the broker what to do about it. The group is empty unless the operation is a read.
func (t *Transport) explain(operation, topic, group string, err error) error {
	broker, failure := "", error(nil)
	if refuses(err) {
		broker, failure = t.refused()
	}
	if failure != nil {
		err = failure
	}
	switch {
	case slices.ContainsFunc(forbidden, func(f error) bool { return errors.Is(err, f) }):
		return &ForbiddenError{Client: t.options.ClientID, Operation: operation, Topic: topic, Broker: broker, Group: group, Err: err}
	case failure != nil:
		err = &TLSError{Broker: broker, Remedy: tlsRemedy(err), Err: err}
	}
	return fmt.Errorf("%s topic %s: %w", operation, topic, err)
}

// EnsureTopics creates missing topics with the brokers' default number of replicas. It returns an error for a topic
// that is compacted.
func (t *Transport) EnsureTopics(ctx context.Context, topics ...string) error {
	const policy, deletes, brokersDefault = "cleanup.policy", "delete", -1
	value := func(v string) *string { return &v }
	admin := kadm.NewClient(t.producer)
	created, err := admin.CreateTopics(ctx, 1, brokersDefault, map[string]*string{
		policy: value(deletes), "max.message.bytes": value(fmt.Sprint(maxMessageBytes)), "retention.ms": value(fmt.Sprint(retention.Milliseconds())),
	}, topics...)
	if err != nil {
		return t.explain(operationCreate, strings.Join(topics, ", "), "", err)
	}
	isNew := map[string]bool{}
	for _, c := range created.Sorted() {
		if c.Err != nil && !errors.Is(c.Err, kerr.TopicAlreadyExists) {
			return t.explain(operationCreate, c.Topic, "", c.Err)
		}
		isNew[c.Topic] = c.Err == nil
	}
	configs, err := admin.DescribeTopicConfigs(ctx, topics...)
	if err != nil {
		return t.explain(operationDescribe, strings.Join(topics, ", "), "", err)
	}
	for _, c := range configs {
		if isNew[c.Name] && errors.Is(c.Err, kerr.UnknownTopicOrPartition) {
			continue // a busy broker learns of it a moment later
		}
		if c.Err != nil {
			return t.explain(operationDescribe, c.Name, "", c.Err)
		}
		for _, config := range c.Configs {
			if config.Key == policy && config.Value != nil && *config.Value != deletes {
				return fmt.Errorf("topic %s has %s=%s, by which a batch of a migration deletes an earlier one: set it to %s", c.Name, policy, *config.Value, deletes)
			}
		}
	}
	return nil
}
