package report

import "github.com/godwit-dev/godwit/cmd/internal/remedy"

// Reasons that the command line finds by itself. All others are reasons of the libraries.
const (
	// ReasonNotFound: there is no such definition.
	ReasonNotFound = "NotFound"
	// ReasonForbidden: the definition may not be read.
	ReasonForbidden = "Forbidden"
	// ReasonAPIVersionRemoved: a file has a definition at a version of the API
	// that API servers do not serve any more.
	ReasonAPIVersionRemoved = "APIVersionRemoved"
	// ReasonUnreadable: reading the definition failed.
	ReasonUnreadable = "Unreadable"
	// ReasonInterrupted means that the user ended the command.
	ReasonInterrupted = "Interrupted"
	// ReasonTimedOut means that --timeout ended the command.
	ReasonTimedOut = "TimedOut"
	// ReasonNotStarted means that a run did not start with a CRD, because another one that
	// the command line names can't be read.
	ReasonNotStarted = "NotStarted"
)

// Reasons are those that the command line finds by itself.
var Reasons = []remedy.ReasonDoc{
	{Reason: ReasonNotFound, UserAction: true,
		Meaning: "The CRD, the revision, the namespace or the cluster that a command line names does not exist.",
		Remedy:  "Correct the name. The message suggests names that are spelt alike."},
	{Reason: ReasonForbidden, UserAction: true,
		Meaning: "A permission of the command is missing.",
		Remedy:  "Have an administrator grant it: the remedy in the message is the command."},
	{Reason: ReasonAPIVersionRemoved, UserAction: true,
		Meaning: "A file has a CRD at apiextensions.k8s.io/v1beta1, which API servers do not serve any more.",
		Remedy:  "Write it at apiextensions.k8s.io/v1: the schema moves into each version."},
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
