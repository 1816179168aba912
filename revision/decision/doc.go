// Package decision decides what to do with one ControllerRevision that stores an object, and does no I/O. [For] makes a
// [Decision] of [Facts] and a [Policy]; its [Item] is what plans and reports show.
//
// [Family] is what the package does not know of the stored objects: their owners, versions, conversions and labels. Package
// kubevirt has the one of KubeVirt's instance types and preferences.
//
// # Reading order
//
// crd.go, family.go, item.go and lineage.go have the nouns, itemfix.go has what a user can do, reason.go the reasons, and plan.go
// decides. A file uses only files before it.
package decision
