package main

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	v1 "example.com/provider-records/api/v1"
	"example.com/provider-records/record"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/godwit-dev/godwit/externalname/crossplane/conformance"
	"github.com/godwit-dev/godwit/externalname/crossplane/conformance/exporttest"
)

// The program follows the contract of external names.
func TestContract(t *testing.T) {
	if os.Getenv("KUBEBUILDER_ASSETS") == "" {
		t.Skip("KUBEBUILDER_ASSETS names the folder of etcd and kube-apiserver: setup-envtest use -p path")
	}
	environment := &envtest.Environment{CRDDirectoryPaths: []string{"crds"}}
	config, err := environment.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = environment.Stop() })
	binary := filepath.Join(t.TempDir(), "provider-records")
	if output, err := exec.CommandContext(t.Context(), "go", "build", "-o", binary, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	harness := conformance.Harness{
		Config: config,
		Open: func(_ context.Context, namespace string) (conformance.System, conformance.Provider, error) {
			return open(t, binary, namespace)
		},
		Parallel: 6,
		Poll:     200 * time.Millisecond,
		Recovery: 20 * time.Second,
	}
	conformance.Run(t, checkedRecord(), harness)
	install(t, config, "package/policies.yaml")
	harness.Only = []conformance.CheckName{conformance.MalformedNamesAreRefused, conformance.CreateSetsName}
	conformance.Run(t, checkedRecord(), harness)
}

// install creates the objects of a file, and waits until malformed names are refused.
func install(t *testing.T, config *rest.Config, path string) {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	objects, err := exporttest.ReadObjects(file)
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range objects {
		if err := c.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	malformed := checkedRecord().Manifest("", "malformed")
	malformed.SetName("malformed")
	malformed.SetNamespace("default")
	malformed.SetAnnotations(map[string]string{"crossplane.io/external-name": "a/b/c"})
	for !kerrors.IsInvalid(c.Create(t.Context(), malformed.DeepCopy(), client.DryRunAll)) {
		time.Sleep(100 * time.Millisecond)
	}
}

func checkedRecord() conformance.Kind {
	return conformance.Kind{
		Manifest: func(_, id string) *unstructured.Unstructured {
			o := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
				"forProvider": map[string]any{"zone": "example.org", "name": id, "value": "192.0.2.1"},
			}}}
			o.SetGroupVersionKind(v1.GroupVersion.WithKind("Record"))
			return o
		},
		Shape:    record.Names.Codec.Describe(),
		Unknown:  "example.org/missing",
		Change:   `{"spec":{"forProvider":{"value":"192.0.2.2"}}}`,
		HardKeys: []string{`{"spec":{"forProvider":{"name":"a/b"}}}`, `{"spec":{"forProvider":{"name":" a "}}}`},
		Exempt: map[conformance.CheckName]string{
			conformance.SeveralMatchesAreRefused: "a record is never looked up by other fields than its key",
			conformance.DeleteOnce:               "the API deletes at once",
		},
	}
}

// open starts an API for one check, behind a proxy that counts and disturbs the calls of the provider.
func open(t *testing.T, binary, namespace string) (conformance.System, conformance.Provider, error) {
	t.Helper()
	api := &fake{zones: map[string]map[string]record.Entry{"example.org": {}}}
	behind := httptest.NewServer(api)
	target, err := url.Parse(behind.URL)
	if err != nil {
		return conformance.System{}, conformance.Provider{}, err
	}
	proxy := &conformance.Proxy{Target: target, Operation: func(r *http.Request) conformance.Operation { return operations[r.Method] }}
	front := httptest.NewServer(proxy)
	system := api.system()
	system.OnCall = proxy.OnCall
	system.Close = func(context.Context) error {
		front.CloseClientConnections()
		front.Close()
		behind.Close()
		return nil
	}
	return system, conformance.Provider{
		WatchesNamespace: true,
		Command: func(ctx context.Context, kubeconfig string) *exec.Cmd {
			command := exec.CommandContext(ctx, binary, "--api="+front.URL, "--namespace="+namespace, "--poll=200ms",
				"--recovery-delay=1s", "--creation-grace=1ms", "--metrics-bind-address=0")
			command.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig)
			return command
		},
	}, nil
}

var operations = map[string]conformance.Operation{
	http.MethodGet: conformance.Read, http.MethodPost: conformance.Create, http.MethodPut: conformance.Update, http.MethodDelete: conformance.Delete,
}

// fake is the API.
type fake struct {
	mu    sync.Mutex
	zones map[string]map[string]record.Entry
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	path := strings.Split(r.URL.Path, "/") // /zones/ZONE/records/NAME
	zone, name := f.zones[path[2]], path[4]
	existing, found := zone[name]
	var sent record.Entry
	_ = json.NewDecoder(r.Body).Decode(&sent)
	switch {
	case zone == nil:
		w.WriteHeader(http.StatusNotFound)
		_, _ = w.Write([]byte("no such zone"))
	case r.Method == http.MethodPost && found:
		w.WriteHeader(http.StatusConflict)
	case r.Method != http.MethodPost && !found:
		w.WriteHeader(http.StatusNotFound)
	case r.Method == http.MethodGet:
		_ = json.NewEncoder(w).Encode(existing)
	case r.Method == http.MethodDelete:
		delete(zone, name)
	default:
		zone[name] = sent
	}
}

// system acts as another client of the API.
func (f *fake) system() conformance.System {
	in := func(name string, change func(zone map[string]record.Entry, name string)) error {
		f.mu.Lock()
		defer f.mu.Unlock()
		zone, name, _ := strings.Cut(name, "/")
		change(f.zones[zone], name)
		return nil
	}
	return conformance.System{
		Add: func(_ context.Context, mg *unstructured.Unstructured) (string, error) {
			id, _, _ := unstructured.NestedString(mg.Object, "spec", "forProvider", "name")
			name := "example.org/" + id
			return name, in(name, func(zone map[string]record.Entry, name string) {
				zone[name] = record.Entry{Value: "192.0.2.1", TTL: 300}
			})
		},
		List: func(context.Context) (names []string, err error) {
			err = in("example.org/", func(zone map[string]record.Entry, _ string) {
				for name := range zone {
					names = append(names, "example.org/"+name)
				}
			})
			return names, err
		},
		Change: func(_ context.Context, name string) error {
			return in(name, func(zone map[string]record.Entry, name string) {
				zone[name] = record.Entry{Value: "192.0.2.9", TTL: 300}
			})
		},
		Remove: func(_ context.Context, name string) error {
			return in(name, func(zone map[string]record.Entry, name string) { delete(zone, name) })
		},
		HideParent: func(context.Context, string) (func(context.Context) error, error) {
			f.mu.Lock()
			defer f.mu.Unlock()
			hidden := f.zones["example.org"]
			delete(f.zones, "example.org")
			return func(context.Context) error {
				f.mu.Lock()
				defer f.mu.Unlock()
				f.zones["example.org"] = hidden
				return nil
			}, nil
		},
	}
}
