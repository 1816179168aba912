package crdmigrator_test

import (
	"net/http"
	"slices"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/godwit-dev/godwit/crdmigrator"
	"github.com/godwit-dev/godwit/test/policy"
)

// The error handling of Cluster API's crdmigrator as a table, a test for each
// row, in its order:
//
//	observed                      action                         test TestErrors_…
//	migration failed              return an error, no annotation RetryAFailedMigration
//	cleanup failed                return an error, no annotation RetryAFailedCleanup
//	patch of CRD failed           return an error                ReturnAFailedPatchOfTheCRD
//	optimistic lock conflict      requeue with the new state     ReadAgainACRDThatChangedBeforeTheTrim

// No event starts another pass after the last one: the operator's controller retries.
func TestErrors_RetryAFailedMigration(t *testing.T) {
	t.Parallel()
	w := newWidgets(t, shared)
	w.fill("v1", 5)
	w.flip()
	h := w.newWebhook(deny("w-0003"))
	w.awaitRefused("w-0003", denied)
	last := newBell(w)
	c := w.embed(embedding{})
	c.start()
	await(c.t, "all but one to be migrated", func() bool { return w.stored()["v2"] == 4 })
	w.mustLeave("with one denied", outcome{Stored: map[string]int{"v1": 1, "v2": 4}, StoredVersions: "v1,v2"})
	last.ring(c)
	h.setDecide(allow)
	c.awaitObserved()
	w.mustLeave("once it is allowed", cleaned(5))
}

// The difference: a failed cleanup does not delay the trim, because no object is at the
// old version any more.
func TestErrors_RetryAFailedCleanup(t *testing.T) {
	t.Parallel()
	w := newWidgets(t, shared)
	w.fill("v1", 5)
	w.flip()
	h := w.newWebhook(deny("w-0003"))
	w.awaitRefused("w-0003", denied)
	w.unserve()
	last := newBell(w)
	c := w.embed(embedding{version: "v2", by: byStatus}) // the webhook applies to cleanups only
	c.start()
	await(c.t, "the trim", func() bool { return w.storedVersions() == "v2" })
	await(c.t, "the others to be cleaned", func() bool {
		return slices.Equal(w.entries("w-0004"), []string{"crdmigrator.test Update v2"})
	})
	w.mustHaveEntries("with one denied", "w-0003", "crdmigrator.test Update v1")
	w.mustLeave("with one denied", outcome{Stored: map[string]int{"v2": 5}, StoredVersions: "v2"})
	last.ring(c)
	h.setDecide(allow)
	c.awaitObserved()
	w.mustHaveEntries("once it is allowed", "w-0003", "crdmigrator.test Update v2")
}

func TestErrors_ReturnAFailedPatchOfTheCRD(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		resource, accepts string
		reason            metav1.StatusReason // of the denial
		body              string              // of a patch that is denied
		want              outcome
	}{
		"trim": {
			resource: "customresourcedefinitions/status", accepts: "size(object.status.storedVersions) != 1",
			reason: metav1.StatusReasonForbidden, body: `{"status":{"storedVersions":["v2"]}}`,
			want: outcome{Stored: map[string]int{"v2": 3}, StoredVersions: "v1,v2"},
		},
		"trim denied as invalid": {
			resource: "customresourcedefinitions/status", accepts: "size(object.status.storedVersions) != 1",
			reason: metav1.StatusReasonInvalid, body: `{"status":{"storedVersions":["v2"]}}`,
			want: outcome{Stored: map[string]int{"v2": 3}, StoredVersions: "v1,v2"},
		},
		"annotation": {
			resource: "customresourcedefinitions",
			accepts: "!has(object.metadata.annotations) || !('" + crdmigrator.ClusterAPIObservedGenerationAnnotation +
				"' in object.metadata.annotations)",
			reason: metav1.StatusReasonForbidden,
			body:   `{"metadata":{"annotations":{"` + crdmigrator.ClusterAPIObservedGenerationAnnotation + `":"7"}}}`,
			want:   outcome{Stored: map[string]int{"v2": 3}, StoredVersions: "v2"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWidgets(t, shared)
			w.fill("v1", 3)
			w.flip()
			c := w.embed(embedding{})
			lift := w.forbid(tc.resource, tc.accepts, tc.reason, tc.body)
			if _, err := c.mustFail(); err != nil && apierrors.ReasonForError(err) != tc.reason {
				t.Errorf("the error is %v, want the API server's answer", err)
			}
			w.mustLeave("the patch was denied", tc.want)
			lift()
			await(t, "the patch to go through", func() bool { _, err := c.reconcile(); return err == nil })
			w.mustLeave("in the end", cleaned(3))
		})
	}
}

// forbid creates a policy that denies writes of the CRD for which an expression is false,
// until it is lifted. It returns once body is denied.
func (w *widgets) forbid(resource, accepts string, reason metav1.StatusReason, body string) (lift func()) {
	w.t.Helper()
	denial := policy.Policy{
		Name: "crd-of-" + w.group, Group: crdsGroup, Resource: resource, Names: []string{w.name},
		Validations: []admissionregistrationv1.Validation{{Expression: accepts, Reason: &reason}},
	}
	if err := denial.Create(w.t.Context(), w.admission()); err != nil {
		w.t.Fatal(err)
	}
	var subresource []string
	if resource == "customresourcedefinitions/status" {
		subresource = []string{"status"}
	}
	await(w.t, "the policy to be in force", func() bool {
		_, err := w.crds().Patch(w.t.Context(), w.name, types.MergePatchType, []byte(body),
			metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}}, subresource...)
		return apierrors.ReasonForError(err) == reason
	})
	return func() {
		if err := denial.Delete(w.t.Context(), w.admission()); err != nil {
			w.t.Fatal(err)
		}
	}
}

// The difference: a change is no error; the migrator starts again at once, with the new
// generation.
func TestErrors_ReadAgainACRDThatChangedBeforeTheTrim(t *testing.T) {
	t.Parallel()
	w := newWidgets(t, shared)
	w.fill("v1", 5)
	w.flip()
	changed := false
	c := w.embed(embedding{wire: before(func(r *http.Request) {
		if patches(r, "status") && !changed {
			changed = true
			if err := w.trySetVersions(version("v1", true, false), version("v2", true, false), version("v3", true, true)); err != nil {
				t.Error(err)
			}
		}
	})})
	result, err := c.reconcile()
	mustWait(t, result, err, 2*time.Second)
	w.mustLeave("the CRD changed before the trim", outcome{Stored: map[string]int{"v2": 5}, StoredVersions: "v1,v2,v3"})

	w.awaitStoring("v3")
	c.mustReconcile()
	w.mustLeave("in the end", outcome{Stored: map[string]int{"v3": 5}, StoredVersions: "v3", Observed: true})
}
