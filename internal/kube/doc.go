// Package kube is what every migration needs of an API server: a paced REST client, access
// reviews, the server's clock, and the versions of a CustomResourceDefinition. It does not
// depend on any migration.
//
// It never retries, and does not decide what an answer means: package apierror and the caller
// do.
//
// Read client.go, transport.go, clock.go and access.go, which send requests, then grant.go,
// crd.go and event.go, which are pure.
package kube
