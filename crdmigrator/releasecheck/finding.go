package releasecheck

import (
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/internal/kube"
	"github.com/godwit-dev/godwit/internal/placeholder"
	"github.com/godwit-dev/godwit/internal/storageversion/decision"
	"github.com/godwit-dev/godwit/internal/storageversion/values"
)

// Result says what the next release of a CRD would do to a cluster.
type Result string

const (
	// Safe means that the API server accepts the CRD, and every object stays readable
	// and writable.
	Safe Result = "Safe"
	// Refused means that the API server refuses the CRD.
	Refused Result = "Refused"
	// Unsafe means that the API server accepts the CRD, and objects can no longer be
	// read or applied.
	Unsafe Result = "Unsafe"
	// Unknown means that the facts could not be read, or contradict each other.
	Unknown Result = "Unknown"
)

// results are all results, the gravest first.
var results = []Result{Refused, Unsafe, Unknown, Safe}

// Reasons are those of a check, beside [decision.ReasonNoStorageVersion], [decision.ReasonForbidden] and
// [decision.ReasonStoredVersionsDoubtful].
var Reasons godwit.Catalog

// Reasons of a check.
var (
	ReasonStoredVersionRemoved = Reasons.Declare(godwit.Reason{
		Name: "StoredVersionRemoved", UserAction: true,
		Meaning: "The next release removes a version that status.storedVersions names. The API server refuses the CRD.",
		Fix:     migrateFirst(placeholder.Name).Or(keepVersion(placeholder.Name, placeholder.Version), addVersion(placeholder.CRD(), placeholder.Version)),
	})
	ReasonTerminating = Reasons.Declare(godwit.Reason{
		Name:    "Terminating",
		Meaning: "The CRD of the cluster is being deleted, with all its objects.",
		Fix:     awaitDeletion(),
	})
	ReasonSeveralStorageVersions = Reasons.Declare(godwit.Reason{
		Name: "SeveralStorageVersions", UserAction: true,
		Meaning: "More than one version has `storage: true`.",
		Fix:     oneOf(markOneAlone),
	})
	ReasonInvalidVersion = Reasons.Declare(godwit.Reason{
		Name: "InvalidVersion", UserAction: true,
		Meaning: "A version occurs twice, has a name that is not a DNS label, or has no schema.",
		Fix:     oneOf(removeOne, callVersion, addSchema),
	})
	ReasonImmutableField = Reasons.Declare(godwit.Reason{
		Name: "ImmutableField", UserAction: true,
		Meaning: "Group, plural, kind or scope changes, or the name is not PLURAL.GROUP.",
		Fix:     oneOf(leaveAs("VALUE"), callIt(placeholder.Name)),
	})
	ReasonInvalidConversion = Reasons.Declare(godwit.Reason{
		Name: "InvalidConversion", UserAction: true,
		Meaning: "spec.conversion contradicts itself.",
		Fix:     oneOf(webhookOrNone, noneOrWebhook, addClientConfig, setOne, addReviewVersion, pruneUnknown),
	})
	ReasonTooLarge = Reasons.Declare(godwit.Reason{
		Name: "TooLarge", UserAction: true,
		Meaning: "The CRD is larger than what etcd stores by default. The dry run of the API server does not reach etcd, and accepts it.",
		Fix:     shortenSchemas(),
	})
	ReasonServerRefused = Reasons.Declare(godwit.Reason{
		Name: "ServerRefused", UserAction: true,
		Meaning: "The API server refuses the CRD in a dry run, for a reason other than its versions: as a whole, or as the tools apply it, which keep fields of the live CRD that the file does not name.",
		Fix:     stopPreserving().Or(removeConversion(placeholder.CRD()), fixFile()),
	})
	ReasonApplyConflicts = Reasons.Declare(godwit.Reason{
		Name:    "ApplyConflicts",
		Meaning: "A server-side apply of the release conflicts with another field manager of the CRD, such as a user who has patched it.",
		Fix:     forceConflicts(),
	})
	ReasonStoredAtRemovedVersion = Reasons.Declare(godwit.Reason{
		Name: "StoredAtRemovedVersion", UserAction: true,
		Meaning: "The storage version is removed, and status.storedVersions does not keep the API server from accepting that. Objects would become unreadable.",
		Fix:     keepVersion(placeholder.Name, placeholder.Version),
	})
	ReasonManagedFieldsRemovedVersion = Reasons.Declare(godwit.Reason{
		Name: "ManagedFieldsRemovedVersion", UserAction: true,
		Meaning: "metadata.managedFields of objects name a version that is removed. Server-side apply of these objects would fail.",
		Fix:     migrateFirst(placeholder.Name).Or(unserveFirst(placeholder.CRD(), placeholder.Version, placeholder.Version)),
	})
	ReasonNoServedVersion = Reasons.Declare(godwit.Reason{
		Name: "NoServedVersion", UserAction: true,
		Meaning: "No version is served.",
		Fix:     serveStorage(),
	})
	ReasonObjectsUnread = Reasons.Declare(godwit.Reason{
		Name: "ObjectsUnread", UserAction: true,
		Meaning: "A version is removed, and the managedFields of the objects could not be read.",
		Fix:     listFirst(godwit.Do("do what the reason in the message asks for")),
	})
	ReasonStoredVersionsTrusted = Reasons.Declare(godwit.Reason{
		Name:    "StoredVersionsTrusted",
		Meaning: "That no object is stored at a removed version is based on status.storedVersions only.",
		Fix:     prove(placeholder.Name),
	})
	ReasonRemovedWhileServed = Reasons.Declare(godwit.Reason{
		Name:    "RemovedWhileServed",
		Meaning: "The version is removed while it is served. No release warned its clients.",
		Fix:     unserveInRelease(),
	})
	ReasonUnservedStorageVersion = Reasons.Declare(godwit.Reason{
		Name:    "UnservedStorageVersion",
		Meaning: "The storage version is not served. No migration is possible after the release.",
		Fix:     serve(placeholder.Version),
	})
	ReasonFieldsMayBeLost = Reasons.Declare(godwit.Reason{
		Name:    "FieldsMayBeLost",
		Meaning: "A schema of the next release lacks fields of a version at which objects may be stored, and no webhook converts. No object is known that has a value there.",
		Fix: checkCluster(placeholder.File).Or(serveFirst(placeholder.CRD(), placeholder.Version), keepFields(), keepConversion(), InstallAny(),
			NeedNoValue()),
	})
	ReasonFieldsWouldBeLost = Reasons.Declare(godwit.Reason{
		Name: "FieldsWouldBeLost", UserAction: true,
		Meaning: "A schema of the next release lacks fields that objects have, and no webhook converts. The API server drops their values when the objects are written.",
		Fix:     keepFields(),
	})
	ReasonReferencesUnread = Reasons.Declare(godwit.Reason{
		Name: "ReferencesUnread", UserAction: true,
		Meaning: "The release stops serving a version, and some resources could not be read, to see whether they name it.",
		Fix:     godwit.Do("do what the reason in the message asks for").Or(CheckReferences(), checkCluster(placeholder.File)),
	})
	ReasonClusterNotRead = Reasons.Declare(godwit.Reason{
		Name: "ClusterNotRead", UserAction: true,
		Meaning: "The release removes a version, and files alone were compared. Only a cluster shows whether objects are stored at it.",
		Fix:     checkCluster(placeholder.File).Or(migrateFirst(placeholder.Name)),
	})
	ReasonCRDRemoved = Reasons.Declare(godwit.Reason{
		Name: "CRDRemoved", UserAction: true,
		Meaning: "The next release does not have a CRD of the previous one. A tool that prunes, such as Argo CD or Flux, deletes the CRD with all its objects.",
		Fix:     keepCRD(placeholder.Name),
	})
	ReasonStricterSchema = Reasons.Declare(godwit.Reason{
		Name: "StricterSchema", UserAction: true,
		Meaning: "A schema of the next release requires a field, or refuses values that were allowed. The API server may refuse to write objects that exist.",
		Fix:     keepValid(),
	})
	ReasonNotDryRun = Reasons.Declare(godwit.Reason{
		Name:    "NotDryRun",
		Meaning: "The API server was not asked for a dry run.",
		Fix:     tryFile(placeholder.File),
	})
)

// Facts are what was read about one CRD of the next release. They
// are all that [For] decides on.
type Facts struct {
	// Next is the CRD as the next release has it.
	Next *apiextensionsv1.CustomResourceDefinition
	// Live is the CRD of the cluster; nil when there is none.
	Live *apiextensionsv1.CustomResourceDefinition
	// Offline means that Live is the CRD of the previous release, from a file, with the status that it has at least on each cluster.
	// What else a cluster has is not known. See [Compared].
	Offline bool
	// File is the file that has Next, for commands; empty if it is not known.
	File string
	// Objects counts the custom resources; nil when they were not read, because the
	// result does not depend on them, or for the reason in Unread.
	Objects *int64
	// Stale counts the objects whose managedFields name a removed version.
	Stale int64
	// StaleExample is one of them, with its namespace.
	StaleExample string
	// StaleVersions are the removed versions that these objects name, in the order of
	// spec.versions; nil means all that are removed.
	StaleVersions []string
	// Values has what a comparison of the objects with the schemas of the next release found; nil without one, because
	// the schemas keep every value, or for the reason in Unread.
	Values *Values
	// Unread says why the objects, on which the result depends, could not be read; nil
	// when they were read.
	Unread *decision.UnlistedError
	// Denied are the permissions that were missing. Without the one to get the
	// CRD, Live says nothing.
	Denied []decision.Grant
	// User is the caller's user name, as the API server authenticates it; set with Denied.
	User string
	// DryRun is the API server's answer to a dry run of an update of the whole CRD.
	DryRun DryRun
	// Applied is the answer to a dry run of what users do, which keeps what the release does not name. AppliedBy is the command
	// that the API server refuses.
	Applied   DryRun
	AppliedBy string
	// AppliedUnsure means that users of the cluster may install the release in another way than AppliedBy.
	AppliedUnsure bool
	// Conflict has the API server's words about a server-side apply that does not force; empty without a conflict.
	Conflict string
}

// Values is the result of a comparison of all objects with the schemas of the next release.
type Values struct {
	// Compared is the number of objects.
	Compared int64
	// Losses are the values that the next release drops. If More is true, there are further paths.
	Losses []values.Loss
	More   bool
	// Uncompared are the stored versions that the CRD of the cluster does not serve, so that no client sees the values
	// of objects as they are stored.
	Uncompared []string
}

// DryRun is the outcome of a server-side dry run. At most one field is set;
// none means that no dry run was needed.
type DryRun struct {
	Accepted bool
	// Refusal is the API server's message.
	Refusal string
	// Skipped says why no dry run was sent, or why its answer proves nothing.
	Skipped string
}

// Check is the result for one CRD of the next release. It is a value, decided
// by [For].
type Check struct {
	Name string
	// Result is the gravest of the results in Reasons; Safe without any.
	Result Result
	// RemovedVersions are in spec.versions now and not in the next release.
	RemovedVersions []string
	// Reasons are the findings, the gravest first.
	Reasons []Finding
}

// Finding is one thing to know about the next release.
type Finding struct {
	// Result is the result of this finding alone; Safe makes it a note.
	Result Result
	// Finding names the CRD and the cause. Its severity follows from Result.
	godwit.Finding
}

func finding(result Result, reason *godwit.Reason, message string, fix godwit.Fix) Finding {
	return Finding{Result: result, Finding: godwit.Finding{Reason: reason, Message: message, Fix: fix}}
}

// With adds findings that do not follow from the facts about the CRD alone.
func (c Check) With(findings ...Finding) Check {
	c.Reasons = append(slices.Clone(c.Reasons), findings...)
	for i := range c.Reasons {
		if c.Reasons[i].Result == Safe {
			c.Reasons[i].Severity = godwit.Informs
		}
	}
	slices.SortStableFunc(c.Reasons, func(a, b Finding) int {
		return slices.Index(results, a.Result) - slices.Index(results, b.Result)
	})
	if len(c.Reasons) > 0 {
		c.Result = c.Reasons[0].Result
	}
	return c
}

// removed are the versions that the next release removes.
func (f Facts) removed() []string {
	if f.Live == nil {
		return nil
	}
	var names []string
	for _, v := range f.Live.Spec.Versions {
		if !kube.HasVersion(f.Next, v.Name) {
			names = append(names, v.Name)
		}
	}
	return names
}

func (f Facts) removedServed() []string { return servedOf(f.Live, f.removed()) }

// servedOf selects the versions that the CRD serves.
func servedOf(crd *apiextensionsv1.CustomResourceDefinition, versions []string) []string {
	return slices.DeleteFunc(slices.Clone(versions), func(v string) bool { return !kube.Serves(crd, v) })
}

// empty reports whether the CRD certainly has no objects.
func (f Facts) empty() bool { return f.Objects != nil && *f.Objects == 0 }

func (f Facts) staleVersions() []string {
	if f.StaleVersions == nil {
		return f.removed()
	}
	return f.StaleVersions
}
