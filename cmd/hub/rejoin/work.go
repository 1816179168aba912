package rejoin

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	operatorv1 "open-cluster-management.io/api/operator/v1"
	workv1 "open-cluster-management.io/api/work/v1"

	api "github.com/godwit-dev/godwit/cmd/hub/api/v1alpha1"
	"github.com/godwit-dev/godwit/cmd/hub/klusterlet"
)

// operatorNamespace is the namespace of the klusterlet operator.
const operatorNamespace = "open-cluster-management"

// HashOf returns the hash of a hub in the works that it has applied, as the work agent makes it.
func HashOf(server string) string {
	sum := sha256.Sum256([]byte(server))
	return hex.EncodeToString(sum[:])
}

// strangers are the works of other hubs than the target: the work agent deletes what they have applied.
func (f Facts) strangers() []*workv1.AppliedManifestWork {
	var all []*workv1.AppliedManifestWork
	for i := range f.Works {
		w := &f.Works[i]
		ofAgent := w.Spec.AgentID == string(f.Klusterlet.UID) || w.Spec.AgentID == w.Spec.HubHash // earlier agents had no ID
		if ofAgent && w.Spec.HubHash != HashOf(f.Address.URL) {
			all = append(all, w)
		}
	}
	return all
}

// carries reports whether the klusterlet lives on what a work has applied.
func (f Facts) carries(w *workv1.AppliedManifestWork) bool {
	namespaces := []string{klusterlet.NamespaceOf(f.Klusterlet), operatorNamespace}
	return w.Spec.ManifestWorkName == klusterlet.WorkName || slices.ContainsFunc(w.Status.AppliedResources, func(r workv1.AppliedManifestResourceMeta) bool {
		switch {
		case r.Group == operatorv1.GroupName, slices.Contains(namespaces, r.Namespace):
			return true
		case r.Group == "" && r.Resource == "namespaces":
			return slices.Contains(namespaces, r.Name)
		}
		return r.Resource == "customresourcedefinitions" && strings.HasSuffix(r.Name, ".open-cluster-management.io")
	})
}

// ofAddOn reports whether a work is of an add-on, by the name that the controllers of add-ons give it. The hub of the add-on applies it again.
func ofAddOn(w *workv1.AppliedManifestWork) bool {
	rest, found := strings.CutPrefix(w.Spec.ManifestWorkName, "addon-")
	return found && strings.Contains(rest, "-deploy")
}

// Evictable returns the names of the ManifestWorks of users whose objects the work agent would delete, sorted.
func (f Facts) Evictable() []string {
	var names []string
	for _, w := range f.strangers() {
		if !f.carries(w) && !ofAddOn(w) && len(w.Status.AppliedResources) > 0 {
			names = append(names, w.Spec.ManifestWorkName)
		}
	}
	slices.Sort(names)
	return names
}

// Released are the works whose objects must stay.
func (f Facts) Released() []*workv1.AppliedManifestWork {
	return slices.DeleteFunc(f.strangers(), func(w *workv1.AppliedManifestWork) bool {
		return !f.carries(w) && (ofAddOn(w) || f.OnEvictedWorks != api.EvictedWorksOrphan)
	})
}
