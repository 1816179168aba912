package doctor

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/godwit-dev/godwit"
)

const (
	// helmReleases selects the Secrets from which Helm 3 and 4 read the manifest that they compare with the one of an upgrade.
	helmReleases = "owner=helm,status=deployed"
	// pageHelm bounds the memory of a page: a Secret with a manifest has up to a mebibyte.
	pageHelm = 20
	// maxManifest bounds the manifest of one release, in bytes; gzip makes hundreds of mebibytes of a mebibyte.
	maxManifest = 32 << 20
)

// helmSecret is the part of a Secret that has a release.
type helmSecret struct {
	metav1.ObjectMeta `json:"metadata"`

	Data struct {
		Release []byte `json:"release"`
	} `json:"data"`
}

// helmDocument is what Helm stores of a release.
type helmDocument struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
	Manifest  string `json:"manifest"`
	Chart     struct {
		Metadata struct {
			Name    string `json:"name"`
			Version string `json:"version"`
		} `json:"metadata"`
	} `json:"chart"`
}

var gzipped = []byte{0x1f, 0x8b, 0x08}

// document decodes a release: JSON, compressed by gzip unless an old Helm wrote it, in base64.
func (s helmSecret) document() (d helmDocument, err error) {
	text, err := base64.StdEncoding.DecodeString(string(s.Data.Release))
	if err != nil {
		return d, err
	}
	if bytes.HasPrefix(text, gzipped) {
		r, err := gzip.NewReader(bytes.NewReader(text))
		if err != nil {
			return d, err
		}
		if text, err = io.ReadAll(io.LimitReader(r, maxManifest)); err != nil {
			return d, err
		}
	}
	return d, json.Unmarshal(text, &d)
}

// helmFinder finds objects in the manifests of releases.
type helmFinder struct {
	subjects []Subject
	found    []HelmRelease
}

// visit adds the objects of a release. A Secret that Helm can't read either has none.
func (h *helmFinder) visit(s *helmSecret) {
	document, err := s.document()
	if err != nil {
		return
	}
	first := len(h.found)
	decoder := yaml.NewYAMLOrJSONDecoder(strings.NewReader(document.Manifest), 4096)
	for {
		var o struct {
			metav1.TypeMeta `json:",inline"`

			Metadata struct {
				Name string `json:"name"`
			} `json:"metadata"`
		}
		switch err := decoder.Decode(&o); {
		case errors.Is(err, io.EOF):
			return
		case err != nil:
			return // what follows can't be told apart
		}
		gv, err := schema.ParseGroupVersion(o.APIVersion)
		at := slices.IndexFunc(h.subjects, func(s Subject) bool {
			return err == nil && s.Owners.Kind.Group == gv.Group && s.Owners.Kind.Kind == o.Kind && !s.countsAsServed(gv.Version)
		})
		if at < 0 {
			continue
		}
		crd := h.subjects[at].Owners.CRD
		i := slices.IndexFunc(h.found[first:], func(r HelmRelease) bool { return r.CRD == crd && r.Version == gv.Version })
		if i < 0 {
			i = len(h.found) - first
			h.found = append(h.found, HelmRelease{
				CRD: crd, Version: gv.Version, Namespace: s.Namespace, Name: document.Name,
				Chart: document.Chart.Metadata.Name + "-" + document.Chart.Metadata.Version, Example: o.Kind + "/" + o.Metadata.Name,
			})
		}
		h.found[first+i].Objects++
	}
}

// checkHelm finds releases of Helm whose manifest has objects at a version that is not served. Helm builds the objects of the last
// manifest before each upgrade, and fails for good where the API server does not know their version.
func checkHelm(f Facts, s Subject) []Finding {
	var findings []Finding
	for _, r := range f.Helm {
		if r.CRD != s.Owners.CRD {
			continue
		}
		apiVersion := anyServed
		if s.Owners.Target != "" {
			apiVersion = "apiVersion: " + s.Owners.Kind.Group + "/" + s.Owners.Target
		}
		objects := "1 object"
		if r.Objects != 1 {
			objects = fmt.Sprintf("%d objects", r.Objects)
		}
		fix := mapAPIs(r.Namespace, r.Name).Then("upgrade the release with a chart that has " + apiVersion)
		if s.Release {
			fix = upgradeChart(r.Namespace, r.Name, apiVersion).Or(mapAPIs(r.Namespace, r.Name))
		}
		findings = append(findings, Finding{
			Objects: r.Objects,
			Finding: godwit.Finding{
				Severity: godwit.Blocks, Reason: ReasonHelmReleaseNotServed,
				Message: fmt.Sprintf("release %s of Helm in namespace %s, chart %s, has %s at %s, such as %s: each helm upgrade of it fails",
					r.Name, r.Namespace, r.Chart, objects, s.notServed(r.Version), r.Example),
				Fix: fix,
			},
		})
	}
	return findings
}
