package revisionupgrade

import (
	"slices"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/cmd/internal/status"
	"github.com/godwit-dev/godwit/revision"
)

// phasesOf are the phases that an upgrade may have with a reason: one for each condition that is
// then True. RollbackPending is a reason of a trigger's failures alone.
var phasesOf = map[*godwit.Reason][]revision.Phase{
	revision.ReasonRunning:          {revision.Converted},
	revision.ReasonReferrerNotReady: {revision.Converted, revision.Retained},
	revision.ReasonConflictingTypes: {revision.Failed},
	revision.ReasonNewerFormat:      {revision.Failed},
	revision.ReasonUndecodable:      {revision.Failed},
	revision.ReasonUnknownVersion:   {revision.Failed},
	revision.ReasonLabelsMissing:    {revision.Failed},
	revision.ReasonUnexpectedOwner:  {revision.Failed},
	revision.ReasonUnconvertible:    {revision.Failed},
	revision.ReasonLossy:            {revision.Failed},
	revision.ReasonTargetNotServed:  {revision.Failed},
	revision.ReasonCRDNotFound:      {revision.Failed},
	revision.ReasonRetained:         {revision.Retained},
	revision.ReasonRateLimited:      {revision.Retained},
	revision.ReasonTerminating:      {revision.Converted, revision.Skipped},
	revision.ReasonSourceGone:       {revision.Skipped, revision.Failed},
	revision.ReasonUnconfirmed:      {revision.Pending},
	revision.ReasonReplacementGone:  {revision.Skipped, revision.Failed},
	revision.ReasonReplaced:         {revision.Skipped},
	revision.ReasonNameTaken:        {revision.Failed},
	revision.ReasonChanged:          {revision.Pending, revision.Retained},
	revision.ReasonDangling:         {revision.Failed},
	revision.ReasonRolledBack:       {revision.RolledBack},
	revision.ReasonReferenced:       {revision.InUse},
	revision.ReasonRefused:          {revision.Failed},
	revision.ReasonUnanswered:       {revision.Analyzing, revision.Retained},
	revision.ReasonForbidden:        {revision.Analyzing, revision.Retained},
	revision.ReasonKept:             {revision.Retained},
	revision.ReasonIrreversible:     {revision.Failed},
	revision.ReasonNoController:     {revision.Failed},
	revision.ReasonOwnerGone:        {revision.Failed},
	revision.ReasonNeededForRestore: {revision.InUse, revision.Succeeded},
	revision.ReasonRestoreConflict:  {revision.Failed},
	revision.ReasonNotInFamily:      {revision.Failed},
}

// Occurrences are how a reason of a revision shows in the status of an upgrade, as the
// controller decides it.
func Occurrences(reason *godwit.Reason) []status.Occurrence {
	var all []status.Occurrence
	for _, phase := range phasesOf[reason] {
		s := summaryOf(revision.Result{Item: revision.Item{Reason: reason}, Phase: phase})
		if o := (status.Occurrence{Condition: string(s.State), EventType: s.EventType()}); !slices.Contains(all, o) {
			all = append(all, o)
		}
	}
	return all
}
