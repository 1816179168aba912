package crdmigrator_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/godwit-dev/godwit/crdmigrator"
)

// TestNewCRDIsNoErrorOfARunningOperator: the operator learns of a CRD before the API
// server serves it.
func TestNewCRDIsNoErrorOfARunningOperator(t *testing.T) {
	t.Parallel()
	w := newWidgets(t, shared)
	said := &recorder{}
	o := newOperator(w, func(o *operator) {
		o.migrator.Selector, o.migrator.Recorder = crdmigrator.Selector{Group: w.group}, said
	})
	o.start()
	<-o.manager.Elected()
	const n = 8
	for i := range n {
		crd := (&widgets{group: w.group, plural: fmt.Sprintf("gadgets%d", i), kind: fmt.Sprintf("Gadget%d", i), name: fmt.Sprintf("gadgets%d.%s", i, w.group)}).definition()
		crd.Labels = map[string]string{crdmigrator.AutoMigrateLabel: crdmigrator.AutoMigrateValue}
		if _, err := w.definitions().Create(t.Context(), crd, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	await(t, "a look at the objects of each CRD", func() bool {
		looked := map[string]bool{}
		for _, r := range o.requests.matching(func(r string) bool { return strings.HasPrefix(r, http.MethodGet) && strings.Contains(r, "limit=100") }) {
			path, _, _ := strings.Cut(r, "?")
			looked[path] = true
		}
		return len(looked) == n
	})
	if errs := o.logs.errors(); len(errs) > 0 {
		t.Errorf("logged as errors: %q", errs)
	}
	if warnings := said.warnings(); len(warnings) > 0 {
		t.Errorf("warned: %+v", warnings)
	}
}
