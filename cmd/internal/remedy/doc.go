// Package remedy documents reasons: what each means, how it shows in conditions and
// events, and what to do. The reference, `godwit explain`, the conditions and the reports
// of the commands all say what stands here. It also words the fixes that the libraries make
// ([Writer]), since a library does not know the user's command line.
//
// Each package that declares reasons has a table of [ReasonDoc]. Those of the libraries
// are here, since a library prints no command; package reason collects all tables.
//
// # Reading order
//
// doc.go has the nouns. Then come the tables: crd.go, resource.go, check.go, doctor.go, rescue.go, bridge.go, migration.go, marker.go, provider.go, revision.go, externalname.go,
// fleet.go and hub.go. fix.go words a fix. A file uses only files before it.
package remedy

import "slices"

// ReasonDoc documents a reason.
type ReasonDoc struct {
	Reason string
	// Meaning is a sentence, or several.
	Meaning string
	// Remedy is what to do, as sentences in the imperative, for a reader of a status or of
	// the reference.
	Remedy string
	// UserAction means that waiting does not help.
	UserAction bool
	// Occurrences are all ways in which the reason shows in a status.
	Occurrences []Occurrence
}

// Occurrence is how a reason shows in the status of an object.
type Occurrence struct {
	// Condition that is True; empty for none.
	Condition string
	// EventType is Normal or Warning; empty where there is no event.
	EventType string
}

// Lookup finds the documentation of a reason in a table.
func Lookup(table []ReasonDoc, reason string) (ReasonDoc, bool) {
	at := slices.IndexFunc(table, func(d ReasonDoc) bool { return d.Reason == reason })
	if at < 0 {
		return ReasonDoc{Reason: reason}, false
	}
	return table[at], true
}
