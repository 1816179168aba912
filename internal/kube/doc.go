// Package kube is what every migration needs of an API server, and it knows none of the
// migrations: a paced REST client, access reviews, the server's clock, and what a
// CustomResourceDefinition says about its versions.
//
// It never retries and never decides what an answer means: package apierror and the caller
// do.
//
// Read client.go, transport.go, clock.go and access.go, which send requests, then grant.go,
// crd.go and event.go, which are pure.
package kube
