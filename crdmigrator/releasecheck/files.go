package releasecheck

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/godwit-dev/godwit/crdmigrator/advise"
	"github.com/godwit-dev/godwit/internal/kube"
	"github.com/godwit-dev/godwit/internal/placeholder"
	"github.com/godwit-dev/godwit/internal/storageversion/values"
)

// notAsked is why there is no dry run if files alone are compared.
const notAsked = "files alone were compared, and no cluster was asked"

// Compared returns the facts that two releases of a CRD show without a cluster. previous is nil for a CRD that is new. file is the
// file of the next release, for commands.
func Compared(previous, next *apiextensionsv1.CustomResourceDefinition, file string) Facts {
	f := Facts{Next: next, Offline: true, File: file, DryRun: DryRun{Skipped: notAsked}}
	if previous != nil {
		f.Live = installed(previous)
	}
	return f
}

// installed is a CRD with what is certain of its status on each cluster that has it: the API server has established it, and has
// added its storage version to status.storedVersions. A status in the file is of another time or of no cluster.
func installed(previous *apiextensionsv1.CustomResourceDefinition) *apiextensionsv1.CustomResourceDefinition {
	crd := previous.DeepCopy()
	crd.DeletionTimestamp = nil
	crd.Status = apiextensionsv1.CustomResourceDefinitionStatus{
		Conditions: []apiextensionsv1.CustomResourceDefinitionCondition{{Type: apiextensionsv1.Established, Status: apiextensionsv1.ConditionTrue}},
	}
	if storage := kube.StorageVersion(crd); storage != "" {
		crd.Status.StoredVersions = []string{storage}
	}
	return crd
}

// Gone is the check of a CRD of the previous release that the next one does not have.
func Gone(previous *apiextensionsv1.CustomResourceDefinition) Check {
	c := Check{Name: previous.Name}
	for _, v := range previous.Spec.Versions {
		c.RemovedVersions = append(c.RemovedVersions, v.Name)
	}
	return c.With(finding(Unknown, ReasonCRDRemoved,
		fmt.Sprintf("the next release does not have %s: a tool that prunes deletes the CRD, with all its objects, and with another tool it stays as it is", previous.Name),
		keepCRD(previous.Name)))
}

// checkFiles says what two files do not show about a cluster: where objects are stored, and who uses a version.
func checkFiles(f Facts) []Finding {
	if !f.Offline || f.Live == nil {
		return nil
	}
	if storage := kube.StorageVersion(f.Live); storage != "" && !kube.HasVersion(f.Next, storage) {
		return nil // another check reports that the API server refuses the release
	}
	var reasons []Finding
	name := f.Live.Name
	if removed := f.removed(); len(removed) > 0 {
		text := strings.Join(removed, ",")
		reasons = append(reasons, finding(Unknown, ReasonClusterNotRead,
			fmt.Sprintf("the next release of %s removes %s. Before it is installed, status.storedVersions and managedFields of objects must not name %s, and no cluster was asked whether they do", name, text, text),
			checkCluster(cmp.Or(f.File, placeholder.File)).Or(migrateFirst(name))))
	}
	if unserved := slices.DeleteFunc(kube.ServedVersions(f.Live), func(v string) bool { return kube.Serves(f.Next, v) }); len(unserved) > 0 {
		text := strings.Join(unserved, ",")
		reasons = append(reasons, finding(Unknown, ReasonReferencesUnread,
			fmt.Sprintf("the next release of %s does not serve %s. Before it is installed, clients, ownerReferences, webhooks, policies, roles and manifests must use another version, and no cluster was asked about references to %s", name, text, text),
			checkCluster(cmp.Or(f.File, placeholder.File))))
	}
	return reasons
}

// checkStricter finds schemas by which the API server may refuse objects that it accepts today. The check does not validate objects:
// where it reads them, that is a note.
func checkStricter(f Facts) []Finding {
	if f.Live == nil || f.empty() {
		return nil
	}
	var where []string
	for _, v := range f.Next.Spec.Versions {
		old := versionOf(f.Live, v.Name)
		if old == nil || !v.Served {
			continue
		}
		var paths []string
		for _, a := range advise.Stricter(*old, v) {
			paths = append(paths, fmt.Sprintf("%s (%s)", a.Path, a.Rationale))
		}
		if len(paths) > 0 {
			where = append(where, v.Name+": "+values.JoinPaths(paths))
		}
	}
	if len(where) == 0 {
		return nil
	}
	result := Safe
	if f.Offline {
		result = Unknown
	}
	return []Finding{finding(result, ReasonStricterSchema,
		fmt.Sprintf("the API server may refuse to write objects of %s that exist, because the next release is stricter: %s", f.Next.Name, strings.Join(where, "; ")),
		keepValid())}
}
