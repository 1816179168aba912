// Package revisionupgrade carries out ControllerRevisionUpgrades, and the triggers
// that make them.
//
// An upgrade needs to know everybody who refers to a revision, which takes a look
// at a whole namespace. So upgrades are advanced namespace by namespace: one look
// serves all of them, and the cost is that of the objects, however many upgrades
// there are. What to do about each is package revision's; the reconcilers here
// write down what became of it.
//
// Read upgrade.go, then trigger.go with scan.go and count.go; conditions.go turns results into
// status.
package revisionupgrade
