package chart_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/godwit-dev/godwit/api/v1alpha1"
	"github.com/godwit-dev/godwit/test/controlplane"
	"github.com/godwit-dev/godwit/test/gomodule"
	"github.com/godwit-dev/godwit/test/process"
)

// kindsOfOthers are the CRDs of other projects whose objects the chart has, by module and path.
var kindsOfOthers = []struct{ module, file string }{
	{prometheusOperator, "example/prometheus-operator-crd/monitoring.coreos.com_podmonitors.yaml"},
	{prometheusOperator, "example/prometheus-operator-crd/monitoring.coreos.com_servicemonitors.yaml"},
	{prometheusOperator, "example/prometheus-operator-crd/monitoring.coreos.com_prometheusrules.yaml"},
	{certManager, "deploy/crds/crd-certificates.yaml"},
	{certManager, "deploy/crds/crd-issuers.yaml"},
}

const (
	prometheusOperator = "github.com/prometheus-operator/prometheus-operator@v0.93.0"
	certManager        = "github.com/cert-manager/cert-manager@v1.15.0"
)

// started is the control plane of the tests that need one.
var started *controlplane.ControlPlane

var startPlane = sync.OnceValue(func() (err error) {
	started, err = newPlane(context.Background()) // it outlives the test that comes first
	return err
})

// newPlane starts a control plane that has the kinds of other projects.
func newPlane(ctx context.Context) (*controlplane.ControlPlane, error) {
	plane, err := controlplane.Start(ctx, controlplane.Options{})
	if err != nil {
		return nil, err
	}
	var all []*apiextensionsv1.CustomResourceDefinition
	for _, kind := range kindsOfOthers {
		dir, err := gomodule.Dir(ctx, kind.module)
		if err != nil {
			return plane, err
		}
		file, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(kind.file)))
		if err != nil {
			return plane, err
		}
		crds, err := controlplane.DecodeCRDs(file)
		if err != nil {
			return plane, err
		}
		for _, crd := range crds {
			crd.Labels, crd.Annotations = nil, nil // a template of its installer
		}
		all = append(all, crds...)
	}
	return plane, controlplane.InstallCRDs(ctx, plane.Config(), all...)
}

// scratchDir lasts as long as all tests together.
var scratchDir = sync.OnceValues(func() (string, error) { return os.MkdirTemp("", "godwit-chart-") })

func scratch(t *testing.T) string {
	t.Helper()
	dir, err := scratchDir()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestMain(m *testing.M) {
	flag.Parse()
	code := m.Run()
	if dir, err := scratchDir(); err == nil {
		_ = os.RemoveAll(dir)
	}
	if started != nil {
		if err := started.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}
	os.Exit(code)
}

// cluster is the control plane, to the eyes of its administrator.
type cluster struct {
	client.Client
	t     *testing.T
	plane *controlplane.ControlPlane
	// cfg collects warnings.
	cfg      *rest.Config
	warnings *warnings
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	if err := startPlane(); err != nil {
		t.Fatal(err)
	}
	return clusterOf(t, started)
}

// clusterOf is a control plane in a test.
func clusterOf(t *testing.T, plane *controlplane.ControlPlane) *cluster {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	c := &cluster{t: t, plane: plane, cfg: plane.Config(), warnings: &warnings{}}
	c.cfg.WarningHandler = c.warnings
	var err error
	if c.Client, err = client.New(c.cfg, client.Options{Scheme: scheme}); err != nil {
		t.Fatal(err)
	}
	return c
}

// warnings are those of the API server.
type warnings struct {
	mu  sync.Mutex
	all []string
}

// HandleWarningHeader implements rest.WarningHandler.
func (w *warnings) HandleWarningHeader(_ int, _, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all = append(w.all, text)
}

// mustBeNone reports them, and forgets them.
func (w *warnings) mustBeNone(t *testing.T, of string) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.all) > 0 {
		t.Errorf("%s: the API server warns: %s", of, strings.Join(w.all, "; "))
	}
	w.all = nil
}

// restrictedNamespace is one where only restricted pods may be.
func (c *cluster) restrictedNamespace(name string) {
	c.t.Helper()
	err := c.Create(c.t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
		"pod-security.kubernetes.io/enforce": "restricted",
		"pod-security.kubernetes.io/warn":    "restricted",
	}}})
	if err != nil {
		c.t.Fatal(err)
	}
}

// apply gives the objects to the API server, which knows each of their fields.
func (c *cluster) apply(objects []*unstructured.Unstructured, dryRun ...string) {
	c.t.Helper()
	httpClient, err := rest.HTTPClientFor(c.cfg)
	if err != nil {
		c.t.Fatal(err)
	}
	mapper, err := apiutil.NewDynamicRESTMapper(c.cfg, httpClient)
	if err != nil {
		c.t.Fatal(err)
	}
	objectClient, err := dynamic.NewForConfigAndClient(c.cfg, httpClient)
	if err != nil {
		c.t.Fatal(err)
	}
	for _, o := range objects {
		mapping, err := mapper.RESTMapping(o.GroupVersionKind().GroupKind(), o.GroupVersionKind().Version)
		if err != nil {
			c.t.Fatal(err)
		}
		text, err := o.MarshalJSON()
		if err != nil {
			c.t.Fatal(err)
		}
		force := true // another test's release installed the CRDs before
		_, err = objectClient.Resource(mapping.Resource).Namespace(o.GetNamespace()).Patch(c.t.Context(), o.GetName(), types.ApplyYAMLPatchType, text,
			metav1.PatchOptions{FieldManager: "chart", FieldValidation: metav1.FieldValidationStrict, DryRun: dryRun, Force: &force})
		if err != nil {
			c.t.Errorf("apply %s: %v", name(o), err)
		}
		c.warnings.mustBeNone(c.t, name(o))
	}
}

// as is a ServiceAccount, by a token as a pod has it.
func (c *cluster) as(namespace, account string) *rest.Config {
	c.t.Helper()
	clients, err := kubernetes.NewForConfig(c.cfg)
	if err != nil {
		c.t.Fatal(err)
	}
	request, err := clients.CoreV1().ServiceAccounts(namespace).CreateToken(c.t.Context(), account, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	cfg := rest.AnonymousClientConfig(c.plane.Config())
	cfg.BearerToken = request.Status.Token
	return cfg
}

var errNotYet = errors.New("it does not hold yet")

func await(t *testing.T, what string, holds func() bool) {
	t.Helper()
	if err := process.Poll(context.WithoutCancel(t.Context()), what, func(context.Context) error {
		if holds() {
			return nil
		}
		return errNotYet
	}); err != nil {
		t.Fatal(err)
	}
}
