package decision

import (
	"slices"
	"time"

	"github.com/godwit-dev/godwit/internal/kube"
	"github.com/godwit-dev/godwit/internal/storageversion/internal/settle"
)

// Phase is one of the two parts of a migration.
type Phase string

const (
	// StorageVersionMigrationPhase writes objects again at the storage version
	// and trims status.storedVersions.
	StorageVersionMigrationPhase Phase = "StorageVersionMigration"
	// CleanupManagedFieldsPhase removes entries of managedFields that name a
	// version which is not served any more.
	CleanupManagedFieldsPhase Phase = "CleanupManagedFields"
)

// Phases are all phases.
var Phases = []Phase{StorageVersionMigrationPhase, CleanupManagedFieldsPhase}

// Write is the request that rewrites an object. Each of them makes the API server
// encode the object again. They differ in their cost, and in the conflicts and
// webhooks that they can meet.
type Write string

const (
	// WritePatch is an empty merge patch. It is the default, and costs least. It has the
	// resourceVersion of the list: an object that another client has written since is at the storage version, and is Skipped. If
	// a conversion webhook must convert managedFields, a [WriteApply] is sent instead.
	WritePatch Write = "Patch"
	// WriteStatusPatch is an empty merge patch of /status. Webhooks for the main
	// resource are usually not called for it. The storage version must have the
	// status subresource.
	WriteStatusPatch Write = "StatusPatch"
	// WriteUpdate reads the object live and writes it back as it is. After a
	// conflict, because another client wrote it meanwhile, the object is Deferred.
	WriteUpdate Write = "Update"
	// WriteApply is a server-side apply without fields, by the field manager
	// crdmigrator. It conflicts if the UID or the resourceVersion changed.
	WriteApply Write = "Apply"
	// WriteStatusApply is a server-side apply without fields to /status.
	WriteStatusApply Write = "StatusApply"
)

// Writes are all writes, the default first.
var Writes = []Write{WritePatch, WriteStatusPatch, WriteUpdate, WriteApply, WriteStatusApply}

// OrDefault is w, or [WritePatch] if w is empty.
func (w Write) OrDefault() Write {
	if w == "" {
		return WritePatch
	}
	return w
}

// Subresource is the subresource to which the write goes; empty for the object itself.
func (w Write) Subresource() string {
	if w == WriteStatusPatch || w == WriteStatusApply {
		return "status"
	}
	return ""
}

// onObject is the same write on the object itself.
func (w Write) onObject() Write {
	switch w {
	case WriteStatusPatch:
		return WritePatch
	case WriteStatusApply:
		return WriteApply
	}
	return w
}

// OrApply is the apply in place of a patch, which needs the same permissions; w for another write.
func (w Write) OrApply() Write {
	switch w {
	case WritePatch:
		return WriteApply
	case WriteStatusPatch:
		return WriteStatusApply
	}
	return w
}

// Verbs are the verbs that a write needs on its resource, beside list.
func (w Write) Verbs() []string {
	if w == WriteUpdate {
		return []string{"get", "update"}
	}
	return []string{"patch"}
}

// PatchesObject reports whether the write needs the same permission as a cleanup.
func (w Write) PatchesObject() bool {
	return w.Subresource() == "" && slices.Equal(w.Verbs(), []string{"patch"})
}

// Grant is the permission for one verb on one resource.
type Grant = kube.Grant

// Policy is what the user decides. The zero value is the safe default.
type Policy struct {
	// Settle is the time between a change of the storage version and the first
	// write; 0 means DefaultSettle. A fifth of it is for the servers' watches,
	// the rest for requests under way. With a negative value, a run only waits
	// until each server has renewed its lease since the change, which takes up
	// to 10 s.
	Settle time.Duration
	// SettleFromSight starts the settle time when this process first sees that
	// every server has adopted the change, instead of at the change itself. It
	// protects from a server that has just come back, and is for processes that
	// run all the time.
	SettleFromSight bool
	// Write is how objects are written; empty means WritePatch.
	Write Write
	// SkipPhases are not run.
	SkipPhases []Phase
	// AcceptStaleLeases does not wait for API servers whose lease is stale.
	AcceptStaleLeases bool
	// AcceptDenials lets a run start although the preflight shows that the API
	// server refuses to write some object. The run leaves such objects at the old
	// version, and then does not trim. A run that resumes starts in any case.
	AcceptDenials bool
	// AcceptLosses are the paths of values that the user gives up, as in spec.retentionDays: the path itself and all below it.
	// "." is every path. A run that would drop other values is blocked.
	AcceptLosses []string
	// AcceptChanges are the paths that admission may change while a run writes the objects as they are, as in metadata.labels: the
	// path itself and all below it. "." is every path. A run whose preflight finds other changes is blocked.
	AcceptChanges []string
	// InRescue means that a rescue of the CRD makes the run: the rescue does not block it, and has proven that each value is kept.
	InRescue bool
}

// Skips reports whether the phase is not run.
func (p Policy) Skips(phase Phase) bool { return slices.Contains(p.SkipPhases, phase) }

// DefaultSettle is 15 s, in which a server's watch brings the change, and 60 s, the API
// server's request timeout, for requests that began before the change.
const DefaultSettle = settle.Default

// Terms are how long a run waits before it writes.
func (p Policy) Terms() settle.Terms {
	return settle.Terms{Settle: p.Settle, SettleFromSight: p.SettleFromSight, AcceptStaleLeases: p.AcceptStaleLeases}
}
