//go:build linux

package chart_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-dev/godwit/cmd/hub/identity"
	"github.com/godwit-dev/godwit/cmd/hub/message"
	"github.com/godwit-dev/godwit/cmd/internal/broker/brokertest"
	"github.com/godwit-dev/godwit/test/process"
)

// TestAgentWorksAsRendered: the agent, with the arguments and the rules of the chart and by the token of its
// ServiceAccount, is elected, makes its identity and sends heartbeats. An agent that lacks a permission for what
// it does at its start sends none.
func TestAgentWorksAsRendered(t *testing.T) {
	c := newCluster(t)
	const namespace, hub = "rendered-agent", "hub1"
	c.restrictedNamespace(namespace)
	broker, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, message.StatusTopic(hub), message.SpecTopic(hub), message.MigrationTopic(hub)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(broker.Close)
	own, err := message.NewIdentity()
	if err != nil {
		t.Fatal(err)
	}
	rendered := render(t, namespace, fmt.Sprintf(`operator: {features: {storageVersionMigrator: false, hubAgent: true}}
hubAgent:
  hub: %s
  managerKey: %s
  rules: [{group: example.com, kind: SiteNote, names: ["{cluster}-note"]}]
  kafka: {brokers: [%q], plaintext: true}
`, hub, identity.Format(own.Key()), broker.ListenAddrs()[0]))
	c.apply(rendered)
	m := c.start(namespace, rendered)

	await(t, "the agent to be ready", func() bool {
		code, _ := get("http://"+m.addresses["health"]+m.ready, "")
		return code == http.StatusOK
	})
	heard := brokertest.FirstMessage(t, broker.ListenAddrs(), message.StatusTopic(hub), process.StartTimeout)
	secret := &corev1.Secret{}
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: identity.Secret}, secret); err != nil {
		t.Fatal(err)
	}
	key, err := identity.Parse(string(secret.Data[identity.Public]))
	if err != nil {
		t.Fatal(err)
	}
	if h, _, err := message.Read(heard, message.ManagerName, key, nil); err != nil || h.Type != message.TypeHeartbeat || h.From != hub {
		t.Errorf("the first message is %+v: %v; want a heartbeat of %s that its agent has signed", h, err, hub)
	}
	m.end()
	if said := m.stderr.String(); strings.Contains(said, "forbidden") {
		t.Errorf("a permission is missing:\n%s", said)
	}
}
