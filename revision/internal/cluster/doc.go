// Package cluster sends every request of package revision: lists of referrers and of
// ControllerRevisions, live reads, and the writes of both. It decides nothing, and it never
// retries. An API server answers 403 to every request for a moment after its start; such an
// error is one that walk retries.
//
// Read client.go, then revision.go, why a ControllerRevision is read and written in protobuf,
// and discovery.go, at which versions referrers are served. list.go decodes pages.
package cluster
