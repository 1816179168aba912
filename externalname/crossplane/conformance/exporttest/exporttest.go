// Package exporttest proves that a tool that writes manifests for existing external resources follows the contract of external
// names: each resource has one manifest with its external name, and applying the manifests only observes.
//
//	func TestExport(t *testing.T) {
//		exporttest.Run(t, exporttest.Tool{Run: run, Names: names, Config: config})
//	}
package exporttest

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-dev/godwit/externalname/crossplane/conformance"
)

// Tool is a tool that writes manifests for external resources that exist. The external
// system should have resources that the tool warns about, and some with similar names.
type Tool struct {
	// Run runs the tool once.
	Run func(ctx context.Context, stdout, stderr io.Writer) error
	// Names returns the external names of the resources that should be exported.
	Names func(ctx context.Context) ([]string, error)
	// Config is that of an API server with the CRDs, which a strict dry run asks whether it
	// accepts the manifests. Without it, that check is NotChecked.
	Config *rest.Config
	// Namespace is where the dry run creates objects that have a namespaced kind and no
	// namespace. Empty means default.
	Namespace string
}

// Names of the checks.
const (
	WritesYAML        conformance.CheckName = "ExportWritesYAML"
	NamesResources    conformance.CheckName = "ExportNamesResources"
	NamesAreUnique    conformance.CheckName = "ExportedNamesAreUnique"
	OnlyObserves      conformance.CheckName = "ExportOnlyObserves"
	IsStable          conformance.CheckName = "ExportIsStable"
	PassesStrictCheck conformance.CheckName = "ExportPassesStrictCheck"
)

// check is one rule for the output of a tool.
type check struct {
	name  conformance.CheckName
	rule  string
	prove func(ctx context.Context, e Tool, out exported) error
}

// exported is what the tool has written.
type exported struct {
	text    string
	objects []*unstructured.Unstructured
	// unreadable is why the text is no list of manifests.
	unreadable error
}

var catalog = []check{
	{WritesYAML, "The standard output has manifests and nothing else.", func(_ context.Context, _ Tool, out exported) error { return out.unreadable }},
	{NamesResources, "Each external resource has one manifest, with its external name.", namesResources},
	{NamesAreUnique, "The names of the objects are unique, and valid for Kubernetes.", namesAreUnique},
	{OnlyObserves, "Exported objects have the policy Observe.", onlyObserves},
	{IsStable, "A second run writes the same bytes.", isStable},
	{PassesStrictCheck, "The API server accepts each manifest in a strict dry run.", passesStrictCheck},
}

// Rules lists the checks of [Run], for documentation.
func Rules() []conformance.Rule {
	list := make([]conformance.Rule, len(catalog))
	for i, c := range catalog {
		list[i] = conformance.Rule{Check: c.name, Rule: c.rule}
	}
	return list
}

// Run proves the output of a tool, logs the table, and reports an error to the test for
// each check that failed.
func Run(t *testing.T, e Tool) conformance.Report {
	t.Helper()
	report, err := Prove(t.Context(), e)
	if err != nil {
		t.Fatal(err)
	}
	report.Log(t)
	return report
}

// Prove runs the checks outside a test. It returns an error if the tool
// fails.
func Prove(ctx context.Context, e Tool) (conformance.Report, error) {
	out, err := e.run(ctx)
	if err != nil {
		return conformance.Report{}, err
	}
	var report conformance.Report
	for _, c := range catalog {
		result := conformance.Result{Check: c.name, Rule: c.rule, State: conformance.Passed}
		switch {
		case c.name == PassesStrictCheck && e.Config == nil:
			result.State, result.Detail = conformance.NotChecked, "Tool.Config is not set"
		default:
			if err := c.prove(ctx, e, out); err != nil {
				result.State, result.Detail = conformance.Failed, err.Error()
			}
		}
		report.Results = append(report.Results, result)
	}
	return report, nil
}

func (e Tool) run(ctx context.Context) (exported, error) {
	var stdout, stderr bytes.Buffer
	if err := e.Run(ctx, &stdout, &stderr); err != nil {
		return exported{}, fmt.Errorf("export: %w\n%s", err, stderr.String())
	}
	out := exported{text: stdout.String()}
	out.objects, out.unreadable = ReadObjects(strings.NewReader(out.text))
	return out, nil
}

// ReadObjects reads the objects of a YAML file with one or more documents. A document that is
// no object of Kubernetes is an error; the objects that were read are returned as well.
func ReadObjects(r io.Reader) ([]*unstructured.Unstructured, error) {
	documents := utilyaml.NewYAMLOrJSONDecoder(r, 4096)
	var objects []*unstructured.Unstructured
	var all []error
	for i := 1; ; i++ {
		var fields map[string]any
		err := documents.Decode(&fields)
		switch {
		case errors.Is(err, io.EOF):
			return objects, errors.Join(all...)
		case err != nil:
			return objects, errors.Join(append(all, fmt.Errorf("document %d: %w", i, err))...)
		case len(fields) == 0:
			continue
		}
		o := &unstructured.Unstructured{Object: fields}
		if o.GetAPIVersion() == "" || o.GetKind() == "" || o.GetName() == "" {
			all = append(all, fmt.Errorf("document %d is not an object of Kubernetes: %v", i, fields))
			continue
		}
		for key := range fields {
			if !slices.Contains([]string{"apiVersion", "kind", "metadata", "spec", "status"}, key) && o.GetObjectKind().GroupVersionKind().Group != "" {
				all = append(all, fmt.Errorf("document %d has the field %q, which is not a part of a managed resource", i, key))
			}
		}
		objects = append(objects, o)
	}
}

func namesResources(ctx context.Context, e Tool, out exported) error {
	want, err := e.Names(ctx)
	if err != nil {
		return fmt.Errorf("list the external resources: %w", err)
	}
	var got []string
	var all []error
	for _, o := range out.objects {
		name := meta.GetExternalName(o)
		if name == "" {
			all = append(all, fmt.Errorf("%s %s has no external name", o.GetKind(), o.GetName()))
			continue
		}
		got = append(got, name)
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(want, got) {
		all = append(all, fmt.Errorf("exported: %v; expected: %v", got, want))
	}
	return errors.Join(all...)
}

func namesAreUnique(_ context.Context, _ Tool, out exported) error {
	seen := map[string]bool{}
	var all []error
	for _, o := range out.objects {
		key := strings.Join([]string{o.GetAPIVersion(), o.GetKind(), o.GetNamespace(), o.GetName()}, "/")
		if seen[key] {
			all = append(all, fmt.Errorf("two objects are %s: applying both loses one", key))
		}
		seen[key] = true
		if wrong := validation.IsDNS1123Subdomain(o.GetName()); len(wrong) > 0 {
			all = append(all, fmt.Errorf("%s %q: %s", o.GetKind(), o.GetName(), strings.Join(wrong, "; ")))
		}
	}
	return errors.Join(all...)
}

func onlyObserves(_ context.Context, _ Tool, out exported) error {
	var all []error
	for _, o := range out.objects {
		policies, _, _ := unstructured.NestedStringSlice(o.Object, "spec", "managementPolicies")
		if !slices.Equal(policies, []string{"Observe"}) {
			all = append(all, fmt.Errorf("%s %s has the policies %v", o.GetKind(), o.GetName(), policies))
		}
	}
	return errors.Join(all...)
}

func isStable(ctx context.Context, e Tool, out exported) error {
	again, err := e.run(ctx)
	if err == nil && again.text != out.text {
		err = errors.New("a second run has written something else")
	}
	return err
}

func passesStrictCheck(ctx context.Context, e Tool, out exported) error {
	c, err := client.New(e.Config, client.Options{})
	if err != nil {
		return err
	}
	var all []error
	for _, o := range out.objects {
		o = o.DeepCopy()
		if o.GetNamespace() == "" {
			namespaced, err := c.IsObjectNamespaced(o)
			if err != nil {
				return err
			}
			if namespaced {
				o.SetNamespace(cmp.Or(e.Namespace, "default"))
			}
		}
		if err := c.Create(ctx, o, client.DryRunAll, client.FieldValidation("Strict")); err != nil {
			all = append(all, fmt.Errorf("%s %s: %w", o.GetKind(), o.GetName(), err))
		}
	}
	return errors.Join(all...)
}
