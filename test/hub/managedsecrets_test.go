package hub_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/godwit-dev/godwit/cmd/hub/cluster"
	"github.com/godwit-dev/godwit/cmd/hub/identity"
	"github.com/godwit-dev/godwit/cmd/hub/message"
)

// records returns what the broker has in a topic.
func (m *managed) records(topic string) []message.Envelope {
	m.t.Helper()
	ctx, cancel := context.WithTimeout(m.t.Context(), time.Second)
	defer cancel()
	var all []message.Envelope
	err := m.kafka.Receive(ctx, "reader-"+newName(), []string{topic}, func(_ context.Context, _ string, e message.Envelope) error {
		all = append(all, e)
		return nil
	})
	if !errors.Is(err, context.DeadlineExceeded) {
		m.t.Fatal(err)
	}
	return all
}

// commands returns the commands of a migration to a hub, each as it was sent first.
func (m *managed) commands(to *hubSide, uid string) []message.Envelope {
	m.t.Helper()
	known := map[string]bool{}
	return slices.DeleteFunc(m.records(message.SpecTopic(to.name)), func(e message.Envelope) bool {
		id := e.Attributes["ce_id"]
		twice := known[id]
		known[id] = true
		return twice || e.Attributes["ce_migrationid"] != uid
	})
}

// awaitCommands waits until a hub was sent so many commands of a migration.
func (m *managed) awaitCommands(to *hubSide, uid string, n int) []message.Envelope {
	m.t.Helper()
	var sent []message.Envelope
	m.await(fmt.Sprintf("%d commands to %s", n, to.name), func() bool {
		sent = m.commands(to, uid)
		return len(sent) == n
	})
	return sent
}

// collectSecrets adds the data of all Secrets in namespaces of both hubs. The clusters, the
// agents and the migrations have no other secrets.
func (m *managed) collectSecrets() {
	m.t.Helper()
	namespaces := map[*hubSide][]string{m.source: {m.source.namespace, bootstrapNamespace}, m.target: {m.target.namespace, bootstrapNamespace}}
	for _, s := range m.sites {
		namespaces[m.source] = append(namespaces[m.source], s.name)
		namespaces[m.target] = append(namespaces[m.target], s.name)
		k, known, err := cluster.KlusterletOf(m.t.Context(), m.source.c, s.name)
		if err != nil {
			m.t.Fatal(err)
		}
		if own := k.OwnKubeconfig(); known && len(own) > 0 {
			m.secrets["kubeconfig of the source for "+s.name] = own
		}
	}
	for side, list := range namespaces {
		for _, namespace := range list {
			all := &corev1.SecretList{}
			if err := side.c.List(m.t.Context(), all, client.InNamespace(namespace)); err != nil {
				m.t.Fatal(err)
			}
			for _, secret := range all.Items {
				m.addSecret(side, secret)
			}
		}
	}
	m.secrets["private key of the manager"] = m.identity.Bytes()
	m.secrets["private key of the source"], m.secrets["private key of the target"] = m.source.identity.Bytes(), m.target.identity.Bytes()
}

// shortest secret: a user name of four letters is no secret, and is found everywhere.
const shortest = 6

func (m *managed) addSecret(side *hubSide, secret corev1.Secret) {
	for key, value := range secret.Data {
		if len(value) < shortest || key == identity.Public || key == "task" {
			continue
		}
		what := fmt.Sprintf("%s of Secret %s/%s of %s", key, secret.Namespace, secret.Name, side.name)
		m.secrets[what] = value
		if key != "kubeconfig" {
			continue
		}
		_, token, found := strings.Cut(string(value), "token: ")
		if !found {
			m.t.Fatalf("%s has no token", what)
		}
		m.secrets["token in "+what], _, _ = cutLine(token)
	}
}

func cutLine(text string) (line []byte, rest string, found bool) {
	first, rest, found := strings.Cut(text, "\n")
	return []byte(first), rest, found
}

// seen is all that others may read: what the broker has, logs, events, and the objects of the
// migrations on the global hub.
func (m *managed) seen() map[string]string {
	m.t.Helper()
	seen := map[string]string{"the broker": strings.Join(m.values(), "\n"), "the logs": strings.Join(m.logs.text(), "\n")}
	var all []string
	for len(m.g.events.Events) > 0 {
		all = append(all, <-m.g.events.Events)
	}
	seen["the events"] = strings.Join(all, "\n")
	configMaps := &corev1.ConfigMapList{}
	if err := m.g.c.List(m.t.Context(), configMaps, client.InNamespace(m.g.namespace)); err != nil {
		m.t.Fatal(err)
	}
	for _, c := range configMaps.Items {
		for key, value := range c.Data {
			seen[fmt.Sprintf("key %s of ConfigMap %s", key, c.Name)] = value
		}
		for key, value := range c.BinaryData {
			seen[fmt.Sprintf("key %s of ConfigMap %s", key, c.Name)] = string(value)
		}
	}
	return seen
}

// mustSeeNoSecret fails the test if a secret is in something that others may read, as it is or encoded.
func (m *managed) mustSeeNoSecret(when string, more map[string]string) {
	m.t.Helper()
	m.collectSecrets()
	seen := m.seen()
	maps.Copy(seen, more)
	for what, secret := range m.secrets {
		for form, text := range map[string]string{
			"": string(secret), "in base64": base64.StdEncoding.EncodeToString(secret), "in hexadecimal": fmt.Sprintf("%x", secret),
		} {
			for where, content := range seen {
				if strings.Contains(content, text) {
					m.t.Errorf("%s: %s has %s %s", when, where, what, form)
				}
			}
		}
	}
	for _, kind := range []string{"token in ", "kubeconfig of Secret ", "kubeconfig of the source ", "password of ", "key of Secret ", "private key of "} {
		if !slices.ContainsFunc(slices.Collect(maps.Keys(m.secrets)), func(what string) bool { return strings.HasPrefix(what, kind) }) {
			m.t.Errorf("%s: no secret is a %s, so that the test proves nothing", when, kind)
		}
	}
	if !strings.Contains(seen["the broker"], m.sites[0].name) || !strings.Contains(seen["the logs"], m.sites[0].name) && !strings.Contains(seen["the logs"], "migration") {
		m.t.Error("neither the broker nor the logs say anything of the migration, so that the test proves nothing")
	}
}

// statusOf is a migration as users see it.
func (m *managed) statusOf(key objectKey) map[string]string {
	m.t.Helper()
	text, err := yaml.Marshal(m.g.read(key))
	if err != nil {
		m.t.Fatal(err)
	}
	return map[string]string{"migration " + key.Name: string(text)}
}
