package operators_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsinstall "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/install"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensionsv1beta1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1beta1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/godwit-dev/godwit/test/gomodule"
	"github.com/godwit-dev/godwit/test/program"
)

// chart is a chart in a Go module.
type chart struct {
	module, folder string
	// templates are further files of the module, which the release adds to its chart.
	templates string
	values    map[string]any
}

// render returns the objects of a release.
func (s *stage) render(c chart, name, namespace string) []*unstructured.Unstructured {
	s.t.Helper()
	module, err := gomodule.Dir(s.t.Context(), c.module)
	if err != nil {
		s.t.Fatal(err)
	}
	folder := s.t.TempDir()
	s.copyChart(filepath.Join(module, c.folder), folder)
	if _, err := os.Stat(filepath.Join(folder, "Chart.yaml")); err != nil { // a release renames it
		if err := os.Rename(filepath.Join(folder, "Chart.template.yaml"), filepath.Join(folder, "Chart.yaml")); err != nil {
			s.t.Fatal(err)
		}
	}
	if c.templates != "" {
		s.copyChart(filepath.Join(module, c.templates), filepath.Join(folder, "templates"))
	}
	text, err := json.Marshal(c.values)
	if err != nil {
		s.t.Fatal(err)
	}
	values := filepath.Join(s.t.TempDir(), "values.json")
	if err := os.WriteFile(values, text, 0o600); err != nil {
		s.t.Fatal(err)
	}
	helm, err := program.Helm(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	rendered := s.mustRun(helm, "template", name, folder, "--namespace="+namespace, "--values="+values)
	objects, err := decode([]byte(rendered))
	if err != nil {
		s.t.Fatal(err)
	}
	return objects
}

// decode returns the objects of YAML documents, in a form that the API server accepts today.
func decode(text []byte) ([]*unstructured.Unstructured, error) {
	var all []*unstructured.Unstructured
	documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		o := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(document, &o.Object); err != nil {
			return nil, fmt.Errorf("%w in %s", err, document)
		}
		if len(o.Object) == 0 {
			continue
		}
		if err := modernize(o); err != nil {
			return nil, fmt.Errorf("%s %s: %w", o.GetKind(), o.GetName(), err)
		}
		all = append(all, o)
	}
}

// modernize changes an object of an API version that is not served any more to v1, as a person does who installs an old release on a new
// cluster. The programs still get reviews of the old version.
func modernize(o *unstructured.Unstructured) error {
	switch o.GetAPIVersion() {
	case "rbac.authorization.k8s.io/v1beta1":
		o.SetAPIVersion("rbac.authorization.k8s.io/v1")
	case "admissionregistration.k8s.io/v1beta1":
		o.SetAPIVersion("admissionregistration.k8s.io/v1")
		webhooks, _, err := unstructured.NestedSlice(o.Object, "webhooks")
		if err != nil {
			return err
		}
		for _, w := range webhooks {
			if w, ok := w.(map[string]any); ok && w["admissionReviewVersions"] == nil {
				w["admissionReviewVersions"] = []any{"v1beta1"}
			}
		}
		return unstructured.SetNestedSlice(o.Object, webhooks, "webhooks")
	case apiextensionsv1beta1.SchemeGroupVersion.String():
		old, between, next := &apiextensionsv1beta1.CustomResourceDefinition{}, &apiextensions.CustomResourceDefinition{}, &apiextensionsv1.CustomResourceDefinition{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, old); err != nil {
			return err
		}
		scheme := runtime.NewScheme()
		apiextensionsinstall.Install(scheme)
		scheme.Default(old)
		if err := errors.Join(scheme.Convert(old, between, nil), scheme.Convert(between, next, nil)); err != nil {
			return err
		}
		next.Status = apiextensionsv1.CustomResourceDefinitionStatus{}
		next.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
		converted, err := runtime.DefaultUnstructuredConverter.ToUnstructured(next)
		if err != nil {
			return err
		}
		delete(converted, "status")
		o.Object = converted
	}
	return nil
}

// runImage has the Deployments among objects run an image of tools/operators in their first container, by its own entrypoint.
func (s *stage) runImage(objects []*unstructured.Unstructured, image string) {
	s.t.Helper()
	for _, o := range objects {
		if o.GetKind() != "Deployment" {
			continue
		}
		d := &appsv1.Deployment{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, d); err != nil {
			s.t.Fatal(err)
		}
		c := &d.Spec.Template.Spec.Containers[0]
		c.Image, c.ImagePullPolicy, c.Command = "localhost/"+image+":latest", "Never", nil
		converted, err := runtime.DefaultUnstructuredConverter.ToUnstructured(d)
		if err != nil {
			s.t.Fatal(err)
		}
		delete(converted, "status")
		o.Object = converted
	}
}

// copyChart copies what Helm reads: in the module are further files, of which it can make nothing.
func (s *stage) copyChart(from, to string) {
	s.t.Helper()
	err := filepath.WalkDir(from, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !slices.Contains([]string{".yaml", ".tpl"}, filepath.Ext(path)) {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		target := filepath.Join(to, relative)
		if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
			return err
		}
		return os.WriteFile(target, text, 0o644)
	})
	if err != nil {
		s.t.Fatal(err)
	}
}

// apply applies objects as the guide says, CRDs first.
func (s *stage) apply(objects []*unstructured.Unstructured) {
	s.t.Helper()
	for _, ofCRDs := range []bool{true, false} {
		if file := s.write(objects, func(o *unstructured.Unstructured) bool { return isCRD(o) == ofCRDs }); file != "" {
			s.mustRun("kubectl", "apply", "--server-side", "--force-conflicts", "-f", file)
		}
	}
}

func isCRD(o *unstructured.Unstructured) bool { return o.GetKind() == "CustomResourceDefinition" }

// write writes the objects that are wanted into a file, and returns its path, or nothing if there are none.
func (s *stage) write(objects []*unstructured.Unstructured, wanted func(*unstructured.Unstructured) bool) string {
	s.t.Helper()
	var b bytes.Buffer
	for _, o := range objects {
		if !wanted(o) {
			continue
		}
		text, err := yaml.Marshal(o.Object)
		if err != nil {
			s.t.Fatal(err)
		}
		b.WriteString("---\n")
		b.Write(text)
	}
	if b.Len() == 0 {
		return ""
	}
	file := filepath.Join(s.t.TempDir(), "objects.yaml")
	if err := os.WriteFile(file, b.Bytes(), 0o600); err != nil {
		s.t.Fatal(err)
	}
	return file
}
