package absence

import (
	"github.com/godwit-dev/godwit/revision/decision"
	"github.com/godwit-dev/godwit/revision/internal/lineage"
	"github.com/godwit-dev/godwit/revision/internal/usage"
	"github.com/godwit-dev/godwit/revision/reference"
)

// Missing is the item of a revision that objects refer to and that a scan did not find.
func Missing(namespace, name string, references []reference.Reference, replacements []lineage.Replacement) decision.Item {
	i := decision.Item{Namespace: namespace, Name: name, References: decision.ReferenceStatuses(references, "")}
	if len(replacements) == 1 {
		i.Action, i.Reason, i.Message = decision.Upgrade, decision.ReasonSourceGone, "it is gone, and "+replacements[0].Name+" has replaced it"
		return i
	}
	i.Action, i.Reason = decision.Blocked, decision.ReasonSourceGone
	i.Message = "it is gone, and nothing says what it held; " + usage.Referrers(references)
	return i
}

// Confirm corrects the item of a missing revision by live reads. It returns false if the item is wrong: no object refers to the
// revision.
func (a Absence) Confirm(i decision.Item) (decision.Item, bool) {
	switch {
	case a.Found:
		i.Action, i.Reason, i.Message = decision.Deferred, decision.ReasonChanged, "it was made while the others were read: run again"
	case a.Proof != "":
		i.Action, i.Message = decision.Upgrade, "it is gone, and "+a.Copy+" holds the same: "+a.Proof
	case a.Copy != "":
		i = i.WithCandidate(a.Copy)
		i.Message += "; " + a.Copy + ", which is in a status beside it, may hold the same, and nothing proves it"
	case a.Named:
	case a.Unread != "":
		i.Action, i.Reason = decision.Deferred, decision.ReasonUnconfirmed
		i.Message = "it was not found, and it is not known whether an object still refers to it: " + a.Unread
	case a.Terminating != "":
		i.Action, i.Reason, i.Message = decision.Deferred, decision.ReasonTerminating, "it is gone, and "+a.Terminating+" is being deleted"
	default:
		return i, false
	}
	return i, true
}
