package operator

import (
	"fmt"
	"os"
	"slices"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-dev/godwit/api/v1alpha1"
	"github.com/godwit-dev/godwit/test/controlplane"
)

const (
	ownCRD     = "crdmigrations.godwit.dev"
	oldVersion = "v1alpha0" // which there never was
)

// TestManagerMigratesItsOwnKind through a whole life of a version of it: stored,
// followed by another one, unserved, removed. The migration of the kind is one of
// the objects that it migrates.
func TestManagerMigratesItsOwnKind(t *testing.T) {
	t.Parallel()
	c := newClusterOn(t, emptyPlane(t))
	c.installOlderRelease()
	const n = 20
	for i := range n {
		c.apply(oldVersion, fmt.Sprintf("kind-%d.%s", i, c.group))
	}
	c.mustBeStored(ownCRD, map[string]int{oldVersion: n})

	c.changeOwn(func(old, now *apiextensionsv1.CustomResourceDefinitionVersion) {
		old.Storage, now.Storage = false, true
	})
	if err := c.removeOldVersion(); !apierrors.IsInvalid(err) {
		t.Fatalf("a version is removed that objects are stored at: %v", err)
	}
	_, user := c.serviceAccount(func(rbacv1.PolicyRule) bool { return false })
	c.manageAs(user, "storageVersionMigrator: {scopes: [{group: "+c.group+"}], defaults: {settle: 0s}}")
	c.awaitOwn(2)
	c.mustBeStored(ownCRD, map[string]int{v1alpha1.GroupVersion.Version: n + 1, oldVersion: 0})
	if got := c.storedVersions(ownCRD); got != v1alpha1.GroupVersion.Version {
		t.Errorf("storedVersions is %s", got)
	}

	c.changeOwn(func(old, _ *apiextensionsv1.CustomResourceDefinitionVersion) { old.Served = false })
	c.awaitOwn(3)
	if err := c.removeOldVersion(); err != nil {
		t.Fatal(err)
	}
	c.awaitOwn(4)
	for i := range n {
		c.apply(v1alpha1.GroupVersion.Version, fmt.Sprintf("kind-%d.%s", i, c.group))
	}
	// Created, suspended, migrated, managedFields cleaned, applied again; and some
	// writes of the one status that changes. More would be going in circles.
	if got := c.revisions(ownCRD); got > 5*n+50 {
		t.Errorf("%d revisions of %d objects and of their migration", got, n)
	}
}

// installOlderRelease installs the CRD as it is, but for an older version
// that is served beside it, and stored.
func (c *cluster) installOlderRelease() {
	c.t.Helper()
	file, err := os.ReadFile("../../../api/v1alpha1/crd/godwit.dev_crdmigrations.yaml")
	if err != nil {
		c.t.Fatal(err)
	}
	crds, err := controlplane.DecodeCRDs(file)
	if err != nil {
		c.t.Fatal(err)
	}
	old := crds[0].Spec.Versions[0].DeepCopy()
	old.Name = oldVersion
	crds[0].Spec.Versions[0].Storage = false
	crds[0].Spec.Versions = append([]apiextensionsv1.CustomResourceDefinitionVersion{*old}, crds[0].Spec.Versions...)
	if err := controlplane.InstallCRDs(c.t.Context(), c.plane.Config(), crds...); err != nil {
		c.t.Fatal(err)
	}
}

func (c *cluster) changeOwn(change func(old, now *apiextensionsv1.CustomResourceDefinitionVersion)) {
	c.t.Helper()
	_, err := controlplane.UpdateCRD(c.t.Context(), c.plane.Config(), ownCRD, func(crd *apiextensionsv1.CustomResourceDefinition) {
		change(&crd.Spec.Versions[0], &crd.Spec.Versions[1])
	})
	if err != nil {
		c.t.Fatal(err)
	}
}

func (c *cluster) removeOldVersion() error {
	_, err := controlplane.UpdateCRD(c.t.Context(), c.plane.Config(), ownCRD, func(crd *apiextensionsv1.CustomResourceDefinition) {
		crd.Spec.Versions = slices.DeleteFunc(crd.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name == oldVersion })
	})
	return err
}

// awaitOwn waits until the kind is migrated at a generation of its CRD.
func (c *cluster) awaitOwn(generation int64) {
	c.t.Helper()
	c.await(fmt.Sprintf("%s to be migrated at generation %d", ownCRD, generation), func() bool {
		m := c.migration(ownCRD)
		return m != nil && m.Status.CRDGeneration == generation && m.Status.CompletionTime != nil
	})
}

// apply makes a suspended migration by server-side apply, so that managedFields
// name the version; again, it fails where they name one that is gone.
func (c *cluster) apply(version, name string) {
	c.t.Helper()
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(schema.GroupVersionKind{Group: v1alpha1.GroupVersion.Group, Version: version, Kind: "CRDMigration"})
	o.SetName(name)
	o.Object["spec"] = map[string]any{"suspend": true}
	text, err := o.MarshalJSON()
	if err != nil {
		c.t.Fatal(err)
	}
	if err := c.Patch(c.t.Context(), o, client.RawPatch(types.ApplyPatchType, text), client.FieldOwner("fleet")); err != nil {
		c.t.Fatalf("apply %s at %s: %v", name, version, err)
	}
}
