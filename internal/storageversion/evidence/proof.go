package evidence

import (
	"github.com/godwit-dev/godwit/internal/storageversion/values"
)

// ProvenBy is how a run has proven that its rewrite keeps each value of the objects.
type ProvenBy string

const (
	// BySchemas means that the schema of the storage version keeps each field of the old versions, so that no object can lose a
	// value.
	BySchemas ProvenBy = "Schemas"
	// ByRoundTrips means that a dry run wrote each object through the old versions, and that the answers had each value.
	ByRoundTrips ProvenBy = "RoundTrips"
	// ByConsent means that nothing is proven, because an old version is not served: the user gave the values up.
	ByConsent ProvenBy = "Consent"
)

// Proof says how a run has proven, before its first write, that the rewrite keeps each value of the objects.
type Proof struct {
	By ProvenBy `json:"provenBy"`
	// Generation is that of the CRD whose schemas were compared.
	Generation int64 `json:"generation"`
	// Objects is the number of objects that a dry run wrote.
	Objects int64 `json:"objects,omitempty"`
	// Accepted are the values that the objects lose with the user's consent.
	Accepted []values.Loss `json:"accepted,omitempty"`
	// Unproven are the old versions of which no client sees the objects. The user gave their values up.
	Unproven []string `json:"unproven,omitempty"`
}

// Holds reports whether the proof is about a generation of the CRD, and the user gives up, by paths, all that it gives up.
func (p *Proof) Holds(generation int64, paths []string) bool {
	if p == nil || p.Generation != generation {
		return false
	}
	for _, loss := range p.Accepted {
		if !values.Covers(paths, loss.Path) {
			return false
		}
	}
	return len(p.Unproven) == 0 || values.Covers(paths, values.EveryPath)
}

// short returns the proof without the names of objects, for which the annotation of a CRD has no room.
func (p *Proof) short() *Proof {
	if p == nil || len(p.Accepted) == 0 {
		return p
	}
	short := *p
	short.Accepted = nil
	for _, loss := range p.Accepted {
		loss.Examples = nil
		short.Accepted = append(short.Accepted, loss)
	}
	return &short
}
