package crdmigrator

import (
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/godwit-dev/godwit/internal/kube"
)

// Verdict says what becomes of a cluster that is given the next release of a
// definition.
type Verdict string

const (
	// Safe: the API server takes the definition, and every object stays readable
	// and writable.
	Safe Verdict = "Safe"
	// Refused: the API server refuses the definition.
	Refused Verdict = "Refused"
	// Stranding: the API server takes the definition, and objects can no longer be
	// read or applied.
	Stranding Verdict = "Stranding"
	// Unknown: what decides could not be read, or contradicts itself.
	Unknown Verdict = "Unknown"
)

// verdicts are in the order in which they outweigh each other.
var verdicts = []Verdict{Refused, Stranding, Unknown, Safe}

// Reasons of a check, beside [ReasonNoStorageVersion], [ReasonForbidden] and
// [ReasonTerminating].
const (
	// ReasonStoredVersionRemoved (Refused): status.storedVersions names a version
	// that the next release does not have.
	ReasonStoredVersionRemoved = "StoredVersionRemoved"
	// ReasonSeveralStorageVersions (Refused): more than one version has storage: true.
	ReasonSeveralStorageVersions = "SeveralStorageVersions"
	// ReasonInvalidVersion (Refused): a version is there twice, has a name that is
	// no DNS label, or no schema.
	ReasonInvalidVersion = "InvalidVersion"
	// ReasonImmutableField (Refused): group, plural, kind or scope changes, or the
	// name is not plural.group.
	ReasonImmutableField = "ImmutableField"
	// ReasonInvalidConversion (Refused): spec.conversion contradicts itself.
	ReasonInvalidConversion = "InvalidConversion"
	// ReasonServerRefused (Refused): the API server refuses the definition in a dry
	// run, for a reason beside versions.
	ReasonServerRefused = "ServerRefused"
	// ReasonStoredAtRemovedVersion (Stranding): the storage version is removed,
	// and status.storedVersions, altered by somebody, does not hold the API server back.
	ReasonStoredAtRemovedVersion = "StoredAtRemovedVersion"
	// ReasonManagedFieldsRemovedVersion (Stranding): managedFields of objects name
	// a version that is removed, so that server-side apply of them fails.
	ReasonManagedFieldsRemovedVersion = "ManagedFieldsRemovedVersion"
	// ReasonNoServedVersion (Stranding, Safe without objects): no version is served.
	ReasonNoServedVersion = "NoServedVersion"
	// ReasonStoredVersionsDoubtful (Unknown; also a warning of a plan): a version is removed, and
	// status.storedVersions proves nothing, because it lacks the storage version
	// or was trimmed by a migration that failed.
	ReasonStoredVersionsDoubtful = "StoredVersionsDoubtful"
	// ReasonObjectsUnread (Unknown): a version is removed, and the managedFields of
	// the objects could not be read.
	ReasonObjectsUnread = "ObjectsUnread"
	// ReasonStoredVersionsTrusted (Safe): that no object is stored at a removed
	// version is the word of status.storedVersions; only etcd proves it.
	ReasonStoredVersionsTrusted = "StoredVersionsTrusted"
	// ReasonRemovedWhileServed (Safe): clients of the removed version were not
	// warned by a release that does not serve it.
	ReasonRemovedWhileServed = "RemovedWhileServed"
	// ReasonUnservedStorageVersion (Safe): no migration is possible afterwards.
	ReasonUnservedStorageVersion = "UnservedStorageVersion"
	// ReasonFieldsMayBeLost (Safe): schemas differ and nothing converts.
	ReasonFieldsMayBeLost = "FieldsMayBeLost"
	// ReasonNotRehearsed (Safe): the API server was not asked.
	ReasonNotRehearsed = "NotRehearsed"
)

// CheckFacts are what was read about one definition of the next release. They
// are all that [CheckFor] decides on.
type CheckFacts struct {
	// Next is the definition as the next release has it.
	Next *apiextensionsv1.CustomResourceDefinition
	// Live is the definition of the cluster; nil when there is none.
	Live *apiextensionsv1.CustomResourceDefinition
	// Objects counts the custom resources; nil when they were not read, since the
	// verdict does not hang on them or for the reason in Unread.
	Objects *int64
	// Stale counts the objects whose managedFields name a removed version.
	Stale int64
	// StaleExample is one of them, with its namespace.
	StaleExample string
	// StaleVersions are the removed versions that these objects name, in the order of
	// spec.versions; nil means all that are removed.
	StaleVersions []string
	// Unread says why the objects, which the verdict hangs on, could not be read; nil
	// when they were.
	Unread *UnlistedError
	// Denied are the rights that were missing. Without the one to get the
	// definition, Live says nothing.
	Denied []Grant
	// User is the name the API server knows the caller by; set with Denied.
	User string
	// Rehearsal is what the API server itself says.
	Rehearsal Rehearsal
}

// Rehearsal is the outcome of a server-side dry run. At most one field is set;
// none means that there was no reason to ask.
type Rehearsal struct {
	Accepted bool
	// Refusal is the API server's message.
	Refusal string
	// Skipped says why the API server was not asked, or did not know.
	Skipped string
}

// Check is what is to be expected of one definition of the next release. It is
// a value, decided by [CheckFor].
type Check struct {
	Name string
	// Verdict is the weightiest of the reasons'; Safe without any.
	Verdict Verdict
	// RemovedVersions are in spec.versions now and not in the next release.
	RemovedVersions []string
	// Reasons come with the weightiest first.
	Reasons []CheckReason
}

// CheckReason is one thing to know about the next release.
type CheckReason struct {
	// Verdict is what this alone amounts to; Safe makes it a note.
	Verdict Verdict `json:"verdict"`
	// Reason is one of the documented constants.
	Reason string `json:"reason"`
	// Message names the definition and the cause.
	Message string `json:"message"`
	// Remedy is the next step.
	Remedy string `json:"remedy"`
}

// CheckFor decides what becomes of the cluster when a definition is replaced by
// its next release. It is pure. What the API server refuses about versions,
// names and conversion it tells by itself, by the rules of Kubernetes 1.37; what
// else there is to refuse, in schemas above all, it takes from the rehearsal.
func CheckFor(f CheckFacts) Check {
	c := Check{Name: f.Next.Name, Verdict: Safe, RemovedVersions: f.removed()}
	for _, check := range releaseChecks {
		c.Reasons = append(c.Reasons, check(f)...)
	}
	if f.Rehearsal.Refusal != "" && !slices.ContainsFunc(c.Reasons, func(r CheckReason) bool { return r.Verdict == Refused }) {
		c.Reasons = append(c.Reasons, CheckReason{Refused, ReasonServerRefused,
			fmt.Sprintf("the API server refuses %s: %s", f.Next.Name, f.Rehearsal.Refusal), "mend the file, and check again"})
	}
	slices.SortStableFunc(c.Reasons, func(a, b CheckReason) int {
		return slices.Index(verdicts, a.Verdict) - slices.Index(verdicts, b.Verdict)
	})
	if len(c.Reasons) > 0 {
		c.Verdict = c.Reasons[0].Verdict
	}
	return c
}

// releaseChecks run in the order in which a person would mend what they find.
var releaseChecks = []func(CheckFacts) []CheckReason{
	checkDenied, checkNames, checkVersionList, checkConversion, checkStored, checkLive,
	checkObjects, checkNextServing, checkLosses, checkRehearsal,
}

func checkDenied(f CheckFacts) []CheckReason {
	var reasons []CheckReason
	for _, g := range f.Denied {
		reasons = append(reasons, CheckReason{Unknown, ReasonForbidden,
			fmt.Sprintf("%s may not %s", orElse(f.User, "the current user"), g), g.Command(f.User)})
	}
	return reasons
}

// checkStored is the API server's own guard: each stored version must stay.
func checkStored(f CheckFacts) []CheckReason {
	if f.Live == nil {
		return nil
	}
	name, target := f.Live.Name, kube.StorageVersion(f.Live)
	var reasons []CheckReason
	for _, stored := range f.Live.Status.StoredVersions {
		if kube.HasVersion(f.Next, stored) {
			continue
		}
		r := CheckReason{Refused, ReasonStoredVersionRemoved,
			fmt.Sprintf("status.storedVersions of %s names %s, which the next release does not have: objects may be stored at it", name, stored), ""}
		switch {
		case !kube.HasVersion(f.Live, stored):
			r.Remedy = fmt.Sprintf("add version %s with served: false, here and there, and run: godwit crd run %s", stored, name)
		case stored == target:
			r.Remedy = fmt.Sprintf("keep %s for one more release that stores another version, and after that one run: godwit crd run %s", stored, name)
		default:
			r.Remedy = fmt.Sprintf("before this release run: godwit crd run %s", name)
		}
		reasons = append(reasons, r)
	}
	return reasons
}

// checkLive is about what the live definition says of itself.
func checkLive(f CheckFacts) []CheckReason {
	if f.Live == nil {
		return nil
	}
	var reasons []CheckReason
	name, target := f.Live.Name, kube.StorageVersion(f.Live)
	if f.Live.DeletionTimestamp != nil {
		reasons = append(reasons, CheckReason{Unknown, ReasonTerminating,
			fmt.Sprintf("customresourcedefinition %s is being deleted, with all its objects, whatever the next release says", name),
			"wait until it is gone, and check again"})
	}
	trusted := slices.Contains(f.Live.Status.StoredVersions, target)
	switch {
	case len(f.removed()) == 0 || f.empty():
	case !trusted && !kube.HasVersion(f.Next, target):
		reasons = append(reasons, CheckReason{Stranding, ReasonStoredAtRemovedVersion,
			fmt.Sprintf("objects of %s are stored at %s, which the next release does not have, and status.storedVersions, altered by somebody, lists only %s: the API server lets it go and can't read them any more",
				name, target, strings.Join(f.Live.Status.StoredVersions, ",")),
			fmt.Sprintf("keep %s for one more release that stores another version, and after that one run: godwit crd run %s", target, name)})
	case !trusted:
		reasons = append(reasons, CheckReason{Unknown, ReasonStoredVersionsDoubtful,
			fmt.Sprintf("status.storedVersions of %s lacks the storage version %s, so somebody has altered it, and objects may be stored at %s all the same",
				name, target, strings.Join(f.removed(), ",")),
			fmt.Sprintf("count in etcd: godwit crd verify %s --etcd-servers=URL", name)})
	case trimmedInVain(f.Live) >= 0:
		reasons = append(reasons, CheckReason{Unknown, ReasonStoredVersionsDoubtful,
			fmt.Sprintf("a StorageVersionMigration of %s failed and status.storedVersions was trimmed all the same, so objects may be stored at %s",
				name, strings.Join(f.removed(), ",")),
			"godwit crd run " + name})
	case f.Objects != nil:
		reasons = append(reasons, CheckReason{Safe, ReasonStoredVersionsTrusted,
			fmt.Sprintf("that no object of %s is stored at %s is the word of status.storedVersions; only etcd proves it", name, strings.Join(f.removed(), ",")),
			fmt.Sprintf("godwit crd verify %s --etcd-servers=URL", name)})
	}
	return reasons
}

// checkObjects is about what server-side apply needs of objects.
func checkObjects(f CheckFacts) []CheckReason {
	removed := strings.Join(f.removed(), ",")
	switch {
	case removed == "":
		return nil
	case f.Unread != nil:
		return []CheckReason{{Unknown, ReasonObjectsUnread,
			fmt.Sprintf("the objects of %s can't be read, to see whether managedFields name %s: %s: %s", f.Next.Name, removed, f.Unread.Reason, f.Unread.Message),
			f.Unread.Remedy + "; then check again"}}
	case f.Stale == 0:
		return nil
	}
	stale := f.staleVersions()
	remedy := "before this release run: godwit crd run " + f.Next.Name
	if served := servedOf(f.Live, stale); len(served) > 0 {
		remedy = fmt.Sprintf("let a release come first that does not serve %[1]s, and after that one run: godwit crd run %[2]s; or, if the releases are not yours, once no client uses %[1]s: %[3]s && godwit crd run %[2]s",
			strings.Join(served, ","), f.Next.Name, setServed(f.Live, false, served...))
	}
	return []CheckReason{{Stranding, ReasonManagedFieldsRemovedVersion,
		fmt.Sprintf("managedFields of %d of %d objects of %s, such as %s, name %s: server-side apply of them fails once it is removed",
			f.Stale, *f.Objects, f.Next.Name, f.StaleExample, strings.Join(stale, ",")), remedy}}
}

func (f CheckFacts) staleVersions() []string {
	if f.StaleVersions == nil {
		return f.removed()
	}
	return f.StaleVersions
}

// setServed is the command that begins or stops serving versions. It tests the name at
// each place, in case the list of versions changes in between.
func setServed(crd *apiextensionsv1.CustomResourceDefinition, serve bool, versions ...string) string {
	var steps []string
	for i, v := range crd.Spec.Versions {
		if slices.Contains(versions, v.Name) {
			steps = append(steps,
				fmt.Sprintf(`{"op": "test", "path": "/spec/versions/%d/name", "value": %q}`, i, v.Name),
				fmt.Sprintf(`{"op": "replace", "path": "/spec/versions/%d/served", "value": %t}`, i, serve))
		}
	}
	return fmt.Sprintf("kubectl patch crd %s --type=json -p '[%s]'", crd.Name, strings.Join(steps, ", "))
}

func checkRehearsal(f CheckFacts) []CheckReason {
	if f.Rehearsal.Skipped == "" {
		return nil
	}
	return []CheckReason{{Safe, ReasonNotRehearsed,
		fmt.Sprintf("the API server was not asked about %s, its schemas above all: %s", f.Next.Name, f.Rehearsal.Skipped),
		"kubectl apply --server-side --dry-run=server -f FILE"}}
}

// removed are the versions that go with the next release.
func (f CheckFacts) removed() []string {
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

func (f CheckFacts) removedServed() []string { return servedOf(f.Live, f.removed()) }

// servedOf are those among the versions that the CRD serves.
func servedOf(crd *apiextensionsv1.CustomResourceDefinition, versions []string) []string {
	return slices.DeleteFunc(slices.Clone(versions), func(v string) bool { return !kube.Serves(crd, v) })
}

// empty: there is certainly no object.
func (f CheckFacts) empty() bool { return f.Objects != nil && *f.Objects == 0 }
