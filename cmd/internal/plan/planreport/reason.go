package planreport

import "github.com/godwit-dev/godwit/cmd/internal/remedy"

// Reasons that only a plan of all domains finds.
const (
	// ReasonInterruptedRun means that a run over resources of the API server itself was interrupted.
	ReasonInterruptedRun = "InterruptedRun"
)

// Reasons documents them.
var Reasons = []remedy.ReasonDoc{
	{Reason: ReasonInterruptedRun, UserAction: true,
		Meaning: "`godwit resource run` was interrupted. The API does not show which objects it has not written.",
		Remedy:  "Run the same command again. It writes only what etcd does not have in the current form."},
}
