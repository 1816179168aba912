package decision

import (
	"fmt"
	"slices"
	"strings"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/internal/format"
	"github.com/godwit-dev/godwit/revision/reference"
)

// stepOf says what to do where the reason alone decides.
var stepOf = map[*godwit.Reason]string{
	ReasonReferrerNotReady: "wait until it is ready, and run again",
	ReasonNewerFormat:      format.Do,
	ReasonConflictingTypes: "correct the reference that is wrong",
	ReasonCRDNotFound:      "install the CRD",
	ReasonRateLimited:      "run again when fewer requests are under way, or with a higher maxWritesPerSecond",
	ReasonNameTaken:        "see what the other revision is; if no object refers to it, delete it",
	ReasonReferenced:       "have its referrers name the new revision; the old one stays for as long as an object refers to it",
	ReasonRefused:          "change what the answer names, as a policy, a webhook, a quota or a missing permission, and run again",
}

// Fix is what a user can do about the revision. It is nil where the message says so already, and
// where waiting is enough.
func (i Item) Fix() godwit.Fix {
	known := i.candidates
	if known == nil {
		known = &candidates{}
	}
	holding := godwit.UpgradeRevisions{Namespace: i.Namespace, OnRunning: string(Hold)}
	switch i.Reason {
	case ReasonRunning:
		return godwit.Do("stop it").Or(godwit.Do("upgrade while it runs, and keep the old revision until it stops", holding))
	case ReasonDangling:
		return godwit.Do("stop the virtual machine that runs and run again").Or(
			godwit.Do("repoint the reference while it runs", holding), godwit.Do("if the API server refuses the reference, do what its answer says"))
	case ReasonUndecodable:
		return godwit.Do("restore the revision from a backup").Or(godwit.Do("have its referrers name another revision"))
	case ReasonUnknownVersion:
		return godwit.Do("use a release of Godwit that converts it").Or(
			godwit.Do("have its referrers name a ControllerRevision at a version that can be read", repointing(i.References)...))
	case ReasonUnexpectedOwner, ReasonNoController:
		return i.fixOwner(known.owners)
	case ReasonLabelsMissing:
		return godwit.Do("set the labels", godwit.FixRevision{Namespace: i.Namespace, Name: i.Name, Labels: known.labels})
	case ReasonUnconvertible, ReasonTargetNotServed:
		return i.fixTarget(known.targets)
	case ReasonLossy:
		return godwit.Do("if nothing needs these fields, keep them unread", godwit.UpgradeRevisions{Namespace: i.Namespace, AllowLosses: true})
	case ReasonUnconfirmed:
		return godwit.Do("fix the revisions that are SourceGone").Then("scan the namespace alone", godwit.PlanRevisions{Namespace: i.Namespace})
	case ReasonRolledBack:
		return godwit.Do("to upgrade it again, run the upgrade; a trigger does not", godwit.UpgradeRevisions{Namespace: i.Namespace})
	case ReasonRollbackPending:
		return godwit.Do("stop the virtual machine if it runs, and run the rollback again", godwit.RollBackRevision{Namespace: i.Namespace, Name: i.Name})
	case ReasonNeededForRestore:
		return godwit.Do("upgrade the snapshot's content that is named").Or(godwit.Do("delete the snapshot; the revision stays until then"))
	}
	if step := stepOf[i.Reason]; step != "" {
		return godwit.Do(step)
	}
	return nil
}

// RollbackFix is the fix of a revision that a rollback left for now. [Item.Fix] would upgrade it
// again.
func (i Item) RollbackFix() godwit.Fix {
	if i.Reason != ReasonRunning {
		return i.Fix()
	}
	return godwit.Do("stop it and roll back again").Or(godwit.Do("roll back while it runs, and keep the new revision until it stops",
		godwit.RollBackRevision{Namespace: i.Namespace, Name: i.Name, OnRunning: string(Hold)}))
}

// maxOwners bounds the choice between owners.
const maxOwners = 3

func (i Item) fixOwner(owners []reference.Owner) godwit.Fix {
	const step = "give it the controller that it belongs to"
	var fix godwit.Fix
	for _, o := range owners[:min(len(owners), maxOwners)] {
		fix = append(fix, godwit.Do(step, godwit.FixRevision{Namespace: i.Namespace, Name: i.Name, Owner: o.Kind + "/" + o.Name})...)
	}
	if fix == nil {
		return godwit.Do(step)
	}
	return fix
}

func (i Item) fixTarget(targets []string) godwit.Fix {
	fix := godwit.Do("leave the target version out")
	if n := len(targets); n > 0 {
		fix = fix.Or(godwit.Do("choose one that data can be converted to", godwit.UpgradeRevisions{Namespace: i.Namespace, TargetVersion: targets[n-1]}))
	}
	if i.Reason == ReasonUnconvertible {
		fix = fix.Or(godwit.Do("if the data is sound, report it"))
	}
	return fix
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
