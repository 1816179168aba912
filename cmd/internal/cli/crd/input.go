package crd

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/resource"

	"github.com/godwit-dev/godwit/cmd/internal/cli"
	"github.com/godwit-dev/godwit/cmd/internal/report"
)

// input is the flag -f of kubectl.
type input struct {
	files     []string
	recursive bool
}

// release is one CRD of the next release, with its source.
type release struct {
	name   string
	source string
	crd    *apiextensionsv1.CustomResourceDefinition // nil for apiextensions.k8s.io/v1beta1, which API servers no longer serve
}

func (i *input) addTo(c *cobra.Command) {
	c.Flags().StringSliceVarP(&i.files, "filename", "f", nil, "file, directory or URL with the CRDs of the next release; - reads stdin")
	c.Flags().BoolVarP(&i.recursive, "recursive", "R", false, "also read the subdirectories of a directory")
	extensions := make([]string, len(resource.FileExtensions))
	for n, e := range resource.FileExtensions {
		extensions[n] = strings.TrimPrefix(e, ".")
	}
	_ = c.MarkFlagFilename("filename", extensions...)
}

// parse checks the flags before anything is read.
func (i *input) parse(c *cobra.Command, in io.Reader) error {
	switch stdin := slices.Contains(i.files, "-"); {
	case c.Flags().Changed("namespace"):
		return cli.Usagef("remove --namespace: CRDs are not namespaced")
	case len(i.files) == 0 || slices.Contains(i.files, ""):
		return cli.Usagef("-f is missing: give -f FILE, -f DIR, or -f - for stdin")
	case stdin && cli.IsTerminal(in):
		return cli.Usagef("-f - reads stdin, and stdin is a terminal: pipe the CRDs into the command")
	}
	return nil
}

// read returns the CRDs of the input.
func (i *input) read(in io.Reader) ([]release, error) {
	builder := resource.NewLocalBuilder().Unstructured().Flatten()
	var paths []string
	for _, f := range i.files {
		if f == "-" {
			builder.Stream(in, "stdin")
		} else {
			paths = append(paths, f)
		}
	}
	if len(paths) > 0 {
		builder.FilenameParam(false, &resource.FilenameOptions{Filenames: paths, Recursive: i.recursive})
	}
	infos, err := builder.Do().Infos()
	if err != nil {
		return nil, &cli.ActionableError{Message: strings.TrimPrefix(cli.OneLine(err), "error "), Cause: err}
	}
	var releases []release
	for _, info := range infos {
		r, ok, err := releaseOf(info)
		if err != nil {
			return nil, err
		}
		if !ok {
			continue
		}
		if at := slices.IndexFunc(releases, func(other release) bool { return other.name == r.name }); at >= 0 {
			return nil, fmt.Errorf("%s occurs twice, in %s and in %s: give only the file that you release", r.name, releases[at].source, r.source)
		}
		releases = append(releases, r)
	}
	if len(releases) == 0 {
		return nil, fmt.Errorf("no CustomResourceDefinition in %s, and %s", strings.Join(i.files, ", "),
			report.Count(int64(len(infos)), "object of another kind", "objects of other kinds"))
	}
	return releases, nil
}

// releaseOf returns false for an object that is not a CRD.
func releaseOf(info *resource.Info) (release, bool, error) {
	object, ok := info.Object.(*unstructured.Unstructured)
	gvk := info.Object.GetObjectKind().GroupVersionKind()
	if !ok || gvk.Group != apiextensionsv1.GroupName || gvk.Kind != "CustomResourceDefinition" {
		return release{}, false, nil
	}
	r := release{name: object.GetName(), source: info.Source}
	switch {
	case r.name == "":
		return r, false, fmt.Errorf("a CustomResourceDefinition in %s has no metadata.name", info.Source)
	case gvk.Version == "v1beta1":
		return r, true, nil
	case gvk.Version != "v1":
		return r, false, fmt.Errorf("%s in %s is written in %s, which this release of godwit does not support", r.name, info.Source, gvk.GroupVersion())
	}
	r.crd = &apiextensionsv1.CustomResourceDefinition{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, r.crd); err != nil {
		return r, false, fmt.Errorf("%s in %s is not a CustomResourceDefinition: %w", r.name, info.Source, errors.New(cli.OneLine(err)))
	}
	return r, true, nil
}
