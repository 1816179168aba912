package revisionupgrade

import (
	"slices"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/api/v1alpha1"
	"github.com/godwit-dev/godwit/cmd/internal/status"
	"github.com/godwit-dev/godwit/revision"
	"github.com/godwit-dev/godwit/revision/decision"
)

// phasesOf are the phases that an upgrade may have with a reason: one for each condition that is
// then True. RollbackPending is a reason of a trigger's failures alone, Unreferenced and Unreadable
// are reasons of a plan.
var phasesOf = map[*godwit.Reason][]revision.Phase{
	decision.ReasonRunning:          {revision.Converted},
	decision.ReasonReferrerNotReady: {revision.Converted, revision.Retained},
	decision.ReasonConflictingTypes: {revision.Failed},
	decision.ReasonNewerFormat:      {revision.Failed},
	decision.ReasonUndecodable:      {revision.Failed},
	decision.ReasonUnknownVersion:   {revision.Failed},
	decision.ReasonLabelsMissing:    {revision.Failed},
	decision.ReasonUnexpectedOwner:  {revision.Failed},
	decision.ReasonUnconvertible:    {revision.Failed},
	decision.ReasonLossy:            {revision.Failed},
	decision.ReasonTargetNotServed:  {revision.Failed},
	decision.ReasonCRDNotFound:      {revision.Failed},
	decision.ReasonRetained:         {revision.Retained},
	decision.ReasonRateLimited:      {revision.Retained},
	decision.ReasonTerminating:      {revision.Converted, revision.Skipped},
	decision.ReasonSourceGone:       {revision.Skipped, revision.Failed},
	decision.ReasonUnconfirmed:      {revision.Pending},
	decision.ReasonReplacementGone:  {revision.Skipped, revision.Failed},
	decision.ReasonReplaced:         {revision.Skipped},
	decision.ReasonNameTaken:        {revision.Failed},
	decision.ReasonChanged:          {revision.Pending, revision.Retained},
	decision.ReasonDangling:         {revision.Failed},
	decision.ReasonRolledBack:       {revision.RolledBack},
	decision.ReasonReferenced:       {revision.InUse},
	decision.ReasonRefused:          {revision.Failed},
	decision.ReasonUnanswered:       {revision.Analyzing, revision.Retained},
	decision.ReasonForbidden:        {revision.Analyzing, revision.Retained},
	decision.ReasonKept:             {revision.Retained},
	decision.ReasonIrreversible:     {revision.Failed},
	decision.ReasonNoController:     {revision.Failed},
	decision.ReasonOwnerGone:        {revision.Failed},
	decision.ReasonNeededForRestore: {revision.InUse, revision.Succeeded},
	decision.ReasonRestoreConflict:  {revision.Failed},
	decision.ReasonNotInFamily:      {revision.Failed},

	decision.ReasonUnreadableAfterwards: {revision.Failed},
}

// Occurrences returns how a reason of a revision shows in the status of an upgrade, as the controller decides it.
func Occurrences(reason *godwit.Reason) []status.Occurrence {
	var all []status.Occurrence
	for _, phase := range phasesOf[reason] {
		s := summaryOf(&v1alpha1.ControllerRevisionUpgrade{}, revision.Result{Item: decision.Item{Reason: reason}, Phase: phase})
		if o := (status.Occurrence{Condition: string(s.State), EventType: s.EventType()}); !slices.Contains(all, o) {
			all = append(all, o)
		}
	}
	return all
}
