package handover

import (
	"context"
	"fmt"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/godwit-dev/godwit/externalname/fleet"
	"github.com/godwit-dev/godwit/externalname/internal/managed"
	"github.com/godwit-dev/godwit/internal/kube"
	"github.com/godwit-dev/godwit/walk"
)

// Options tune a [Handover]. The zero value works.
type Options struct {
	// Limiter paces the requests; nil means one with walk's default limits.
	Limiter *walk.Limiter
	// Batch bounds the pairs that are handed over at the same time; 0 means 50. The first pair is handed over alone.
	Batch int
	// PauseTimeout is how long a provider may take to report a pause; 0 means 2 minutes.
	PauseTimeout time.Duration
	// ProofTimeout is how long the provider of the replacement may take to report success; 0 means 5 minutes.
	ProofTimeout time.Duration
	// Identity selects the fields of status.atProvider that must be the same. Without a choice they are the fields that both kinds
	// have, of which one must be an identifier that does not follow from the external name, such as a UUID or an ARN.
	Identity fleet.Identity
	// Overwrite also replaces an external name of the replacement that differs from the saved one.
	Overwrite bool
	// DryRun decides and writes nothing.
	DryRun bool
	// SourceManagers are further field managers that apply manifests from a source.
	SourceManagers []string
	// Progress is called after each pair, one call at a time.
	Progress func(fleet.Result)
}

func (o Options) withDefaults() Options {
	if o.Limiter == nil {
		o.Limiter = walk.NewLimiter(walk.Limits{})
	}
	if o.Batch == 0 {
		o.Batch = fleet.DefaultBatch
	}
	if o.PauseTimeout == 0 {
		o.PauseTimeout = fleet.DefaultPauseTimeout
	}
	if o.ProofTimeout == 0 {
		o.ProofTimeout = fleet.DefaultProofTimeout
	}
	return o
}

// Handover hands external resources over from managed resources of one kind to those of another.
type Handover struct {
	from, to fleet.Kind
	client   *kube.Client
	options  Options
	clock    clock.PassiveClock
}

// New returns the handover from one kind to another. It sends no request.
func New(cfg *rest.Config, from, to fleet.Kind, o Options) (*Handover, error) {
	o = o.withDefaults()
	client, err := kube.NewClient(cfg, o.Limiter, clock.RealClock{})
	if err != nil {
		return nil, err
	}
	return &Handover{from: from, to: to, client: client, options: o, clock: clock.RealClock{}}, nil
}

// identity returns the identity for one of the kinds.
func (h *Handover) identity(k fleet.Kind) managed.Identity {
	return managed.Identity{Fields: h.options.Identity.Fields, Volatile: h.options.Identity.Volatile, Spec: k.SpecFields}
}

// objects are the two managed resources of a pair as they were read.
type objects struct{ from, to managed.Resource }

// readPair reads a pair.
func (h *Handover) readPair(ctx context.Context, p Pair) (objects, situation, error) {
	from, err := managed.Read(ctx, h.client, h.from.Resource, p.From)
	if err != nil {
		return objects{}, situation{}, err
	}
	to, err := managed.Read(ctx, h.client, h.to.Resource, p.To)
	if err != nil {
		return objects{}, situation{}, err
	}
	return objects{from, to}, situation{
		pair: p, from: sideOf(from, h.identity(h.from), h.options.SourceManagers), to: sideOf(to, h.identity(h.to), h.options.SourceManagers),
		chosen: len(h.options.Identity.Fields) > 0, overwrite: h.options.Overwrite,
	}, nil
}

// write writes a step in one patch at the resourceVersion that was read.
func (h *Handover) write(ctx context.Context, o objects, s situation, step step) error {
	c, err := changesFor(step, s)
	if err != nil {
		return err
	}
	kind, m := h.to, o.to
	if step.onOriginal() {
		kind, m = h.from, o.from
	}
	if err := c.Write(ctx, h.client, kind.Resource, m); err != nil {
		return fmt.Errorf("%s: %w", step, err)
	}
	return nil
}

// changesFor returns what a step writes.
func changesFor(st step, s situation) (*managed.Changes, error) {
	c := &managed.Changes{}
	switch st {
	case stepObserve:
		c.Policies = managed.ObserveOnly
		return journal{Phase: phaseObserving, Other: s.pair.From, Name: s.to.name, Policies: s.to.before(), Paused: true, Identity: s.from.identity}.
			write(c.Name(&s.pair.ExternalName).Remove(managed.AnnotationPaused))
	case stepPause:
		return journal{Phase: phasePausing, Other: s.pair.To, Name: s.from.name, Policies: s.from.policies, Paused: s.from.paused}.write(c.Set(managed.AnnotationPaused, "true"))
	case stepRelease:
		next := *s.from.journal
		next.Phase, c.Policies = phaseReleased, managed.ObserveOnly
		return next.write(c.Remove(managed.AnnotationPaused))
	case stepAdopt:
		next := *s.to.journal
		next.Phase, next.Identity, c.Policies = phaseAdopted, nil, next.Policies
		return next.write(c)
	case stepHold:
		next := *s.to.journal
		next.Phase = phaseReturning
		return next.write(c.Set(managed.AnnotationPaused, "true"))
	case stepTakeBack:
		return takeBack(c, s.from), nil
	case stepReturn:
		next := *s.to.journal
		next.Phase, next.Identity, c.Policies = phaseReturned, nil, managed.ObserveOnly
		if s.to.has(s.pair.ExternalName) {
			c.Name(next.Name)
		}
		if !s.to.deleting { // a pause would hold the deletion
			c.Set(managed.AnnotationPaused, "true")
		}
		return next.write(c)
	}
	return nil, fmt.Errorf("step %s writes nothing; this is an error of Godwit", st)
}

// takeBack restores the original as it was. Policies that another client has written stay.
func takeBack(c *managed.Changes, from side) *managed.Changes {
	if from.in(phaseReleased) && from.observes() {
		c.Policies = from.journal.Policies
	}
	switch {
	case from.journal.Paused:
		c.Set(managed.AnnotationPaused, "true")
	case from.in(phasePausing):
		c.Remove(managed.AnnotationPaused)
	}
	return c.Remove(AnnotationHandover)
}
