package kube

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestCollectionPath(t *testing.T) {
	for want, test := range map[string]struct {
		resource  schema.GroupVersionResource
		namespace string
	}{
		"api/v1/secrets":                                 {schema.GroupVersionResource{Version: "v1", Resource: "secrets"}, ""},
		"api/v1/namespaces/shop/secrets":                 {schema.GroupVersionResource{Version: "v1", Resource: "secrets"}, "shop"},
		"apis/apps/v1/namespaces/shop/deployments":       {schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}, "shop"},
		"apis/rbac.authorization.k8s.io/v1/clusterroles": {schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterroles"}, ""},
	} {
		if got := strings.Join(CollectionPath(test.resource, test.namespace), "/"); got != want {
			t.Errorf("the path of %v in %q is %s, want %s", test.resource, test.namespace, got, want)
		}
	}
}
