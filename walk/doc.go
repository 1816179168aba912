// Package walk is the engine of Godwit's migrations: it reads a collection in
// bounded pages, acts on each object, adapts its pace to the API server's
// answers, and counts every outcome.
//
// [List] turns one bounded list call into a [Source] of pages: it survives an
// expired continue token, retries transient faults, and holds at most two
// pages in memory, the one being acted on and the next. [Run] hands the objects
// of a source to an [Action] and adds up the outcomes. A [Limiter] bounds how
// many requests are under way, how many writes start per second, and how many
// bytes they add to etcd in five minutes. All walks over one cluster share one
// limiter.
//
// Package walk does not decide what an answer means for an object (the action
// does), it does not persist anything (Options.OnPage may), and it does not depend
// on what is being migrated.
//
// # Reading order
//
// turn.go has the waits that end with a walk, and retry.go decides which faults are retried. list.go reads pages. limits.go,
// window.go and budget.go are the bounds, answer.go reads what an answer shows, and limiter.go paces; write.go counts bytes,
// and config.go makes clients that the limiter paces. cause.go remembers what makes attempts fail. action.go is what a caller
// brings, worker.go handles objects, and run.go feeds the workers. A file uses only files before it.
package walk
