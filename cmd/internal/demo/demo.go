package demo

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensionsclient "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset/typed/apiextensions/v1"
)

// demo is one run of the demo of stored objects.
type demo struct {
	stage
	before []*apiextensionsv1.CustomResourceDefinition
	after  []*apiextensionsv1.CustomResourceDefinition
	crds   apiextensionsclient.CustomResourceDefinitionInterface
	freeze freeze

	created  map[string]int    // objects by resource
	total    int               // of them
	upgraded map[string]string // every object as it was read after the upgrade
}
