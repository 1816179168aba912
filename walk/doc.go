// Package walk is the engine of Godwit's migrations: it reads a collection in
// bounded pages, acts on each object, adapts its pace to the API server's
// answers, and counts every outcome.
//
// [List] turns a paged list call into a [Source] of pages: it continues after an expired continue token, retries
// transient errors, and holds at most two pages in memory, the current one and the next. [Run] passes the objects of a
// source to an [Action] and counts the outcomes. A [Limiter] bounds the requests in flight, the writes per second, and
// the bytes that they add to etcd in five minutes. All walks over one cluster share one limiter.
//
// Package walk does not decide what an answer means for an object (the action does), does not persist anything
// (Options.OnPage may), and does not depend on the kind of migration.
//
// # Reading order
//
// turn.go has the waits that end with a walk, and retry.go decides which errors are retried. list.go reads pages.
// limits.go, window.go and budget.go are the bounds, answer.go evaluates answers, and limiter.go paces requests;
// write.go counts bytes, and config.go configures clients for the limiter. cause.go records the causes of failed
// attempts. action.go has the caller's options, worker.go handles objects, and run.go feeds the workers. A file uses
// only files before it.
package walk
