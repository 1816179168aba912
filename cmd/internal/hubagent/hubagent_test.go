package hubagent

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/twmb/franz-go/pkg/kfake"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/godwit-dev/godwit/cmd/hub/identity"
	"github.com/godwit-dev/godwit/cmd/hub/kafka"
	"github.com/godwit-dev/godwit/cmd/hub/message"
	"github.com/godwit-dev/godwit/cmd/hub/resource"
	"github.com/godwit-dev/godwit/cmd/internal/broker/brokertest"
	"github.com/godwit-dev/godwit/cmd/internal/cluster/clusterpermission"
	"github.com/godwit-dev/godwit/cmd/internal/permission"
	"github.com/godwit-dev/godwit/cmd/internal/serving"
	"github.com/godwit-dev/godwit/test/controlplane"
)

var plane *controlplane.ControlPlane

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	os.Exit(controlplane.Main(m, &plane))
}

const namespace = "godwit"

// asAgent is the configuration of a ServiceAccount with the roles of the agent, and no others.
func asAgent(t *testing.T, admin client.Client) *rest.Config {
	t.Helper()
	objects := []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}},
	}
	roles, err := permission.Manifest(clusterpermission.Agent, permission.Scope{Namespace: namespace}, []rbacv1.Subject{permission.ServiceAccount(namespace, "agent")})
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range append(objects, roles...) {
		if err := admin.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	cfg := rest.CopyConfig(plane.Config())
	cfg.Impersonate = rest.ImpersonationConfig{UserName: "system:serviceaccount:" + namespace + ":agent", Groups: []string{"system:authenticated", "system:serviceaccounts"}}
	return cfg
}

// newKey is the key of a manager, as text.
func newKey(t *testing.T) string {
	t.Helper()
	own, err := message.NewIdentity()
	if err != nil {
		t.Fatal(err)
	}
	return identity.Format(own.Key())
}

func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	return listener.Addr().String()
}

// TestRun: the process is elected, makes its identity, sends heartbeats that it signs, and
// serves its endpoints, all with its roles.
func TestRun(t *testing.T) {
	broker, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, message.StatusTopic("hub1"), message.SpecTopic("hub1"), message.MigrationTopic("hub1")))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(broker.Close)
	admin, err := client.New(plane.Config(), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	o := Options{
		Hub: "hub1", ManagerKey: newKey(t), Kafka: kafka.Options{Brokers: broker.ListenAddrs()}, RequestsPerSecond: 200,
		Process: serving.Options{MetricsAddress: freeAddress(t), InsecureMetrics: true, HealthAddress: freeAddress(t), LeaderElection: true, Namespace: namespace},
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	cfg := asAgent(t, admin)
	go func() { ended <- Run(ctx, cfg, o) }()

	heard := brokertest.FirstMessage(t, broker.ListenAddrs(), message.StatusTopic("hub1"), time.Minute)
	secret := &corev1.Secret{}
	if err := admin.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: identity.Secret}, secret); err != nil {
		t.Fatal(err)
	}
	key, err := identity.Parse(string(secret.Data[identity.Public]))
	if err != nil {
		t.Fatal(err)
	}
	h, data, err := message.Read(heard, message.ManagerName, key, nil)
	if err != nil {
		t.Fatal(err)
	}
	beat, err := message.Decode[message.Heartbeat](data)
	if err != nil || h.Type != message.TypeHeartbeat || beat.Hub != "hub1" || len(beat.Versions) != 1 || beat.Versions[0] != message.Version {
		t.Errorf("the first message is %v %v, %v; want a heartbeat of hub1 with version %d", h, beat, err, message.Version)
	}
	if text := read(t, "http://"+o.Process.MetricsAddress+"/metrics"); !strings.Contains(text, "godwit_cluster_migration_agent_last_heartbeat_timestamp_seconds") {
		t.Error("metrics have no heartbeat")
	}
	for _, path := range []string{"/healthz", "/readyz"} {
		if text := read(t, "http://"+o.Process.HealthAddress+path); text != "ok" {
			t.Errorf("%s is %q", path, text)
		}
	}
	cancel()
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("the process ends with %v", err)
		}
	case <-time.After(time.Minute):
		t.Error("the process does not end")
	}
}

// TestSharedNamespace: with the Secret of the manager, an agent could sign commands.
//
// Matrix: H81.
func TestSharedNamespace(t *testing.T) {
	admin, err := client.New(plane.Config(), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	const shared = "shared"
	if err := admin.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: shared}}); err != nil {
		t.Fatal(err)
	}
	managers := identity.Owner{Namespace: shared, Name: message.ManagerName}
	own, err := identity.Ensure(t.Context(), admin, admin, managers)
	if err != nil {
		t.Fatal(err)
	}
	o := Options{
		Hub: "hub1", ManagerKey: identity.Format(own.Key()), Kafka: kafka.Options{Brokers: []string{"127.0.0.1:1"}}, RequestsPerSecond: 200,
		Process: serving.Options{MetricsAddress: "0", HealthAddress: "0", LeaderElection: true, Namespace: shared},
	}
	const want = "the agent of hub hub1 can't run in namespace shared: Secret godwit-hub-identity there is the identity of the manager; run the two in namespaces of their own"
	if err := Run(t.Context(), plane.Config(), o); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("the agent ends with %v, want %s", err, want)
	}
	agents := identity.Owner{Namespace: "default", Name: "hub1"}
	for _, one := range []struct {
		owner identity.Owner
		want  string
	}{
		{agents, ""},
		{identity.Owner{Namespace: "default", Name: message.ManagerName}, "the manager can't run in namespace default: Secret godwit-hub-identity there is the identity of the agent of hub hub1"},
		{identity.Owner{Namespace: "default", Name: "hub2"}, "the agent of hub hub2 can't run in namespace default: Secret godwit-hub-identity there is the identity of the agent of hub hub1"},
		{agents, ""},
	} {
		_, err := identity.Ensure(t.Context(), admin, admin, one.owner)
		if (err == nil) != (one.want == "") || err != nil && !strings.Contains(err.Error(), one.want) {
			t.Errorf("%s: %v, want %q", one.owner, err, one.want)
		}
	}
}

func read(t *testing.T, url string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestRefuses: what is wrong with the flags is said before anything starts.
func TestRefuses(t *testing.T) {
	cases := map[string]struct {
		change func(*Options)
		want   string
	}{
		"NoNamespace": {func(o *Options) { o.Process.Namespace = "" }, "--namespace=NAMESPACE"},
		"NoKey":       {func(o *Options) { o.ManagerKey = "Zm9v" }, "--manager-key: read the key of an identity: 3 bytes, want 32"},
		"NoBase64":    {func(o *Options) { o.ManagerKey = "?" }, "--manager-key: "},
		"NoFile":      {func(o *Options) { o.RulesFile = "/no/such/file" }, "read --rules: "},
		"NoRules":     {func(o *Options) { o.RulesFile = rulesFile(t, "kind: x") }, "is not a list of rules"},
		"UnknownKey":  {func(o *Options) { o.RulesFile = rulesFile(t, "- {kind: x, nane: [y]}") }, `unknown field "nane"`},
		"NoKind":      {func(o *Options) { o.RulesFile = rulesFile(t, "- {group: x}") }, "rule 0 of"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o := Options{Hub: "hub1", ManagerKey: newKey(t), Process: serving.Options{Namespace: namespace}}
			tc.change(&o)
			if err := Run(t.Context(), plane.Config(), o); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%v, want %q", err, tc.want)
			}
		})
	}
}

func rulesFile(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "rules.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestRules: rules of a file are added to those that move a cluster anyway.
func TestRules(t *testing.T) {
	rules, err := readRules(rulesFile(t, `- {group: example.com, kind: SiteNote, names: ["{cluster}-note"]}`))
	if err != nil {
		t.Fatal(err)
	}
	if len(rules) != len(resource.Rules())+1 {
		t.Errorf("%d rules, want one more than %d", len(rules), len(resource.Rules()))
	}
	last := rules[len(rules)-1]
	if got, want := fmt.Sprint(last.Group, last.Kind, last.Names), "example.comSiteNote[{cluster}-note]"; got != want {
		t.Errorf("the last rule is %s, want %s", got, want)
	}
}
