package decision

import (
	"fmt"
	"slices"
	"strings"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/internal/format"
	"github.com/godwit-dev/godwit/revision/reference"
)

// Each fix is a function of an item: [Item.Fix] calls it with the item that has the reason, and the reason with placeItem, so that
// a report and an explanation of the reason say the same.

// placeItem has placeholders for the names in a fix.
func placeItem() Item {
	return Item{
		Namespace: "NAMESPACE", Name: "REVISION",
		References: []ReferenceStatus{{Kind: "VirtualMachine", Namespace: "NAMESPACE", Name: "NAME", Path: "/spec/PATH", State: ReferenceOld}},
		candidates: &candidates{owners: []reference.Owner{{Kind: "KIND", Name: "OWNER"}}, labels: []string{"LABEL/VALUE"}, targets: []string{"VERSION"}, replacement: "OTHER"},
	}
}

// hold upgrades while objects use a revision.
func (i Item) hold() godwit.Action {
	return godwit.UpgradeRevisions{Namespace: i.Namespace, OnRunning: string(Hold)}
}

func stopOrUpgrade(i Item) godwit.Fix {
	return godwit.Do("stop it").Or(godwit.Do("upgrade while it runs, and keep the old revision until it stops", i.hold()))
}

func stopOrRollBack(i Item) godwit.Fix {
	return godwit.Do("stop it and roll back again").Or(godwit.Do("roll back while it runs, and keep the new revision until it stops",
		godwit.RollBackRevision{Namespace: i.Namespace, Name: i.Name, OnRunning: string(Hold)}))
}

func awaitReferrer(Item) godwit.Fix {
	return godwit.Do("wait until it is ready, and run again; if it is never ready, see its status")
}

func repointDangling(i Item) godwit.Fix {
	return godwit.Do("run again when the operation on the virtual machine has ended", godwit.UpgradeRevisions{Namespace: i.Namespace}).Or(
		godwit.Do("if the API server refuses the reference, do what its answer says"))
}

func useNewerRelease(Item) godwit.Fix { return format.UseNewerRelease() }

func correctReference(Item) godwit.Fix { return godwit.Do("correct the reference that is wrong") }

func restoreRevision(Item) godwit.Fix {
	return godwit.Do("restore the revision from a backup").Or(godwit.Do("have its referrers name another revision"))
}

// restoreOrRepoint is the fix for a revision that is gone. If another one has replaced it, a run repoints the references.
func restoreOrRepoint(i Item) godwit.Fix {
	if i.Action == Upgrade || i.Action == Deferred {
		return nil
	}
	var fix godwit.Fix
	if same := i.candidates.replacement; same != "" {
		fix = godwit.Do("if "+same+" holds the same, say so, and run again", godwit.FixRevision{Namespace: i.Namespace, Name: i.Name, Replacement: same})
	}
	return fix.Or(godwit.Do("restore the revision from a backup")).Or(
		godwit.Do("have its referrers name a ControllerRevision that exists", repointing(i.References)...))
}

func deleteUnreferenced(i Item) godwit.Fix {
	return godwit.Do("delete it, unless the restore of a backup needs it",
		godwit.Delete{Object: godwit.Object{Resource: "controllerrevision", Namespace: i.Namespace, Name: i.Name}})
}

func convertElsewhere(i Item) godwit.Fix {
	return godwit.Do("use a release of Godwit that converts it").Or(
		godwit.Do("have its referrers name a ControllerRevision at a version that can be read", repointing(i.References)...))
}

// maxOwners bounds the choice between owners.
const maxOwners = 3

func setOwner(i Item) godwit.Fix {
	const step = "give it the controller that it belongs to"
	var fix godwit.Fix
	for _, o := range i.candidates.owners[:min(len(i.candidates.owners), maxOwners)] {
		fix = fix.Or(godwit.Do(step, godwit.FixRevision{Namespace: i.Namespace, Name: i.Name, Owner: o.Kind + "/" + o.Name}))
	}
	if fix == nil {
		return godwit.Do(step)
	}
	return fix
}

func replaceOwner(i Item) godwit.Fix {
	return setOwner(i).Or(godwit.Do("have its referrers name a ControllerRevision of their own"))
}

func setLabels(i Item) godwit.Fix {
	return godwit.Do("set the labels", godwit.FixRevision{Namespace: i.Namespace, Name: i.Name, Labels: i.candidates.labels})
}

func chooseTarget(i Item) godwit.Fix {
	fix := godwit.Do("leave the target version out: of the command, or of the spec of another upgrade or trigger")
	if n := len(i.candidates.targets); n > 0 {
		fix = fix.Or(godwit.Do("choose one that data can be converted to", godwit.UpgradeRevisions{Namespace: i.Namespace, TargetVersion: i.candidates.targets[n-1]}))
	}
	return fix
}

func reportUnconvertible(i Item) godwit.Fix {
	return chooseTarget(i).Or(godwit.Do("if the data is sound, report it"))
}

func allowLosses(i Item) godwit.Fix {
	return godwit.Do("if nothing needs these fields, keep them unread", godwit.UpgradeRevisions{Namespace: i.Namespace, AllowLosses: true})
}

func installCRD(Item) godwit.Fix { return godwit.Do("install the CRD") }

func scanAlone(i Item) godwit.Fix {
	return godwit.Do("fix the revisions that are SourceGone").Then("scan the namespace alone", godwit.PlanRevisions{Namespace: i.Namespace})
}

func raiseRate(Item) godwit.Fix {
	return godwit.Do("run again when fewer requests are under way, or with a higher maxWritesPerSecond")
}

func deleteOther(Item) godwit.Fix {
	return godwit.Do("see what the other revision is; if no object refers to it, delete it")
}

func nameReplacement(i Item) godwit.Fix {
	if len(i.References) > 0 && !slices.ContainsFunc(i.References, func(r ReferenceStatus) bool { return r.State == ReferenceOld }) {
		return stopOnce()
	}
	return godwit.Do("have its referrers name the new revision; the old one stays for as long as an object refers to it")
}

func stopOnce() godwit.Fix {
	return godwit.Do("stop the virtual machine once: what it was started with counts until then")
}

func changeRefusal(Item) godwit.Fix {
	return godwit.Do("change what the answer names, as a field of the object, a policy, a webhook, a quota or a missing permission, and run again")
}

func upgradeAgain(i Item) godwit.Fix {
	return godwit.Do("to upgrade it again, run the upgrade; a trigger does not", godwit.UpgradeRevisions{Namespace: i.Namespace})
}

func keepReplacement(Item) godwit.Fix {
	return godwit.Do("leave it upgraded: the new revision holds the same").Or(godwit.Do("roll back after KubeVirt v1.6 or earlier is installed"))
}

func rollBackAgain(i Item) godwit.Fix {
	return godwit.Do("stop the virtual machine if it runs, and run the rollback again", godwit.RollBackRevision{Namespace: i.Namespace, Name: i.Name})
}

func endSnapshot(Item) godwit.Fix {
	return godwit.Do("upgrade the snapshot's content that is named").Or(godwit.Do("delete the snapshot; the revision stays until then"))
}

// repointing writes the first reference that can be written: one of a spec, which the status
// follows, or else one of a status. Only the user knows the NAME.
func repointing(references []ReferenceStatus) []godwit.Action {
	for _, status := range []bool{false, true} {
		for _, r := range references {
			if r.State == ReferenceFixed || strings.HasPrefix(r.Path, "/status/") != status {
				continue
			}
			subresource := ""
			if status {
				subresource = "status"
			}
			body := `"NAME"`
			for _, key := range slices.Backward(strings.Split(strings.TrimPrefix(r.Path, "/"), "/")) {
				body = fmt.Sprintf("{%q:%s}", key, body)
			}
			object := godwit.Object{Resource: strings.ToLower(r.Kind), Namespace: r.Namespace, Name: r.Name}
			return []godwit.Action{godwit.Patch{Object: object, Subresource: subresource, Type: godwit.PatchMerge, Body: body}}
		}
	}
	return nil
}
