package revision

import "k8s.io/apimachinery/pkg/types"

// Request asks for one upgrade, or for its rollback.
type Request struct {
	Name string
	// UID of the revision; empty means whichever revision has the name.
	UID types.UID
	// Policy; nil means the upgrader's.
	Policy *Policy
	// Rollback repoints all references to the source again.
	Rollback bool
	// AfterRollback upgrades a source that was rolled back. Otherwise it is left alone.
	AfterRollback bool
}

// Phase is how far one upgrade is. It is reported to users; no stage decides by it.
type Phase string

const (
	// Pending means that nothing is written: no pass has begun with the upgrade, only labels
	// are to be written, or a rollback waits.
	Pending Phase = "Pending"
	// Analyzing means that a pass has begun, and could not read what there is.
	Analyzing Phase = "Analyzing"
	// Converted means that the data can be converted and nothing is written. The upgrade waits
	// for a referrer, or the API server did not accept the replacement.
	Converted Phase = "Converted"
	// Created means that the replacement exists, and that references were left to repoint when
	// the pass ended.
	Created Phase = "Created"
	// Repointed means that no reference to the old revision is left, and that the time of this
	// could not be written to it.
	Repointed Phase = "Repointed"
	// Held means that the replacement exists, and that the source is still referred to.
	Held Phase = "Held"
	// Retained means that no object refers to the source, which is kept for the retention.
	Retained Phase = "Retained"
	// Succeeded means that the source is deleted, or was at the target version.
	Succeeded Phase = "Succeeded"
	// Skipped means that there is nothing to upgrade.
	Skipped Phase = "Skipped"
	// Failed means that user action is required.
	Failed Phase = "Failed"
	// RolledBack means that all references name the source again.
	RolledBack Phase = "RolledBack"
)

// Ended reports whether a phase leaves nothing to do, neither to Godwit nor to the user.
func (p Phase) Ended() bool { return p == Succeeded || p == Skipped || p == RolledBack }

// Result is how far one upgrade is, and why not further.
type Result struct {
	Item
	Phase Phase `json:"phase"`
	// ResourceVersion and Hash are the source's, as it was found before this pass wrote
	// anything; empty where it was not found.
	ResourceVersion string `json:"resourceVersion,omitempty"`
	// Hash of the source's data, as [Hash] makes it.
	Hash            string    `json:"hash,omitempty"`
	ReplacementUID  types.UID `json:"replacementUID,omitempty"`
	ReplacementHash string    `json:"replacementHash,omitempty"`
}
