// Package revision upgrades objects that ControllerRevisions store to a newer version of their
// API, so that the old version can be dropped.
//
// It never clears a reference, never deletes a revision that an object refers to, and never
// replaces a stored object by the live one. A [decision.Family] knows the stored objects, such
// as that of package kubevirt.
//
// # One pass
//
// [Upgrader.Run] and [Upgrader.Advance] scan a namespace and take its upgrades through the
// stages in batches. A stage takes the upgrades whose next step is its own. Steps steer; a
// [Phase] only reports. Each write creates an object, or names the resourceVersion that it was
// decided by, so that any client continues after any interruption.
//
//	| phase          observation                            write                           next phase
//	| Pending        source at the target, labels differ    labels of the source            Succeeded
//	| Pending        source at an old version               create the replacement          Created
//	| Pending        source gone, replacement known         -                               Created
//	| Pending        a referrer runs or is not ready        -                               Converted, InUse
//	| Created        a restore needs a revision             create that revision first      Created, InUse
//	| Created        references to the old revision         repoint, the spec first         Created
//	| Created        new scan: a reference is left          clear unreferenced-since        InUse
//	| Created        new scan: no reference is left         unreferenced-since, upgraded-to Retained
//	| InUse          as Created, in the next pass
//	| Retained       a reference is back                    clear unreferenced-since        Created
//	| Retained       retention over, live reads agree       delete with UID and RV          Succeeded
//	| Succeeded      a late reference, replacement exists   repoint                         Succeeded
//	| Succeeded      a late reference that can't be written create the old revision again   InUse
//	| any            Request.Rollback                       rolled-back-at on the source    Created
//	| Created        of a rollback: references to the new   repoint to the source           RolledBack
//	| Created        of a rollback: an object runs          -                               Pending, RollbackPending
//	| RolledBack     retention of the new revision is over  delete the new revision         RolledBack
//	| RolledBack     Request.AfterRollback                  clear rolled-back-at            Created
//	| any            the API server refuses for good        -                               Failed
//
// # Reading order
//
// Package decision has the nouns, and decides what to do with one revision. Package reference has the nouns for the objects that
// refer to a revision, internal/lineage reads which revision replaces which, internal/cluster sends the requests, internal/refindex
// scans the referrers, and internal/absence reads again what a scan did not find.
//
// upgrade.go is one upgrade and its steps, upgrader.go what a caller configures, and snapshot.go a scan with its decisions.
// counterpart.go is what a restore needs, and worker.go takes a step of several upgrades. Then come the stages: create.go,
// rollback.go, repoint.go, and retain.go with delete.go, which are one stage. pass.go takes a batch through them. inventory.go,
// trial.go and run.go are what callers use. A file uses only files before it.
package revision
