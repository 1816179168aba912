// Package remedy says what to do about a revision that is not upgraded, by the reason:
// to who runs the command, and to who has the manager do it. The reference, the
// conditions and the command's reports all say the same.
package remedy

import (
	"github.com/godwit-dev/godwit/revision"
)

// Remedy is what to do.
type Remedy struct {
	// Command is for who runs godwit revision; empty where the message says it all.
	Command string
	// Manager is for who reads a ControllerRevisionUpgrade, as sentences.
	Manager string
	// Somebody has to do it: time alone won't.
	Somebody bool
}

// Of each reason of a revision.
var Of = map[string]Remedy{
	revision.ReasonRunning: {
		Command: "--on-running=Hold upgrades while it runs, and keeps the old revision until it stops",
		Manager: "Stop the virtual machine when it suits; or upgrade with `onRunning: Hold`, which keeps the source until then."},
	revision.ReasonReferrerNotReady: {
		Command: "wait until it is ready, and run again",
		Manager: "Wait until the holder is done. If it hangs, see its status."},
	revision.ReasonConflictingTypes: {Somebody: true,
		Command: "correct the reference that is wrong",
		Manager: "See which of the two is mistaken about the kind, and correct its reference."},
	revision.ReasonUndecodable: {Somebody: true,
		Command: "restore the revision from a backup, or have its owner refer to another one",
		Manager: "Restore the revision from a backup, or have its holders refer to the instance type as it is now."},
	revision.ReasonUnknownVersion: {Somebody: true,
		Command: "use a release of godwit that converts it, or have its referrers name a ControllerRevision at a version that KubeVirt reads",
		Manager: "Use a release of Godwit that converts it, or have its referrers name a ControllerRevision at a version that KubeVirt reads."},
	revision.ReasonLabelsMissing: {Somebody: true,
		Command: "set the labels",
		Manager: "Set the labels: name, UID and generation of the object that the data is a copy of."},
	revision.ReasonUnexpectedOwner: {Somebody: true,
		Command: "give it the controller that it belongs to",
		Manager: "Give it the controller that it belongs to, or have its referrers name a ControllerRevision of their own."},
	revision.ReasonUnconvertible: {Somebody: true,
		Command: "leave --target-version out; if the data is sound, report it",
		Manager: "Leave `targetVersion` out. If the data is sound, report it."},
	revision.ReasonLossy: {Somebody: true,
		Command: "if nothing needs these fields, --loss-policy=Allow carries them along unread",
		Manager: "Look whether the fields matter. If not, `lossPolicy: Allow` carries them along unread."},
	revision.ReasonTargetNotServed: {Somebody: true,
		Command: "leave --target-version out",
		Manager: "Leave `targetVersion` out, or choose one that the message names."},
	revision.ReasonCRDNotFound: {Somebody: true,
		Command: "install the definition",
		Manager: "Install KubeVirt's definitions, or choose another cluster."},
	revision.ReasonRetained:    {Manager: "Nothing: the source goes when its time is over. Until then it can be rolled back."},
	revision.ReasonTerminating: {Manager: "Wait. If it hangs, see which finalizer holds it."},
	revision.ReasonSourceGone:  {Somebody: true, Manager: "Restore the revision from a backup, or have its holders refer to something else."},
	revision.ReasonReplacementGone: {
		Manager: "Nothing has to be done: the source is kept. To upgrade it again, delete the upgrade, and a trigger makes another."},
	revision.ReasonReplaced: {Manager: "Delete the upgrade: the revision it was made for is gone. A trigger makes another."},
	revision.ReasonNameTaken: {Somebody: true,
		Command: "see what the other revision is; if nobody refers to it, delete it",
		Manager: "See what the other revision is. If nobody refers to it, delete it."},
	revision.ReasonChanged: {Manager: "Nothing: it is looked at again."},
	revision.ReasonDangling: {Somebody: true,
		Command: "stop the virtual machine that runs and run again, or run with --on-running=Hold; if the API server refuses the reference, do what its answer says",
		Manager: "Stop the virtual machine, or wait until what is being done with it ends: the manager looks again each minute. If the API server refuses the reference, do what its answer says."},
	revision.ReasonRolledBack: {
		Command: "a run upgrades it again, a trigger does not",
		Manager: "A trigger does not upgrade it again. To do so set `spec.rollback` of its upgrade to false; if it has none, run `godwit revision run` or make a ControllerRevisionUpgrade that names it."},
	revision.ReasonReferenced: {
		Command: "the old revision stays for as long as somebody refers to it: have them refer to the new one",
		Manager: "See `status.references`: the source stays for as long as somebody refers to it."},
	revision.ReasonRefused: {Somebody: true,
		Command: "change what the answer names, as a policy, a webhook, a quota or a missing permission, and run again",
		Manager: "Change what the answer names, as a policy, a webhook, a quota or a missing permission."},
	revision.ReasonUnanswered:   {Manager: "Nothing: it is tried again. If it lasts, see whether the API server and its webhooks are well."},
	revision.ReasonForbidden:    {Manager: "Grant the rights: `godwit rbac --controller=revisionUpgrader` prints them."},
	revision.ReasonKept:         {Manager: "Nothing: the policy keeps the source. Delete it when nobody is to go back to it."},
	revision.ReasonIrreversible: {Manager: "Nothing can be done: the source is gone. A backup has it."},
	revision.ReasonNoController: {Somebody: true,
		Command: "give it the controller that it belongs to",
		Manager: "Give it the controller that it belongs to."},
	revision.ReasonOwnerGone: {Somebody: true,
		Manager: "Have the holder that is named refer to a revision of its own before the garbage collector comes."},
	revision.ReasonNeededForRestore: {
		Command: "upgrade the snapshot's content that is named, or delete the snapshot: the revision stays until then",
		Manager: "Nothing: the revision stays until the snapshot's content that is named is upgraded or deleted."},
	revision.ReasonRestoreConflict: {Somebody: true,
		Manager: "If no object refers to the revision that is in the way, delete it. Else take another snapshot, and delete the one that is named."},
	revision.ReasonNotInFamily: {Somebody: true, Manager: "Correct the reference, or the name in the upgrade."},
}
