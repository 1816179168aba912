// Package export writes manifests of managed resources for external resources that exist, so that a user can import them. A
// provider embeds it: it needs what the provider's controllers are made of, and for each kind a function that fills
// spec.forProvider.
//
// A manifest has the external name that the provider itself would write, by the same codec, and managementPolicies: [Observe],
// so that applying it changes nothing in the external system. Everything in it comes from List and Get.
//
// Before a manifest is written, it is proven: it is read back from its own bytes, its external name is parsed, the external
// resource is read by that key alone, and Diff finds nothing. An external resource that fails is not exported, and the report
// says why. The package refuses to write a manifest that it has not proven.
//
// Two exports of an unchanged external system have the same bytes. Manifests are in the order of the kinds, and within a kind in
// the order of their external names. metadata.name is made of what the author proposes, valid and unique. It does not depend
// on the order in which the external system lists.
//
// # Reading order
//
// report.go says what was exported. kind.go is what an author writes, manifest.go makes and proves a manifest, and read.go reads
// the external resources of one kind. name.go makes names, dryrun.go asks an API server, and export.go runs an export. A file uses
// only files before it.
package export
