package main

import (
	"context"
	"fmt"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/godwit-dev/godwit/bench/internal/frame"
	"github.com/godwit-dev/godwit/test/controlplane"
)

const (
	// group has all CRDs.
	group = "plan.bench.example.com"
	// schemaBytes is the size of each schema.
	schemaBytes = 40 << 10
	// objectsEach is more than one, so that the plan also checks whether all objects can be read.
	objectsEach = 2
	// creators create CRDs in parallel. More would only wait for the API server.
	creators = 8
)

// populate creates CRDs with objects. Every third CRD has another storage version than its objects.
func populate(ctx context.Context, config *rest.Config, n int) error {
	objects, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	return frame.Times(n, creators, func(i int) error {
		crd := newCRD(i, "v1")
		if err := controlplane.InstallCRDs(ctx, config, crd); err != nil {
			return err
		}
		of := objects.Resource(schema.GroupVersionResource{Group: group, Version: "v1", Resource: crd.Spec.Names.Plural}).Namespace(metav1.NamespaceDefault)
		for j := range objectsEach {
			o := &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": group + "/v1", "kind": crd.Spec.Names.Kind, "metadata": map[string]any{"name": fmt.Sprintf("one%d", j)},
			}}
			if _, err := of.Create(ctx, o, metav1.CreateOptions{}); err != nil {
				return err
			}
		}
		if i%3 != 0 {
			return nil
		}
		_, err := controlplane.UpdateCRD(ctx, config, crd.Name, func(c *apiextensionsv1.CustomResourceDefinition) {
			c.Spec.Versions = newCRD(i, "v2").Spec.Versions
		})
		return err
	})
}

func newCRD(i int, storage string) *apiextensionsv1.CustomResourceDefinition {
	version := func(name string) apiextensionsv1.CustomResourceDefinitionVersion {
		return apiextensionsv1.CustomResourceDefinitionVersion{
			Name: name, Served: true, Storage: name == storage,
			Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
				Type: "object", XPreserveUnknownFields: new(true), Description: strings.Repeat("A word of the documentation. ", schemaBytes/2/29),
			}},
		}
	}
	plural := fmt.Sprintf("kind%03ds", i)
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: plural + "." + group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: group, Scope: apiextensionsv1.NamespaceScoped, Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: plural, Kind: fmt.Sprintf("Kind%03d", i)},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{version("v1"), version("v2")},
		},
	}
}

// writeContexts writes a kubeconfig whose contexts all have the same user and API server.
func writeContexts(path string, user *rest.Config, names []string) error {
	content, err := controlplane.Kubeconfig(user)
	if err != nil {
		return err
	}
	config, err := clientcmd.Load(content)
	if err != nil {
		return err
	}
	only := config.Contexts[config.CurrentContext]
	config.Contexts = map[string]*clientcmdapi.Context{}
	for _, name := range names {
		config.Contexts[name] = only
	}
	config.CurrentContext = names[0]
	return clientcmd.WriteToFile(*config, path)
}
