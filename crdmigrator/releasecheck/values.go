package releasecheck

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/godwit-dev/godwit/internal/kube"
	"github.com/godwit-dev/godwit/internal/placeholder"
	"github.com/godwit-dev/godwit/internal/storageversion/values"
)

// unkept is a version at which objects may be stored, and at which the next release may drop values of them.
type unkept struct {
	version string
	paths   []string
	// before is the schema at which the objects are stored. after are those of the next release that may drop values: of the
	// same version, which clients may still write, and of the storage version.
	before *apiextensionsv1.JSONSchemaProps
	after  []*apiextensionsv1.JSONSchemaProps
}

// unkept compares the schemas. A conversion webhook of the next release may keep every value, which schemas do not show.
func (f Facts) unkept() []unkept {
	storage := kube.StorageVersion(f.Next)
	if f.Live == nil || storage == "" || f.Next.Spec.PreserveUnknownFields || kube.Converts(f.Next) {
		return nil
	}
	var all []unkept
	for _, v := range f.Live.Spec.Versions {
		if !v.Storage && !slices.Contains(f.Live.Status.StoredVersions, v.Name) {
			continue
		}
		one := unkept{version: v.Name, before: kube.SchemaOf(f.Live, v.Name)}
		for _, name := range slices.Compact([]string{v.Name, storage}) {
			if !kube.HasVersion(f.Next, name) {
				continue // another check reports that the release removes a stored version
			}
			after := kube.SchemaOf(f.Next, name)
			if paths := values.Unkept(one.before, after); len(paths) > 0 {
				one.paths, one.after = append(one.paths, paths...), append(one.after, after)
			}
		}
		if len(one.paths) > 0 {
			slices.Sort(one.paths)
			one.paths = slices.Compact(one.paths)
			all = append(all, one)
		}
	}
	return all
}

// lost returns the paths of the values of an object that one of the schemas drops.
func (u unkept) lost(object map[string]any) []string {
	var all []string
	for _, after := range u.after {
		all = append(all, values.Paths(values.Lost(u.before, object, values.Pruned(after, object)))...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// checkValues reports values that the next release drops, because its schemas lack their fields and nothing converts.
func checkValues(f Facts) []Finding {
	all := f.unkept()
	if len(all) == 0 || f.empty() {
		return nil
	}
	var where []string
	for _, u := range all {
		where = append(where, u.version+": "+values.JoinPaths(u.paths))
	}
	schemas := strings.Join(where, "; ")
	switch v := f.Values; {
	case f.Offline:
		return []Finding{finding(Unknown, ReasonFieldsMayBeLost,
			fmt.Sprintf("schemas of the next release of %s lack fields of the version at which objects are stored, and nothing converts: the API server drops their values. No cluster was asked whether objects have values there: %s", f.Next.Name, schemas),
			checkCluster(cmp.Or(f.File, placeholder.File)).Or(keepFields()))}
	case v == nil:
		return []Finding{finding(Safe, ReasonFieldsMayBeLost,
			fmt.Sprintf("schemas of the next release of %s lack fields of versions at which objects may be stored, and nothing converts: the API server drops their values: %s", f.Next.Name, schemas),
			keepFields())}
	case len(v.Losses) > 0:
		return []Finding{finding(Unsafe, ReasonFieldsWouldBeLost,
			fmt.Sprintf("the next release of %s drops values of objects, because its schemas lack their fields and nothing converts: %s", f.Next.Name, values.Describe(v.Losses, v.More)),
			keepFields())}
	case len(v.Uncompared) > 0:
		return []Finding{finding(Unknown, ReasonFieldsMayBeLost,
			fmt.Sprintf("schemas of the next release of %s lack fields of versions at which objects may be stored, and nothing converts. The CRD of the cluster does not serve %s, so that it is not known whether objects have values there: %s",
				f.Next.Name, strings.Join(v.Uncompared, ", "), schemas),
			serveFirst(f.Live, v.Uncompared...).Or(keepFields()))}
	}
	return []Finding{finding(Safe, ReasonFieldsMayBeLost,
		fmt.Sprintf("schemas of the next release of %s lack fields of versions at which objects may be stored. None of the %d objects has a value there now: %s", f.Next.Name, f.Values.Compared, schemas),
		keepFields())}
}

// checkConversionEnds reports fields that clients can write today, because a webhook converts them, and that the API server
// drops after the release.
func checkConversionEnds(f Facts) []Finding {
	if f.Live == nil || !kube.Converts(f.Live) || kube.Converts(f.Next) {
		return nil
	}
	var where []string
	for _, version := range kube.ServedVersions(f.Next) {
		if paths := values.Unkept(kube.SchemaOf(f.Next, version), kube.SchemaOf(f.Next, kube.StorageVersion(f.Next))); len(paths) > 0 {
			where = append(where, version+": "+values.JoinPaths(paths))
		}
	}
	if len(where) == 0 {
		return nil
	}
	return []Finding{finding(Safe, ReasonFieldsMayBeLost,
		fmt.Sprintf("a webhook converts %s today, and with the next release nothing does. What clients write to fields that the storage version lacks is dropped: %s", f.Next.Name, strings.Join(where, "; ")),
		keepConversion())}
}
