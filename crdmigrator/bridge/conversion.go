package bridge

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/crdmigrator/advise"
	"github.com/godwit-dev/godwit/crdmigrator/releasecheck"
	"github.com/godwit-dev/godwit/internal/kube"
	"github.com/godwit-dev/godwit/internal/storageversion/values"
)

// checkConversions finds out who converts the objects to the target, from each version at which they may be stored.
func (b *Bridge) checkConversions(f Facts) error {
	from := otherThan(storedVersions(f.Live), b.Target)
	switch known := kube.HasVersion(f.Live, b.Target); {
	case len(from) == 0:
		return nil
	case kube.Converts(f.Live) && !known:
		b.add(blocker(ReasonConverterNeeded,
			fmt.Sprintf("the conversion webhook of %s is that of the live release%s, which does not know %s: it can't convert objects from %s",
				f.Live.Name, releaseOf(f.Live), b.Target, strings.Join(from, ", ")),
			f.installBetween(from)))
		return nil
	case kube.Converts(f.Live):
		b.add(note(ReasonControllerNeeded,
			fmt.Sprintf("the conversion webhook of %s, %s, converts %s to %s: the controller of the live release%s has to run until step %s has ended, and to stop before step %s if it uses %s",
				f.Live.Name, webhookName(f.Live), strings.Join(from, ", "), b.Target, releaseOf(f.Live), Migrate, Unserve, strings.Join(b.RemovedVersions, ", ")),
			keepController()))
		return nil
	}
	return b.checkSchemas(f, from)
}

// storedVersions are the versions at which objects may be stored.
func storedVersions(crd *apiextensionsv1.CustomResourceDefinition) []string {
	all := slices.Clone(crd.Status.StoredVersions)
	if storage := kube.StorageVersion(crd); storage != "" && !slices.Contains(all, storage) {
		all = append(all, storage)
	}
	return all
}

func otherThan(versions []string, target string) []string {
	return slices.DeleteFunc(slices.Clone(versions), func(v string) bool { return v == target })
}

// checkSchemas compares the schemas if no webhook converts. The API server then changes only the apiVersion, and drops
// each field that the target does not have.
func (b *Bridge) checkSchemas(f Facts, from []string) error {
	target := versionOf(f.Live, b.Target)
	if target == nil {
		target = versionOf(f.Next, b.Target)
	}
	for _, name := range from {
		old := versionOf(f.Live, name)
		if old == nil { // the API server can't read objects at this version: releasecheck reports that
			continue
		}
		lost, strict, err := differences(f, *old, *target)
		if err != nil {
			return err
		}
		if len(lost) > 0 {
			b.add(blocker(releasecheck.ReasonFieldsMayBeLost,
				fmt.Sprintf("no webhook converts %s, and %s lacks fields of %s, whose values a migration would lose: %s",
					f.Live.Name, b.Target, name, values.JoinPaths(lost)),
				f.installBetween([]string{name}).Or(releasecheck.NeedNoValue())))
		}
		if len(strict) > 0 {
			b.add(note(ReasonObjectsMayBeInvalid,
				fmt.Sprintf("%s of %s is stricter than %s, so that the API server may refuse to write objects: %s", b.Target, f.Live.Name, name, values.JoinPaths(strict)),
				tryEveryObject(f.Live.Name)))
		}
	}
	return nil
}

// differences are the paths whose values are lost, and those at which values may be invalid.
func differences(f Facts, old, target apiextensionsv1.CustomResourceDefinitionVersion) (lost, strict []string, err error) {
	advice, err := advise.For(crdWith(f.Next.Name, old), crdWith(f.Next.Name, target), f.Answers)
	if err != nil {
		return nil, nil, err
	}
	for _, a := range advice {
		switch a.Change {
		case advise.Restructured:
			lost = append(lost, a.Path)
		case advise.RequiredFieldAdded, advise.FormatChanged, advise.NeedsExternalState:
			strict = append(strict, a.Path)
		}
	}
	return lost, strict, nil
}

// crdWith is a CRD with one version.
func crdWith(name string, v apiextensionsv1.CustomResourceDefinitionVersion) *apiextensionsv1.CustomResourceDefinition {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	crd.Name = name
	v.Storage = true
	crd.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{v}
	return crd
}

// installBetween is the fix that installs a release in between.
func (f Facts) installBetween(from []string) godwit.Fix {
	for _, r := range f.Between {
		common := shared(r.CRD, f.Next)
		if hasAll(r.CRD, from) && kube.Converts(r.CRD) && len(common) > 0 {
			return releasecheck.InstallRelease(f.Next.Name, r.Name, strings.Join(from, ", "), common[0])
		}
	}
	return releasecheck.FindRelease(f.Next.Name, "the live one"+releaseOf(f.Live), "the next one"+releaseOf(f.Next), strings.Join(from, ", "), strings.Join(names(f.Next), ", "))
}

func hasAll(crd *apiextensionsv1.CustomResourceDefinition, versions []string) bool {
	return !slices.ContainsFunc(versions, func(v string) bool { return !kube.HasVersion(crd, v) })
}

// shared are the versions that both CRDs have, in the order of the second.
func shared(a, b *apiextensionsv1.CustomResourceDefinition) []string {
	return slices.DeleteFunc(names(b), func(v string) bool { return !kube.HasVersion(a, v) })
}

func names(crd *apiextensionsv1.CustomResourceDefinition) []string {
	all := make([]string, len(crd.Spec.Versions))
	for i, v := range crd.Spec.Versions {
		all[i] = v.Name
	}
	return all
}

func versionOf(crd *apiextensionsv1.CustomResourceDefinition, name string) *apiextensionsv1.CustomResourceDefinitionVersion {
	for i := range crd.Spec.Versions {
		if crd.Spec.Versions[i].Name == name {
			return &crd.Spec.Versions[i]
		}
	}
	return nil
}

// releaseOf is the release that the labels of a CRD name, in parentheses; empty without such labels.
func releaseOf(crd *apiextensionsv1.CustomResourceDefinition) string {
	name := cmp.Or(crd.Labels["app.kubernetes.io/version"], crd.Labels["helm.sh/chart"])
	if name == "" {
		return ""
	}
	return " (" + name + ")"
}

func webhookName(crd *apiextensionsv1.CustomResourceDefinition) string {
	c := kube.ConversionWebhook(crd)
	switch {
	case c == nil:
		return "without an address"
	case c.Service != nil:
		return fmt.Sprintf("service %s/%s", c.Service.Namespace, c.Service.Name)
	case c.URL != nil:
		return *c.URL
	}
	return "without an address"
}
