package operator

import (
	"testing"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-dev/godwit/api/v1alpha1"
	"github.com/godwit-dev/godwit/cmd/internal/controller/crdmigration"
	"github.com/godwit-dev/godwit/internal/storageversion/decision"
)

// TestKstatusFollowsAMigration from its creation, which no manager has seen yet, to
// its deletion, as Flux and others who wait by kstatus read it.
func TestKstatusFollowsAMigration(t *testing.T) {
	c := newCluster(t)
	name := "geese." + c.group
	if err := c.Create(t.Context(), &v1alpha1.CRDMigration{ObjectMeta: objectMeta(name)}); err != nil {
		t.Fatal(err)
	}
	c.mustBeKstatus(name, "just created", status.InProgressStatus)

	manager := c.manage("storageVersionMigrator: {scopes: [{group: " + c.group + "}], defaults: {settle: 0s}}")
	c.awaitReason(name, decision.ReasonCRDNotFound.Name)
	c.mustBeKstatus(name, "without a CRD", status.FailedStatus)
	c.define("geese", 3, nil)
	c.awaitReason(name, decision.ReasonSucceeded.Name)
	c.mustBeKstatus(name, "migrated", status.CurrentStatus)
	c.suspend(name, true)
	c.awaitReason(name, crdmigration.ReasonSuspended.Name)
	c.mustBeKstatus(name, "suspended", status.InProgressStatus)
	c.suspend(name, false)
	c.awaitReason(name, decision.ReasonSucceeded.Name)
	manager.mustEnd() // from here on no controller observes the migration

	c.patch(name, `{"spec":{"maxInFlight":2}}`)
	c.mustBeKstatus(name, "changed and not looked at", status.InProgressStatus)
	c.patch(name, `{"metadata":{"finalizers":["example.com/hold"]}}`)
	if err := c.Delete(t.Context(), &v1alpha1.CRDMigration{ObjectMeta: objectMeta(name)}); err != nil {
		t.Fatal(err)
	}
	c.mustBeKstatus(name, "being deleted", status.TerminatingStatus)
	c.patch(name, `{"metadata":{"finalizers":null}}`)
}

func (c *cluster) mustBeKstatus(name, when string, want status.Status) {
	c.t.Helper()
	if got := c.kstatus(&v1alpha1.CRDMigration{ObjectMeta: objectMeta(name)}); got.Status != want {
		c.t.Errorf("%s: kstatus says %s (%s), want %s", when, got.Status, got.Message, want)
	}
}

func (c *cluster) mustHaveKstatus(o client.Object, want status.Status) {
	c.t.Helper()
	if got := c.kstatus(o); got.Status != want {
		c.t.Errorf("%T %s: kstatus says %s (%s), want %s", o, o.GetName(), got.Status, got.Message, want)
	}
}

// kstatus of an object as the server has it.
func (c *cluster) kstatus(of client.Object) *status.Result {
	c.t.Helper()
	kind, err := c.GroupVersionKindFor(of)
	if err != nil {
		c.t.Fatal(err)
	}
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(kind)
	if err := c.Get(c.t.Context(), client.ObjectKeyFromObject(of), o); err != nil {
		c.t.Fatal(err)
	}
	result, err := status.Compute(o)
	if err != nil {
		c.t.Fatal(err)
	}
	return result
}
