// Package revisionupgrade reconciles ControllerRevisionUpgrades, and the triggers that create them.
//
// An upgrade needs all references to a revision, which takes a scan of its namespace. So upgrades are advanced namespace by
// namespace: one scan serves all of them. Package revision decides and writes; the reconcilers here schedule its passes and write
// the status.
//
// # Reading order
//
// Each file uses those before it. reason.go documents the reasons, and request.go reads an upgrade. cache.go says what the
// manager's cache keeps of it. tally.go counts upgrades, and conditions.go turns results and counts into a status. Upgrades:
// schedule.go says which are due, pool.go bounds their concurrency, record.go writes their status, and upgrade.go reconciles a
// namespace. Triggers: trigger.go reconciles one by a pass of triggerpass.go, which scans (scan.go), ensures upgrades (ensure.go),
// aggregates and sets conditions. metrics.go counts what the cache has.
package revisionupgrade
