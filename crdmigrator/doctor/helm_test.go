package doctor

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/godwit-dev/godwit/internal/fixtest"
	"github.com/godwit-dev/godwit/internal/storageversion/ownerreference"
)

const helmManifest = `---
# Source: shop/templates/store.yaml
apiVersion: example.com/v1beta1
kind: Store
metadata:
  name: shop
---
apiVersion: example.com/v1beta1
kind: Store
metadata: {name: other}
---
apiVersion: example.com/v1
kind: Store
metadata: {name: new}
---
apiVersion: example.com/v1beta1
kind: Shelf
metadata: {name: of-another-kind}
---
`

// helmRelease is a Secret as Helm stores it.
func helmRelease(t *testing.T, compress bool) *helmSecret {
	t.Helper()
	text, err := json.Marshal(map[string]any{
		"name": "shop", "namespace": "web", "manifest": helmManifest,
		"chart": map[string]any{"metadata": map[string]any{"name": "store", "version": "1.0.0"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if compress {
		var b bytes.Buffer
		w := gzip.NewWriter(&b)
		if _, err := w.Write(text); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		text = b.Bytes()
	}
	s := &helmSecret{}
	s.Namespace = "web"
	s.Data.Release = []byte(base64.StdEncoding.EncodeToString(text))
	return s
}

// TestHelmReleaseAtAVersionThatIsNotServed: each helm upgrade of such a release fails.
func TestHelmReleaseAtAVersionThatIsNotServed(t *testing.T) {
	subject := Subject{Owners: ownerreference.Owners{
		CRD: "stores.example.com", Kind: schema.GroupKind{Group: "example.com", Kind: "Store"}, Kept: []string{"v1"}, Target: "v1",
	}}
	for name, compress := range map[string]bool{"compressed": true, "as an old Helm wrote it": false} {
		finder := &helmFinder{subjects: []Subject{subject}}
		finder.visit(helmRelease(t, compress))
		want := []HelmRelease{{CRD: "stores.example.com", Version: "v1beta1", Namespace: "web", Name: "shop", Chart: "store-1.0.0", Objects: 2, Example: "Store/shop"}}
		if diff := cmp.Diff(want, finder.found); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		for _, release := range []bool{false, true} {
			subject.Release = release
			found := For(Facts{Subjects: []Subject{subject}, Helm: finder.found})[0].Findings
			if len(found) != 1 || !found[0].Broken() || !strings.HasPrefix(found[0].Message, "release shop of Helm in namespace web, chart store-1.0.0, has 2 objects at v1beta1") {
				t.Fatalf("%s: %v", name, found)
			}
			if err := fixtest.Check(found[0].Finding); err != nil {
				t.Error(err)
			}
		}
	}
	finder := &helmFinder{subjects: []Subject{subject}}
	finder.visit(&helmSecret{}) // which Helm can't read either
	if len(finder.found) > 0 {
		t.Errorf("an empty Secret: %v", finder.found)
	}
}
