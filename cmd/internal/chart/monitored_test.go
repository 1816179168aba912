//go:build linux

package chart_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-dev/godwit/api/v1alpha1"
	hubapi "github.com/godwit-dev/godwit/cmd/hub/api/v1alpha1"
	"github.com/godwit-dev/godwit/cmd/hub/identity"
	"github.com/godwit-dev/godwit/cmd/hub/kafka"
	hubmanager "github.com/godwit-dev/godwit/cmd/hub/manager"
	"github.com/godwit-dev/godwit/cmd/hub/message"
	"github.com/godwit-dev/godwit/test/controlplane"
	"github.com/godwit-dev/godwit/test/hub"
	kubevirt "github.com/godwit-dev/godwit/test/kubevirt/cluster"
	"github.com/godwit-dev/godwit/test/kubevirt/fixture"
	"github.com/godwit-dev/godwit/test/policy"
)

const (
	// The manager and the agent of a hub have a namespace each.
	managersNamespace, agentsNamespace = "monitored", "monitored-agent"

	migratedGroup, deniedGroup, forbiddenGroup, unscopedGroup = "monitored.example.com", "denied.example.com", "forbidden.example.com", "unscoped.example.com"

	// realHub has an agent of the chart. The agent of testHub is the test.
	realHub, testHub = "hub1", "hub2"
)

// monitoredValues have every feature of the manager, and the metrics as the guide has them.
const monitoredValues = `
operator: {features: {revisionUpgrader: true, clusterMigration: true}}
storageVersionMigrator: {scopes: [{group: monitored.example.com}, {group: denied.example.com}], defaults: {settle: 0s}}
clusterMigration: {kafka: {brokers: [BROKER], plaintext: true}}
metrics: {tls: {secretName: godwit-metrics-tls}, prometheusRule: {enabled: true}, dashboard: {enabled: true}, serviceMonitor: {enabled: true, serviceAccount: {name: prometheus}}}
`

// agentValues have the agent of a hub.
const agentValues = `
fullnameOverride: godwit-agent
crds: {enabled: false}
operator: {features: {storageVersionMigrator: false, hubAgent: true}}
hubAgent: {hub: hub1, managerKey: KEY, kafka: {brokers: [BROKER], plaintext: true}}
metrics: {tls: {secretName: godwit-metrics-tls}, prometheusRule: {enabled: true}, serviceMonitor: {enabled: true, serviceAccount: {name: prometheus, namespace: monitored}}}
`

// release is what the chart makes of values.
type release struct {
	namespace    string
	rendered     []*unstructured.Unstructured
	certificates map[string][]byte
	processes    map[string]*manager // by component
}

// monitored is a cluster in which each feature runs.
type monitored struct {
	*cluster
	broker        []string
	manager, hubs release
	testAgent     *kafka.Transport
	testIdentity  message.Identity
}

// newMonitored has a control plane of its own, with the kinds that all features need.
func newMonitored(t *testing.T) *monitored {
	t.Helper()
	plane, err := newPlane(t.Context())
	if plane != nil {
		t.Cleanup(func() {
			if err := plane.Stop(); err != nil {
				t.Error(err)
			}
		})
	}
	if err != nil {
		t.Fatal(err)
	}
	m := &monitored{cluster: clusterOf(t, plane)}
	for _, install := range []func(*runtime.Scheme) error{clusterv1.Install, hubapi.AddToScheme} {
		if err := install(m.Scheme()); err != nil {
			t.Fatal(err)
		}
	}
	if err := hub.InstallCRDs(t.Context(), m.cfg, hubapi.CRDName); err != nil { // the chart has that one
		t.Fatal(err)
	}
	if err := kubevirt.Install(t.Context(), m.cfg); err != nil {
		t.Fatal(err)
	}
	var topics []string
	for _, name := range []string{realHub, testHub} {
		topics = append(topics, message.StatusTopic(name), message.SpecTopic(name), message.MigrationTopic(name))
	}
	broker, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, topics...))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(broker.Close)
	m.broker = broker.ListenAddrs()
	return m
}

func (m *monitored) create(objects ...client.Object) {
	m.t.Helper()
	for _, o := range objects {
		if err := m.Create(m.t.Context(), o); err != nil {
			m.t.Fatalf("create %T %s: %v", o, o.GetName(), err)
		}
	}
}

// install starts all features, and returns when they are ready.
func (m *monitored) install() {
	m.t.Helper()
	m.restrictedNamespace(managersNamespace)
	m.restrictedNamespace(agentsNamespace)
	for _, account := range []string{"prometheus", "stranger"} {
		m.create(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: managersNamespace, Name: account}})
	}
	own, err := identity.Ensure(m.t.Context(), m, m, identity.Owner{Namespace: managersNamespace, Name: message.ManagerName})
	if err != nil {
		m.t.Fatal(err)
	}
	values := strings.NewReplacer("BROKER", fmt.Sprintf("%q", m.broker[0]), "KEY", identity.Format(own.Key()))
	m.manager = m.release(managersNamespace, values.Replace(monitoredValues), "storage-version-migrator", "revision-upgrader", "cluster-migration")
	m.hubs = m.release(agentsNamespace, values.Replace(agentValues), "hub-agent")
}

func (m *monitored) release(namespace, values string, components ...string) release {
	m.t.Helper()
	r := release{namespace: namespace, rendered: render(m.t, namespace, values), processes: map[string]*manager{}}
	r.certificates = guideCertificate(m.t, r.host())
	m.apply(r.rendered)
	for _, crd := range []string{"crdmigrations.godwit.dev", "controllerrevisionupgradetriggers.godwit.dev", hubapi.CRDName} {
		if err := controlplane.AwaitServed(m.t.Context(), m.cfg, crd); err != nil {
			m.t.Fatal(err)
		}
	}
	m.secret(namespace, "godwit-metrics-tls", r.certificates)
	for _, component := range components {
		r.processes[component] = m.start(namespace, named(r.rendered, r.pods(component)))
	}
	for component, p := range r.processes {
		mountProc(m.t, p.image)
		await(m.t, component+" to be ready", func() bool {
			code, _ := get("http://"+p.addresses["health"]+p.ready, "")
			return code == http.StatusOK
		})
	}
	return r
}

// mountProc lets a process read its memory, as a container does.
func mountProc(t *testing.T, image string) {
	t.Helper()
	dir := filepath.Join(image, "proc")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("/proc", dir, "", syscall.MS_BIND, ""); err != nil {
		t.Fatalf("mount /proc, of which the panel of memory comes: %v; run the test as root", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
}

// prefix begins the names of all objects.
func (r release) prefix() string {
	if r.namespace == agentsNamespace {
		return "godwit-agent-"
	}
	return "godwit-"
}

// pods begins the names of the pods of a component: it is the name of its Deployment.
func (r release) pods(component string) string { return r.prefix() + component }

// host is the name in the certificate.
func (r release) host() string { return r.prefix() + "metrics." + r.namespace + ".svc" }

// migrateCRDs flips the storage version of CRDs in and out of scope, of one whose group the manager may not write, and of one with
// an object that a policy denies to write. It returns their names, and asks for a migration without a CRD.
func (m *monitored) migrateCRDs() (denied, forbidden, unscoped string) {
	m.t.Helper()
	migrated := m.define(migratedGroup, 80)
	denied, forbidden, unscoped = m.define(deniedGroup, 3), m.define(forbiddenGroup, 1), m.define(unscopedGroup, 1)
	m.deny(deniedGroup, "goose-2") // a preflight tries the first object
	for _, crd := range []string{migrated, denied, forbidden, unscoped} {
		m.flip(crd)
	}
	for _, crd := range []string{forbidden, missingCRD} {
		m.create(&v1alpha1.CRDMigration{ObjectMeta: metav1.ObjectMeta{Name: crd}})
	}
	return denied, forbidden, unscoped
}

const missingCRD = "missing." + migratedGroup

// deny returns when the API server denies writes of one goose.
func (m *monitored) deny(group, name string) {
	m.t.Helper()
	clients, err := kubernetes.NewForConfig(m.cfg)
	if err != nil {
		m.t.Fatal(err)
	}
	freeze := policy.Policy{
		Name: name, Group: group, Resource: "geese", Names: []string{name},
		Validations: []admissionv1.Validation{{Expression: "false", Message: "no changes before the audit is over"}},
	}
	if err := freeze.Create(m.t.Context(), clients); err != nil {
		m.t.Fatal(err)
	}
	goose := &unstructured.Unstructured{}
	goose.SetAPIVersion(group + "/v1")
	goose.SetKind("Goose")
	goose.SetName(name)
	change := client.RawPatch(types.MergePatchType, []byte(`{"metadata": {"labels": {"a": "b"}}}`))
	if err := policy.Await(m.t.Context(), true, func(ctx context.Context) error {
		return m.Patch(ctx, goose.DeepCopy(), change, client.DryRunAll)
	}); err != nil {
		m.t.Fatal(err)
	}
}

// upgradeRevisions asks for an upgrade of two revisions. One has a field that no version knows, and is refused.
func (m *monitored) upgradeRevisions(namespace string) {
	m.t.Helper()
	m.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
	objects, err := dynamic.NewForConfig(m.cfg)
	if err != nil {
		m.t.Fatal(err)
	}
	for machine, name := range map[string]string{"web": "F1/VirtualMachineInstancetype/labelled", "odd": "F1/VirtualMachineInstancetype/unlabelled"} {
		f := fixture.Find(name)
		if machine == "odd" {
			f.Data = strings.Replace(f.Data, `"spec":{`, `"spec":{"experimental":true,`, 1)
		}
		vm, err := kubevirt.Create(m.t.Context(), objects, fixture.VirtualMachine(namespace, machine, fixture.InSpec|fixture.InStatus, f))
		if err != nil {
			m.t.Fatal(err)
		}
		m.create(f.Revision(vm))
	}
	m.create(&v1alpha1.ControllerRevisionUpgradeTrigger{ObjectMeta: metav1.ObjectMeta{Name: "all"}})
}

// enroll enrolls two hubs. Heartbeats of the second come from the test, until it ends.
func (m *monitored) enroll() {
	m.t.Helper()
	secret := &corev1.Secret{}
	if err := m.Get(m.t.Context(), client.ObjectKey{Namespace: agentsNamespace, Name: identity.Secret}, secret); err != nil {
		m.t.Fatal(err)
	}
	var err error
	if m.testIdentity, err = message.NewIdentity(); err != nil {
		m.t.Fatal(err)
	}
	m.create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: managersNamespace, Name: hubmanager.EnrolledHubs}, Data: map[string]string{
		realHub: string(secret.Data[identity.Public]), testHub: identity.Format(m.testIdentity.Key()),
	}})
	for _, name := range []string{realHub, testHub} {
		of := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
		of.Spec.ManagedClusterClientConfigs = []clusterv1.ClientConfig{{URL: "https://" + name + ".example.com"}}
		m.create(of, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
		meta.SetStatusCondition(&of.Status.Conditions, metav1.Condition{Type: clusterv1.ManagedClusterConditionAvailable, Status: metav1.ConditionTrue, Reason: "Available"})
		if err := m.Status().Update(m.t.Context(), of); err != nil {
			m.t.Fatal(err)
		}
	}
	if m.testAgent, err = kafka.New(kafka.Options{Brokers: m.broker, ClientID: testHub}); err != nil {
		m.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(m.t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for ctx.Err() == nil {
			if err := m.beat(ctx, m.testIdentity); err != nil && ctx.Err() == nil {
				m.t.Error(err)
			}
			select {
			case <-ctx.Done():
			case <-time.After(time.Second):
			}
		}
	}()
	m.t.Cleanup(func() { cancel(); <-ended; m.testAgent.Close() })
}

// beat sends a heartbeat of the second hub, which an identity signs.
func (m *monitored) beat(ctx context.Context, by message.Identity) error {
	data, err := message.Encode(message.Heartbeat{Hub: testHub, Versions: []int{message.Version}})
	if err != nil {
		return err
	}
	e, err := message.Write(message.Header{Type: message.TypeHeartbeat, From: testHub, To: message.ManagerName, ValidFor: time.Minute}, data, by, nil)
	if err != nil {
		return err
	}
	return m.testAgent.Send(ctx, message.StatusTopic(testHub), testHub, e)
}

// forge sends a heartbeat that the agent has not signed.
func (m *monitored) forge() {
	m.t.Helper()
	other, err := message.NewIdentity()
	if err == nil {
		err = m.beat(m.t.Context(), other)
	}
	if err != nil {
		m.t.Fatal(err)
	}
}

// moveClusters asks for a move that the agent of the first hub refuses: it has no such cluster.
func (m *monitored) moveClusters(name string) {
	m.t.Helper()
	move := &hubapi.ManagedClusterMigration{ObjectMeta: metav1.ObjectMeta{Namespace: managersNamespace, Name: name}}
	move.Spec = hubapi.ManagedClusterMigrationSpec{From: realHub, To: testHub, IncludedManagedClusters: []hubapi.ClusterName{"site1"}}
	m.create(move)
}
