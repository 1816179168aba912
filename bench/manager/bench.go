package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/client-go/rest"

	"github.com/godwit-dev/godwit/api/v1alpha1"
	"github.com/godwit-dev/godwit/bench/internal/account"
	"github.com/godwit-dev/godwit/bench/internal/widget"
	"github.com/godwit-dev/godwit/test/controlplane"
)

// settings are what the flags say.
type settings struct {
	binary   string
	crds     int
	objects  int           // of each
	turns    int           // of the manager's wall time
	rounds   int           // of neighbours
	window   time.Duration // of a neighbour's round, idle and loaded
	idle     time.Duration
	idleCRDs int
	limits   string
	rate     float64 // that is expected of a manager with these limits
}

// bench is what the three measurements share.
type bench struct {
	settings
	plane      *controlplane.ControlPlane
	user       *rest.Config // of the manager and of the commands
	requests   *account.Requests
	migrations *migrations
	resources  []*widget.Resource
	dir        string // for files of the manager
}

func names(prefix string, n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("%s%03d", prefix, i)
	}
	return all
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

// mustBeMigrated keeps the measurement honest: what is timed has to be work.
func mustBeMigrated(ctx context.Context, resources []*widget.Resource) error {
	for _, r := range resources {
		if err := errors.Join(r.MustBeMigrated(ctx), r.MustBeTrimmed(ctx)); err != nil {
			return err
		}
	}
	return nil
}

// migrations follows what the manager writes down, by one watch that is there all
// the time: polling would be a load of its own.
type migrations struct {
	mu      sync.Mutex
	known   map[string]*v1alpha1.CRDMigration
	changed chan struct{} // closed at the next change
}

const mib = 1 << 20
