package operator

import (
	"fmt"
	"strings"
	"syscall"
	"testing"

	eventsv1 "k8s.io/api/events/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/godwit-dev/godwit/api/v1alpha1"
	"github.com/godwit-dev/godwit/internal/storageversion/decision"
)

// TestNewCRDIsNoErrorOfTheManager: the manager learns of a CRD, and of a CRDMigration
// that comes with it, before the API server serves it.
func TestNewCRDIsNoErrorOfTheManager(t *testing.T) {
	c := newCluster(t)
	old := c.define("geese", 1, optedIn)
	manager := c.manage("storageVersionMigrator: {scopes: [{group: " + c.group + "}], defaults: {settle: 0s}}")
	c.flip(old)
	c.awaitReason(old, decision.ReasonSucceeded.Name) // it is running
	names := []string{}
	for i := range 6 {
		crd := &apiextensionsv1.CustomResourceDefinition{
			ObjectMeta: objectMeta(fmt.Sprintf("ducks%d.%s", i, c.group)),
			Spec: apiextensionsv1.CustomResourceDefinitionSpec{
				Group: c.group, Scope: apiextensionsv1.ClusterScoped,
				Names:    apiextensionsv1.CustomResourceDefinitionNames{Plural: fmt.Sprintf("ducks%d", i), Kind: fmt.Sprintf("Duck%d", i)},
				Versions: []apiextensionsv1.CustomResourceDefinitionVersion{version("v1", true, true)},
			},
		}
		crd.Labels = optedIn
		if err := c.Create(t.Context(), crd); err != nil {
			t.Fatal(err)
		}
		if err := c.Create(t.Context(), &v1alpha1.CRDMigration{ObjectMeta: objectMeta(crd.Name)}); err != nil {
			t.Fatal(err)
		}
		names = append(names, crd.Name)
	}
	for _, name := range names {
		c.awaitReason(name, decision.ReasonSucceeded.Name)
	}
	manager.end(syscall.SIGTERM) // its events are sent, and its log is complete
	for line := range strings.Lines(manager.stderr.String()) {
		ended := strings.Contains(line, "context canceled") // by SIGTERM, in the middle of a request
		if strings.Contains(line, `"level":"error"`) && !ended {
			t.Errorf("logged as an error: %s", line)
		}
	}
	recorded := &eventsv1.EventList{}
	if err := c.List(t.Context(), recorded); err != nil {
		t.Fatal(err)
	}
	for _, e := range recorded.Items {
		if e.Type == "Warning" && strings.HasSuffix(e.Regarding.Name, c.group) {
			t.Errorf("warned about %s: %s: %s", e.Regarding.Name, e.Reason, e.Note)
		}
	}
}
