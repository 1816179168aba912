package storageversion

import (
	"context"
	"errors"
	"fmt"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/godwit-dev/godwit/internal/quicklist"
	"github.com/godwit-dev/godwit/internal/storageversion/decision"
)

// Surroundings are the facts that all CRDs of a cluster have in common. A plan of many CRDs reads
// them once.
type Surroundings struct {
	// now is when the leases were read. A lease must not look stale because the scan of the CRDs took long.
	now           time.Time
	servers       []decision.Server
	serversUnread string
	migrations    otherMigrations
}

// Surroundings reads the leases of the API servers and the StorageVersionMigrations, with about five
// requests.
func (m *Migrator) Surroundings(ctx context.Context) (*Surroundings, error) {
	var s Surroundings
	err := quicklist.Retry(ctx, func(ctx context.Context) (err error) {
		s.servers, s.serversUnread, err = m.servers(ctx)
		return err
	})
	if err == nil {
		s.now = m.client.Clock.Now()
		s.migrations, err = m.otherMigrations(ctx)
	}
	return &s, err
}

// CRDs lists all CRDs, page by page.
func (m *Migrator) CRDs(ctx context.Context) ([]apiextensionsv1.CustomResourceDefinition, error) {
	var crds []apiextensionsv1.CustomResourceDefinition
	err := quicklist.Retry(ctx, func(ctx context.Context) (err error) {
		crds, err = m.client.CRDs(ctx)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list customresourcedefinitions: %w", err)
	}
	return crds, nil
}

// ObserveIn reads the facts about a CRD that was listed, with one or two requests. It checks no
// permissions and makes no preflight, since an overview is about the cluster and not about a run.
// [Migrator.Observe] does both.
func (m *Migrator) ObserveIn(ctx context.Context, s *Surroundings, crd *apiextensionsv1.CustomResourceDefinition) (decision.Facts, error) {
	f := decision.Facts{CRD: crd, Now: s.now, Servers: s.servers, ServersRead: s.serversUnread == "", ServersUnread: s.serversUnread}
	s.migrations.addTo(&f)
	var err error
	if f.Checkpoint, err = m.options.Journal.Load(ctx, crd); err != nil && !errors.As(err, &f.Newer) {
		return f, fmt.Errorf("load the checkpoint of %s: %w", crd.Name, err)
	}
	return f, m.readObjectsOf(ctx, &f, true)
}
