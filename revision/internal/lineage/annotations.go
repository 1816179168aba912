package lineage

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Annotations of revisions. Package revision documents them.
const (
	FromAnnotation         = "godwit.dev/upgraded-from"
	FromUIDAnnotation      = "godwit.dev/upgraded-from-uid"
	AlsoFromPrefix         = "also-upgraded-from.godwit.dev/"
	ToAnnotation           = "godwit.dev/upgraded-to"
	UnreferencedAnnotation = "godwit.dev/unreferenced-since"
	RolledBackAnnotation   = "godwit.dev/rolled-back-at"
)

// NotedReplacement is the replacement that a source names; empty if it names none.
func NotedReplacement(r *appsv1.ControllerRevision) string { return r.Annotations[ToAnnotation] }

// UnreferencedSince is when the last reference was found gone; zero if Godwit never wrote it.
func UnreferencedSince(r *appsv1.ControllerRevision) time.Time {
	return timeOf(r, UnreferencedAnnotation)
}

// RolledBackAt is when a rollback to a source was asked for; zero if none was.
func RolledBackAt(r *appsv1.ControllerRevision) time.Time { return timeOf(r, RolledBackAnnotation) }

func timeOf(r *appsv1.ControllerRevision, annotation string) time.Time {
	t, err := time.Parse(time.RFC3339, r.Annotations[annotation])
	if err != nil {
		return time.Time{}
	}
	return t
}

// SourceOf is a replacement's first source.
func SourceOf(r *appsv1.ControllerRevision) (name string, uid types.UID) {
	return r.Annotations[FromAnnotation], types.UID(r.Annotations[FromUIDAnnotation])
}

// SourceNote is the annotation by which a replacement notes a source that is gone, and of which
// only the name is known.
func SourceNote(r *appsv1.ControllerRevision, gone string) (key, value string) {
	if first, _ := SourceOf(r); first == "" {
		return FromAnnotation, gone
	}
	sum := sha256.Sum256([]byte(gone))
	return AlsoFromPrefix + hex.EncodeToString(sum[:])[:16], gone
}

// SourcesOf are all sources of a replacement.
func SourcesOf(r *appsv1.ControllerRevision) map[types.UID]string {
	all := map[types.UID]string{}
	if name, uid := SourceOf(r); name != "" {
		all[uid] = name
	}
	for key, name := range r.Annotations {
		if uid, is := strings.CutPrefix(key, AlsoFromPrefix); is {
			all[types.UID(uid)] = name
		}
	}
	return all
}
