package planreport

import "github.com/godwit-dev/godwit"

// Reasons has the reasons that only a plan of all domains reports.
var Reasons godwit.Catalog

// ReasonInterruptedRun is the reason of an interrupted run whose work the API does not show.
var ReasonInterruptedRun = Reasons.Declare(godwit.Reason{
	Name: "InterruptedRun", UserAction: true,
	Meaning: "`godwit resource run` was interrupted. The API does not show which objects it has not written.",
	Fix:     runAgain("godwit resource run RESOURCE"),
})

// runAgain is one fix for all interrupted runs: the command line of the run is not known.
func runAgain(command string) godwit.Fix {
	return godwit.Do("run the same command again, which writes only what etcd does not have in the current form, as in: " + command)
}
