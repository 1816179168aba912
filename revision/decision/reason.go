package decision

import (
	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/internal/format"
)

// Reasons are those of an item.
var Reasons godwit.Catalog

// Reasons of items.
var (
	ReasonRunning = Reasons.Declare(godwit.Reason{
		Name:    "Running",
		Meaning: "A VirtualMachine is running and uses the revision, and the policy is to wait.",
		Fix:     stopOrUpgrade(placeItem()).Or(stopOrRollBack(placeItem())),
	})
	ReasonUnreadable = Reasons.Declare(godwit.Reason{
		Name:    "Unreadable",
		Meaning: "A VirtualMachine is running and uses the revision, and the installed KubeVirt can't read it, so that KubeVirt can't stop the VirtualMachine either.",
		Fix:     godwit.Do("nothing: a run repoints its references while it runs, whatever the policy"),
	})
	ReasonReferrerNotReady = Reasons.Declare(godwit.Reason{
		Name:    "ReferrerNotReady",
		Meaning: "A referrer must not change now, for example a snapshot that is being taken.",
		Fix:     awaitReferrer(placeItem()),
	})
	ReasonConflictingTypes = Reasons.Declare(godwit.Reason{
		Name: "ConflictingTypes", UserAction: true,
		Meaning: "Referrers expect objects of different kinds in the revision.",
		Fix:     correctReference(placeItem()),
	})
	ReasonNewerFormat = format.DeclareNewer(&Reasons, "wrote the annotations of the revision, or the ControllerRevisionUpgrade",
		"The revision is left alone.", useNewerRelease(placeItem()))
	ReasonUndecodable = Reasons.Declare(godwit.Reason{
		Name: "Undecodable", UserAction: true,
		Meaning: "The data of the revision can't be read.",
		Fix:     restoreRevision(placeItem()),
	})
	ReasonUnknownVersion = Reasons.Declare(godwit.Reason{
		Name: "UnknownVersion", UserAction: true,
		Meaning: "The data is at a version that this release does not convert.",
		Fix:     convertElsewhere(placeItem()),
	})
	ReasonLabelsMissing = Reasons.Declare(godwit.Reason{
		Name: "LabelsMissing", UserAction: true,
		Meaning: "No label says of which object the data is a copy.",
		Fix:     setLabels(placeItem()),
	})
	ReasonUnexpectedOwner = Reasons.Declare(godwit.Reason{
		Name: "UnexpectedOwner", UserAction: true,
		Meaning: "The controller of the revision is of a kind that owns no such revisions.",
		Fix:     replaceOwner(placeItem()),
	})
	ReasonUnconvertible = Reasons.Declare(godwit.Reason{
		Name: "Unconvertible", UserAction: true,
		Meaning: "The data can be read, and can't be converted to the target version.",
		Fix:     reportUnconvertible(placeItem()),
	})
	ReasonLossy = Reasons.Declare(godwit.Reason{
		Name: "Lossy", UserAction: true,
		Meaning: "The target version does not have some fields of the data.",
		Fix:     allowLosses(placeItem()),
	})
	ReasonTargetNotServed = Reasons.Declare(godwit.Reason{
		Name: "TargetNotServed", UserAction: true,
		Meaning: "No data can be converted to the target version, or the API server does not serve it.",
		Fix:     chooseTarget(placeItem()),
	})
	ReasonCRDNotFound = Reasons.Declare(godwit.Reason{
		Name: "CRDNotFound", UserAction: true,
		Meaning: "The CRD of the stored object is not installed.",
		Fix:     installCRD(placeItem()),
	})
	ReasonRetained = Reasons.Declare(godwit.Reason{
		Name:    "Retained",
		Meaning: "All references name the new revision. The old one is kept for the retention.",
		Fix:     godwit.Do("nothing: the old revision is deleted after the retention. Until then the upgrade can be rolled back"),
	})
	ReasonTerminating = Reasons.Declare(godwit.Reason{
		Name:    "Terminating",
		Meaning: "The revision is being deleted.",
		Fix:     godwit.Do("wait. If it hangs, see which finalizer holds it"),
	})
	ReasonSourceGone = Reasons.Declare(godwit.Reason{
		Name: "SourceGone", UserAction: true,
		Meaning: "References name the revision, and it does not exist.",
		Fix:     restoreOrRepoint(placeItem()),
	})
	ReasonUnreferenced = Reasons.Declare(godwit.Reason{
		Name: "Unreferenced", UserAction: true,
		Meaning: "No object refers to the revision, and it is stored at an old version, so that the version can't be dropped.",
		Fix:     deleteUnreferenced(placeItem()),
	})
	ReasonUnconfirmed = Reasons.Declare(godwit.Reason{
		Name:    "Unconfirmed",
		Meaning: "References name the revision and a scan did not find it. The scan did not read again whether it is missing, since it reads a bounded number of missing revisions again. The scan is incomplete.",
		Fix:     scanAlone(placeItem()),
	})
	ReasonReplacementGone = Reasons.Declare(godwit.Reason{
		Name:    "ReplacementGone",
		Meaning: "The new revision does not exist any more.",
		Fix: godwit.Do("if no object refers to it or to the new revision, delete the old one, unless the restore of a backup needs it").Or(
			godwit.Do("to upgrade it again, delete the upgrade, and a trigger makes another")),
	})
	ReasonReplaced = Reasons.Declare(godwit.Reason{
		Name:    "Replaced",
		Meaning: "Another revision has the name now.",
		Fix:     godwit.Do("delete the upgrade: the revision it was made for is gone. A trigger makes another"),
	})
	ReasonNameTaken = Reasons.Declare(godwit.Reason{
		Name: "NameTaken", UserAction: true,
		Meaning: "A revision that holds something else has the name of the new revision.",
		Fix:     deleteOther(placeItem()),
	})
	ReasonChanged = Reasons.Declare(godwit.Reason{
		Name:    "Changed",
		Meaning: "Another client changed an object in between.",
		Fix:     godwit.Do("nothing: the manager checks again"),
	})
	ReasonDangling = Reasons.Declare(godwit.Reason{
		Name: "DanglingReference", UserAction: true,
		Meaning: "A reference names a revision that does not exist, and could not be repointed.",
		Fix:     repointDangling(placeItem()).Or(godwit.Do("wait until the operation on the virtual machine ends: the manager checks again each minute")),
	})
	ReasonReferenced = Reasons.Declare(godwit.Reason{
		Name:    "Referenced",
		Meaning: "A reference names the old revision.",
		Fix:     nameReplacement(placeItem()).Or(stopOnce()),
	})
	ReasonRefused = Reasons.Declare(godwit.Reason{
		Name: "Refused", UserAction: true,
		Meaning: "The API server refuses a write and would refuse it again: an admission policy or a webhook denies it, or a permission is missing.",
		Fix:     changeRefusal(placeItem()),
	})
	ReasonUnanswered = Reasons.Declare(godwit.Reason{
		Name:    "Unanswered",
		Meaning: "The API server did not answer.",
		Fix:     godwit.Do("nothing: the manager retries. If it lasts, see whether the API server and its webhooks answer"),
	})
	ReasonForbidden = Reasons.Declare(godwit.Reason{
		Name:    "Forbidden",
		Meaning: "A permission is missing, without which the references to a revision are not known.",
		Fix:     godwit.Do("grant the permissions: `godwit rbac --controller=revisionUpgrader` prints them"),
	})
	ReasonKept = Reasons.Declare(godwit.Reason{
		Name:    "Kept",
		Meaning: "The policy is to keep old revisions.",
		Fix:     godwit.Do("nothing: the policy keeps the old revision. Delete it when no rollback will be needed"),
	})
	ReasonIrreversible = Reasons.Declare(godwit.Reason{
		Name:    "Irreversible",
		Meaning: "The old revision is deleted, so that nothing can be rolled back.",
		Fix:     godwit.Do("restore the old revision from a backup"),
	})
	ReasonUnreadableAfterwards = Reasons.Declare(godwit.Reason{
		Name: "UnreadableAfterwards", UserAction: true,
		Meaning: "The installed KubeVirt can't read the old revision: after a rollback to it no VirtualMachine that names it would start or stop.",
		Fix:     keepReplacement(placeItem()),
	})
	ReasonRolledBack = Reasons.Declare(godwit.Reason{
		Name:    "RolledBack",
		Meaning: "A rollback repointed all references to the revision. No trigger upgrades it again.",
		Fix:     upgradeAgain(placeItem()).Or(godwit.Do("if a ControllerRevisionUpgrade names it, set its `spec.rollback` to false; if there is none, create one")),
	})
	ReasonRateLimited = Reasons.Declare(godwit.Reason{
		Name:    "RateLimited",
		Meaning: "The old revision is due, and the rate limit let no deletion through in time. A deletion is sent within seconds of the scan that shows that nothing refers to it.",
		Fix:     raiseRate(placeItem()).Or(godwit.Do("nothing: a later pass of the manager deletes it; if it lasts, raise `limits.maxWritesPerSecond`")),
	})
	ReasonRollbackPending = Reasons.Declare(godwit.Reason{
		Name: "RollbackPending", UserAction: true,
		Meaning: "A rollback was begun, and references still name the new revision.",
		Fix:     rollBackAgain(placeItem()),
	})
	ReasonNoController = Reasons.Declare(godwit.Reason{
		Name: "NoController", UserAction: true,
		Meaning: "The revision has no controller, so that a new one would have none.",
		Fix:     setOwner(placeItem()),
	})
	ReasonOwnerGone = Reasons.Declare(godwit.Reason{
		Name: "OwnerGone", UserAction: true,
		Meaning: "The controller of the revision is deleted. Both revisions will be garbage-collected.",
		Fix:     godwit.Do("have the referrer that is named use a revision of its own before the garbage collector deletes this one"),
	})
	ReasonNotInFamily = Reasons.Declare(godwit.Reason{
		Name: "NotInFamily", UserAction: true,
		Meaning: "The revision holds no object of the family.",
		Fix:     godwit.Do("correct the reference, or the name in the upgrade"),
	})
	ReasonNeededForRestore = Reasons.Declare(godwit.Reason{
		Name:    "NeededForRestore",
		Meaning: "A restore needs the revision, by a name that it computes.",
		Fix:     endSnapshot(placeItem()),
	})
	ReasonRestoreConflict = Reasons.Declare(godwit.Reason{
		Name: "RestoreConflict", UserAction: true,
		Meaning: "A restore would look up a revision that can't be created: another one has its name, or no API server accepts the name.",
		Fix:     godwit.Do("if no object refers to the revision that is in the way, delete it. Else take another snapshot, and delete the one that is named"),
	})
)

// fixes are of the reasons of which a report says what to do. A message says so for the others, or waiting is enough.
var fixes = map[*godwit.Reason]func(Item) godwit.Fix{
	ReasonRunning:          stopOrUpgrade,
	ReasonReferrerNotReady: awaitReferrer,
	ReasonDangling:         repointDangling,
	ReasonNewerFormat:      useNewerRelease,
	ReasonConflictingTypes: correctReference,
	ReasonUndecodable:      restoreRevision,
	ReasonSourceGone:       restoreOrRepoint,
	ReasonUnreferenced:     deleteUnreferenced,
	ReasonUnknownVersion:   convertElsewhere,
	ReasonUnexpectedOwner:  replaceOwner,
	ReasonNoController:     setOwner,
	ReasonLabelsMissing:    setLabels,
	ReasonUnconvertible:    reportUnconvertible,
	ReasonTargetNotServed:  chooseTarget,
	ReasonLossy:            allowLosses,
	ReasonCRDNotFound:      installCRD,
	ReasonUnconfirmed:      scanAlone,
	ReasonRateLimited:      raiseRate,
	ReasonNameTaken:        deleteOther,
	ReasonReferenced:       nameReplacement,
	ReasonRefused:          changeRefusal,
	ReasonRolledBack:       upgradeAgain,

	ReasonUnreadableAfterwards: keepReplacement,
	ReasonRollbackPending:      rollBackAgain,
	ReasonNeededForRestore:     endSnapshot,
}

// Fix is what a user can do about the revision. It is nil where the message says so already, and
// where waiting is enough.
func (i Item) Fix() godwit.Fix {
	fix := fixes[i.Reason]
	if fix == nil {
		return nil
	}
	if i.candidates == nil {
		i.candidates = &candidates{}
	}
	return fix(i)
}

// RollbackFix is the fix of a revision that a rollback left for now. [Item.Fix] would upgrade it
// again.
func (i Item) RollbackFix() godwit.Fix {
	if i.Reason != ReasonRunning {
		return i.Fix()
	}
	return stopOrRollBack(i)
}
