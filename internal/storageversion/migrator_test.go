package storageversion

import (
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/godwit-dev/godwit/internal/storageversion/decision"
)

// TestForget: a process that stays sees many CRDs come and go.
func TestForget(t *testing.T) {
	m, err := New(&rest.Config{}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "widgets.example.com", UID: "1"}}
	m.observeLeases(decision.Facts{CRD: crd, Now: time.Now()})
	if len(m.leases) != 1 {
		t.Fatalf("%d histories after a reading for one CRD", len(m.leases))
	}
	if m.Forget(crd.Name); len(m.leases) != 0 {
		t.Errorf("%d histories of a CRD that is gone", len(m.leases))
	}
}
