package manager

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/godwit-dev/godwit/cmd/hub"
	api "github.com/godwit-dev/godwit/cmd/hub/api/v1alpha1"
	"github.com/godwit-dev/godwit/cmd/hub/message"
)

// send writes a command to the topic of a hub. missing are the objects that the target reported, if any.
func (r *Reconciler) send(ctx context.Context, m migration, e hub.Effect, missing []message.Gap) error {
	if _, p, err := r.partyKey(ctx, m.object, e.Party); err != nil || p != nil && p.reason == api.ReasonHubReplaced.Name {
		return problemOrError(p, err)
	}
	x, err := r.exchangeOf(ctx, m)
	if err != nil {
		return err
	}
	kind := message.TypeSource
	var data []byte
	if e.Party == hub.Source {
		b, failed := r.sourceBundle(ctx, m, e, x)
		b.Missing = missing
		data, err = encode(b, failed)
	} else {
		kind = message.TypeTarget
		data, err = encode(r.targetBundle(ctx, m, e, x))
	}
	if err != nil {
		return err
	}
	name := m.hubOf(e.Party)
	envelope, err := message.Write(message.Header{
		Type: kind, Migration: m.uid(), From: message.ManagerName, To: name, Stage: e.Stage, Attempt: e.Attempt,
		ValidFor: secondsLeft(e.Until, r.Clock.Now()), TotalClusters: len(m.state.Clusters),
	}, data, r.Identity, nil)
	if err != nil {
		return err
	}
	if err := r.Transport.Send(ctx, message.SpecTopic(name), m.uid(), envelope); err != nil {
		return err
	}
	r.Metrics.sent.WithLabelValues(name).Add(float64(envelope.Size()))
	resent := r.Metrics.resent.WithLabelValues(name)
	if known := m.state.Record(e.Party); known.Attempt == e.Attempt && known.Sent > 0 {
		resent.Inc()
	}
	return nil
}

func encode[B message.SourceBundle | message.TargetBundle](b B, err error) ([]byte, error) {
	if err != nil {
		return nil, err
	}
	return message.Encode(b)
}

// hasAction reports whether a command contains an action.
func hasAction(e hub.Effect, a hub.Action) bool {
	return slices.ContainsFunc(e.Orders, func(o hub.Order) bool { return o.Action == a })
}

func (r *Reconciler) sourceBundle(ctx context.Context, m migration, e hub.Effect, x exchange) (message.SourceBundle, error) {
	b := message.SourceBundle{
		Command: commandOf(e), ToHub: m.to(), RollbackStage: m.state.RollbackStage,
		TargetSealingKey: x.target, ReconnectTimeoutSeconds: int64(m.state.Timeouts.Reconnect / time.Second),
		EvictedWorks: m.object.Spec.EvictedWorks(), UserObjects: m.object.Spec.UserObjects(),
	}
	if hasAction(e, hub.ValidateSource) {
		b.PlacementName = m.state.Placement
	}
	if hasAction(e, hub.InstallBootstrap) {
		sealed, err := r.kubeconfig(ctx, m, x)
		if err != nil {
			return b, err
		}
		b.BootstrapSecret = sealed
	}
	if hasAction(e, hub.SendResources) && len(x.target) == 0 {
		return b, x.explain("hub %s has sent no sealing key, to which resources are sealed: upgrade its agent", m.to())
	}
	return b, nil
}

func (r *Reconciler) targetBundle(ctx context.Context, m migration, e hub.Effect, x exchange) (message.TargetBundle, error) {
	b := message.TargetBundle{
		Command: commandOf(e), FromHub: m.from(), RollbackStage: m.state.RollbackStage,
		ManagedServiceAccountName: accountName(m.from(), m.to()), SourceSealingKey: x.source,
		ReconnectTimeoutSeconds: int64(m.state.Timeouts.Reconnect / time.Second), UserObjects: m.object.Spec.UserObjects(),
	}
	source, p, err := r.partyKey(ctx, m.object, hub.Source)
	switch {
	case err != nil:
		return b, err
	case p == nil:
		b.SourceIdentity, b.SourceKeyNumber = source.Bytes(), source.number
	case hasAction(e, hub.ReceiveResources):
		return b, p // the target would refuse its resources
	}
	// Every command has the account: a rollback revokes its permissions.
	if b.InstallNamespace, err = r.installNamespace(ctx, m.to()); err != nil {
		return b, err
	}
	if b.OwnAccount, err = r.ownAccount(ctx, m, x); err != nil {
		return b, err
	}
	if b.OwnAccount && hasAction(e, hub.GrantRegistration) {
		if len(x.source) == 0 {
			return b, x.explain("hub %s has sent no sealing key, to which the bootstrap kubeconfig is sealed: upgrade its agent", m.from())
		}
		config, p, err := r.address(ctx, m.to())
		if p != nil || err != nil {
			return b, problemOrError(p, err)
		}
		b.Bootstrap = &message.BootstrapRequest{
			Server: config.URL, CABundle: config.CABundle, TokenLifetimeSeconds: int64(m.state.Timeouts.Total() / time.Second),
		}
	}
	if e.Stage == api.PhaseRegistering {
		b.RegisteringTimeoutSeconds = int64(secondsLeft(e.Until, r.Clock.Now()) / time.Second)
	}
	return b, nil
}

func commandOf(e hub.Effect) hub.Command {
	return hub.Command{Stage: e.Stage, Attempt: e.Attempt, Orders: e.Orders}
}

// maxNames bounds the names of all clusters, in bytes: a rollback command has them three times.
const maxNames = (message.MaxBytes - 64<<10) / 3

// checkCommandSize returns a problem if the clusters are too many for a command.
func checkCommandSize(s hub.State) *problem {
	const quoted = 3 // two quotes and a comma
	total := 0
	for _, c := range s.Clusters {
		total += len(c.Name) + quoted
	}
	if total <= maxNames {
		return nil
	}
	return &problem{api.ReasonClustersInvalid.Name, fmt.Sprintf("the names of %d clusters do not fit into a command: make several migrations of them", len(s.Clusters))}
}
