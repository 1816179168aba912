package objects

import (
	"context"
	"fmt"
	"path/filepath"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/godwit-dev/godwit/test/controlplane"
	"github.com/godwit-dev/godwit/test/gomodule"
)

const (
	module = "sigs.k8s.io/gateway-api"
	// before stores v1beta1, after stores v1; both serve both.
	before = "v1.0.0"
	after  = "v1.4.0"

	group      = "gateway.networking.k8s.io"
	oldVersion = "v1beta1"
	newVersion = "v1"
)

// plurals are the resources of which v1.0.0 and v1.4.0 have the same versions.
var plurals = []string{"gatewayclasses", "gateways", "httproutes"}

var kinds = map[string]string{"gatewayclasses": "GatewayClass", "gateways": "Gateway", "httproutes": "HTTPRoute"}

func crdName(plural string) string { return plural + "." + group }

func resource(plural, version string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: group, Version: version, Resource: plural}
}

// releasedCRDs reads the CRDs of one release, in the order of plurals. The module cache has
// them as released, with their checksum.
func releasedCRDs(ctx context.Context, version string) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	dir, err := gomodule.Dir(ctx, module+"@"+version)
	if err != nil {
		return nil, fmt.Errorf("read the CRDs of the Gateway API: %w", err)
	}
	var all []*apiextensionsv1.CustomResourceDefinition
	for _, plural := range plurals {
		crds, err := controlplane.ReadCRDs(filepath.Join(dir, "config", "crd", "standard", group+"_"+plural+".yaml"))
		if err != nil {
			return nil, err
		}
		all = append(all, crds...)
	}
	return all, nil
}
