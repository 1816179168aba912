package hub_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/yaml"

	"github.com/godwit-dev/godwit/hub/cluster"
	"github.com/godwit-dev/godwit/hub/identity"
	"github.com/godwit-dev/godwit/hub/manager"
	"github.com/godwit-dev/godwit/hub/message"
)

// together is the manager and the agents of two hubs, of which no part is played. The broker
// is in the process, and the klusterlets are simulated.
type together struct {
	*move
	g *globalHub
	// secrets are all that no other party may read, by what they are.
	secrets map[string][]byte
}

// skewed is a clock that is wrong.
type skewed struct {
	clock.RealClock
	by time.Duration
}

func (s skewed) Now() time.Time                  { return s.RealClock.Now().Add(s.by) }
func (s skewed) Since(t time.Time) time.Duration { return s.Now().Sub(t) }

// skew is by how much the clocks of the hubs differ from that of the global hub, in both directions.
const skew = 10 * time.Minute

// newTogether starts both agents. The clock of each hub is wrong.
func newTogether(t *testing.T, clusters int) *together {
	t.Helper()
	config := shared.Config()
	config.QPS = -1
	c, err := client.NewWithWatch(config, client.Options{Scheme: globalScheme(), Mapper: withoutAccounts{hubMapper()}})
	if err != nil {
		t.Fatal(err)
	}
	m := newMove(t, clusters)
	g := &globalHub{t: t, c: c, namespace: newNamespace(t, c), broker: m.broker, events: events.NewFakeRecorder(1000), metrics: manager.NewMetrics(c)}
	if g.manager, err = identity.Ensure(t.Context(), c, c, g.namespace); err != nil {
		t.Fatal(err)
	}
	m.identity = g.manager
	g.from, g.to = &scripted{hub: m.source.name, identity: m.source.identity}, &scripted{hub: m.target.name, identity: m.target.identity}
	g.enroll(g.from, g.to)
	m.source.clock, m.target.clock = skewed{by: -skew}, skewed{by: skew}
	for _, s := range []*hubSide{m.source, m.target} {
		mc := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: s.name}}
		mc.Spec.ManagedClusterClientConfigs = []clusterv1.ClientConfig{{URL: s.config.Host, CABundle: s.config.CAData}}
		if err := c.Create(t.Context(), mc); err != nil {
			t.Fatal(err)
		}
		g.setAvailable(s.name, metav1.ConditionTrue)
		m.run(s)
	}
	return &together{m, g, map[string][]byte{}}
}

// manage runs the manager for some migrations, until the test ends.
func (g *together) manage(keys ...objectKey) {
	g.t.Helper()
	logger := funcr.New(func(prefix, args string) { g.logs.add("manager "+prefix, args) }, funcr.Options{Verbosity: 1})
	r := &manager.Reconciler{
		Client: g.g.c, Reader: g.g.c, Recorder: g.g.events, Clock: clock.RealClock{}, Transport: g.connect("manager-itself"),
		Metrics: g.g.metrics, Namespace: g.g.namespace, Identity: g.identity,
	}
	g.goes(func(ctx context.Context) {
		if err := r.Receive(log.IntoContext(ctx, logger)); err != nil {
			g.t.Error(err)
		}
	})
	for _, key := range keys {
		g.goes(func(ctx context.Context) {
			ctx = log.IntoContext(logr.NewContext(ctx, logger), logger)
			for ctx.Err() == nil {
				if _, err := r.Reconcile(ctx, reconcile.Request{NamespacedName: key}); client.IgnoreNotFound(err) != nil && ctx.Err() == nil {
					logger.Error(err, "Reconcile")
				}
				pause(ctx, 20*time.Millisecond)
			}
		})
	}
}

// records returns what the broker has in a topic.
func (g *together) records(topic string) []message.Envelope {
	g.t.Helper()
	ctx, cancel := context.WithTimeout(g.t.Context(), time.Second)
	defer cancel()
	var all []message.Envelope
	err := g.kafka.Receive(ctx, "reader-"+newName(), []string{topic}, func(_ context.Context, _ string, e message.Envelope) error {
		all = append(all, e)
		return nil
	})
	if !errors.Is(err, context.DeadlineExceeded) {
		g.t.Fatal(err)
	}
	return all
}

// commands returns the commands of a migration to a hub, each as it was sent first.
func (g *together) commands(to *hubSide, uid string) []message.Envelope {
	g.t.Helper()
	known := map[string]bool{}
	return slices.DeleteFunc(g.records(message.SpecTopic(to.name)), func(e message.Envelope) bool {
		id := e.Attributes["ce_id"]
		twice := known[id]
		known[id] = true
		return twice || e.Attributes["ce_migrationid"] != uid
	})
}

// awaitCommands waits until a hub was sent so many commands of a migration.
func (g *together) awaitCommands(to *hubSide, uid string, n int) []message.Envelope {
	g.t.Helper()
	var sent []message.Envelope
	g.await(fmt.Sprintf("%d commands to %s", n, to.name), func() bool {
		sent = g.commands(to, uid)
		return len(sent) == n
	})
	return sent
}

// collectSecrets adds the data of all Secrets in namespaces of both hubs. The clusters, the
// agents and the migrations have no other secrets.
func (g *together) collectSecrets() {
	g.t.Helper()
	namespaces := map[*hubSide][]string{g.source: {g.source.namespace, bootstrapNamespace}, g.target: {g.target.namespace, bootstrapNamespace}}
	for _, s := range g.sites {
		namespaces[g.source] = append(namespaces[g.source], s.name)
		namespaces[g.target] = append(namespaces[g.target], s.name)
		k, known, err := cluster.KlusterletOf(g.t.Context(), g.source.c, s.name)
		if err != nil {
			g.t.Fatal(err)
		}
		if own := k.OwnKubeconfig(); known && len(own) > 0 {
			g.secrets["kubeconfig of the source for "+s.name] = own
		}
	}
	for side, list := range namespaces {
		for _, namespace := range list {
			all := &corev1.SecretList{}
			if err := side.c.List(g.t.Context(), all, client.InNamespace(namespace)); err != nil {
				g.t.Fatal(err)
			}
			for _, secret := range all.Items {
				g.addSecret(side, secret)
			}
		}
	}
	g.secrets["private key of the manager"] = g.identity.Bytes()
	g.secrets["private key of the source"], g.secrets["private key of the target"] = g.source.identity.Bytes(), g.target.identity.Bytes()
}

// shortest secret: a user name of four letters is no secret, and is found everywhere.
const shortest = 6

func (g *together) addSecret(side *hubSide, secret corev1.Secret) {
	for key, value := range secret.Data {
		if len(value) < shortest || key == identity.Public || key == "task" {
			continue
		}
		what := fmt.Sprintf("%s of Secret %s/%s of %s", key, secret.Namespace, secret.Name, side.name)
		g.secrets[what] = value
		if key != "kubeconfig" {
			continue
		}
		_, token, found := strings.Cut(string(value), "token: ")
		if !found {
			g.t.Fatalf("%s has no token", what)
		}
		g.secrets["token in "+what], _, _ = cutLine(token)
	}
}

func cutLine(text string) (line []byte, rest string, found bool) {
	first, rest, found := strings.Cut(text, "\n")
	return []byte(first), rest, found
}

// seen is all that others may read: what the broker has, logs, events, and the objects of the
// migrations on the global hub.
func (g *together) seen() map[string]string {
	g.t.Helper()
	seen := map[string]string{"the broker": strings.Join(g.values(), "\n"), "the logs": strings.Join(g.logs.text(), "\n")}
	var all []string
	for len(g.g.events.Events) > 0 {
		all = append(all, <-g.g.events.Events)
	}
	seen["the events"] = strings.Join(all, "\n")
	configMaps := &corev1.ConfigMapList{}
	if err := g.g.c.List(g.t.Context(), configMaps, client.InNamespace(g.g.namespace)); err != nil {
		g.t.Fatal(err)
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
func (g *together) mustSeeNoSecret(when string, more map[string]string) {
	g.t.Helper()
	g.collectSecrets()
	seen := g.seen()
	maps.Copy(seen, more)
	for what, secret := range g.secrets {
		for form, text := range map[string]string{
			"": string(secret), "in base64": base64.StdEncoding.EncodeToString(secret), "in hexadecimal": fmt.Sprintf("%x", secret),
		} {
			for where, content := range seen {
				if strings.Contains(content, text) {
					g.t.Errorf("%s: %s has %s %s", when, where, what, form)
				}
			}
		}
	}
	for _, kind := range []string{"token in ", "kubeconfig of Secret ", "kubeconfig of the source ", "password of ", "key of Secret ", "private key of "} {
		if !slices.ContainsFunc(slices.Collect(maps.Keys(g.secrets)), func(what string) bool { return strings.HasPrefix(what, kind) }) {
			g.t.Errorf("%s: no secret is a %s, so that the test proves nothing", when, kind)
		}
	}
	if !strings.Contains(seen["the broker"], g.sites[0].name) || !strings.Contains(seen["the logs"], g.sites[0].name) && !strings.Contains(seen["the logs"], "migration") {
		g.t.Error("neither the broker nor the logs say anything of the migration, so that the test proves nothing")
	}
}

// statusOf is a migration as users see it.
func (g *together) statusOf(key objectKey) map[string]string {
	g.t.Helper()
	text, err := yaml.Marshal(g.g.read(key))
	if err != nil {
		g.t.Fatal(err)
	}
	return map[string]string{"migration " + key.Name: string(text)}
}
