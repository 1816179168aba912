package crdmigration

import (
	"context"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-dev/godwit/api/v1alpha1"
	"github.com/godwit-dev/godwit/internal/format"
	"github.com/godwit-dev/godwit/internal/storageversion/evidence"
)

// journal keeps the checkpoint in the status: a GitOps tool could remove an annotation of the
// CRD, and every watcher of CRDs would get an event for it.
type journal struct {
	migration *migration
	reader    client.Reader
}

// Load reads from the API server: a cache may be older than the checkpoint of the last run.
func (j journal) Load(ctx context.Context, _ *apiextensionsv1.CustomResourceDefinition) (evidence.Checkpoint, error) {
	m := &v1alpha1.CRDMigration{}
	if err := j.reader.Get(ctx, client.ObjectKey{Name: j.migration.name}, m); err != nil {
		return evidence.Checkpoint{}, client.IgnoreNotFound(err)
	}
	if err := format.CheckObject("crdmigration "+m.Name, m); err != nil {
		return evidence.Checkpoint{}, err
	}
	if m.Status.Checkpoint == nil {
		return evidence.Checkpoint{}, nil
	}
	err := format.CheckNumber("status.checkpoint of crdmigration "+m.Name, m.Status.Checkpoint.Format)
	return checkpointOf(m.Status.Checkpoint), err
}

// checkpointOf reads a checkpoint of the current format.
func checkpointOf(c *v1alpha1.Checkpoint) evidence.Checkpoint {
	return evidence.Checkpoint{
		CRDUID: c.CRDUID, Generation: c.Generation, StorageVersion: c.StorageVersion, ResourceVersion: c.ResourceVersion,
		Cursor: c.Cursor, Settled: c.Settled, AcceptedStaleLeases: c.AcceptedStaleLeases, Restarts: c.Restarts,
		Proof: proofOf(c.Values),
	}
}

// stored returns the form of a checkpoint in the status.
func stored(c evidence.Checkpoint) *v1alpha1.Checkpoint {
	return &v1alpha1.Checkpoint{
		Format: format.Current, CRDUID: c.CRDUID, Generation: c.Generation, StorageVersion: c.StorageVersion, ResourceVersion: c.ResourceVersion,
		Cursor: c.Cursor, Settled: c.Settled, AcceptedStaleLeases: c.AcceptedStaleLeases, Restarts: c.Restarts,
		Values: storedProof(c.Proof),
	}
}

// Save leaves a new cursor to the next write of progress: a lost cursor only costs requests. Everything else in a
// checkpoint is evidence, and must be saved before the first write that relies on it.
func (j journal) Save(ctx context.Context, _ string, c evidence.Checkpoint) error {
	if onlyCursorDiffers(j.migration.status.Known().Status.Checkpoint, c) {
		j.migration.status.Note(func(m *v1alpha1.CRDMigration) { m.Status.Checkpoint = stored(c) })
		return nil
	}
	return j.migration.status.Write(ctx, func(m *v1alpha1.CRDMigration) { saveCheckpoint(m, c) })
}

// saveCheckpoint writes a checkpoint to the status, or removes it. The objects of a checkpoint with another resourceVersion are all
// to be written again, so that progress begins again too.
func saveCheckpoint(m *v1alpha1.CRDMigration, c evidence.Checkpoint) {
	before := m.Status.Checkpoint
	m.Status.Checkpoint = nil
	if c.IsZero() {
		return
	}
	m.Status.Checkpoint = stored(c)
	if c.ResourceVersion != "" && (before == nil || before.ResourceVersion != c.ResourceVersion) {
		m.Status.Progress, m.Status.EstimatedCompletion = "", nil
	}
	migrating().apply(m)
}

// onlyCursorDiffers also ignores restarts: the API server cuts their times to the second, and a new restart changes the
// resourceVersion too.
func onlyCursorDiffers(saved *v1alpha1.Checkpoint, c evidence.Checkpoint) bool {
	if saved == nil {
		return false
	}
	known := checkpointOf(saved)
	known.Cursor, known.Restarts = c.Cursor, c.Restarts
	return equality.Semantic.DeepEqual(known, c)
}
