// Package kube has what all migrations need to use an API server: a paced REST client, access reviews, the server's
// clock, and the versions of a CustomResourceDefinition. It does not depend on any migration.
//
// It never retries, and does not interpret answers: package apierror and the caller do.
//
// # Reading order
//
// crd.go, owner.go, crdpatch.go, grant.go and event.go are pure. limit.go, transport.go and clock.go wrap the transport,
// client.go sends requests, page.go lists whole objects, mapper.go finds kinds, and access.go reviews permissions. A
// file uses only files before it.
package kube
