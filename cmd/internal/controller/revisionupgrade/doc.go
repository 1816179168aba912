// Package revisionupgrade reconciles ControllerRevisionUpgrades, and the triggers that create them.
//
// An upgrade needs all references to a revision, which takes a scan of its namespace. So upgrades are advanced namespace by
// namespace: one scan serves all of them. Package revision decides and writes; the reconcilers here schedule its passes and write
// the status.
//
// # Reading order
//
// reason.go documents the reasons, and request.go reads an upgrade. cache.go reduces upgrades in the manager's cache,
// and metrics.go counts those in the cache. schedule.go decides which upgrades are due, and pool.go bounds their
// concurrency. reconcilers.go has the two reconcilers. conditions.go converts results and counts to a status,
// occurrence.go documents how a reason shows in it, and tally.go counts upgrades. For upgrades, record.go writes the
// status, and upgrade.go reconciles a namespace. For triggers, scan.go finds revisions, ensure.go creates upgrades,
// triggerpass.go is one pass, and trigger.go reconciles. A file uses only files before it.
package revisionupgrade
