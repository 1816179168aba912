package decision

import (
	"cmp"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/internal/storageversion/values"
)

// RoundTrips are what dry runs have shown that wrote objects through their old versions: the API server encodes such an object
// at the storage version and decodes it again, so that its answer lacks the values that a rewrite drops.
type RoundTrips struct {
	// Objects is the number of objects that were tried. All means that there are no others.
	Objects int64
	All     bool
	// Losses are the values that the answers lacked. If More is true, there are further paths.
	Losses []values.Loss
	More   bool
	// Failed is the number of objects of which nothing is known, and Failures has the first of them.
	Failed   int64
	Failures []godwit.Failure
}

// Loses reports whether an object loses a value. r may be nil.
func (r *RoundTrips) Loses() bool { return r != nil && (len(r.Losses) > 0 || r.More) }

// Merge joins the round trips of the same objects through two versions. Either may be nil.
func (r *RoundTrips) Merge(other *RoundTrips) *RoundTrips {
	if r == nil || other == nil {
		return cmp.Or(r, other)
	}
	all := &RoundTrips{
		Objects: max(r.Objects, other.Objects), All: r.All && other.All, Losses: values.Merge(r.Losses, other.Losses), More: r.More || other.More,
		Failed: max(r.Failed, other.Failed), Failures: r.Failures,
	}
	if other.Failed > r.Failed {
		all.Failures = other.Failures
	}
	return all
}
