package render

import "github.com/godwit-dev/godwit"

// Reasons has the reasons of the command line itself. All other reasons are from the libraries.
var Reasons godwit.Catalog

// Reasons of the command line itself.
var (
	ReasonNotFound = Reasons.Declare(godwit.Reason{
		Name: "NotFound", UserAction: true,
		Meaning: "The CRD, the revision, the namespace or the cluster that a command line names does not exist.",
		Fix:     godwit.Do("correct the name. The message suggests names with a similar spelling"),
	})
	ReasonForbidden = Reasons.Declare(godwit.Reason{
		Name: "Forbidden", UserAction: true,
		Meaning: "A permission of the command is missing.",
		Fix:     godwit.Do("have an administrator grant it: the remedy in the message is the command"),
	})
	ReasonAPIVersionRemoved = Reasons.Declare(godwit.Reason{
		Name: "APIVersionRemoved", UserAction: true,
		Meaning: "A file has a CRD at apiextensions.k8s.io/v1beta1, which API servers no longer serve.",
		Fix:     godwit.Do("write it in apiextensions.k8s.io/v1: the schema moves into each version"),
	})
	ReasonUnreadable = Reasons.Declare(godwit.Reason{
		Name: "Unreadable", UserAction: true,
		Meaning: "The CRD could not be read: no cluster is chosen, the API server does not answer, or it does not accept the credentials.",
		Fix:     godwit.Do("see the message for the cause, and check with `kubectl get --raw /readyz`"),
	})
	ReasonInterrupted = Reasons.Declare(godwit.Reason{
		Name:    "Interrupted",
		Meaning: "The user ended the command, by Ctrl-C or a signal. What was done is saved.",
		Fix:     godwit.Do("run the same command to resume"),
	})
	ReasonTimedOut = Reasons.Declare(godwit.Reason{
		Name:    "TimedOut",
		Meaning: "The flag --timeout ended the command. What was done is saved.",
		Fix:     godwit.Do("run the same command to resume, with a longer --timeout or none"),
	})
	ReasonNotStarted = Reasons.Declare(godwit.Reason{
		Name: "NotStarted", UserAction: true,
		Meaning: "The run did not start, because another CRD that the command line names can't be read.",
		Fix:     godwit.Do("fix that one first, or leave it out of the command line"),
	})
)

// IsForbidden reports whether a permission is missing: for a command as a whole, or for one request of a library.
func IsForbidden(r *godwit.Reason) bool { return r.String() == ReasonForbidden.Name }
