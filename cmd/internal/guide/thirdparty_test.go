package guide_test

import (
	"os"
	"path/filepath"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/godwit-dev/godwit/test/controlplane"
	"github.com/godwit-dev/godwit/test/gomodule"
)

// thirdParty is a project whose CRDs a tutorial migrates.
type thirdParty struct {
	module string   // the release that stores the new version
	files  []string // its CRDs, below the module
	old    string   // the version at which releases before it stored the objects
	object string   // one that such a release has stored, as YAML
	next   string   // the release that drops the old version; empty where none is released yet
	save   string   // the name of the file with the CRDs of next, for the reader
}

// thirdParties are real releases. Where the old release is a module, its storage version is old; cert-manager v0.16 has CRDs of
// apiextensions.k8s.io/v1beta1, which no API server takes any more.
var thirdParties = []thirdParty{
	{
		module: "github.com/jetstack/cert-manager@v1.5.5",
		files:  []string{"deploy/crds/crd-issuers.yaml", "deploy/crds/crd-orders.yaml"},
		old:    "v1alpha2",
		object: "{apiVersion: cert-manager.io/v1alpha2, kind: Issuer, metadata: {name: self-signed, namespace: default}, spec: {selfSigned: {}}}",
		next:   "github.com/jetstack/cert-manager@v1.7.3",
		save:   "cert-manager-v1.7.3.yaml",
	},
	{
		module: "github.com/fluxcd/source-controller@v1.7.0",
		files:  []string{"config/crd/bases/source.toolkit.fluxcd.io_buckets.yaml"},
		old:    "v1beta2",
		object: "{apiVersion: source.toolkit.fluxcd.io/v1beta2, kind: Bucket, metadata: {name: backups, namespace: default}, spec: {bucketName: backups, endpoint: s3.example.com, interval: 5m}}",
	},
	{
		module: "github.com/crossplane/crossplane@v1.20.0",
		files:  []string{"cluster/crds/apiextensions.crossplane.io_environmentconfigs.yaml"},
		old:    "v1alpha1",
		object: "{apiVersion: apiextensions.crossplane.io/v1alpha1, kind: EnvironmentConfig, metadata: {name: europe}, data: {region: eu-west-1}}",
		next:   "github.com/crossplane/crossplane/v2@v2.1.0",
		save:   "crossplane-v2.1.0.yaml",
	},
	{
		module: "sigs.k8s.io/cluster-api@v1.13.6",
		files:  []string{"config/crd/bases/cluster.x-k8s.io_clusters.yaml"},
		old:    "v1beta1",
		object: "{apiVersion: cluster.x-k8s.io/v1beta1, kind: Cluster, metadata: {name: edge, namespace: default}, spec: {paused: true}}",
	},
}

// thirdPartyGroup is an API group of third parties. A cluster has their CRDs if its tutorial names the group.
const thirdPartyGroup = "acme.cert-manager.io"

// installThirdParties leaves the cluster as the upgrade of each project does: an object is stored at the old version, and the CRD
// stores the new one. The projects themselves do not run, so conversion webhooks, which they serve, are taken off.
func (c *cluster) installThirdParties() {
	c.t.Helper()
	config := c.plane.Config()
	for _, p := range thirdParties {
		for _, crd := range c.released(p.module, p.files) {
			versions := crd.DeepCopy().Spec.Versions
			storeAt(p.old)(crd)
			if err := controlplane.InstallCRDs(c.t.Context(), config, crd); err != nil {
				c.t.Fatal(err)
			}
			c.create(crd, p.object)
			_, err := controlplane.UpdateCRD(c.t.Context(), config, crd.Name, func(crd *apiextensionsv1.CustomResourceDefinition) {
				crd.Spec.Versions = versions
			})
			if err != nil {
				c.t.Fatal(err)
			}
		}
		if p.next != "" {
			c.saveCRDs(p.save, c.released(p.next, p.files))
		}
	}
}

// released reads CRDs of a release, without what the release's installer renders.
func (c *cluster) released(module string, files []string) []*apiextensionsv1.CustomResourceDefinition {
	c.t.Helper()
	dir, err := gomodule.Dir(c.t.Context(), module)
	if err != nil {
		c.t.Fatal(err)
	}
	var all []*apiextensionsv1.CustomResourceDefinition
	for _, file := range files {
		text, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(file)))
		if err != nil {
			c.t.Fatal(err)
		}
		crds, err := controlplane.DecodeCRDs(text)
		if err != nil || len(crds) != 1 {
			c.t.Fatalf("%s of %s has %d CRDs, want 1: %v", file, module, len(crds), err)
		}
		crds[0].Labels, crds[0].Annotations, crds[0].Spec.Conversion = nil, nil, nil
		all = append(all, crds[0])
	}
	return all
}

// create creates the object if it is of this kind.
func (c *cluster) create(crd *apiextensionsv1.CustomResourceDefinition, object string) {
	c.t.Helper()
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(object), &u.Object); err != nil {
		c.t.Fatal(err)
	}
	if u.GetKind() != crd.Spec.Names.Kind {
		return
	}
	client, err := dynamic.NewForConfig(c.plane.Config())
	if err != nil {
		c.t.Fatal(err)
	}
	resource := client.Resource(u.GroupVersionKind().GroupVersion().WithResource(crd.Spec.Names.Plural))
	if _, err := resource.Namespace(u.GetNamespace()).Create(c.t.Context(), u, metav1.CreateOptions{}); err != nil {
		c.t.Fatal(err)
	}
}

// saveCRDs writes what the reader would download.
func (c *cluster) saveCRDs(name string, crds []*apiextensionsv1.CustomResourceDefinition) {
	c.t.Helper()
	var text []byte
	for _, crd := range crds {
		document, err := yaml.Marshal(crd)
		if err != nil {
			c.t.Fatal(err)
		}
		text = append(append(text, "---\n"...), document...)
	}
	if err := os.WriteFile(filepath.Join(c.dir, name), text, 0o600); err != nil {
		c.t.Fatal(err)
	}
}
