package decision

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/internal/apierror"
	"github.com/godwit-dev/godwit/internal/quote"
	"github.com/godwit-dev/godwit/internal/storageversion/internal/settle"
)

// Action is what a caller does after a pass.
type Action string

const (
	// ActionDone means that nothing is left to do until the CRD changes.
	ActionDone Action = "Done"
	// ActionWait means that nothing may be written yet. Call Run again with the same
	// plan: it reads the API servers' leases with two requests, and a plan sends ten.
	ActionWait Action = "Wait"
	// ActionReplan means that the plan no longer fits the CRD.
	ActionReplan Action = "Replan"
	// ActionRetry means that another pass, with a new plan, may finish the work
	// without a user's action.
	ActionRetry Action = "Retry"
	// ActionUnknown means that the API server did not list the objects, so that
	// nothing is known about them. It never counts as done, and callers remember
	// nothing about objects that they did not read.
	ActionUnknown Action = "Unknown"
	// ActionStalled means that the work needs a user's action. Another pass finds out
	// whether the user has acted.
	ActionStalled Action = "Stalled"
)

const (
	// notConverging is the number of consecutive passes with writes by other
	// clients after which the user is informed.
	notConverging = 5

	// minSettlePause keeps the last check of a settle time from coming too early
	// repeatedly: the API server's clock has a resolution of one second.
	minSettlePause = 100 * time.Millisecond

	// waitForStart is for API servers to serve a new CRD.
	waitForStart = time.Second
	// waitForOthers is for other clients to finish their writes, as in ToolHive's
	// migrator, and for another migrator to end.
	waitForOthers = 30 * time.Second

	// A plan that no longer fits is made again after firstReplanPause. A CRD that keeps
	// changing, or whose deletion hangs for days, is planned again each maxReplanPause.
	firstReplanPause = time.Second
	maxReplanPause   = 30 * time.Second

	// A failure that a user repairs is noticed within maxRetryPause.
	firstRetryPause = 10 * time.Second
	maxRetryPause   = 10 * time.Minute
)

// History counts the passes over one CRD for the next decision. The zero value is the
// history of a caller that made no pass yet.
type History struct {
	// Conflicts is the number of passes in a row that met writes by other clients.
	Conflicts int
	// Unfinished is the number of passes in a row that left something behind.
	Unfinished int
}

// Step is what follows a pass. A control loop and a command only render it; neither of
// them decides again.
type Step struct {
	Action Action
	// After is the time until the action; zero means that only a change of the
	// cluster calls for one.
	After time.Duration
	// Reason is one of Reasons or StepReasons.
	Reason *godwit.Reason
	// Message says what happened and why. It holds no time and no count, so that it
	// changes only with its meaning.
	Message string
	// Blockers are in the way, each with its fix.
	Blockers []godwit.Finding
	// Err is the failure, for callers that return errors. It is nil if the pass ended
	// as expected: it is done or waits, the CRD changed, or other clients wrote
	// objects.
	Err error
	// History is for the next call of [Next].
	History History
}

// Stalled reports whether the work needs a user's action.
func (s Step) Stalled() bool {
	return s.Action == ActionStalled || s.Action == ActionUnknown && len(s.Blockers) > 0
}

// Next decides what follows a pass. It takes the plan that was run, what Run returned for
// it, or the error of the plan itself, and the history so far. If the plan left nothing to
// do, so that there was no run, the report is zero. Next is pure. Do not call it for a pass
// that ended because the caller's context ended.
func Next(plan Plan, report Report, err error, h History) Step {
	if err != nil {
		return afterError(err, h)
	}
	return afterPass(plan, report, h)
}

// afterError decides on a pass that did not reach its end.
func afterError(err error, h History) Step {
	var unsettled *NotSettledError
	var blocked *BlockedError
	var unlisted *UnlistedError
	unfinished := History{Conflicts: h.Conflicts, Unfinished: h.Unfinished + 1}
	switch {
	case errors.As(err, &unsettled):
		return afterSettling(unsettled, h)
	case errors.As(err, &blocked):
		s := afterBlocked(blocked, unfinished)
		if errors.Is(err, ErrChanged) { // the CRD is being deleted since it was planned for
			s.Err = nil
		}
		return s
	case errors.As(err, &unlisted):
		return afterUnlisted(unlisted, err, unfinished)
	case apierror.Of(err).Class == apierror.StorageFull:
		return Step{
			Action: ActionStalled, After: unfinished.backOff(firstRetryPause, maxRetryPause), Reason: ReasonBlocked, Message: err.Error(),
			Blockers: []godwit.Finding{EtcdFull(quote.Line(apierror.Message(err)))}, Err: err, History: unfinished,
		}
	case errors.Is(err, ErrNotFound):
		return Step{Action: ActionStalled, Reason: ReasonCRDNotFound, Message: err.Error(), History: unfinished}
	case errors.Is(err, ErrChanged), errors.Is(err, ErrOutOfScope):
		return Step{
			Action: ActionReplan, After: unfinished.backOff(firstReplanPause, maxReplanPause),
			Reason: ReasonRetrying, Message: err.Error(), History: unfinished,
		}
	}
	return Step{
		Action: ActionRetry, After: unfinished.backOff(firstRetryPause, maxRetryPause),
		Reason: ReasonFailed, Message: err.Error(), Err: err, History: unfinished,
	}
}

func afterSettling(e *NotSettledError, h History) Step {
	s := Step{Action: ActionWait, After: min(max(e.Wait, minSettlePause), settle.Again), Reason: ReasonSettling, History: History{Conflicts: h.Conflicts}}
	switch {
	case e.Late:
		s.Message = e.lateServer()
	case len(e.Stale) > 0:
		s.Message = "API servers with a stale lease may still write the old version: " + names(e.Stale) +
			"; bring each back, or delete its lease if it is gone for good"
		for _, server := range e.Stale {
			s.Blockers = append(s.Blockers, godwit.Finding{
				Reason: ReasonServerLeaseStale, Message: fmt.Sprintf("API server %s has a stale lease", server),
				Fix: replaceServer(server.Name, ""),
			})
		}
	case len(e.Servers) > 0:
		s.Message = "API servers have not shown yet that they use the storage version: " + names(e.Servers)
	default:
		s.Message = "writing begins when the settle time has passed since the change of the storage version; requests that began before may still write the old version"
	}
	return s
}

// names are sorted, so that a message stays the same from plan to plan.
func names(servers []Server) string {
	texts := make([]string, len(servers))
	for i, s := range servers {
		texts[i] = s.String()
	}
	slices.Sort(texts)
	return strings.Join(texts, ", ")
}

// afterBlocked waits for another migrator, which ends by itself. Other blockers need
// the user.
func afterBlocked(e *BlockedError, h History) Step {
	s := Step{
		Action: ActionStalled, After: h.backOff(firstRetryPause, maxRetryPause),
		Reason: ReasonBlocked, Message: e.Error(), Blockers: e.Blockers, Err: e, History: h,
	}
	if !slices.ContainsFunc(e.Blockers, func(b godwit.Finding) bool { return b.Reason != ReasonMigrationInProgress }) {
		s.Action, s.After, s.Err = ActionRetry, waitForOthers, nil
	}
	return s
}

// afterUnlisted decides after a list that failed. An answer that proves that objects can't
// be read blocks the migration; another answer says nothing about the objects.
func afterUnlisted(e *UnlistedError, err error, h History) Step {
	s := Step{
		Action: ActionUnknown, After: h.backOff(firstRetryPause, maxRetryPause),
		Reason: ReasonObjectsUnlisted, Message: e.Error(), Err: err, History: h,
	}
	switch {
	case e.Starting:
		s.After, s.Reason, s.Err = waitForStart, ReasonRetrying, nil
		s.Message = fmt.Sprintf("the API server does not serve %s yet", e.CRD)
	case e.Blocks():
		s.Action, s.Reason, s.Blockers = ActionStalled, ReasonBlocked, []godwit.Finding{e.Finding}
	case !e.Transient():
		s.Reason, s.Blockers = ReasonBlocked, []godwit.Finding{e.Finding}
	}
	return s
}

// afterPass decides on a complete pass, the gravest first, as [Report.Err] does.
func afterPass(plan Plan, report Report, h History) Step {
	left := report.Err()
	h.Unfinished++
	if errors.Is(left, ErrConflicts) {
		h.Conflicts++
		return afterConflicts(h)
	}
	h.Conflicts = 0
	s := Step{Action: ActionStalled, After: h.backOff(firstRetryPause, maxRetryPause), History: h}
	switch {
	case left == nil:
		return finished(plan, report)
	case report.Storage.Counts.Failed > 0:
		s.Reason = ReasonObjectsFailed
		s.Message = "the API server refuses to write some objects" + becauseOf(report.Storage.Failures) + "; the failures name them, and they are tried again"
	default:
		s.Reason = ReasonPartial
		s.Message = fmt.Sprintf("every object is stored at the storage version %s, but some managedFields could not be cleaned%s",
			plan.StorageVersion, becauseOf(report.ManagedFields.Failures))
	}
	s.Err = fmt.Errorf("migrate %s: %w", plan.Name, left)
	return s
}

func afterConflicts(h History) Step {
	s := Step{
		Action: ActionRetry, After: waitForOthers, Reason: ReasonRetrying, History: h,
		Message: "other clients changed objects during the pass; another pass follows",
	}
	if h.Conflicts >= notConverging {
		s.Action, s.Reason = ActionStalled, ReasonNotConverging
		s.Message = fmt.Sprintf("other clients kept changing objects for at least %d passes; the failures name the objects", notConverging)
	}
	return s
}

// becauseOf names the webhooks and policies that failures come from, sorted, so that
// the message stays the same from pass to pass.
func becauseOf(failures []godwit.Failure) string {
	causes := causesOf(failures)
	if len(causes) == 0 {
		return ""
	}
	return " because of " + strings.Join(causes, ", ")
}

// finished is the step after a pass that left nothing behind. Its message names the storage version,
// since the CRD may have another one when a user reads it.
func finished(plan Plan, report Report) Step {
	s := Step{Action: ActionDone, Reason: ReasonSucceeded, Message: "every object is stored at the storage version " + plan.StorageVersion}
	switch {
	case slices.Contains(plan.SkipPhases, StorageVersionMigrationPhase):
		s.Reason, s.Message = ReasonNotTrimmed, "managedFields are clean; the phase "+string(StorageVersionMigrationPhase)+
			" is skipped, which leaves objects and status.storedVersions as they are"
	case !report.Trimmed && !plan.Trimmed:
		s.Reason, s.Message = ReasonNotTrimmed, s.Message+"; the trim is switched off, which leaves the old versions in status.storedVersions"
	default:
		s.Message += ", and status.storedVersions has no other version"
	}
	return s
}

// backOff doubles with each pass in a row that left something behind.
func (h History) backOff(first, most time.Duration) time.Duration {
	return min(first<<min(max(h.Unfinished-1, 0), 10), most)
}
