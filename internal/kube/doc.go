// Package kube is what every migration needs of an API server: a paced REST client, access
// reviews, the server's clock, and the versions of a CustomResourceDefinition. It does not
// depend on any migration.
//
// It never retries, and does not decide what an answer means: package apierror and the caller
// do.
//
// # Reading order
//
// crd.go, crdpatch.go, grant.go and event.go are pure. limit.go, transport.go and clock.go are what requests pass, client.go
// sends them, page.go lists whole objects, mapper.go finds kinds, and access.go reviews permissions. A file uses only files before it.
package kube
