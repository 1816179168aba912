package storageversion

import (
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/internal/storageversion/evidence"
)

// Facts are what was read about one CustomResourceDefinition and its
// surroundings. They are all that [PlanFor] decides on.
type Facts struct {
	CRD *apiextensionsv1.CustomResourceDefinition
	// Now is the API server's time of the reading.
	Now time.Time
	// Objects counts the custom resources; nil when they were not counted.
	Objects *int64
	// Unlisted says why the objects could not be counted, or not be scanned to the
	// last one; nil when they were listed.
	Unlisted *UnlistedError
	// ManagedFields is what a scan has found; empty without one.
	ManagedFields ManagedFields
	// Servers are the API servers with a valid identity lease.
	Servers []Server
	// ServersUnread says why the leases could not be read. Time alone decides
	// then when writing may begin.
	ServersUnread string
	// Denied are the rights a migration needs and the caller lacks.
	Denied []Grant
	// CleanupDenied is the right that only the cleanup of managedFields needs, and
	// the caller lacks.
	CleanupDenied *Grant
	// User is the name the API server knows the caller by.
	User string
	// Migrations names the StorageVersionMigrations of this resource, of
	// whatever migrator, that have not ended.
	Migrations []string
	// Checkpoint is where an earlier run stopped.
	Checkpoint evidence.Checkpoint
	// Preflight is what a preflight of the write has found; nil without one.
	Preflight *PreflightReport
}

// ManagedFields says whether managedFields of the objects name versions that
// are no longer served.
type ManagedFields string

const (
	// ManagedFieldsUnknown means that only a scan of every object would tell.
	ManagedFieldsUnknown ManagedFields = "Unknown"
	// ManagedFieldsStale means that some object names such a version; a run cleans it.
	ManagedFieldsStale ManagedFields = "Stale"
	// ManagedFieldsClean means that no object names a version that is not served.
	ManagedFieldsClean ManagedFields = "Clean"
)

// PreflightReport is what a [Preflight] has found.
type PreflightReport struct {
	// Denials keep a run from starting, unless the policy accepts them: what the API server
	// refused of one object it refuses of that object in a run.
	Denials []godwit.Blocker
	// Warnings do not keep a run from starting.
	Warnings []godwit.Warning
	Summary  *PreflightSummary
}

// PreflightSummary counts what a preflight has tried.
type PreflightSummary struct {
	Write Write `json:"write"`
	// Tried is the number of objects, one of each namespace: the sum of the next four.
	Tried    int `json:"tried"`
	Accepted int `json:"accepted"`
	Changed  int `json:"changed"`
	Refused  int `json:"refused"`
	// Inconclusive counts the objects for which the API server's answer says nothing about
	// the write.
	Inconclusive int `json:"inconclusive"`
	// NamespacesLeftOut is the number of namespaces that have objects and were not tried.
	NamespacesLeftOut int `json:"namespacesLeftOut"`
	// AllSeen means that no other namespaces have objects.
	AllSeen bool `json:"allSeen"`
}

// lacks reports whether a permission on the objects themselves is missing.
func (f Facts) lacks(objects schema.GroupResource) bool {
	for _, g := range f.Denied {
		resource, _, _ := strings.Cut(g.Resource.Resource, "/")
		if g.Resource.Group == objects.Group && resource == objects.Resource {
			return true
		}
	}
	return false
}

// DenialsAccepted reports whether a run starts although the API server refuses some of its
// writes: by the policy, or by an earlier run, which left a checkpoint and may have met the
// denials on its way. A user who resumes it must not be stopped half-way by what did not stop
// the start.
func (f Facts) DenialsAccepted(p Policy) bool {
	return p.AcceptDenials || f.Checkpoint.Holds(f.CRD, p.terms())
}

// Done reports whether a run that resumes from the checkpoint would not write the object. An
// object whose resourceVersion can't be compared is not done.
func (f Facts) Done(p Policy, o *metav1.PartialObjectMetadata) bool {
	return f.Checkpoint.Done(f.CRD, p.terms(), o)
}
