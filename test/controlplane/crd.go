package controlplane

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/yaml"

	"github.com/godwit-dev/godwit/test/process"
)

// ReadCRDs reads the CRDs in the files of a pattern, in the order of the files.
func ReadCRDs(pattern string) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	files, err := filepath.Glob(pattern)
	if err != nil {
		return nil, fmt.Errorf("read CRDs: %w", err)
	}
	var all []*apiextensionsv1.CustomResourceDefinition
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("read CRDs: %w", err)
		}
		crds, err := DecodeCRDs(text)
		if err != nil {
			return nil, fmt.Errorf("read CRDs of %s: %w", file, err)
		}
		all = append(all, crds...)
	}
	return all, nil
}

// DecodeCRDs decodes the CustomResourceDefinitions of a YAML or JSON file, such as a project's release manifest, and
// skips objects of other kinds. An unknown field is an error.
func DecodeCRDs(file []byte) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	var crds []*apiextensionsv1.CustomResourceDefinition
	documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(file)))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return crds, nil
		}
		if err != nil {
			return nil, fmt.Errorf("split YAML documents: %w", err)
		}
		var kind metav1.TypeMeta
		if err := yaml.Unmarshal(document, &kind); err != nil {
			return nil, fmt.Errorf("decode the kind of a YAML document: %w", err)
		}
		if kind.GroupVersionKind() != apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition") {
			continue
		}
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.UnmarshalStrict(document, crd); err != nil {
			return nil, fmt.Errorf("decode CustomResourceDefinition: %w", err)
		}
		crds = append(crds, crd)
	}
}

// InstallCRDs creates the CRDs, and returns when AwaitServed succeeds for each. It does not change its arguments.
func InstallCRDs(ctx context.Context, config *rest.Config, crds ...*apiextensionsv1.CustomResourceDefinition) error {
	clients, err := clientset.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("connect to %s: %w", config.Host, err)
	}
	for _, crd := range crds {
		if _, err := clients.ApiextensionsV1().CustomResourceDefinitions().Create(ctx, crd, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("create CRD %s: %w", crd.Name, err)
		}
	}
	for _, crd := range crds {
		if err := AwaitServed(ctx, config, crd.Name); err != nil {
			return err
		}
	}
	return nil
}

// UpdateCRD changes a CRD, retries after a conflict, and returns the CRD when AwaitServed succeeds. It does not wait
// until the API servers have adopted a changed storage version, which no API shows.
func UpdateCRD(
	ctx context.Context, config *rest.Config, name string, change func(*apiextensionsv1.CustomResourceDefinition),
) (*apiextensionsv1.CustomResourceDefinition, error) {
	clients, err := clientset.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", config.Host, err)
	}
	var updated *apiextensionsv1.CustomResourceDefinition
	err = retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		crd, err := clients.ApiextensionsV1().CustomResourceDefinitions().Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		change(crd)
		updated, err = clients.ApiextensionsV1().CustomResourceDefinitions().Update(ctx, crd, metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("update CRD %s: %w", name, err)
	}
	return updated, AwaitServed(ctx, config, name)
}

// AwaitServed returns when the CRD is established and the discovery of the server of config shows exactly the versions
// that the CRD serves. Discovery follows the server's handlers, so that a request then finds its version.
func AwaitServed(ctx context.Context, config *rest.Config, name string) error {
	clients, err := clientset.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("connect to %s: %w", config.Host, err)
	}
	return process.Poll(ctx, "CRD "+name+" to be served", func(ctx context.Context) error {
		crd, err := clients.ApiextensionsV1().CustomResourceDefinitions().Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if err := checkEstablished(crd); err != nil {
			return err
		}
		shown, err := discoveredVersions(ctx, clients.Discovery(), crd)
		if err != nil {
			return err
		}
		served := sets.New[string]()
		for _, version := range crd.Spec.Versions {
			if version.Served {
				served.Insert(version.Name)
			}
		}
		if !shown.Equal(served) {
			return fmt.Errorf("discovery shows versions %v, the CRD serves %v", sets.List(shown), sets.List(served))
		}
		return nil
	})
}

// checkEstablished prefers the condition with the cause: another CRD may have the names for ever.
func checkEstablished(crd *apiextensionsv1.CustomResourceDefinition) error {
	for _, condition := range crd.Status.Conditions {
		switch {
		case condition.Type == apiextensionsv1.NamesAccepted && condition.Status != apiextensionsv1.ConditionTrue:
			return fmt.Errorf("names are not accepted: %s", condition.Message)
		case condition.Type == apiextensionsv1.Established && condition.Status == apiextensionsv1.ConditionTrue:
			return nil
		}
	}
	return errors.New("it is not established")
}

// discoveredVersions reads the aggregated discovery, as kubectl and client libraries do to map a kind to a resource.
func discoveredVersions(
	ctx context.Context, client discovery.DiscoveryInterface, crd *apiextensionsv1.CustomResourceDefinition,
) (sets.Set[string], error) {
	_, lists, err := discovery.ToDiscoveryInterfaceWithContext(client).ServerGroupsAndResourcesWithContext(ctx)
	// Another group may fail, in a test that breaks one on purpose.
	if err != nil && !discovery.IsGroupDiscoveryFailedError(err) {
		return nil, err
	}
	versions := sets.New[string]()
	for _, list := range lists {
		groupVersion, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return nil, err
		}
		isCRDs := func(r metav1.APIResource) bool { return r.Name == crd.Spec.Names.Plural }
		if groupVersion.Group == crd.Spec.Group && slices.ContainsFunc(list.APIResources, isCRDs) {
			versions.Insert(groupVersion.Version)
		}
	}
	return versions, nil
}
