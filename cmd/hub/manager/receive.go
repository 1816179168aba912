package manager

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/godwit-dev/godwit/cmd/hub"
	api "github.com/godwit-dev/godwit/cmd/hub/api/v1alpha1"
	"github.com/godwit-dev/godwit/cmd/hub/message"
	"github.com/godwit-dev/godwit/internal/apierror"
	"github.com/godwit-dev/godwit/internal/format"
)

// Refusal is the reason why the manager refuses a message, and the value of the metric label reason.
type Refusal string

// Refusals. A message that is refused changes nothing.
const (
	// Malformed messages can't be read.
	Malformed Refusal = "Malformed"
	// UnknownVersion means that the envelope has a version that the manager does not read.
	UnknownVersion Refusal = "UnknownVersion"
	// NotEnrolled means that the manager has no key of the hub.
	NotEnrolled Refusal = "NotEnrolled"
	// Forged means that the message is not signed with the key of the hub.
	Forged Refusal = "Forged"
	// NotForThisHub means that the message is addressed to another hub.
	NotForThisHub Refusal = "NotForThisHub"
	// WrongHub means that the message claims to come from another hub than that of its topic, or is about a migration
	// between other hubs.
	WrongHub Refusal = "WrongHub"
	// UnknownMigration means that the migration does not exist: it may have been deleted.
	UnknownMigration Refusal = "UnknownMigration"
	// Outdated means that the report answers an earlier command: it is late, or was replayed.
	Outdated Refusal = "Outdated"
	// NotSent means that the report answers a command that the manager has not sent.
	NotSent Refusal = "NotSent"
	// HubReplaced means that the hub was enrolled with another key than that of the migration.
	HubReplaced Refusal = "HubReplaced"
	// NotStored means that the state of the migration was lost, that a newer release wrote it, or that a user's
	// ConfigMap has the name of the manager's, or the API server refuses the ConfigMap of this migration. The manager requests the report again with the next command.
	NotStored Refusal = "NotStored"
)

var refusals = []Refusal{Malformed, UnknownVersion, NotEnrolled, Forged, NotForThisHub, WrongHub, UnknownMigration, Outdated, NotSent, HubReplaced, NotStored}

// beginCounters creates the counters of a hub with the value 0: Prometheus sees no increase in a counter that starts at
// 1.
func (r *Reconciler) beginCounters(name string) {
	for _, reason := range refusals {
		r.Metrics.refused.WithLabelValues(name, string(reason))
	}
}

// handler returns the handler of the messages in the status topic of one hub. The handler returns an error only if a
// message could not be stored and must be delivered again.
func (r *Reconciler) handler(name string) func(ctx context.Context, topic string, e message.Envelope) error {
	return func(ctx context.Context, _ string, e message.Envelope) error {
		refusal, err := r.receive(ctx, name, e)
		switch {
		case refusal != "":
			r.Metrics.refused.WithLabelValues(name, string(refusal)).Inc()
			log.FromContext(ctx).Info("A message is refused", "hub", name, "reason", refusal, "detail", fmt.Sprint(err))
			return nil
		case err != nil:
			return fmt.Errorf("store a message of hub %s: %w", name, err)
		}
		return nil
	}
}

// receive stores the content of a message. The error of a refusal has the details.
func (r *Reconciler) receive(ctx context.Context, name string, e message.Envelope) (Refusal, error) {
	header, err := message.Peek(e)
	var version *message.VersionError
	switch {
	case errors.As(err, &version):
		return UnknownVersion, err
	case err != nil:
		return Malformed, err
	case header.From != name:
		return WrongHub, fmt.Errorf("the message claims to come from %q", header.From)
	}
	key, problems, err := r.hubKey(ctx, name)
	switch {
	case err != nil:
		return "", err
	case problems != "":
		return NotEnrolled, errors.New(problems)
	}
	header, data, err := message.Read(e, message.ManagerName, key, nil)
	switch {
	case errors.Is(err, message.ErrForged):
		return Forged, err
	case errors.Is(err, message.ErrOtherAddressee):
		return NotForThisHub, err
	case err != nil:
		return Malformed, err
	}
	switch header.Type {
	case message.TypeHeartbeat:
		return r.receiveHeartbeat(name, data)
	case message.TypeStatus:
		return r.receiveStatus(ctx, name, header, data)
	}
	return Malformed, fmt.Errorf("a message of type %s is not for the manager", header.Type)
}

func (r *Reconciler) receiveHeartbeat(name string, data []byte) (Refusal, error) {
	beat, err := message.Decode[message.Heartbeat](data)
	if err != nil {
		return Malformed, err
	}
	if beat.Hub != name {
		return WrongHub, fmt.Errorf("the heartbeat is of hub %q", beat.Hub)
	}
	r.receipts.addHeartbeat(name, beat.Versions, r.Clock.Now())
	return "", nil
}

func (r *Reconciler) receiveStatus(ctx context.Context, name string, h message.Header, data []byte) (Refusal, error) {
	bundle, err := message.Decode[message.StatusBundle](data)
	if err != nil {
		return Malformed, err
	}
	found, party, err := r.findMigration(ctx, name, h.Migration)
	switch {
	case err != nil:
		return "", err
	case found == nil:
		return UnknownMigration, fmt.Errorf("migration %s", h.Migration)
	case party == "":
		return WrongHub, fmt.Errorf("migration %s/%s is between other hubs", found.Namespace, found.Name)
	}
	key := client.ObjectKeyFromObject(found)
	own, refusal, err := r.checkParty(ctx, found, party)
	if refusal != "" || err != nil {
		return refusal, err
	}
	var why error
	m, err := r.apply(ctx, key, func(m migration) (hub.Event, error) {
		refusal, why = checkAttempt(m.state, party, h)
		if refusal != "" {
			return nil, nil
		}
		if known := m.state.Record(party); known.Attempt == h.Attempt && known.Finished {
			// The state may lack the commit of the first report.
			r.Metrics.duplicates.WithLabelValues(name).Inc()
		}
		return bundle.Report(h, party, r.Clock.Now()), r.saveExchange(ctx, m, party, bundle)
	})
	switch {
	case errors.Is(err, errStateLost), errors.As(err, new(*format.NewerError)), apierrors.IsAlreadyExists(err):
		return NotStored, err // one migration must not block the topic
	case apierror.TreatmentOf(err) == apierror.Final, apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return NotStored, err // such as an immutable ConfigMap, or a quota: nor must what a user has done to its namespace
	case apierrors.IsNotFound(err):
		return UnknownMigration, err
	case err != nil:
		return "", err
	case refusal != "":
		return refusal, why
	}
	if party == hub.Target && len(bundle.Missing) > 0 {
		if err := r.sendMissing(ctx, m, bundle.Missing); err != nil {
			return "", err
		}
	}
	r.sendNewKey(ctx, m, party, KeyOf(found, party), own)
	r.enqueue(ctx, m.object)
	return "", nil
}

// checkParty returns the key of the hub that has sent a report. It returns a refusal if the hub does not take part in the migration with this key.
func (r *Reconciler) checkParty(ctx context.Context, m *api.ManagedClusterMigration, party hub.Party) (partyKey, Refusal, error) {
	own, p, err := r.partyKey(ctx, m, party)
	switch {
	case apierrors.IsNotFound(err):
		return own, UnknownMigration, err
	case err != nil:
		return own, "", err
	case p != nil && p.reason == api.ReasonHubReplaced.Name:
		r.warn(m, p.reason, p.message)
		return own, HubReplaced, p
	case p != nil:
		return own, NotEnrolled, p
	}
	return own, "", nil
}

// checkAttempt returns a refusal unless a report answers the present command of a party, or an earlier one that has orders
// which are still to be done.
func checkAttempt(s hub.State, p hub.Party, h message.Header) (Refusal, error) {
	last := s.Record(p)
	switch {
	case s.Awaits(p, h.Stage, h.Attempt):
		return "", nil
	case h.Attempt > last.Attempt:
		return NotSent, fmt.Errorf("a report on attempt %d, and the last command was attempt %d", h.Attempt, last.Attempt)
	}
	return Outdated, fmt.Errorf("a report on %s, attempt %d, and the last command was %s, attempt %d", h.Stage, h.Attempt, last.Stage, last.Attempt)
}

// findMigration returns the migration of a message, and the party that the sender is in it; nil if it does not exist.
func (r *Reconciler) findMigration(ctx context.Context, name, uid string) (*api.ManagedClusterMigration, hub.Party, error) {
	list := &api.ManagedClusterMigrationList{}
	if err := r.Client.List(ctx, list); err != nil {
		return nil, "", fmt.Errorf("list the migrations: %w", err)
	}
	for i := range list.Items {
		m := &list.Items[i]
		if string(m.UID) != uid {
			continue
		}
		return m, PartyOf(m, name), nil
	}
	return nil, "", nil
}

// sendNewKey sends the target its present command again if the source has a new key. Without it, the target refuses the resources
// until the command is due again.
func (r *Reconciler) sendNewKey(ctx context.Context, m migration, party hub.Party, before *api.HubKey, own partyKey) {
	if party != hub.Source || before == nil || before.Number == own.number {
		return
	}
	e, ok := hub.CommandFor(m.state, hub.Target)
	if !ok || !hasAction(e, hub.ReceiveResources) {
		return
	}
	if err := r.send(ctx, m, e, nil); err != nil && ctx.Err() == nil {
		log.FromContext(ctx).Error(err, "Cannot send the new key of the source hub to the target hub; it is sent with the next command", "hub", m.to())
	}
}

// sendMissing sends the target's missing objects to the source. It does nothing before the source has sent everything:
// the objects may still arrive.
func (r *Reconciler) sendMissing(ctx context.Context, m migration, missing []message.Gap) error {
	known := m.state.Record(hub.Source)
	e, ok := hub.CommandFor(m.state, hub.Source)
	if !ok || !hasAction(e, hub.SendResources) || !known.Finished || known.Attempt != e.Attempt {
		return nil
	}
	return r.send(ctx, m, e, missing)
}

// enqueue makes the controller reconcile a migration that a message has changed.
func (r *Reconciler) enqueue(ctx context.Context, m *api.ManagedClusterMigration) {
	if r.changed == nil {
		return
	}
	select {
	case r.changed <- event.TypedGenericEvent[*api.ManagedClusterMigration]{Object: m}:
	case <-ctx.Done():
	}
}
