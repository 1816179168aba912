package decision

import (
	"slices"
	"time"

	"github.com/godwit-dev/godwit/internal/kube"
	"github.com/godwit-dev/godwit/internal/storageversion/internal/settle"
)

// Phase is one of the two things that are done to objects which outlive a
// version.
type Phase string

const (
	// StorageVersionMigrationPhase writes objects again at the storage version
	// and trims status.storedVersions.
	StorageVersionMigrationPhase Phase = "StorageVersionMigration"
	// CleanupManagedFieldsPhase removes entries of managedFields that name a
	// version which is not served any more.
	CleanupManagedFieldsPhase Phase = "CleanupManagedFields"
)

// Phases are all there are, in their order.
var Phases = []Phase{StorageVersionMigrationPhase, CleanupManagedFieldsPhase}

// Write is how an object is written again. Each of them makes the API server
// encode the object anew; they differ in what they cost and what they may meet.
type Write string

const (
	// WritePatch is an empty merge patch: the cheapest, and it can't conflict. The default. Where
	// a conversion webhook must convert managedFields, a [WriteApply] is sent instead.
	WritePatch Write = "Patch"
	// WriteStatusPatch is the same on /status, which admission webhooks of the
	// main resource are usually not asked about. The storage version must have
	// the status subresource.
	WriteStatusPatch Write = "StatusPatch"
	// WriteUpdate reads the object live and puts it back as it is. A conflict
	// means that another client wrote it in between; the object is Deferred.
	WriteUpdate Write = "Update"
	// WriteApply is a server-side apply of nothing, by the field manager
	// crdmigrator and tied to UID and resourceVersion.
	WriteApply Write = "Apply"
	// WriteStatusApply is the same on /status.
	WriteStatusApply Write = "StatusApply"
)

// Writes are all there are, the default first.
var Writes = []Write{WritePatch, WriteStatusPatch, WriteUpdate, WriteApply, WriteStatusApply}

// OrDefault is w, or [WritePatch] if w is empty.
func (w Write) OrDefault() Write {
	if w == "" {
		return WritePatch
	}
	return w
}

// Subresource is what is written to; empty for the object itself.
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

// OrApply is the apply that needs the permissions of a patch.
func (w Write) OrApply() Write {
	switch w {
	case WritePatch:
		return WriteApply
	case WriteStatusPatch:
		return WriteStatusApply
	}
	return w
}

// Verbs are the permissions that a write needs on its resource, beside list.
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
	// Settle is how long after a change of the storage version the first write
	// may be sent; 0 means DefaultSettle. A fifth of it is given to the servers'
	// watches, the rest to requests under way. Negative means no time at all;
	// each server must still have renewed its lease since the change, which
	// takes up to 10 s.
	Settle time.Duration
	// SettleFromSight counts the settle time from the first sight of every
	// server having adopted the change, instead of from the change itself. It
	// also covers a server that came back a moment ago; for processes that run
	// all the time.
	SettleFromSight bool
	// Write is how objects are written; empty means WritePatch.
	Write Write
	// SkipPhases are not run.
	SkipPhases []Phase
	// AcceptStaleLeases does not wait for API servers whose lease is stale.
	AcceptStaleLeases bool
	// AcceptDenials continues although a preflight has shown that the API server
	// refuses to write some object: a run leaves such objects at the old version,
	// and then does not trim. A run that resumes continues in any case.
	AcceptDenials bool
	// InRescue means that a rescue of the CRD makes the run, so that the rescue does not block it.
	InRescue bool
}

// Skips reports whether the phase is not run.
func (p Policy) Skips(phase Phase) bool { return slices.Contains(p.SkipPhases, phase) }

// DefaultSettle is 15 s, for a server's watch to bring the change, and 60 s, the API
// server's request timeout, for what was begun before it.
const DefaultSettle = settle.Default

// Terms are how long a run waits before it writes.
func (p Policy) Terms() settle.Terms {
	return settle.Terms{Settle: p.Settle, SettleFromSight: p.SettleFromSight, AcceptStaleLeases: p.AcceptStaleLeases}
}
