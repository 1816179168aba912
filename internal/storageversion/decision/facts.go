package decision

import (
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/internal/format"
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
	// Unreachable are objects of another scope than the CRD.
	Unreachable Unreachable
	// ManagedFields is what a scan has found; empty without one.
	ManagedFields ManagedFields
	// Servers are the API servers with a valid identity lease.
	Servers []Server
	// ServersRead means that the leases were read, so that Servers has every API server with a lease.
	ServersRead bool
	// Endpoints is the number of addresses of the service kubernetes; 0 if they could not be read.
	Endpoints int
	// ServersUnread says why the leases could not be read. Then only the settle
	// time decides when writing may begin.
	ServersUnread string
	// Discovery is what the server that answers says about the resource; nil if it was not asked.
	Discovery *Discovery
	// Denied are the permissions that a migration needs and the caller lacks.
	Denied []Grant
	// CleanupDenied is the permission that only the cleanup of managedFields needs,
	// and the caller lacks.
	CleanupDenied *Grant
	// User is the caller's user name, as the API server authenticates it.
	User string
	// Migrations are the StorageVersionMigrations of this resource, of any
	// migrator, that have not ended.
	Migrations []OtherMigration
	// Succeeded are the StorageVersionMigrations that have succeeded.
	Succeeded []OtherMigration
	// Checkpoint is where an earlier run stopped.
	Checkpoint evidence.Checkpoint
	// Newer is set if the checkpoint was not read because a newer release wrote it.
	Newer *format.NewerError
	// Preflight is what a preflight of the write has found; nil without one.
	Preflight *PreflightReport
	// RoundTrips are what dry runs through old versions have shown; nil without one.
	RoundTrips *RoundTrips
}

// OtherMigration is a StorageVersionMigration of the resource: Kubernetes' own, or one of
// kube-storage-version-migrator.
type OtherMigration struct {
	// Name is storageversionmigrations.GROUP/NAME.
	Name    string
	Created time.Time
	// Begun means that a controller has given it a condition.
	Begun bool
	// Succeeded is when it succeeded; zero while it has not.
	Succeeded time.Time
}

// idleAfter is twice the time after which kube-controller-manager gives up on a resource that it
// does not know yet (storageversionmigrator.go of k8s.io/kubernetes). A migrator that runs begins
// within this time, unless it is busy with other migrations.
const idleAfter = 2 * time.Minute

// idle reports whether no controller seems to carry the migration out. The API server may serve the kind
// although kube-controller-manager has no migrator, because its feature gate StorageVersionMigrator is
// off, as by default before Kubernetes 1.37.
func (o OtherMigration) idle(now time.Time) bool {
	return !o.Begun && !o.Created.IsZero() && now.Sub(o.Created) > idleAfter
}

// ManagedFields says whether managedFields of the objects name versions that
// are no longer served.
type ManagedFields string

const (
	// ManagedFieldsUnknown means that only a scan of every object would show it.
	ManagedFieldsUnknown ManagedFields = "Unknown"
	// ManagedFieldsStale means that an object names such a version; a run cleans it.
	ManagedFieldsStale ManagedFields = "Stale"
	// ManagedFieldsClean means that no object names a version that is not served.
	ManagedFieldsClean ManagedFields = "Clean"
)

// PreflightReport is what a [Preflight] has found.
type PreflightReport struct {
	// Denials keep a run from starting, unless the policy accepts them: the API server will
	// refuse the write of these objects in a run as well.
	Denials []godwit.Finding
	// Changes keep a run from starting: admission changes objects at paths that the policy does not accept.
	Changes []godwit.Finding
	// CRDDenials keep a run from starting, whatever the policy accepts: the API server refuses a write of the CRD itself, without
	// which a run can't save what it has proven, or trim.
	CRDDenials []godwit.Finding
	// Warnings do not keep a run from starting.
	Warnings []godwit.Finding
	Summary  *PreflightSummary
	// RoundTrips are those of the same objects; nil if the schemas prove that no value is lost.
	RoundTrips *RoundTrips
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

// Lacks reports whether a permission on the objects themselves is missing.
func (f Facts) Lacks(objects schema.GroupResource) bool {
	for _, g := range f.Denied {
		resource, _, _ := strings.Cut(g.Resource.Resource, "/")
		if g.Resource.Group == objects.Group && resource == objects.Resource {
			return true
		}
	}
	return false
}

// DenialsAccepted reports whether a run starts although the API server refuses some of its
// writes: because the policy accepts that, or because an earlier run left a checkpoint. That
// run may have met the same denials after its start, so that they must not keep the user from
// resuming it.
func (f Facts) DenialsAccepted(p Policy) bool {
	return p.AcceptDenials || f.Checkpoint.Holds(f.CRD, p.Terms())
}

// Done reports whether a run that resumes from the checkpoint would not write the object. An
// object whose resourceVersion can't be compared is not done.
func (f Facts) Done(p Policy, o *metav1.PartialObjectMetadata) bool {
	return f.Checkpoint.Done(f.CRD, p.Terms(), o)
}
