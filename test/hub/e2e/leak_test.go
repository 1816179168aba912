package e2e_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-dev/godwit/cmd/hub/identity"
	"github.com/godwit-dev/godwit/test/hub/ocm"
)

// forms are how a secret may be written.
func forms(secret []byte) [][]byte {
	return [][]byte{
		secret, []byte(base64.StdEncoding.EncodeToString(secret)), []byte(base64.RawURLEncoding.EncodeToString(secret)), []byte(hex.EncodeToString(secret)),
	}
}

// leaks returns the places that have a secret in one of its forms.
func leaks(places map[string][]byte, secrets map[string][]byte) []string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(secrets)) {
		for place, data := range places {
			if slices.ContainsFunc(forms(secrets[name]), func(form []byte) bool { return bytes.Contains(data, form) }) {
				all = append(all, fmt.Sprintf("%s is in %s", name, place))
			}
		}
	}
	slices.Sort(all)
	return all
}

// secretsOf are the secrets of clusters, as they are in their objects.
func secretsOf(t *testing.T, clusters ...string) map[string][]byte {
	t.Helper()
	all := map[string][]byte{}
	for _, name := range clusters {
		for _, o := range siteObjects(t, name) {
			values, _, err := unstructured.NestedStringMap(o.Object, "stringData")
			if err != nil {
				t.Fatal(err)
			}
			for key, value := range values {
				if strings.HasPrefix(value, "secret-") {
					all[key+" of Secret "+name+"/"+o.GetName()] = []byte(value)
				}
			}
		}
	}
	if len(all) != 5*len(clusters) {
		t.Fatalf("clusters %v have %d secrets, want 5 each", clusters, len(all))
	}
	return all
}

// keysOf are the secrets of a migration that begins: the token in the bootstrap kubeconfig that hub1 gives its klusterlets, the
// keys of both agents for this migration, and the identities of all three. It returns when it has seen each of them. The agents
// delete their keys before the migration ends.
func (m *migration) keysOf() map[string][]byte {
	m.t.Helper()
	type place struct {
		hub                  *ocm.Hub
		namespace, name, key string
	}
	places := map[string]place{
		"the bootstrap token":         {m.in.hub1, bootstrapNamespace, "bootstrap-hub2", "kubeconfig"},
		"the identity of the manager": {m.in.hub1, managerNamespace, identity.Secret, identity.Private},
	}
	for _, h := range []*ocm.Hub{m.in.hub1, m.in.hub2} {
		places["the identity of the agent of "+h.Name] = place{h, agentNamespace, identity.Secret, identity.Private}
		places["the key of the migration on "+h.Name] = place{h, agentNamespace, "godwit-migration-" + string(m.object.UID), "key"}
	}
	found := map[string][]byte{}
	await(m.t, "the keys of "+m.object.Name, func(ctx context.Context) error {
		for name, p := range places {
			secret := &corev1.Secret{}
			err := p.hub.Client.Get(ctx, client.ObjectKey{Namespace: p.namespace, Name: p.name}, secret)
			if client.IgnoreNotFound(err) != nil {
				m.t.Fatal(err)
			}
			if data := secret.Data[p.key]; len(data) > 0 {
				found[name] = data
			}
		}
		if len(found) < len(places) {
			return fmt.Errorf("the test has seen %v", slices.Sorted(maps.Keys(found)))
		}
		return nil
	})
	config, err := clientcmd.RESTConfigFromKubeConfig(found["the bootstrap token"])
	if err != nil || config.BearerToken == "" {
		m.t.Fatalf("the bootstrap kubeconfig has no token: %v", err)
	}
	found["the bootstrap token"] = []byte(config.BearerToken)
	return found
}

// mustNotLeak fails the test if a secret is anywhere but in the Secrets of hubs: in the folder of the broker, which has all topics
// as the brokers store them, in logs, in events, or in a status.
func (m *migration) mustNotLeak(secrets map[string][]byte) {
	m.t.Helper()
	places := m.in.files(m.t)
	for _, h := range []*ocm.Hub{m.in.hub1, m.in.hub2} {
		for _, kind := range []schema.GroupVersionKind{
			{Group: "events.k8s.io", Version: "v1", Kind: "EventList"}, {Version: "v1", Kind: "EventList"}, {Version: "v1", Kind: "ConfigMapList"},
			{Group: "global-hub.open-cluster-management.io", Version: "v1alpha1", Kind: "ManagedClusterMigrationList"},
		} {
			if h == m.in.hub2 && kind.Group == "global-hub.open-cluster-management.io" {
				continue
			}
			list := &unstructured.UnstructuredList{}
			list.SetGroupVersionKind(kind)
			if err := h.Client.List(m.t.Context(), list); err != nil {
				m.t.Fatal(err)
			}
			for _, o := range list.Items {
				places[fmt.Sprintf("%s %s/%s of %s", o.GetKind(), o.GetNamespace(), o.GetName(), h.Name)] = []byte(text(m.t, &o))
			}
		}
	}
	for _, leak := range leaks(places, secrets) {
		m.t.Error(leak)
	}
	// What is no secret is found in each kind of place, so that a secret would be.
	for where, visible := range map[string]string{
		m.in.broker.DataDir(): string(m.object.UID), m.in.source.log: "The agent starts", "ManagedClusterMigration ": string(m.object.UID), "Event ": m.object.Name,
	} {
		some := maps.Clone(places)
		maps.DeleteFunc(some, func(place string, _ []byte) bool { return !strings.HasPrefix(place, where) })
		if len(leaks(some, map[string][]byte{visible: []byte(visible)})) == 0 {
			m.t.Errorf("%q is not in %s, so that the search for secrets has a fault", visible, where)
		}
	}
}

// files are all files of the broker, and all logs.
func (in *installation) files(t *testing.T) map[string][]byte {
	t.Helper()
	all := map[string][]byte{}
	read := func(path string) {
		data, err := os.ReadFile(path)
		if os.IsNotExist(err) { // the broker deletes files
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		all[path] = bytes.TrimRight(data, "\x00") // Kafka preallocates
	}
	for _, log := range []string{in.broker.LogFile(), in.manager.log, in.source.log, in.target.log} {
		read(log)
	}
	if err := filepath.WalkDir(in.broker.DataDir(), func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() {
			read(path)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return all
}

// TestLeaks: a secret is found in each form in which it may be written.
func TestLeaks(t *testing.T) {
	secret := []byte("two lines?>")
	for form, data := range map[string]string{
		"raw": "x two lines?> x", "base64": `{"a":"dHdvIGxpbmVzPz4="}`, "base64 of URLs": "dHdvIGxpbmVzPz4", "hex": "74776f206c696e65733f3e",
	} {
		if len(leaks(map[string][]byte{form: []byte(data)}, map[string][]byte{"the secret": secret})) != 1 {
			t.Errorf("the secret is not found as %s", form)
		}
	}
	if got := leaks(map[string][]byte{"a place": []byte("two lines")}, map[string][]byte{"the secret": secret}); len(got) > 0 {
		t.Errorf("the secret is found where it is not: %v", got)
	}
}
