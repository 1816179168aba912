package chart_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/godwit-dev/godwit/test/program"
)

const (
	root     = "../../.."
	chartDir = root + "/charts/godwit"
)

// helmPath is Helm, found once for all tests.
var helmPath = sync.OnceValues(func() (string, error) { return program.Helm(context.Background()) })

// helm runs a command on a machine without a configuration of Helm.
func helm(t *testing.T, args ...string) (string, error) {
	t.Helper()
	path, err := helmPath()
	if err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), path, args...)
	command.Env = []string{"HOME=" + t.TempDir(), "KUBECONFIG=/dev/null"}
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	if err := command.Run(); err != nil {
		return stdout.String(), fmt.Errorf("helm %s: %w: %s", args[0], err, stderr.String())
	}
	return stdout.String(), nil
}

func mustHelm(t *testing.T, args ...string) string {
	t.Helper()
	out, err := helm(t, args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// valuesFile writes values down, and is their flag, in which a comma would separate
// two files: hence no folder that is named after the test.
func valuesFile(t *testing.T, values string) string {
	t.Helper()
	file, err := os.CreateTemp(scratch(t), "values-*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	if _, err := file.WriteString(values); err != nil {
		t.Fatal(err)
	}
	return "--values=" + file.Name()
}

// render is a release named godwit, in a namespace, with some values.
func render(t *testing.T, namespace, values string) []*unstructured.Unstructured {
	t.Helper()
	return decode(t, mustHelm(t, "template", "godwit", chartDir, "--namespace="+namespace, valuesFile(t, values)))
}

func decode(t *testing.T, manifest string) []*unstructured.Unstructured {
	t.Helper()
	var objects []*unstructured.Unstructured
	for document := range strings.SplitSeq(manifest, "\n---\n") {
		o := &unstructured.Unstructured{}
		if err := yaml.UnmarshalStrict([]byte(document), &o.Object); err != nil {
			t.Fatalf("%v in:\n%s", err, document)
		}
		if len(o.Object) > 0 {
			objects = append(objects, o)
		}
	}
	return objects
}

// name identifies an object in a test.
func name(o *unstructured.Unstructured) string {
	return strings.Trim(o.GetKind()+"/"+o.GetNamespace()+"/"+o.GetName(), "/")
}

// find decodes the one object of T's kind.
func find[T any](t *testing.T, objects []*unstructured.Unstructured, kind string) *T {
	t.Helper()
	var found *T
	for _, o := range objects {
		if o.GetKind() != kind {
			continue
		}
		if found != nil {
			t.Fatalf("there are two objects of kind %s", kind)
		}
		found = new(T)
		if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(o.Object, found, true); err != nil {
			t.Fatalf("%s: %v", name(o), err)
		}
	}
	if found == nil {
		t.Fatalf("there is no object of kind %s", kind)
	}
	return found
}

// mount writes a ConfigMap as its volume has it.
func mount(t *testing.T, from *corev1.ConfigMap, dir string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for key, text := range from.Data {
		if err := os.WriteFile(filepath.Join(dir, key), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
