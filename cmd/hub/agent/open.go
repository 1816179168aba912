package agent

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-logr/logr"

	"github.com/godwit-dev/godwit/cmd/hub"
	"github.com/godwit-dev/godwit/cmd/hub/message"
)

// refusal is the reason why a message is refused. It is the value of a metric label.
type refusal string

const (
	refusedForged      refusal = "Forged"
	refusedNotForUs    refusal = "NotForThisHub"
	refusedMalformed   refusal = "Malformed"
	refusedVersion     refusal = "UnknownVersion"
	refusedReplay      refusal = "Replayed"
	refusedNotExpected refusal = "NotExpected"
	refusedNewer       refusal = "NewerFormat"
)

var refusals = []refusal{refusedForged, refusedNotForUs, refusedMalformed, refusedVersion, refusedReplay, refusedNotExpected, refusedNewer}

// reasonOf returns the reason of an error of package message.
func reasonOf(err error) refusal {
	var version *message.VersionError
	switch {
	case errors.Is(err, message.ErrForged):
		return refusedForged
	case errors.Is(err, message.ErrNotForUs), errors.Is(err, message.ErrOtherAddressee):
		return refusedNotForUs
	case errors.As(err, &version):
		return refusedVersion
	}
	return refusedMalformed
}

// beginCounters creates the counters of topics with the value 0: Prometheus sees no increase in a counter that starts
// at 1.
func (a *Agent) beginCounters(topics ...string) {
	for _, topic := range topics {
		for _, reason := range refusals {
			a.Metrics.refused.WithLabelValues(topic, string(reason))
		}
	}
}

// refuse logs and counts a refused message. The agent executes nothing of it and commits its offset: a second delivery
// would be refused again.
func (a *Agent) refuse(ctx context.Context, topic string, e message.Envelope, reason refusal, why string) {
	a.Metrics.refused.WithLabelValues(topic, string(reason)).Inc()
	log := logr.FromContextOrDiscard(ctx).WithValues("topic", topic, "reason", reason, "why", why)
	if h, err := message.Peek(e); err == nil {
		// The header is what the message claims.
		log = log.WithValues("from", h.From, "to", h.To, "type", h.Type, "migration", h.Migration, "stage", h.Stage, "attempt", h.Attempt)
	}
	log.Info("Refused a message")
}

// command is a command whose signature shows that the manager sent it to this hub.
type command struct {
	header message.Header
	hub.Command
	role   hub.Party
	source *message.SourceBundle
	target *message.TargetBundle
}

// readCommand checks and reads a command.
func (a *Agent) readCommand(e message.Envelope) (command, refusal, error) {
	h, err := message.Peek(e)
	if err != nil {
		return command{}, reasonOf(err), err
	}
	if h.From != message.ManagerName {
		return command{}, refusedForged, fmt.Errorf("the message is from hub %q, and only the manager commands", h.From)
	}
	h, data, err := message.Read(e, a.Hub, a.Manager, nil)
	if err != nil {
		if errors.Is(err, message.ErrForged) {
			err = fmt.Errorf("the message claims to be the manager's, and is not signed by the key that was given to this agent at its installation: %w", err)
		}
		return command{}, reasonOf(err), err
	}
	c := command{header: h}
	switch h.Type {
	case message.TypeSource:
		b, err := message.Decode[message.SourceBundle](data)
		if err != nil {
			return command{}, refusedMalformed, err
		}
		c.Command, c.role, c.source = b.Command, hub.Source, &b
	case message.TypeTarget:
		b, err := message.Decode[message.TargetBundle](data)
		if err != nil {
			return command{}, refusedMalformed, err
		}
		c.Command, c.role, c.target = b.Command, hub.Target, &b
	default:
		return command{}, refusedNotExpected, fmt.Errorf("a message of type %s is not a command", h.Type)
	}
	if c.Stage != h.Stage || c.Attempt != h.Attempt {
		return command{}, refusedMalformed, fmt.Errorf("the header is about stage %s, attempt %d, and the command about stage %s, attempt %d", h.Stage, h.Attempt, c.Stage, c.Attempt)
	}
	return c, "", nil
}
