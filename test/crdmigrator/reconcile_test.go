package crdmigrator_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/godwit-dev/godwit/crdmigrator"
)

func TestReconcile_HappyPathTrimsStoredVersions(t *testing.T) {
	t.Parallel()
	w := newWidgets(t, shared)
	w.fill("v1", 30)
	w.flip()
	w.label(crdmigrator.AutoMigrateLabel, crdmigrator.AutoMigrateValue)
	o := newOperator(w, func(o *operator) { o.migrator.Selector = crdmigrator.Selector{Group: w.group} })
	o.start()
	o.awaitAnnotation(crdmigrator.ObservedGenerationAnnotation, strconv.FormatInt(w.crd().Generation, 10))
	w.mustBeStored("after the reconciliation", map[string]int{"v2": 30})
	w.mustHaveStoredVersions("after the reconciliation", "v2")
	puts := o.requests.matching(func(r string) bool { return strings.HasPrefix(r, "PUT /apis/"+w.group+"/v2/") })
	if len(puts) != 30 {
		t.Errorf("%d updates for 30 objects", len(puts))
	}
}
