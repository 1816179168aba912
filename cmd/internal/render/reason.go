package render

import (
	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/cmd/internal/remedy"
)

// Reasons that the command line finds by itself. All others are reasons of the libraries.
const (
	// ReasonNotFound means that the named object does not exist.
	ReasonNotFound = "NotFound"
	// ReasonForbidden means that a permission is missing.
	ReasonForbidden = "Forbidden"
	// ReasonAPIVersionRemoved means that a file has a CRD at a version of
	// apiextensions.k8s.io that API servers no longer serve.
	ReasonAPIVersionRemoved = "APIVersionRemoved"
	// ReasonUnreadable means that the object could not be read.
	ReasonUnreadable = "Unreadable"
	// ReasonInterrupted means that the user ended the command.
	ReasonInterrupted = "Interrupted"
	// ReasonTimedOut means that --timeout ended the command.
	ReasonTimedOut = "TimedOut"
	// ReasonNotStarted means that a run did not start with a CRD, because another one that
	// the command line names can't be read.
	ReasonNotStarted = "NotStarted"
)

// Reasons documents the reasons that the command line finds by itself.
var Reasons = []remedy.ReasonDoc{
	{Reason: ReasonNotFound, UserAction: true,
		Meaning: "The CRD, the revision, the namespace or the cluster that a command line names does not exist.",
		Remedy:  "Correct the name. The message suggests names with a similar spelling."},
	{Reason: ReasonForbidden, UserAction: true,
		Meaning: "A permission of the command is missing.",
		Remedy:  "Have an administrator grant it: the remedy in the message is the command."},
	{Reason: ReasonAPIVersionRemoved, UserAction: true,
		Meaning: "A file has a CRD at apiextensions.k8s.io/v1beta1, which API servers no longer serve.",
		Remedy:  "Write it at apiextensions.k8s.io/v1: move the schema into each version."},
	{Reason: ReasonUnreadable, UserAction: true,
		Meaning: "The CRD could not be read: no cluster is chosen, the API server does not answer, or it does not accept the credentials.",
		Remedy:  "See the message for the cause, and check with `kubectl get --raw /readyz`."},
	{Reason: ReasonInterrupted,
		Meaning: "The user ended the command, by Ctrl-C or a signal. What was done is saved.",
		Remedy:  "Run the same command to resume."},
	{Reason: ReasonTimedOut,
		Meaning: "The flag --timeout ended the command. What was done is saved.",
		Remedy:  "Run the same command to resume, with a longer --timeout or none."},
	{Reason: ReasonNotStarted, UserAction: true,
		Meaning: "The run did not start, because another CRD that the command line names can't be read.",
		Remedy:  "Fix that one first, or leave it out of the command line."},
}

// Problem is a [godwit.Blocker] or a [godwit.Warning] with its fix in words.
type Problem struct {
	// Reason is one of the documented constants.
	Reason  string `json:"reason"`
	Message string `json:"message"`
	// Remedy is what to do, with commands where there are.
	Remedy string `json:"remedy"`
}

// NewProblem words a blocker or a warning.
func NewProblem[B godwit.Blocker | godwit.Warning](b B, w remedy.Writer) Problem {
	one := godwit.Blocker(b)
	return Problem{Reason: one.Reason, Message: one.Message, Remedy: w.Text(one.Fix)}
}

// NewProblems words blockers or warnings.
func NewProblems[B godwit.Blocker | godwit.Warning](list []B, w remedy.Writer) []Problem {
	var all []Problem
	for _, b := range list {
		all = append(all, NewProblem(b, w))
	}
	return all
}

// Failure is the problem as the failure of a CRD or a resource as a whole.
func (p Problem) Failure(name string) godwit.Failure {
	return godwit.Failure{Name: name, Reason: p.Reason, Message: p.Message + "; " + p.Remedy}
}

// Line is the problem in one line.
func (p Problem) Line() string { return p.Reason + ": " + p.Message + "; " + p.Remedy }
