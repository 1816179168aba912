package direct

import (
	"context"
	"sync"

	"github.com/godwit-dev/godwit/cmd/hub/message"
)

// transport passes messages between the parties of one process. Each topic has one reader. What is in it ends with the
// process: the parties send again what was not answered.
type transport struct {
	mutex  sync.Mutex
	topics map[string]*topic
}

// topic is a queue of messages. A message is removed when its reader has handled it.
type topic struct {
	messages []message.Envelope
	// arrived has a token if there may be messages.
	arrived chan struct{}
}

func newTransport() *transport { return &transport{topics: map[string]*topic{}} }

// topic returns a topic. The caller holds the mutex.
func (t *transport) topic(name string) *topic {
	one := t.topics[name]
	if one == nil {
		one = &topic{arrived: make(chan struct{}, 1)}
		t.topics[name] = one
	}
	return one
}

// Send implements manager.Transport and agent.Transport.
func (t *transport) Send(_ context.Context, name, _ string, e message.Envelope) error {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	one := t.topic(name)
	one.messages = append(one.messages, e)
	select {
	case one.arrived <- struct{}{}:
	default:
	}
	return nil
}

// Receive implements manager.Transport and agent.Transport, for one topic. An error of handle ends it; the next call
// begins with the same message.
func (t *transport) Receive(ctx context.Context, _ string, topics []string, handle func(ctx context.Context, topic string, e message.Envelope) error) error {
	name := topics[0]
	for {
		e, arrived := t.first(name)
		if arrived == nil {
			if err := handle(ctx, name, e); err != nil {
				return err
			}
			t.removeFirst(name)
			continue
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-arrived:
		}
	}
}

// first returns the first message of a topic, or the channel to wait for one.
func (t *transport) first(name string) (message.Envelope, <-chan struct{}) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	one := t.topic(name)
	if len(one.messages) == 0 {
		return message.Envelope{}, one.arrived
	}
	return one.messages[0], nil
}

func (t *transport) removeFirst(name string) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	one := t.topic(name)
	one.messages = one.messages[1:]
}

// EnsureTopics implements manager.Transport.
func (t *transport) EnsureTopics(context.Context, ...string) error { return nil }

// AwaitCaughtUp implements manager.Transport: no message is older than the process.
func (t *transport) AwaitCaughtUp(context.Context, string, string) error { return nil }
