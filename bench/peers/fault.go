package main

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/godwit-dev/godwit/bench/internal/frame"
	"github.com/godwit-dev/godwit/bench/internal/result"
	"github.com/godwit-dev/godwit/bench/internal/widget"
)

// subject is one contestant under a fault, with its own resource.
type subject struct {
	contestant
	resource  *widget.Resource
	migration migration
	residue   result.Residue
	failed    error
}

// subjects defines and fills a resource for each contestant.
func (b *bench) subjects(ctx context.Context, fault string, contestants []contestant) ([]*subject, error) {
	names := make([]string, len(contestants))
	for i, c := range contestants {
		names[i] = fault + "-" + c.name()
	}
	resources, err := widget.Define(ctx, b.cluster, names...)
	if err != nil {
		return nil, err
	}
	all := make([]*subject, len(contestants))
	for i, c := range contestants {
		if err := resources[i].Fill(ctx, b.faultObjects); err != nil {
			return nil, err
		}
		all[i] = &subject{contestant: c, resource: resources[i], residue: result.Residue{Fault: fault, Contestant: c.name(), Objects: b.faultObjects}}
	}
	return all, nil
}

// wait waits for a contestant, and returns its report. That the contestant reaches the limit is not a failure.
func (s *subject) wait(ctx context.Context, limit time.Duration) string {
	limited, cancel := context.WithTimeoutCause(ctx, limit, errLimit)
	defer cancel()
	claim, err := s.migration.wait(limited)
	switch {
	case err != nil && limited.Err() != nil:
		return strings.TrimPrefix(claim+", not done after "+limit.String(), ", ")
	case err != nil:
		return err.Error()
	}
	return claim
}

// readState reads what etcd and the CRD have, beside the report of the contestant.
func (s *subject) readState(ctx context.Context, claim string) (result.State, error) {
	old, err := s.resource.Old(ctx)
	if err != nil {
		return result.State{}, err
	}
	stored, err := s.resource.StoredVersions(ctx)
	if err != nil {
		return result.State{}, err
	}
	return result.State{
		Old: old, StoredVersions: stored, Claim: claim,
		Loss: old > 0 && slices.Equal(stored, []string{s.resource.Storage()}),
	}, nil
}

// each calls do for each subject that has not failed. If do returns an error, that subject has failed.
func each(ctx context.Context, all []*subject, do func(*subject) error) error {
	for _, s := range all {
		if s.failed == nil {
			s.failed = do(s)
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	return nil
}

// together is like each, for all subjects at the same time.
func together(ctx context.Context, all []*subject, do func(*subject) error) error {
	var done sync.WaitGroup
	for _, s := range all {
		if s.failed == nil {
			done.Go(func() { s.failed = do(s) })
		}
	}
	done.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// finish ends the processes, and keeps the result.
func (b *bench) finish(ctx context.Context, all []*subject) {
	for _, s := range all {
		if s.migration != nil {
			if err := s.migration.close(ctx); err != nil && s.failed == nil {
				s.failed = err
			}
		}
		if s.failed != nil {
			s.residue.Error = s.failed.Error()
			frame.Logf("%s: %-13s failed: %s", s.residue.Fault, s.name(), s.residue.Error)
		} else {
			frame.Logf("%s: %-13s during: %s (%s); after: %s (%s)", s.residue.Fault, s.name(),
				s.residue.During, s.residue.During.Claim, s.residue.After, s.residue.After.Claim)
		}
		b.current.Faults = append(b.current.Faults, s.residue)
	}
}
