package operator

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/godwit-dev/godwit/api/v1alpha1"
)

func TestKindThatIsNotInstalledIsNamedAtTheStart(t *testing.T) {
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{v1alpha1.GroupVersion})
	if err := installed(mapper, "CRDMigration"); err == nil || !strings.Contains(err.Error(), "kubectl apply --server-side -f crds.yaml") {
		t.Errorf("%v, want an error with the command that installs it", err)
	}
	mapper.Add(v1alpha1.GroupVersion.WithKind("CRDMigration"), meta.RESTScopeRoot)
	if err := installed(mapper, "CRDMigration"); err != nil {
		t.Error(err)
	}
}
