package crdmigrator_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/godwit-dev/godwit/crdmigrator"
)

// TestCRDWhoseObjectsCannotBeListedIsNotMarked: the pass has not read the managedFields of
// the objects, so that the generation must not count as done.
func TestCRDWhoseObjectsCannotBeListedIsNotMarked(t *testing.T) {
	t.Parallel()
	w := newWidgets(t, shared)
	w.fill("v1", 3)
	w.setVersions(version("v1", false, true), version("v2", true, false))
	w.label(crdmigrator.AutoMigrateLabel, crdmigrator.AutoMigrateValue)
	o := newOperator(w, func(o *operator) { o.migrator.Selector = crdmigrator.Selector{Group: w.group} })
	if _, err := o.migrator.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: w.name}}); err == nil {
		t.Error("a pass that saw no object reports no error")
	}
	if mark, ok := w.crd().Annotations[crdmigrator.ObservedGenerationAnnotation]; ok {
		t.Errorf("generation %s counts as done, though its objects can't be listed", mark)
	}
}
