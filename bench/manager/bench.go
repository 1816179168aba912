package main

import (
	"context"
	"errors"
	"time"

	"github.com/godwit-dev/godwit/bench/internal/account"
	"github.com/godwit-dev/godwit/bench/internal/frame"
	"github.com/godwit-dev/godwit/bench/internal/proc"
	"github.com/godwit-dev/godwit/bench/internal/widget"
)

// bench has the parts that the three measurements share.
type bench struct {
	CRDs          int    `json:"crds"`
	ObjectsPerCRD int    `json:"objectsPerCRD"`
	Limits        string `json:"limits"` // of the manager, but for the wall time; {}: its defaults

	turns    int           // of the manager's wall time
	rounds   int           // beside a second client
	window   time.Duration // of a round, both idle and loaded
	idle     time.Duration
	idleCRDs int
	rate     float64 // the expected rate of a manager with the limits

	frame      *frame.Bench
	cluster    *frame.Cluster
	migrations *migrations
	resources  []*widget.Resource
}

// reading is the cost of a manager so far.
type reading struct {
	time     time.Time
	requests account.Count
	usage    proc.Usage
}

func (b *bench) read(ctx context.Context, p *frame.Process) (r reading, err error) {
	if r.requests, err = b.cluster.Requests.Read(ctx); err != nil {
		return r, err
	}
	r.usage, err = p.Usage()
	r.time = time.Now()
	return r, err
}

// flip makes the other version the storage version of every resource.
func flip(ctx context.Context, resources []*widget.Resource) error {
	for _, r := range resources {
		if err := r.Flip(ctx); err != nil {
			return err
		}
	}
	return nil
}

// mustBeMigrated fails unless all objects of all resources are migrated, so that only completed work counts.
func mustBeMigrated(ctx context.Context, resources []*widget.Resource) error {
	for _, r := range resources {
		if err := errors.Join(r.MustBeMigrated(ctx), r.MustBeTrimmed(ctx)); err != nil {
			return err
		}
	}
	return nil
}
