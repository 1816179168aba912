package externalname_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/godwit-dev/godwit/externalname"
	"github.com/godwit-dev/godwit/externalname/crossplane/conformance"
	"github.com/godwit-dev/godwit/externalname/crossplane/conformance/exporttest"
)

// upjetExample is the module of the provider that Upjet generates. It requires crossplane-runtime v2.2, which can't be in one
// build with the version of this module, so that its programs are compiled alone.
const upjetExample = "../../examples/provider-upjet"

// needsUpjet skips a test that compiles Terraform's plugin SDK, unless make upjet runs it.
func needsUpjet(t *testing.T) {
	t.Helper()
	if os.Getenv("GODWIT_UPJET") == "" {
		t.Skip("make upjet runs it")
	}
}

// upjetCRDs are those of the example.
func upjetCRDs(t *testing.T) []*unstructured.Unstructured {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(upjetExample, "crds", "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("CRDs of the example: %v, %v", files, err)
	}
	var crds []*unstructured.Unstructured
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		objects, err := exporttest.ReadObjects(bytes.NewReader(content))
		if err != nil {
			t.Fatal(err)
		}
		crds = append(crds, objects...)
	}
	return crds
}

// storeItem is an item of the example's external system.
type storeItem struct {
	ID     string `json:"id,omitempty"`
	Bucket string `json:"bucket,omitempty"`
	Name   string `json:"name,omitempty"`
	Title  string `json:"title"`
	Size   int    `json:"size"`
}

// itemStore is a client of the example's external system, which runs as a process.
type itemStore struct{ url string }

// startStore starts the service, and returns how to end it.
func startStore(ctx context.Context, binary string) (itemStore, func(context.Context) error, error) {
	command := exec.CommandContext(context.WithoutCancel(ctx), binary, "localhost:0")
	output, err := command.StdoutPipe()
	if err == nil {
		err = command.Start()
	}
	if err != nil {
		return itemStore{}, nil, err
	}
	line := bufio.NewScanner(output)
	if !line.Scan() {
		return itemStore{}, nil, fmt.Errorf("the service has printed no address: %w", errors.Join(line.Err(), command.Process.Kill()))
	}
	return itemStore{url: line.Text()}, func(context.Context) error {
		err := command.Process.Kill()
		_ = command.Wait() // It was killed.
		return err
	}, nil
}

func (s itemStore) send(ctx context.Context, method, path string, body, into any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, method, s.url+path, bytes.NewReader(text))
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode >= http.StatusBadRequest {
		return fmt.Errorf("%s %s: %s", method, path, response.Status)
	}
	if into == nil {
		return nil
	}
	return json.NewDecoder(response.Body).Decode(into)
}

func (s itemStore) list(ctx context.Context, kind string) ([]storeItem, error) {
	var items []storeItem
	return items, s.send(ctx, http.MethodGet, "/"+kind, nil, &items)
}

// storeOperation returns the operation of a request of the Terraform provider.
func storeOperation(r *http.Request) conformance.Operation {
	return map[string]conformance.Operation{
		http.MethodPost: conformance.Create, http.MethodGet: conformance.Read, http.MethodPut: conformance.Update, http.MethodDelete: conformance.Delete,
	}[r.Method]
}

// upjetKind is a kind of the example, for the checks.
type upjetKind struct {
	conformance.Kind
	// plural is the kind in paths of the external system.
	plural string
	// nameOf returns the external name of an item, and idOf the ID of a name.
	nameOf func(storeItem) string
	idOf   func(name string) string
}

// system acts as another client.
func (k upjetKind) system(s itemStore, namespace string) conformance.System {
	at := func(name string) string { return "/" + k.plural + "/" + url.PathEscape(k.idOf(name)) }
	system := conformance.System{
		Add: func(ctx context.Context, mg *unstructured.Unstructured) (string, error) {
			item := storeItem{}
			for field, to := range map[string]*string{"bucket": &item.Bucket, "name": &item.Name, "title": &item.Title} {
				*to, _, _ = unstructured.NestedString(mg.Object, "spec", "forProvider", field)
			}
			size, _, _ := unstructured.NestedInt64(mg.Object, "spec", "forProvider", "size")
			item.Size = int(size)
			err := s.send(ctx, http.MethodPost, "/"+k.plural, item, &item)
			return k.nameOf(item), err
		},
		List: func(ctx context.Context) ([]string, error) {
			items, err := s.list(ctx, k.plural)
			names := []string{}
			for _, item := range items {
				names = append(names, k.nameOf(item))
			}
			return names, err
		},
		Change: func(ctx context.Context, name string) error {
			var item storeItem
			if err := s.send(ctx, http.MethodGet, at(name), nil, &item); err != nil {
				return err
			}
			item.Title = "changed"
			return s.send(ctx, http.MethodPut, at(name), item, nil)
		},
		Remove: func(ctx context.Context, name string) error {
			return s.send(ctx, http.MethodDelete, at(name), nil, nil)
		},
	}
	if k.plural == "folders" {
		system.HideParent = func(ctx context.Context, _ string) (func(context.Context) error, error) {
			restore := func(ctx context.Context) error {
				return s.send(ctx, http.MethodPost, "/buckets", storeItem{Name: namespace}, nil)
			}
			return restore, s.send(ctx, http.MethodDelete, "/buckets/"+namespace, nil, nil)
		}
	}
	return system
}

// upjetPrograms are the compiled programs of the example.
type upjetPrograms struct{ provider, service string }

func upjetExamplePrograms(t *testing.T) upjetPrograms {
	t.Helper()
	return upjetPrograms{
		provider: program(t, upjetExample, "./cmd/provider", "GOWORK=off"), service: program(t, upjetExample, "./cmd/service", "GOWORK=off"),
	}
}

// open starts a service with a bucket that has the name of the namespace, and has the provider use it through a proxy.
func (k upjetKind) open(t *testing.T, programs upjetPrograms) func(context.Context, string) (conformance.System, conformance.Provider, error) {
	t.Helper()
	return func(ctx context.Context, namespace string) (conformance.System, conformance.Provider, error) {
		s, stop, err := startStore(ctx, programs.service)
		if err != nil {
			return conformance.System{}, conformance.Provider{}, err
		}
		target, err := url.Parse(s.url)
		if err == nil {
			err = s.send(ctx, http.MethodPost, "/buckets", storeItem{Name: namespace}, nil)
		}
		if err != nil {
			return conformance.System{}, conformance.Provider{}, err
		}
		proxy := &conformance.Proxy{Target: target, Operation: storeOperation}
		front := httptest.NewServer(proxy)
		t.Cleanup(front.CloseClientConnections)
		system := k.system(s, namespace)
		system.Close = stop
		system.OnCall = proxy.OnCall
		return system, conformance.Provider{Command: func(ctx context.Context, kubeconfig string) *exec.Cmd {
			command := exec.CommandContext(ctx, programs.provider, "--endpoint", front.URL, "--namespace", namespace, "--poll", processPoll.String())
			command.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig)
			return command
		}}, nil
	}
}

// storeManifest returns a managed resource of the example. crossplane-runtime writes the whole object before a creation, and
// with Upjet's types an empty initProvider: with it, the check of the spec finds any other change.
func storeManifest(kind string, forProvider map[string]any) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"forProvider": forProvider, "initProvider": map[string]any{}}}}
	o.SetGroupVersionKind(schema.GroupVersionKind{Group: "store.example.org", Version: "v1alpha1", Kind: kind})
	return o
}

var immediate = map[conformance.CheckName]string{
	conformance.DeleteOnce:               "the service deletes at once",
	conformance.SeveralMatchesAreRefused: "nothing is looked up that could match several resources",
}

func exempt(further ...string) map[conformance.CheckName]string {
	all := maps.Clone(immediate)
	for i := 0; i < len(further); i += 2 {
		all[conformance.CheckName(further[i])] = further[i+1]
	}
	return all
}

// upjetKinds have the three shapes of external names that providers of Upjet have.
func upjetKinds() map[string]upjetKind {
	const noParent = "it has no parent"
	buckets := externalname.Text()
	type folder struct{ Bucket, Name string }
	folders := externalname.Compound(
		externalname.Field("bucket", func(k *folder) *string { return &k.Bucket }),
		externalname.Field("name", func(k *folder) *string { return &k.Name }),
	)
	return map[string]upjetKind{
		// Upjet's default: operations are asynchronous.
		"identifier from the provider": {
			Kind: conformance.Kind{
				Manifest: func(_, id string) *unstructured.Unstructured {
					return storeManifest("Volume", map[string]any{"title": id, "size": int64(1)})
				},
				Shape: externalname.GUID().Describe(), Unknown: unknownID, AllowsDuplicates: true,
				Change: `{"spec":{"forProvider":{"size":7}}}`,
				Exempt: exempt(string(conformance.MissingParentIsNoDrift), noParent),
			},
			plural: "volumes", nameOf: func(i storeItem) string { return i.ID }, idOf: func(name string) string { return name },
		},
		"parameter as identifier": {
			Kind: conformance.Kind{
				Manifest: func(_, id string) *unstructured.Unstructured {
					return storeManifest("Bucket", map[string]any{"name": id, "title": "bucket"})
				},
				Shape: buckets.Describe(), Unknown: "no-such-bucket",
				Change:   `{"spec":{"forProvider":{"size":7}}}`,
				HardKeys: []string{`{"spec":{"forProvider":{"name":"a/b"}}}`, `{"spec":{"forProvider":{"name":".."}}}`, `{"spec":{"forProvider":{"name":" spaces "}}}`},
				Exempt:   exempt(string(conformance.MissingParentIsNoDrift), noParent),
			},
			plural: "buckets",
			nameOf: func(i storeItem) string { name, _ := buckets.Format(i.Name); return name },
			idOf:   func(name string) string { key, _ := buckets.Parse(name); return key },
		},
		"templated compound": {
			Kind: conformance.Kind{
				Manifest: func(namespace, id string) *unstructured.Unstructured {
					return storeManifest("Folder", map[string]any{"bucket": namespace, "name": id, "title": "folder"})
				},
				Shape: folders.Describe(), Unknown: "no-such-bucket/no-such-folder",
				Change:   `{"spec":{"forProvider":{"size":7}}}`,
				HardKeys: []string{`{"spec":{"forProvider":{"name":"a/b"}}}`, `{"spec":{"forProvider":{"name":"a:b"}}}`},
				LookupName: func(mg *unstructured.Unstructured) string {
					name, _, _ := unstructured.NestedString(mg.Object, "spec", "forProvider", "name")
					return name
				},
				Exempt: exempt(),
			},
			plural: "folders",
			nameOf: func(i storeItem) string { name, _ := folders.Format(folder{i.Bucket, i.Name}); return name },
			idOf: func(name string) string {
				key, _ := folders.Parse(name)
				return key.Bucket + ":" + key.Name
			},
		},
	}
}

// A provider that Upjet generates follows the contract with existing.WrapConnector, and runs as a process.
func TestUpjetFollowsTheContract(t *testing.T) {
	needsUpjet(t)
	programs, crds := upjetExamplePrograms(t), upjetCRDs(t)
	for name, kind := range upjetKinds() {
		t.Run(strings.ReplaceAll(name, " ", "-"), func(t *testing.T) {
			report := conformance.Run(t, kind.Kind, conformance.Harness{
				Config: shared.Config(), CRDs: crds, Open: kind.open(t, programs), Parallel: 6,
				Poll: processPoll, Recovery: 50 * time.Second, // The recovery delay of a kind is 30 s by default.
			})
			for _, result := range report.With(conformance.NotChecked) {
				t.Errorf("%s was not checked: %s", result.Check, result.Detail)
			}
		})
	}
}
