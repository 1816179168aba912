package crdmigrator_test

import (
	"errors"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/godwit-dev/godwit/crdmigrator/rescue"
	"github.com/godwit-dev/godwit/internal/storageversion"
	"github.com/godwit-dev/godwit/internal/storageversion/decision"
	"github.com/godwit-dev/godwit/test/controlplane"
)

// TestScopeThatChanged: the CRD was deleted without its finalizer, and created again with another scope. Its objects are in etcd, and no
// request reaches them. Plan, run and rescue say so, and change nothing; before the version of these objects is removed, and after.
func TestScopeThatChanged(t *testing.T) {
	t.Parallel()
	for name, versions := range map[string][]string{"readable": {"v1", "v2"}, "unreadable": {"v2"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWidgets(t, shared)
			w.fill("v1", 3)
			w.createAgainAs(apiextensionsv1.ClusterScoped, versions)
			options := storageversion.Options{Policy: quickSettle}
			plan := w.mustPlan(w.config, options)
			mustBeBlocked(t, plan, decision.ReasonOtherScope, 1)
			mustSay(t, plan.Blockers[0].Message, w.name+" in etcd ha")
			mustSay(t, plan.Blockers[0].Message, "although the CRD is cluster-scoped, such as ")
			before, err := w.crds().Get(t.Context(), w.name, metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			var blocked *decision.BlockedError
			if _, err := newMigrator(t, w.config, options).Run(t.Context(), plan, nil); !errors.As(err, &blocked) {
				t.Errorf("run: %v, want it blocked", err)
			}
			rescuer, err := rescue.New(w.config, rescue.Options{Policy: quickSettle})
			if err != nil {
				t.Fatal(err)
			}
			rescued, err := rescuer.Plan(t.Context(), w.name)
			if err != nil {
				t.Fatal(err)
			}
			if rescued.State != rescue.Blocked || len(rescued.Blockers) == 0 || rescued.Blockers[0].Reason != decision.ReasonOtherScope {
				t.Errorf("the rescue is %s: %v, want it blocked by %s", rescued.State, rescued.Blockers, decision.ReasonOtherScope)
			}
			if _, err := rescuer.Run(t.Context(), rescued); !strings.Contains(err.Error(), "no request can write or delete them") {
				t.Errorf("rescue: %v", err)
			}
			after, err := w.crds().Get(t.Context(), w.name, metav1.GetOptions{})
			if err != nil || after.ResourceVersion != before.ResourceVersion {
				t.Errorf("the CRD has changed: %v", err)
			}
		})
	}
}

// createAgainAs deletes the CRD without its objects, and creates one with another scope. The last version is the storage version.
func (w *widgets) createAgainAs(scope apiextensionsv1.ResourceScope, versions []string) {
	w.t.Helper()
	crd, err := w.crds().Get(w.t.Context(), w.name, metav1.GetOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	// With a finalizer of their own, the objects survive until the finalizer of the CRD is gone.
	list, err := w.at("v1").List(w.t.Context(), metav1.ListOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	for i := range list.Items {
		body := []byte(`{"metadata":{"finalizers":["example.com/hold"]}}`)
		if _, err := w.at("v1").Patch(w.t.Context(), list.Items[i].GetName(), types.MergePatchType, body, metav1.PatchOptions{}); err != nil {
			w.t.Fatal(err)
		}
	}
	if err := w.crds().Delete(w.t.Context(), w.name, metav1.DeleteOptions{}); err != nil {
		w.t.Fatal(err)
	}
	await(w.t, "the CRD to be gone without its objects", func() bool {
		_, err := w.crds().Patch(w.t.Context(), w.name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
		return apierrors.IsNotFound(err)
	})
	next := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: w.name}, Spec: crd.Spec}
	next.Spec.Scope, next.Spec.Versions = scope, nil
	for i, name := range versions {
		v := *crd.Spec.Versions[0].DeepCopy()
		v.Name, v.Served, v.Storage = name, true, i == len(versions)-1
		next.Spec.Versions = append(next.Spec.Versions, v)
	}
	if _, err := w.crds().Create(w.t.Context(), next, metav1.CreateOptions{}); err != nil {
		w.t.Fatal(err)
	}
	if err := controlplane.AwaitServed(w.t.Context(), w.config, w.name); err != nil {
		w.t.Fatal(err)
	}
	if len(versions) == 1 {
		return
	}
	crd, err = w.crds().Get(w.t.Context(), w.name, metav1.GetOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	crd.Status.StoredVersions = versions
	if _, err := w.crds().UpdateStatus(w.t.Context(), crd, metav1.UpdateOptions{}); err != nil {
		w.t.Fatal(err)
	}
}
