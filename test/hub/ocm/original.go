package ocm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/godwit-dev/godwit/test/controlplane"
	"github.com/godwit-dev/godwit/test/process"
)

// images are what the import controller writes into Deployments. Nothing runs them.
const images = "registry.example.com/ocm"

// crds returns the CRDs that the import controller watches. One that theirs have as well is replaced.
func (o Original) crds(theirs []*apiextensionsv1.CustomResourceDefinition) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	if o.Source == "" {
		return theirs, nil
	}
	var all []*apiextensionsv1.CustomResourceDefinition
	for _, pattern := range []string{"deploy/base/*.crd.yaml", "test/e2e/resources/*/*.yaml"} {
		crds, err := controlplane.ReadCRDs(filepath.Join(o.Source, filepath.FromSlash(pattern)))
		if err != nil {
			return nil, fmt.Errorf("read the CRDs of the import controller: %w", err)
		}
		all = append(all, crds...)
	}
	for _, crd := range theirs {
		if !slices.ContainsFunc(all, func(c *apiextensionsv1.CustomResourceDefinition) bool { return c.Name == crd.Name }) {
			all = append(all, crd)
		}
	}
	return all, nil
}

// prepare creates the objects of a hub's platform from which the import controller reads the address of the hub.
func (o Original) prepare(ctx context.Context, h *Hub) error {
	if o.Source == "" {
		return nil
	}
	infrastructure := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"name": "cluster"}, "spec": map[string]any{},
		"status": map[string]any{"apiServerURL": h.Config().Host, "apiServerInternalURI": h.Config().Host, "infrastructureName": h.Name},
	}}
	infrastructure.SetGroupVersionKind(schema.GroupVersionKind{Group: "config.openshift.io", Version: "v1", Kind: "Infrastructure"})
	if err := h.Client.Create(ctx, infrastructure); err != nil {
		return fmt.Errorf("create the Infrastructure of %s: %w", h.Name, err)
	}
	return nil
}

// run starts the import controller of a hub.
func (o Original) run(h *Hub) (*process.Process, error) {
	root, err := root()
	if err != nil {
		return nil, err
	}
	program := filepath.Join(root, "bin", "import-controller")
	if _, err := os.Stat(program); err != nil {
		return nil, fmt.Errorf("find the program of the import controller: run `make e2e-hub-import %s=FOLDER`: %w", sourceVariable, err)
	}
	kubeconfig := filepath.Join(h.Dir(), "import.kubeconfig")
	if err := controlplane.WriteKubeconfig(kubeconfig, h.Config()); err != nil {
		return nil, err
	}
	out, err := os.OpenFile(h.ImportLog(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open log: %w", err)
	}
	defer func() { _ = out.Close() }() // the process has its own
	// A registration by the agent itself would need a port that each hub shares.
	command := exec.Command(program, "--leader-election-namespace="+h.bootstrapNamespace, "--feature-gates=AgentRegistration=false", "-v=5")
	command.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig, "POD_NAMESPACE="+h.bootstrapNamespace, "POD_NAME=import-controller", "MAX_CONCURRENT_RECONCILES=10",
		"DEFAULT_IMAGE_REGISTRY="+images, "REGISTRATION_OPERATOR_IMAGE="+images+"/operator", "REGISTRATION_IMAGE="+images+"/registration",
		"WORK_IMAGE="+images+"/work", "TLS_PROFILE_SYNC_IMAGE="+images+"/tls")
	command.Stdout, command.Stderr = out, out
	return process.Start("import controller of "+h.Name, command)
}

// ImportLog returns the path of the file with the output of the original import controller.
func (h *Hub) ImportLog() string { return filepath.Join(h.Dir(), "import-controller.log") }

// imported returns the manifests with which the import controller of the hub imports a cluster: first the CRDs. It returns none until the
// controller has written them.
func (h *Hub) imported(ctx context.Context, name string) ([]*unstructured.Unstructured, error) {
	secret := &corev1.Secret{}
	if err := h.Client.Get(ctx, client.ObjectKey{Namespace: name, Name: name + "-import"}, secret); err != nil {
		return nil, err
	}
	var all []*unstructured.Unstructured
	for _, key := range []string{"crds.yaml", "import.yaml"} {
		objects, err := objectsOf(secret.Data[key])
		if err != nil {
			return nil, fmt.Errorf("read %s of Secret %s: %w", key, secret.Name, err)
		}
		all = append(all, objects...)
	}
	if len(all) == 0 {
		return nil, errors.New("the import controller has written no manifest of cluster " + name)
	}
	return all, nil
}

// ImportedBootstrap returns the bootstrap kubeconfig with which the import controller would import a cluster now.
func (h *Hub) ImportedBootstrap(ctx context.Context, name string) ([]byte, error) {
	objects, err := h.imported(ctx, name)
	if err != nil {
		return nil, err
	}
	for _, o := range objects {
		if o.GetKind() != "Secret" || o.GetName() != singleHub {
			continue
		}
		secret := &corev1.Secret{}
		text, err := o.MarshalJSON()
		if err != nil {
			return nil, err
		}
		if err := yaml.Unmarshal(text, secret); err != nil {
			return nil, err
		}
		return secret.Data[kubeconfigKey], nil
	}
	return nil, fmt.Errorf("import Secret %s-import has no %s", name, singleHub)
}

// objectsOf reads the documents of a manifest.
func objectsOf(manifest []byte) ([]*unstructured.Unstructured, error) {
	var all []*unstructured.Unstructured
	for document := range bytes.SplitSeq(manifest, []byte("\n---\n")) {
		if strings.TrimSpace(string(document)) == "" {
			continue
		}
		o := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(document, &o.Object); err != nil {
			return nil, err
		}
		if len(o.Object) > 0 {
			all = append(all, o)
		}
	}
	return all, nil
}
