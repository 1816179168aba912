// Package rescue makes objects readable again that are stored at a version which spec.versions of their CRD no longer has, and
// rewrites objects whose conversion webhook is gone for good.
//
// Such objects are left when a client sets status.storedVersions although objects are stored at another version, when a CRD is
// deleted without its finalizer and created again, or when objects are restored from a backup. The API server then answers each
// list with "request to convert CR from an invalid group/version".
//
// A [Rescuer] adds the missing versions, unserved, and in the same write a [Journal] in an annotation of the CRD. It waits until
// the API server reads every object, and finds the fields that a conversion without a webhook would lose. Package storageversion
// then settles, rewrites and trims. The Rescuer restores the spec, lists every object without the added versions, and gives the
// fields of the CRD back to their owners. A run that was killed between any two of these steps resumes, since all of its state is
// in the cluster. Undo restores the CRD after each step.
//
// It refuses to rewrite an object that would lose a field, to convert without the webhook while the webhook answers, and to
// continue after another client has removed what it has added: it names that client.
//
// # Reading order
//
// fix.go has what a user can do. loss.go compares an object before and after a conversion, and rescue.go has the reasons and the
// options. journal.go has what a rescue changes of a CRD and how it restores it, and ownership.go does the same for managedFields.
// plan.go decides whether there is something to rescue. client.go sends the requests, measure.go finds what would be lost, and
// steps.go has the steps. run.go calls them in their order. A file uses only files before it.
package rescue
