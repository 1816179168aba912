package decision

import (
	appsv1 "k8s.io/api/apps/v1"

	"github.com/godwit-dev/godwit/revision/internal/lineage"
)

// Annotations are the memory of an upgrade. They are on the revisions, where every process that
// continues it reads them, the manager and the command line alike.
const (
	// FromAnnotation and FromUIDAnnotation name, on a replacement, its source.
	FromAnnotation    = lineage.FromAnnotation
	FromUIDAnnotation = lineage.FromUIDAnnotation
	// AlsoFromPrefix is that of annotations that name, on a replacement of several, its
	// other sources; the rest of the key is a source's UID.
	AlsoFromPrefix = lineage.AlsoFromPrefix
	// ToAnnotation names, on a source that no object refers to any more, its replacement.
	ToAnnotation = lineage.ToAnnotation
	// UnreferencedAnnotation is since when no object does, in RFC 3339. After a rollback it is
	// on the replacement.
	UnreferencedAnnotation = lineage.UnreferencedAnnotation
	// RolledBackAnnotation is, on a source, when a rollback to it was asked for, in RFC
	// 3339. ToAnnotation then names the revision that references were repointed from.
	RolledBackAnnotation = lineage.RolledBackAnnotation
)

// WithSuffix is a name or a label that ends in a dash and a tail, and has most characters
// at the most. What is cut for it does not end in a separator, which no API server
// accepts before another one.
func WithSuffix(text, tail string, most int) string { return lineage.WithSuffix(text, tail, most) }

// Hash tells what a revision stores from what any other stores: the SHA-256, in hex, of
// its data as JSON without white space, the keys of each object in order. A hash of the bytes
// would prove nothing, since clients and servers write the same data in other bytes. This is
// the same for what kubectl reads, for a manifest in a backup, and for what the API server
// stores:
//
//	kubectl get controllerrevision NAME -o json | jq -jcS .data | sha256sum
//
// It is empty where the data is no JSON.
func Hash(r *appsv1.ControllerRevision) string { return lineage.Hash(r) }
