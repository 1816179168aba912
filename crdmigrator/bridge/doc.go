// Package bridge makes the steps from the live CRDs of a cluster to those of a release that skips the releases in between.
//
// The API server refuses a CRD without a version at which objects may be stored. Releases in between would have served both
// versions, stored the new one, and stopped serving the old one. [For] makes these steps from two CRDs, the live one and the
// next one: [Serve], [Store], [Migrate], [Unserve], [Remove]. Each step has the whole spec to apply, without spec.conversion,
// which stays as its owner writes it. Only [Unconvert] writes it, as the last step. Then the API server accepts the next CRD,
// which For checks with package releasecheck before it returns.
//
// It refuses steps that would lose fields. A rewrite converts each object from its version to the target. Either the
// conversion webhook of the live release converts, and then its controller has to run until the migration has ended. Or no
// webhook converts, and then the target has to have every field of the old version. Otherwise the bridge is Blocked, and its fix
// says between which versions the controller of another release has to convert.
//
// For is pure: it sends no request, and writes no file.
//
// # Reading order
//
// fix.go has what a user can do, and bridge.go the types and the reasons. conversion.go decides who converts, and what would be
// lost. step.go makes the specs, and for.go decides. A file uses only files before it.
package bridge
