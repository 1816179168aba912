package check

import (
	"github.com/spf13/cobra"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/godwit-dev/godwit/cmd/internal/crd/manifest"
	"github.com/godwit-dev/godwit/cmd/internal/frame"
	"github.com/godwit-dev/godwit/crdmigrator/advise"
	"github.com/godwit-dev/godwit/crdmigrator/bridge"
	"github.com/godwit-dev/godwit/crdmigrator/releasecheck"
)

type options struct {
	*frame.App
	next       manifest.Input
	previous   []string
	between    []string
	answers    manifest.Answers
	steps      string // a directory; empty if the command writes no steps
	references bool
	output     frame.Output
}

// addStepsTo registers the flags on which the steps depend.
func (o *options) addStepsTo(c *cobra.Command) {
	addFiles(c, &o.between, "between", "`file` with the CRDs of a release that you could install in between; repeat the flag for several")
	o.answers.AddTo(c)
}

func addFiles(c *cobra.Command, to *[]string, name, usage string) {
	c.Flags().StringArrayVar(to, name, nil, usage)
	_ = c.MarkFlagFilename(name, "yaml", "yml", "json")
}

// release is a CRD of the next release, and the facts and findings about it.
type release struct {
	manifest.Release
	between []bridge.Release
	answers map[string]advise.Answer
	// live is nil if the cluster has no such CRD, or if it could not be read.
	live  *apiextensionsv1.CustomResourceDefinition
	check releasecheck.Check
	// steps has no result if the live CRD could not be read.
	steps bridge.Bridge
}

// releases reads the files.
func (o *options) releases(c *cobra.Command) ([]release, error) {
	if err := o.next.Parse(c, o.Streams.In); err != nil {
		return nil, err
	}
	answers, err := o.answers.Parse()
	if err != nil {
		return nil, err
	}
	next, err := o.next.Read(o.Streams.In)
	if err != nil {
		return nil, err
	}
	all := make([]release, len(next))
	for i, r := range next {
		all[i] = release{Release: r, answers: answers}
	}
	for _, file := range o.between {
		crds, err := o.read(c, file)
		if err != nil {
			return nil, err
		}
		for i, r := range all {
			if other := named(crds, r.Name); other != nil {
				all[i].between = append(all[i].between, bridge.Release{Name: file, CRD: other})
			}
		}
	}
	return all, nil
}

func (o *options) read(c *cobra.Command, files ...string) ([]manifest.Release, error) {
	in := manifest.Input{Files: files, Recursive: o.next.Recursive}
	if err := in.Parse(c, o.Streams.In); err != nil {
		return nil, err
	}
	return in.Read(o.Streams.In)
}

// named returns the CRD with a name. It returns nil if the files do not have the CRD, or have it in v1beta1.
func named(releases []manifest.Release, name string) *apiextensionsv1.CustomResourceDefinition {
	for _, r := range releases {
		if r.Name == name {
			return r.CRD
		}
	}
	return nil
}
