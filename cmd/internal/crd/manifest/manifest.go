// Package manifest reads the CRDs in the files of kubectl's flag -f, and what the user knows about their paths.
package manifest

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

	"github.com/godwit-dev/godwit/cmd/internal/frame"
	"github.com/godwit-dev/godwit/cmd/internal/render"
)

// Input has the values of the flags -f and -R, as in kubectl.
type Input struct {
	Files     []string
	Recursive bool
}

// Stdin is the [Release.Source] of CRDs that are read from stdin, and Dash the name of the file that a user gives.
const (
	Stdin = "stdin"
	Dash  = "-"
)

// Release is one CRD of a release, with its source.
type Release struct {
	Name   string
	Source string
	// CRD is nil for apiextensions.k8s.io/v1beta1, which API servers no longer serve.
	CRD *apiextensionsv1.CustomResourceDefinition
	// Manifest is the CRD as the file has it.
	Manifest map[string]any
}

// AddTo registers the flags. what describes the content of the files.
func (i *Input) AddTo(c *cobra.Command, what string) {
	frame.AddFilenames(c, &i.Files, what)
	c.Flags().BoolVarP(&i.Recursive, "recursive", "R", false, "also read the subdirectories of a directory")
	_ = c.MarkFlagFilename("filename", Extensions()...)
}

// Extensions are those of the files that a command reads, for completion.
func Extensions() []string {
	extensions := make([]string, len(resource.FileExtensions))
	for n, e := range resource.FileExtensions {
		extensions[n] = strings.TrimPrefix(e, ".")
	}
	return extensions
}

// Parse checks the flags before anything is read.
func (i *Input) Parse(c *cobra.Command, in io.Reader) error {
	switch fromStdin := slices.Contains(i.Files, Dash); {
	case c.Flags().Changed("namespace"):
		return frame.Usagef("remove --namespace: CRDs are not namespaced")
	case len(i.Files) == 0 || slices.Contains(i.Files, ""):
		return frame.Usagef("specify -f FILE, -f DIR, or -f - for stdin")
	case fromStdin && frame.IsTerminal(in):
		return frame.Usagef("- reads stdin, and stdin is a terminal: pipe the CRDs into the command")
	}
	return nil
}

// Read returns the CRDs of the input.
func (i *Input) Read(in io.Reader) ([]Release, error) {
	builder := resource.NewLocalBuilder().Unstructured().Flatten()
	var paths []string
	for _, f := range i.Files {
		if f == Dash {
			builder.Stream(in, Stdin)
		} else {
			paths = append(paths, f)
		}
	}
	if len(paths) > 0 {
		builder.FilenameParam(false, &resource.FilenameOptions{Filenames: paths, Recursive: i.Recursive})
	}
	infos, err := builder.Do().Infos()
	if err != nil {
		return nil, &frame.ActionableError{Message: strings.TrimPrefix(frame.OneLine(err), "error "), Cause: err}
	}
	var releases []Release
	for _, info := range infos {
		r, ok, err := releaseOf(info)
		if err != nil {
			return nil, err
		}
		if !ok {
			continue
		}
		if at := slices.IndexFunc(releases, func(other Release) bool { return other.Name == r.Name }); at >= 0 {
			return nil, fmt.Errorf("%s occurs twice, in %s and in %s: give only the file that you release", r.Name, releases[at].Source, r.Source)
		}
		releases = append(releases, r)
	}
	if len(releases) == 0 {
		return nil, fmt.Errorf("no CustomResourceDefinition in %s, and %s", strings.Join(i.Files, ", "),
			render.Count(int64(len(infos)), "object of another kind", "objects of other kinds"))
	}
	return releases, nil
}

// releaseOf returns false for an object that is not a CRD.
func releaseOf(info *resource.Info) (Release, bool, error) {
	object, ok := info.Object.(*unstructured.Unstructured)
	gvk := info.Object.GetObjectKind().GroupVersionKind()
	if !ok || gvk.Group != apiextensionsv1.GroupName || gvk.Kind != "CustomResourceDefinition" {
		return Release{}, false, nil
	}
	r := Release{Name: object.GetName(), Source: info.Source, Manifest: object.Object}
	switch {
	case r.Name == "":
		return r, false, fmt.Errorf("a CustomResourceDefinition in %s has no metadata.name", info.Source)
	case gvk.Version == "v1beta1":
		return r, true, nil
	case gvk.Version != "v1":
		return r, false, fmt.Errorf("%s in %s is written in %s, which this release of godwit does not support", r.Name, info.Source, gvk.GroupVersion())
	}
	r.CRD = &apiextensionsv1.CustomResourceDefinition{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, r.CRD); err != nil {
		return r, false, fmt.Errorf("%s in %s is not a CustomResourceDefinition: %w", r.Name, info.Source, errors.New(frame.OneLine(err)))
	}
	return r, true, nil
}
