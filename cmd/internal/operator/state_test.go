package operator

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-dev/godwit/api/v1alpha1"
	"github.com/godwit-dev/godwit/internal/format"
	"github.com/godwit-dev/godwit/internal/format/formattest"
	"github.com/godwit-dev/godwit/internal/storageversion"
)

// TestManagerAndOtherReleases: the checkpoint of v0.1.0 in the status of a CRDMigration has each field of the current one, and the
// manager resumes from it. A CRDMigration of a newer release is left alone, with a condition and an event, while the manager
// migrates others; it is migrated when the newer state is gone.
func TestManagerAndOtherReleases(t *testing.T) {
	frozen := formattest.Frozen(t, "checkpoint.json")
	formattest.Same[v1alpha1.Checkpoint](t, frozen)
	c := newCluster(t)
	group := "storageVersionMigrator: {scopes: [{group: formats.example.com, labelSelector: {matchLabels: {migrate: never}}}], defaults: {settle: 0s}}"
	const objects = 5
	names := map[string]string{}
	for _, plural := range []string{"oldests", "newers", "marks"} {
		names[plural] = c.define(plural, objects, nil)
		c.flip(names[plural])
		m := &v1alpha1.CRDMigration{ObjectMeta: metav1.ObjectMeta{Name: names[plural]}}
		if plural == "marks" {
			m.Annotations = map[string]string{format.Annotation: "2"}
		}
		if err := c.Create(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	// For v0.1.0, all objects were written after the first resourceVersion, so that a manager that resumes writes none.
	crd := c.crd(names["oldests"])
	c.checkpoint(names["oldests"], strings.NewReplacer(
		"1000001", strconv.FormatInt(crd.Generation, 10), "00000000-0000-4000-8000-000000000001", string(crd.UID),
		"1000002", "1", `"cursor":"default/o-039",`, "", `"settled":"1m15s"`, `"settled":"0s"`, `"acceptedStaleLeases":true,`, "",
	).Replace(frozen))
	newer := `{"format":2,"crdUID":"u","generation":1,"storageVersion":"v2","resourceVersion":"1"}`
	c.checkpoint(names["newers"], newer)

	p := c.manage(group)
	c.awaitReason(names["oldests"], v1alpha1.ReasonSucceeded)
	c.mustBeStored(names["oldests"], map[string]int{"v1": objects})
	for _, plural := range []string{"newers", "marks"} {
		m := c.awaitReason(names[plural], v1alpha1.ReasonBlocked)
		blocked := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionBlocked)
		if blocked == nil || blocked.Status != metav1.ConditionTrue || blocked.Reason != storageversion.ReasonNewerFormat ||
			!strings.Contains(blocked.Message, "crdmigration "+names[plural]+" has format") || !strings.Contains(blocked.Message, "reads format 1") {
			t.Errorf("%s: condition %+v", plural, blocked)
		}
		c.await("an event about "+names[plural], func() bool {
			list := &eventsv1.EventList{}
			return c.List(t.Context(), list) == nil && slices.ContainsFunc(list.Items, func(e eventsv1.Event) bool {
				return e.Regarding.Name == names[plural] && e.Type == "Warning" && strings.Contains(e.Note, "a newer release wrote it")
			})
		})
		c.mustBeStored(names[plural], map[string]int{"v1": objects})
		if got := c.storedVersions(names[plural]); got != "v1,v2" {
			t.Errorf("%s: storedVersions are %s", plural, got)
		}
	}
	if m := c.migration(names["newers"]); m.Status.Checkpoint.Format != 2 {
		t.Errorf("the checkpoint is now %+v", m.Status.Checkpoint)
	}
	time.Sleep(time.Second)
	p.mustEnd() // it has not ended by itself

	c.checkpoint(names["newers"], "null")
	c.patch(names["marks"], `{"metadata":{"annotations":{"`+format.Annotation+`":null}}}`)
	c.manage(group)
	for _, plural := range []string{"newers", "marks"} {
		c.awaitReason(names[plural], v1alpha1.ReasonSucceeded)
		c.mustBeStored(names[plural], map[string]int{"v2": objects})
	}
}

// checkpoint writes status.checkpoint.
func (c *cluster) checkpoint(name, text string) {
	c.t.Helper()
	m := &v1alpha1.CRDMigration{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if err := c.Status().Patch(c.t.Context(), m, client.RawPatch(types.MergePatchType, []byte(`{"status":{"checkpoint":`+text+`}}`))); err != nil {
		c.t.Fatal(err)
	}
}

func (c *cluster) crd(name string) *apiextensionsv1.CustomResourceDefinition {
	c.t.Helper()
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := c.Get(c.t.Context(), client.ObjectKey{Name: name}, crd); err != nil {
		c.t.Fatal(err)
	}
	return crd
}
