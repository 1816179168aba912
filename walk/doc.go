// Package walk is the one engine under Godwit's migrations: it reads a
// collection in bounded pages, acts on each object, paces itself by what the
// API server answers, and keeps an exact tally.
//
// [List] turns one bounded list call into a [Source] of pages: it survives an
// expired continue token, retries transient faults, and holds at most two
// pages in memory, the one being acted on and the next. [Run] hands the objects
// of a source to an [Action] and adds up the outcomes. A [Limiter] decides how
// many requests may be under way, how many writes may start per second, and how
// many bytes they may add to etcd in five minutes; it is meant to be shared,
// since one cluster has one budget however many walks cross it.
//
// What walk refuses to do: it never decides what an answer means for an object
// (the action does), it never persists anything (the stop hook before each page
// may), and it has no opinion on what is being migrated.
//
// Read list.go, then run.go, then limiter.go and budget.go; config.go makes clients that
// the limiter paces, retry.go says which faults are worth another attempt.
package walk
