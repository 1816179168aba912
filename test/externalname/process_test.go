package externalname_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ldapv1 "github.com/godwit-dev/godwit/examples/provider-ldap/api/v1"
	ldap "github.com/godwit-dev/godwit/examples/provider-ldap/directory"
	"github.com/godwit-dev/godwit/externalname"
	"github.com/godwit-dev/godwit/externalname/crossplane/conformance"
	"github.com/godwit-dev/godwit/externalname/crossplane/conformance/exporttest"
	"github.com/godwit-dev/godwit/test/slapd"
)

// needsConformance skips a test that takes minutes, unless make conformance runs it.
func needsConformance(t *testing.T) {
	t.Helper()
	if os.Getenv("GODWIT_CONFORMANCE") == "" {
		t.Skip("make conformance runs it")
	}
}

// program compiles a program, once for the test.
func program(t *testing.T, folder, path string, env ...string) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "provider")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", binary, path)
	build.Dir, build.Env = folder, append(os.Environ(), env...)
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", build.Args, err, output)
	}
	return binary
}

// processPoll is how often a provider that runs as a process observes in these tests.
const processPoll = 500 * time.Millisecond

// examples/provider-ldap runs as a process, on a real directory server.
func TestProcessLDAP(t *testing.T) {
	needsConformance(t)
	needsServer(t)
	binary := program(t, "../../examples/provider-ldap", ".")
	kind := conformance.Kind{
		Manifest: func(namespace, id string) *unstructured.Unstructured {
			o := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
				"providerConfigRef": map[string]any{"kind": "ProviderConfig", "name": "default"},
				"forProvider": map[string]any{
					"parent": baseOf(namespace), "uid": id, "commonName": id, "surname": "Doe", "mail": id + "@example.org",
				},
			}}}
			o.SetGroupVersionKind(ldapv1.GroupVersion.WithKind("Person"))
			return o
		},
		Shape:      externalname.GUID().Describe(),
		Unknown:    unknownID,
		Change:     `{"spec":{"forProvider":{"title":"manager"}}}`,
		LookupName: func(mg *unstructured.Unstructured) string { return mg.GetName() },
		Exempt: map[conformance.CheckName]string{
			conformance.MissingParentIsNoDrift: "a person is found by its entryUUID, wherever it is",
			conformance.DeleteOnce:             "the directory deletes at once, and has no state of being deleted",
		},
	}
	report := conformance.Run(t, kind, conformance.Harness{
		Config: shared.Config(),
		Open: func(ctx context.Context, namespace string) (conformance.System, conformance.Provider, error) {
			return openLDAP(ctx, t, binary, namespace)
		},
		Poll:     processPoll,
		Recovery: 50 * time.Second, // The recovery delay of a kind is 30 s by default.
		Timeout:  2 * time.Minute,
	})
	checkUndecided(t, report, map[conformance.CheckName]conformance.State{
		conformance.MissingParentIsNoDrift: conformance.DoesNotApply,
		conformance.DeleteOnce:             conformance.DoesNotApply,
		conformance.CreatedCanBeDeleted:    conformance.DoesNotApply,
		conformance.ChangedKeyIsPersisted:  conformance.DoesNotApply,
		conformance.KilledAfterUpdate:      conformance.DoesNotApply,
	})
}

func baseOf(namespace string) string { return ldap.Join("ou", namespace, slapd.Suffix) }

// openLDAP makes a part of the directory for one check, and a provider that uses it.
func openLDAP(ctx context.Context, t *testing.T, binary, namespace string) (conformance.System, conformance.Provider, error) {
	t.Helper()
	config, err := makeBase(ctx, namespace)
	if err != nil {
		return conformance.System{}, conformance.Provider{}, err
	}
	wire, err := newLDAPWire(t, server.Address(), entryOperation)
	if err != nil {
		return conformance.System{}, conformance.Provider{}, err
	}
	system := ldapSystem(config)
	system.OnCall = wire.OnCall
	started, err := ldapProvider(ctx, wire, config, binary, namespace)
	return system, started, err
}

// ldapProvider makes the ProviderConfig of a namespace, and returns the program.
func ldapProvider(ctx context.Context, wire *ldapWire, config ldap.Config, binary, namespace string) (conformance.Provider, error) {
	c, err := client.New(shared.Config(), client.Options{Scheme: newScheme()})
	if err != nil {
		return conformance.Provider{}, err
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "directory", Namespace: namespace}, StringData: map[string]string{"password": config.Password}}
	pc := &ldapv1.ProviderConfig{ObjectMeta: metav1.ObjectMeta{Name: "default", Namespace: namespace}}
	pc.Spec = ldapv1.ProviderConfigSpec{URL: wire.url(), BaseDN: config.BaseDN, BindDN: config.BindDN}
	pc.Spec.PasswordSecretRef.Name, pc.Spec.PasswordSecretRef.Key = "directory", "password"
	return conformance.Provider{Command: func(ctx context.Context, kubeconfig string) *exec.Cmd {
		command := exec.CommandContext(ctx, binary, "run", "--poll", processPoll.String(), "--metrics-bind-address", "0")
		command.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig)
		return command
	}}, errors.Join(c.Create(ctx, secret), c.Create(ctx, pc))
}

// ldapSystem acts as another client of the directory.
func ldapSystem(config ldap.Config) conformance.System {
	with := func(ctx context.Context, use func(*ldap.Client) error) error {
		c := ldap.New(config)
		return errors.Join(use(c), c.Close(ctx))
	}
	add := func(ctx context.Context, uid, mail string) (id string, err error) {
		err = with(ctx, func(c *ldap.Client) error {
			id, err = c.Add(ctx, ldap.Entry{DN: ldap.Join("uid", uid, config.BaseDN), Attributes: map[string][]string{
				"objectClass": {"inetOrgPerson"}, "uid": {uid}, "cn": {uid}, "sn": {"Doe"}, "mail": {mail},
			}}, rand.Text())
			return err
		})
		return id, err
	}
	text := func(mg *unstructured.Unstructured, field string) string {
		s, _, _ := unstructured.NestedString(mg.Object, "spec", "forProvider", field)
		return s
	}
	return conformance.System{
		Add: func(ctx context.Context, mg *unstructured.Unstructured) (string, error) {
			return add(ctx, text(mg, "uid"), text(mg, "mail"))
		},
		AddTwins: func(ctx context.Context, mg *unstructured.Unstructured) error {
			_, one := add(ctx, "one", text(mg, "mail"))
			_, two := add(ctx, "two", text(mg, "mail"))
			return errors.Join(one, two)
		},
		List: func(ctx context.Context) (names []string, err error) {
			err = with(ctx, func(c *ldap.Client) error {
				for id, err := range c.IDs(ctx, "inetOrgPerson") {
					if err != nil {
						return err
					}
					names = append(names, id)
				}
				return nil
			})
			return names, err
		},
		Change: func(ctx context.Context, name string) error {
			return with(ctx, func(c *ldap.Client) error {
				e, err := c.Get(ctx, name)
				if err != nil {
					return err
				}
				changed := ldap.Entry{DN: e.DN, Attributes: map[string][]string{"title": {"changed"}}}
				return c.Write(ctx, e, changed)
			})
		},
		Remove: func(ctx context.Context, name string) error {
			return with(ctx, func(c *ldap.Client) error { return c.Delete(ctx, name) })
		},
	}
}

// providerKubernetes is the folder of the module that requires the provider.
const providerKubernetes = "testdata/providerkubernetes"

// brokenByProviderKubernetes are what the checks find in v0.17.1.
var brokenByProviderKubernetes = []conformance.CheckName{
	conformance.DiffIsReported,       // Differences are in the debug log only.
	conformance.AbsentNeedsCreate,    // Under [Observe, Update] a missing object is created.
	conformance.SpecIsNotWritten,     // Writes of the whole object add spec.readiness, which the user has not set.
	conformance.ConflictsAreReported, // A conflict of the external API server is taken for one of the object's.
}

// provider-kubernetes v0.17.1 runs as a process. It never reads external names, so that many checks do not apply.
func TestProcessProviderKubernetes(t *testing.T) {
	needsConformance(t)
	binary := program(t, providerKubernetes, "github.com/crossplane-contrib/provider-kubernetes/cmd/provider", "GOWORK=off", "CGO_ENABLED=0")
	kind := conformance.Kind{
		Manifest: func(namespace, id string) *unstructured.Unstructured {
			o := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
				"providerConfigRef": map[string]any{"name": namespace},
				"forProvider": map[string]any{"manifest": map[string]any{
					"apiVersion": "v1", "kind": "ConfigMap",
					"metadata": map[string]any{"name": id, "namespace": namespace}, "data": map[string]any{"title": "engineer"},
				}},
			}}}
			o.SetGroupVersionKind(schema.GroupVersionKind{Group: "kubernetes.crossplane.io", Version: "v1alpha2", Kind: "Object"})
			return o
		},
		IgnoresNames: "provider-kubernetes identifies the resource by spec.forProvider.manifest",
		NameOf: func(mg *unstructured.Unstructured) string {
			name, _, _ := unstructured.NestedString(mg.Object, "spec", "forProvider", "manifest", "metadata", "name")
			return name
		},
		Unknown: "it has no names",
		Change:  `{"spec":{"forProvider":{"manifest":{"data":{"title":"manager"}}}}}`,
		Exempt: map[conformance.CheckName]string{
			conformance.CreatedCanBeDeleted: "the API server refuses names that need escaping",
			conformance.DeleteOnce:          "a ConfigMap has no state of being deleted",
		},
	}
	certificates := webhookCertificates(t)
	report, err := conformance.Prove(t.Context(), kind, conformance.Harness{
		Config: shared.Config(),
		CRDs:   providerKubernetesCRDs(t),
		Open: func(ctx context.Context, namespace string) (conformance.System, conformance.Provider, error) {
			return openConfigMaps(ctx, t, binary, certificates, namespace)
		},
		Poll:     processPoll,
		Recovery: 10 * time.Second,
		Timeout:  90 * time.Second, // For 30 s after a creation, crossplane-runtime does not believe that the resource is gone.
	})
	if err != nil {
		t.Fatal(err)
	}
	var table strings.Builder
	if err := report.Write(&table); err != nil {
		t.Fatal(err)
	}
	t.Log("\n" + table.String())
	if n := len(report.With(conformance.DoesNotApply)); n < 10 {
		t.Errorf("%d checks do not apply to a provider that ignores external names", n)
	}
	var failed []conformance.CheckName
	for _, result := range report.With(conformance.Failed) {
		failed = append(failed, result.Check)
		t.Logf("%s: %s", result.Check, result.Detail)
	}
	if diff := cmp.Diff(brokenByProviderKubernetes, failed); diff != "" {
		t.Errorf("rules that provider-kubernetes v0.17.1 breaks (-want +got):\n%s", diff)
	}
	for _, result := range report.With(conformance.NotChecked) {
		t.Errorf("%s was not checked: %s", result.Check, result.Detail)
	}
}

// providerKubernetesCRDs are those of the provider's module. Its conversion webhook can't be reached from the tests, and
// only one version is used.
func providerKubernetesCRDs(t *testing.T) []*unstructured.Unstructured {
	t.Helper()
	list := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/crossplane-contrib/provider-kubernetes")
	list.Dir, list.Env = providerKubernetes, append(os.Environ(), "GOWORK=off")
	folder, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(folder)), "package", "crds", "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("CRDs of provider-kubernetes: %v, %v", files, err)
	}
	var crds []*unstructured.Unstructured
	for _, file := range files {
		opened, err := os.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		objects, err := exporttest.ReadObjects(opened)
		if err := errors.Join(err, opened.Close()); err != nil {
			t.Fatal(err)
		}
		for _, crd := range objects {
			unstructured.RemoveNestedField(crd.Object, "spec", "conversion")
		}
		crds = append(crds, objects...)
	}
	return crds
}

// webhookCertificates are for the provider's webhook server, which no test calls.
func webhookCertificates(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	certificate, key, err := cert.GenerateSelfSignedCertKey("localhost", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = errors.Join(os.WriteFile(filepath.Join(folder, "tls.crt"), certificate, 0o600), os.WriteFile(filepath.Join(folder, "tls.key"), key, 0o600))
	if err != nil {
		t.Fatal(err)
	}
	return folder
}

// openConfigMaps has the provider manage ConfigMaps in the namespace of the check, through a proxy.
func openConfigMaps(ctx context.Context, t *testing.T, binary, certificates, namespace string) (conformance.System, conformance.Provider, error) {
	t.Helper()
	none := func(err error) (conformance.System, conformance.Provider, error) {
		return conformance.System{}, conformance.Provider{}, err
	}
	c, err := client.New(shared.Config(), client.Options{Scheme: newScheme()})
	if err != nil {
		return none(err)
	}
	transport, err := rest.TransportFor(shared.Config())
	if err != nil {
		return none(err)
	}
	target, err := url.Parse(shared.Config().Host)
	if err != nil {
		return none(err)
	}
	proxy := &conformance.Proxy{
		Target: target, Transport: transport, Operation: configMapOperation,
		WriteRefused: func(w http.ResponseWriter, _ *http.Request) {
			writeStatus(w, kerrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "", errors.New("quota exceeded")))
		},
		WriteConflict: func(w http.ResponseWriter, _ *http.Request) {
			writeStatus(w, kerrors.NewConflict(schema.GroupResource{Resource: "configmaps"}, "", errors.New("changed")))
		},
	}
	front := httptest.NewServer(proxy)
	t.Cleanup(front.CloseClientConnections)
	kubeconfig, err := clientcmd.Write(clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{"external": {Server: front.URL}}, AuthInfos: map[string]*clientcmdapi.AuthInfo{"external": {}},
		Contexts: map[string]*clientcmdapi.Context{"external": {Cluster: "external", AuthInfo: "external"}}, CurrentContext: "external",
	})
	if err != nil {
		return none(err)
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "external", Namespace: namespace}, Data: map[string][]byte{"kubeconfig": kubeconfig}}
	pc := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"credentials": map[string]any{
		"source": "Secret", "secretRef": map[string]any{"namespace": namespace, "name": "external", "key": "kubeconfig"},
	}}}}
	pc.SetGroupVersionKind(schema.GroupVersionKind{Group: "kubernetes.crossplane.io", Version: "v1alpha1", Kind: "ProviderConfig"})
	pc.SetName(namespace)
	if err := errors.Join(c.Create(ctx, secret), c.Create(ctx, pc)); err != nil {
		return none(err)
	}
	system := configMaps(c, namespace)
	system.OnCall = proxy.OnCall
	return system, conformance.Provider{Command: func(ctx context.Context, kubeconfig string) *exec.Cmd {
		command := exec.CommandContext(ctx, binary, "--poll", processPoll.String(), "--poll-jitter-percentage", "0")
		command.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig, "WEBHOOK_TLS_CERT_DIR="+certificates)
		return command
	}}, nil
}

func configMapOperation(req *http.Request) conformance.Operation {
	_, path, found := strings.Cut(req.URL.Path, "/configmaps")
	switch {
	case !found:
		return ""
	case req.Method == http.MethodPost:
		return conformance.Create
	case req.Method == http.MethodPut, req.Method == http.MethodPatch:
		return conformance.Update
	case req.Method == http.MethodDelete:
		return conformance.Delete
	case path == "":
		return conformance.Search
	}
	return conformance.Read
}

func writeStatus(w http.ResponseWriter, answer *kerrors.StatusError) {
	status := answer.Status()
	status.APIVersion, status.Kind = "v1", "Status"
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(int(status.Code))
	_ = json.NewEncoder(w).Encode(status) // The provider sees an answer that is cut off.
}

// configMaps acts as another client of the cluster.
func configMaps(c client.Client, namespace string) conformance.System {
	at := func(name string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace}}
	}
	return conformance.System{
		Add: func(ctx context.Context, mg *unstructured.Unstructured) (string, error) {
			name, _, _ := unstructured.NestedString(mg.Object, "spec", "forProvider", "manifest", "metadata", "name")
			o := at(name)
			o.Data = map[string]string{"title": "engineer"}
			return name, c.Create(ctx, o)
		},
		List: func(ctx context.Context) ([]string, error) {
			var list corev1.ConfigMapList
			err := c.List(ctx, &list, client.InNamespace(namespace))
			var names []string
			for _, o := range list.Items {
				names = append(names, o.Name)
			}
			return names, err
		},
		Change: func(ctx context.Context, name string) error {
			return c.Patch(ctx, at(name), client.RawPatch(types.MergePatchType, []byte(`{"data":{"title":"changed"}}`)))
		},
		Remove: func(ctx context.Context, name string) error { return c.Delete(ctx, at(name)) },
	}
}
