// Package export writes manifests of managed resources for existing external resources, so that a user can import them.
// A provider embeds it: the package needs the same types as the provider's controllers, and for each kind a function
// that fills spec.forProvider.
//
// A manifest has the external name in the provider's own form, and managementPolicies: [Observe], so that applying it
// changes nothing in the external system. Everything in it comes from List and Get.
//
// The package proves each manifest before it writes it: it parses the bytes of the manifest, parses the external name,
// reads the external resource by that key alone, and checks that Diff finds nothing. If this fails, the resource is not
// exported, and the report says why.
//
// Two exports of an unchanged external system have the same bytes. Manifests are in the order of the kinds, and within a kind in
// the order of their external names. metadata.name is made of what the author proposes, valid and unique. It does not depend
// on the order in which the external system lists.
//
// # Reading order
//
// report.go has the report. kind.go has the types of an author, manifest.go builds and proves a manifest, and read.go
// reads the external resources of one kind. name.go builds names, dryrun.go checks manifests with an API server, and
// export.go runs an export. A file uses only files before it.
package export
