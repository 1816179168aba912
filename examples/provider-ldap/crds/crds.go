// Package crds has the CRDs of the provider, which controller-gen writes from package api/v1.
package crds

import "embed"

// Files are the manifests, one for each kind.
//
//go:embed *.yaml
var Files embed.FS
