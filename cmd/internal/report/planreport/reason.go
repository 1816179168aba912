package planreport

import "github.com/godwit-dev/godwit/cmd/internal/remedy"

// Reasons that only a plan of all domains finds.
const (
	// ReasonRescueInterrupted means that a rescue of a CRD has not ended.
	ReasonRescueInterrupted = "RescueInterrupted"
	// ReasonInterruptedRun means that a run over resources of the API server itself was interrupted.
	ReasonInterruptedRun = "InterruptedRun"
)

// Reasons documents them.
var Reasons = []remedy.ReasonDoc{
	{Reason: ReasonRescueInterrupted, UserAction: true,
		Meaning: "A rescue of the CRD is under way or was interrupted. Until it ends, the CRD has versions that only the rescue needs.",
		Remedy:  "If no other client runs it, run `godwit crd rescue NAME` again: it resumes. With `--undo` it restores the CRD."},
	{Reason: ReasonInterruptedRun, UserAction: true,
		Meaning: "`godwit resource run` was interrupted. The API does not show which objects it has not written.",
		Remedy:  "Run the same command again. It writes only what etcd does not have in the current form."},
}
