package decision

import (
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/godwit-dev/godwit/internal/fixtest"
)

func TestKeyOfOtherScope(t *testing.T) {
	namespaced, cluster := widgetCRD(), widgetCRD()
	namespaced.Spec.Scope, cluster.Spec.Scope = apiextensionsv1.NamespaceScoped, apiextensionsv1.ClusterScoped
	cases := map[string]struct {
		key                 string
		namespaced, cluster bool // whether it is of another scope than such a CRD
	}{
		"with a namespace":            {"/registry/example.com/widgets/shop/a", false, true},
		"without a namespace":         {"/registry/example.com/widgets/a", true, false},
		"with another prefix":         {"/kubernetes.io/example.com/widgets/shop/a", false, true},
		"of another resource":         {"/registry/example.com/gadgets/shop/a", false, false},
		"none":                        {"", false, false},
		"in a namespace of that name": {"/registry/example.com/widgets/widgets/a", false, true},
	}
	for name, tc := range cases {
		if got := KeyOfOtherScope(namespaced, tc.key); got != tc.namespaced {
			t.Errorf("%s, CRD namespaced: %v", name, got)
		}
		if got := KeyOfOtherScope(cluster, tc.key); got != tc.cluster {
			t.Errorf("%s, CRD cluster-scoped: %v", name, got)
		}
	}
	if err := fixtest.Check(OtherScope(cluster, Unreachable{Objects: 2, Example: "shop/a"})); err != nil {
		t.Error(err)
	}
}
