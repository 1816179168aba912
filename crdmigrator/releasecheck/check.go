package releasecheck

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/godwit-dev/godwit/internal/kube"
	"github.com/godwit-dev/godwit/internal/placeholder"
	"github.com/godwit-dev/godwit/internal/storageversion/decision"
)

// For decides what the next release of a CRD would do to the cluster. It is pure.
// For versions, names and conversion, it follows the rules of Kubernetes 1.37.
// Whether the API server refuses anything else, above all in schemas, is known
// only from the dry run.
func For(f Facts) Check {
	c := Check{Name: f.Next.Name, Result: Safe, RemovedVersions: f.removed()}
	for _, check := range releaseChecks {
		c.Reasons = append(c.Reasons, check(f)...)
	}
	if f.DryRun.Refusal != "" && !slices.ContainsFunc(c.Reasons, func(r Finding) bool { return r.Result == Refused }) {
		c.Reasons = append(c.Reasons, finding(Refused, ReasonServerRefused,
			fmt.Sprintf("the API server refuses %s: %s", f.Next.Name, f.DryRun.Refusal), fixFile()))
	}
	return c.With()
}

// releaseChecks run in the order in which a user fixes what they find.
var releaseChecks = []func(Facts) []Finding{
	checkDenied, checkNames, checkVersionList, checkConversion, checkStored, checkLive,
	checkObjects, checkFiles, checkNextServing, checkValues, checkConversionEnds, checkStricter, checkSize, checkDryRun, checkApplied,
}

func checkDenied(f Facts) []Finding {
	var reasons []Finding
	for _, g := range f.Denied {
		reasons = append(reasons, finding(Unknown, decision.ReasonForbidden,
			fmt.Sprintf("%s may not %s", cmp.Or(f.User, "the current user"), g), g.Fix(f.User)))
	}
	return reasons
}

// checkStored makes the API server's own check: each stored version must stay.
func checkStored(f Facts) []Finding {
	if f.Live == nil {
		return nil
	}
	name, target := f.Live.Name, kube.StorageVersion(f.Live)
	var reasons []Finding
	for _, stored := range f.Live.Status.StoredVersions {
		if kube.HasVersion(f.Next, stored) {
			continue
		}
		message := fmt.Sprintf("status.storedVersions of %s names %s, which the next release does not have: objects may be stored at it", name, stored)
		if f.Offline {
			message = fmt.Sprintf("%s is the storage version of the previous release of %s, so that status.storedVersions names it, and the next release does not have it: objects may be stored at it", stored, name)
		}
		r := finding(Refused, ReasonStoredVersionRemoved, message, nil)
		switch {
		case !kube.HasVersion(f.Live, stored):
			r.Fix = addVersion(f.Live, stored)
		case stored == target:
			r.Fix = keepVersion(name, stored)
		default:
			r.Fix = migrateFirst(name)
		}
		reasons = append(reasons, r)
	}
	return reasons
}

// checkLive checks the status of the live CRD.
func checkLive(f Facts) []Finding {
	if f.Live == nil {
		return nil
	}
	var reasons []Finding
	name, target := f.Live.Name, kube.StorageVersion(f.Live)
	if f.Live.DeletionTimestamp != nil {
		reasons = append(reasons, finding(Unknown, ReasonTerminating,
			fmt.Sprintf("customresourcedefinition %s is being deleted, with all its objects, whatever the next release says", name),
			awaitDeletion()))
	}
	trusted := f.Offline || slices.Contains(f.Live.Status.StoredVersions, target)
	switch {
	case len(f.removed()) == 0 || f.empty():
	case !trusted && !kube.HasVersion(f.Next, target):
		reasons = append(reasons, finding(Unsafe, ReasonStoredAtRemovedVersion,
			fmt.Sprintf("objects of %s are stored at %s, which the next release does not have, and another client altered status.storedVersions to %s: the API server accepts the CRD and can no longer read these objects",
				name, target, strings.Join(f.Live.Status.StoredVersions, ",")),
			keepVersion(name, target)))
	case !trusted:
		reasons = append(reasons, finding(Unknown, decision.ReasonStoredVersionsDoubtful,
			fmt.Sprintf("status.storedVersions of %s lacks the storage version %s, so another client altered it, and objects may still be stored at %s",
				name, target, strings.Join(f.removed(), ",")),
			decision.MigrateDoubtful(name).Or(decision.ProveFromEtcd(name))))
	case kube.FailedMigration(f.Live) >= 0:
		reasons = append(reasons, finding(Unknown, decision.ReasonStoredVersionsDoubtful,
			fmt.Sprintf("a StorageVersionMigration of %s failed and status.storedVersions was trimmed all the same, so objects may be stored at %s",
				name, strings.Join(f.removed(), ",")),
			decision.MigrateDoubtful(name).Or(decision.ProveFromEtcd(name))))
	case f.Objects != nil:
		reasons = append(reasons, finding(Safe, ReasonStoredVersionsTrusted,
			fmt.Sprintf("only status.storedVersions says that no object of %s is stored at %s", name, strings.Join(f.removed(), ",")),
			prove(name)))
	}
	return reasons
}

// checkObjects finds managedFields that name a removed version: server-side apply of such objects fails.
func checkObjects(f Facts) []Finding {
	removed := strings.Join(f.removed(), ",")
	switch {
	case removed == "":
		return nil
	case f.Unread != nil:
		return []Finding{finding(Unknown, ReasonObjectsUnread,
			fmt.Sprintf("the objects of %s can't be read, to see whether managedFields name %s: %s: %s", f.Next.Name, removed, f.Unread.Reason, f.Unread.Message),
			listFirst(f.Unread.Fix))}
	case f.Stale == 0:
		return nil
	}
	stale := f.staleVersions()
	fix := migrateFirst(f.Next.Name)
	if served := servedOf(f.Live, stale); len(served) > 0 {
		fix = unserveFirst(f.Live, strings.Join(served, ","), served...)
	}
	return []Finding{finding(Unsafe, ReasonManagedFieldsRemovedVersion,
		fmt.Sprintf("managedFields of %d of %d objects of %s, such as %s, name %s: server-side apply of them fails once it is removed",
			f.Stale, *f.Objects, f.Next.Name, f.StaleExample, strings.Join(stale, ",")), fix)}
}

func checkDryRun(f Facts) []Finding {
	var message string
	switch {
	case f.DryRun.Skipped != "":
		message = fmt.Sprintf("the API server was not asked about %s, its schemas above all: %s", f.Next.Name, f.DryRun.Skipped)
	case f.Applied.Skipped != "":
		message = fmt.Sprintf("the API server was asked about %s as a whole, and not as a client applies it: %s", f.Next.Name, f.Applied.Skipped)
	default:
		return nil
	}
	return []Finding{finding(Safe, ReasonNotDryRun, message, tryFile(cmp.Or(f.File, placeholder.File)))}
}
