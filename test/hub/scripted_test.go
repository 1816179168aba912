package hub_test

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/godwit-dev/godwit/cmd/hub"
	"github.com/godwit-dev/godwit/cmd/hub/kafka"
	"github.com/godwit-dev/godwit/cmd/hub/message"
)

// scripted is an agent that keeps the rules of hub.Inbox, and says that all is done.
type scripted struct {
	g         *globalHub
	hub       string
	party     hub.Party
	identity  message.Identity
	transport *kafka.Transport
	silent    atomic.Bool // sends no heartbeat

	mutex   sync.Mutex
	inboxes map[string]hub.Inbox // by migration
	keys    map[string]message.OpeningKey
	sent    map[string]message.StatusBundle
	secrets map[string]string // kubeconfigs that were opened
	orders  []string          // executed: migration, action
	// accounts are the bootstrap accounts that commands have named.
	accounts map[string]bool
	// missing are the resources that the manager has asked the source for again.
	missing []message.Gap
	// selects are the clusters of any placement, and keyless is an agent that sends no sealing key.
	selects []string
	keyless bool
	// held is an action that the agent does not answer yet, for the migrations that it names.
	held       hub.Action
	reached    chan struct{}
	unanswered []string
}

func (a *scripted) beat(ctx context.Context) {
	for ctx.Err() == nil {
		if !a.silent.Load() {
			a.write(ctx, message.Header{Type: message.TypeHeartbeat}, message.Heartbeat{Hub: a.hub, Versions: []int{message.Version}})
		}
		pause(ctx, 250*time.Millisecond)
	}
}

func (a *scripted) write(ctx context.Context, h message.Header, bundle any) {
	h.From, h.To, h.ValidFor = a.hub, message.ManagerName, time.Minute
	data, err := message.Encode(bundle)
	if err == nil {
		var e message.Envelope
		if e, err = message.Write(h, data, a.identity, nil); err == nil {
			err = a.transport.Send(ctx, message.StatusTopic(a.hub), cmp.Or(h.Migration, a.hub), e)
		}
	}
	if err != nil && ctx.Err() == nil && !strings.Contains(err.Error(), "UNKNOWN_TOPIC") {
		a.g.t.Logf("%s: %v", a.hub, err)
	}
}

func (a *scripted) receive(ctx context.Context) {
	for ctx.Err() == nil {
		err := a.transport.Receive(ctx, "agent-"+a.hub, []string{message.SpecTopic(a.hub)}, a.handle)
		if ctx.Err() == nil && !strings.Contains(err.Error(), "UNKNOWN_TOPIC") {
			a.g.t.Logf("%s: %v", a.hub, err)
		}
		pause(ctx, 50*time.Millisecond)
	}
}

func (a *scripted) handle(ctx context.Context, _ string, e message.Envelope) error {
	h, data, err := message.Read(e, a.hub, a.g.manager.Key(), nil)
	if err != nil {
		a.g.t.Errorf("%s: %v", a.hub, err)
		return nil
	}
	a.mutex.Lock()
	defer a.mutex.Unlock()
	var c hub.Command
	var source message.SourceBundle
	var target message.TargetBundle
	if a.party == hub.Source {
		source, err = message.Decode[message.SourceBundle](data)
		c = source.Command
		a.missing = append(a.missing, source.Missing...)
	} else {
		target, err = message.Decode[message.TargetBundle](data)
		c = target.Command
		namespace := target.InstallNamespace
		if target.OwnAccount {
			namespace = agentsOwn
		}
		a.accounts[namespace+"/"+target.ManagedServiceAccountName] = true
	}
	if err != nil {
		a.g.t.Error(err)
		return nil
	}
	inbox, handling := a.inboxes[h.Migration].Receive(c)
	a.inboxes[h.Migration] = inbox
	if handling == hub.Execute {
		a.sent[h.Migration] = a.execute(h, c, source, target)
	}
	switch {
	case handling == hub.Ignore:
	case slices.ContainsFunc(c.Orders, func(o hub.Order) bool { return o.Action == a.held }):
		a.unanswered = append(a.unanswered, h.Migration)
		a.reached <- struct{}{}
	default:
		a.report(ctx, h.Migration)
	}
	return nil
}

// report sends the last report on a migration.
func (a *scripted) report(ctx context.Context, uid string) {
	last := a.inboxes[uid].Last
	a.write(ctx, message.Header{Type: message.TypeStatus, Migration: uid, Stage: last.Stage, Attempt: last.Attempt}, a.sent[uid])
}

// execute says that all orders are done for all clusters.
func (a *scripted) execute(h message.Header, c hub.Command, source message.SourceBundle, target message.TargetBundle) message.StatusBundle {
	key, ok := a.keys[h.Migration]
	if !ok {
		var err error
		if key, err = message.NewOpeningKey(); err != nil {
			a.g.t.Error(err)
		}
		a.keys[h.Migration] = key
	}
	b := message.StatusBundle{Finished: true, SealingKey: key.Key().Bytes()}
	if a.keyless {
		b.SealingKey = nil
	}
	for _, o := range c.Orders {
		a.orders = append(a.orders, string(o.Action))
		b.Done = append(b.Done, o.Clusters...)
		switch o.Action {
		case hub.ValidateSource:
			b.ManagedClusters = o.Clusters
			if source.PlacementName != "" {
				b.ManagedClusters = a.selects
			}
		case hub.GrantRegistration:
			if target.Bootstrap == nil {
				continue
			}
			to, err := message.ReadSealingKey(target.SourceSealingKey)
			if err == nil {
				b.BootstrapSecret, err = message.SealSecret(to, h.Migration, []byte("issued by "+a.hub+" for "+target.Bootstrap.Server))
			}
			if err != nil {
				a.g.t.Error(err)
			}
		case hub.InstallBootstrap:
			text, err := message.OpenSecret(key, h.Migration, source.BootstrapSecret)
			if err != nil {
				a.g.t.Error(err)
			}
			if a.secrets == nil {
				a.secrets = map[string]string{}
			}
			a.secrets[h.Migration] = string(text)
		}
	}
	slices.Sort(b.Done)
	b.Done = slices.Compact(b.Done)
	return b
}

func (a *scripted) opened(uid string) string {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	return a.secrets[uid]
}

// account is the bootstrap account that every command has named.
func (a *scripted) account() string {
	a.g.t.Helper()
	a.mutex.Lock()
	defer a.mutex.Unlock()
	names := slices.Collect(maps.Keys(a.accounts))
	if len(names) != 1 {
		a.g.t.Fatalf("commands name the accounts %v, want one", names)
	}
	return names[0]
}

// executed returns the actions that the agent was told, in their order. An action that follows itself counts once: DeleteMoved comes
// with a second ReleaseClusters, and whether the source receives the first one depends on how fast the target registers the clusters.
func (a *scripted) executed() []string {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	return slices.Compact(slices.Clone(a.orders))
}

// hold makes an agent execute commands with an action and not answer them, until it is
// released.
func (a *scripted) hold(action hub.Action) (held <-chan struct{}, release func()) {
	reached := make(chan struct{}, 100)
	a.mutex.Lock()
	defer a.mutex.Unlock()
	a.held, a.reached = action, reached
	return reached, sync.OnceFunc(func() {
		a.mutex.Lock()
		defer a.mutex.Unlock()
		if a.held == action { // and not the next one, which a test holds before it releases this one
			a.held = ""
		}
		for _, uid := range a.unanswered {
			a.report(a.g.t.Context(), uid)
		}
		a.unanswered = nil
	})
}
