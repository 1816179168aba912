package crdmigrator

import (
	"fmt"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/godwit-dev/godwit/internal/storageversion/decision"
)

// laggingDiscovery is a client whose discovery document does not name the resource yet.
type laggingDiscovery struct {
	meta.RESTMapper
	err error
}

func (l laggingDiscovery) KindFor(schema.GroupVersionResource) (schema.GroupVersionKind, error) {
	return schema.GroupVersionKind{}, l.err
}

// TestNewCRDWhoseDiscoveryLags is a 404 of the API server, which passes by itself.
func TestNewCRDWhoseDiscoveryLags(t *testing.T) {
	t.Parallel()
	widgets := schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}
	missing := apierrors.NewNotFound(schema.GroupResource{}, "")
	for name, err := range map[string]error{
		"no match":   &meta.NoResourceMatchError{PartialResource: widgets},
		"no group":   &apiutil.ErrResourceDiscoveryFailed{widgets.GroupVersion(): missing},
		"as a cause": fmt.Errorf("look up the kind: %w", &meta.NoKindMatchError{GroupKind: schema.GroupKind{Group: "example.com", Kind: "Widget"}}),
	} {
		_, err := listThrough(nil, laggingDiscovery{err: err})(t.Context(), widgets, 1, "")
		crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "widgets.example.com"}}
		if e := decision.Unlisted(crd, err); e.Reason != decision.ReasonNotServed {
			t.Errorf("%s: %v, want %s", name, e, decision.ReasonNotServed)
		}
	}
}
