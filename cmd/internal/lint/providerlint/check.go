package providerlint

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/godwit-dev/godwit/externalname/fieldmigration"
	"github.com/godwit-dev/godwit/internal/gofolder"
)

// ErrNothing means that the folders have neither a CRD of managed resources nor a kind of the adapter, so that nothing
// was checked.
var ErrNothing = errors.New("no CRD of managed resources and no kind of externalname/crossplane was found")

// Check checks the CRDs and the Go files of folders, which have the patterns of the go command. Findings are in the
// order of files.
func Check(ctx context.Context, patterns ...string) ([]Finding, error) {
	folders := map[string]bool{}
	for _, pattern := range patterns {
		found, err := gofolder.Folders(pattern)
		if err != nil {
			return nil, err
		}
		for _, folder := range found {
			folders[folder] = true
		}
	}
	var all []Finding
	subjects := 0
	for _, folder := range slices.Sorted(maps.Keys(folders)) {
		for _, check := range []func(context.Context, string) ([]Finding, int, error){checkManifests, checkSource} {
			findings, n, err := check(ctx, folder)
			if err != nil {
				return nil, err
			}
			all, subjects = append(all, findings...), subjects+n
		}
	}
	if subjects == 0 {
		return nil, fmt.Errorf("read %s: %w", strings.Join(patterns, ", "), ErrNothing)
	}
	slices.SortStableFunc(all, func(a, b Finding) int { return cmp.Or(strings.Compare(a.File, b.File), a.Line-b.Line) })
	return all, nil
}

// checkManifests checks the CRDs in the YAML files of a folder. It returns how many it has checked.
func checkManifests(ctx context.Context, folder string) ([]Finding, int, error) {
	var all []Finding
	n := 0
	for _, suffix := range []string{".yaml", ".yml"} {
		names, err := gofolder.Files(folder, suffix)
		if err != nil {
			return nil, 0, err
		}
		for _, name := range names {
			crds, templates, err := readCRDs(name)
			if err != nil {
				return nil, 0, fmt.Errorf("read %s: %w", name, err)
			}
			for range templates {
				n++
				all = append(all, Finding{File: name, Subject: "CustomResourceDefinition"}.
					with(SchemaUnreadable, "", "the CRD is part of a template. Render the template, and check the result"))
			}
			for _, crd := range crds {
				if isManaged(crd) {
					n++
					all = append(all, CheckCRD(ctx, name, crd)...)
				}
			}
		}
	}
	return all, n, nil
}

// managedCRD matches the CRD of managed resources in a text that is not valid YAML.
var managedCRD = regexp.MustCompile(`(?s)\bkind: CustomResourceDefinition\b.*(\b` + managedCategory + `\b|` + regexp.QuoteMeta(fieldmigration.AnnotationKeyFields) + `)`)

// readCRDs reads the CRDs of a file, and counts those of managed resources that are templates and can't be read.
func readCRDs(name string) (all []*apiextensionsv1.CustomResourceDefinition, templates int, err error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, 0, err
	}
	defer file.Close()
	for documents := utilyaml.NewYAMLReader(bufio.NewReader(file)); ; {
		document, err := documents.Read()
		switch {
		case errors.Is(err, io.EOF):
			return all, templates, nil
		case err != nil:
			return nil, 0, err
		}
		var kind metav1.TypeMeta
		switch err := yaml.Unmarshal(document, &kind); {
		case err != nil && managedCRD.Match(document):
			templates++
			continue
		case err != nil || kind.Kind != "CustomResourceDefinition":
			continue
		}
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.Unmarshal(document, crd); err != nil {
			return nil, 0, err
		}
		all = append(all, crd)
	}
}

// checkSource checks the Go files of a folder. It returns how many kinds and exceptions they have.
func checkSource(_ context.Context, folder string) ([]Finding, int, error) {
	names, err := gofolder.Files(folder, ".go")
	if err != nil {
		return nil, 0, err
	}
	p, err := parsePackage(names)
	if err != nil {
		return nil, 0, err
	}
	var all []Finding
	n := 0
	for _, name := range names {
		findings, literals := p.check(name)
		all, n = append(all, findings...), n+literals
	}
	return all, n, nil
}
