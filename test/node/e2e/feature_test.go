package e2e_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-dev/godwit/api/v1alpha1"
	hubapi "github.com/godwit-dev/godwit/cmd/hub/api/v1alpha1"
	"github.com/godwit-dev/godwit/cmd/hub/identity"
	kubevirtcluster "github.com/godwit-dev/godwit/test/kubevirt/cluster"
	"github.com/godwit-dev/godwit/test/kubevirt/fixture"
)

// testLiveness: the kubelet restarts a container that answers no probe.
func (s *stage) testLiveness() {
	frozen := s.podsOf("cluster-migration")[0]
	if err := s.Node(frozen.Spec.NodeName).FreezeContainer(s.t.Context(), frozen.Status.ContainerStatuses[0].ContainerID); err != nil {
		s.t.Fatal(err)
	}
	_, err := s.AwaitPod(s.t.Context(), s.namespace, frozen.Name, "to be restarted by its liveness probe", func(p *corev1.Pod) bool {
		status := p.Status.ContainerStatuses[0]
		return status.Ready && status.RestartCount == 1
	})
	if err != nil {
		s.t.Fatal(err)
	}
	s.await("the event that tells why", func(ctx context.Context) error {
		events := &corev1.EventList{}
		if err := s.List(ctx, events, client.InNamespace(s.namespace)); err != nil {
			return err
		}
		for _, e := range events.Items {
			if e.InvolvedObject.Name == frozen.Name && e.Reason == "Killing" && strings.Contains(e.Message, "failed liveness probe") {
				return nil
			}
		}
		return errors.New("no event says that the liveness probe has failed")
	})
}

// testRevisionUpgrader: a trigger has the revision of a virtual machine upgraded.
func (s *stage) testRevisionUpgrader() {
	objects, err := dynamic.NewForConfig(s.Config())
	if err != nil {
		s.t.Fatal(err)
	}
	machines := kubevirtcluster.Namespace{Name: "machines", Core: s.Clients, Objects: objects}
	f := fixture.Find("F1/VirtualMachineClusterInstancetype/labelled")
	if err := errors.Join(machines.Ensure(s.t.Context()), machines.CreateMachine(s.t.Context(), kubevirtcluster.Machine{Name: f.VM}, f)); err != nil {
		s.t.Fatal(err)
	}
	trigger := &v1alpha1.ControllerRevisionUpgradeTrigger{ObjectMeta: metav1.ObjectMeta{Name: "all"}}
	if err := s.Create(s.t.Context(), trigger); err != nil {
		s.t.Fatal(err)
	}
	s.await("the trigger to be ready", func(ctx context.Context) error {
		if err := s.Get(ctx, client.ObjectKeyFromObject(trigger), trigger); err != nil {
			return err
		}
		if !meta.IsStatusConditionTrue(trigger.Status.Conditions, v1alpha1.ConditionReady) {
			return fmt.Errorf("its status is %+v", trigger.Status)
		}
		return nil
	})
	vm, err := machines.ReadMachine(s.t.Context(), f.VM)
	if err != nil {
		s.t.Fatal(err)
	}
	name, _, _ := unstructured.NestedString(vm.Object, "spec", "instancetype", "revisionName")
	if counts := trigger.Status.Counts; counts == nil || counts.Succeeded != 1 || name == "" || name == f.RevisionName(f.VM) {
		s.t.Errorf("virtual machine %s refers to revision %q, and the trigger counts %+v", f.VM, name, counts)
	}
}

// testClusterMigration: the manager has read the files for Kafka, or it would not run, and it answers a migration of a namespace that is
// not allowed.
func (s *stage) testClusterMigration() {
	const namespace = "elsewhere"
	if err := s.AwaitNamespace(s.t.Context(), namespace, nil); err != nil {
		s.t.Fatal(err)
	}
	move := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"from": "hub1", "to": "hub2", "includedManagedClusters": []any{"c1"}}}}
	move.SetGroupVersionKind(hubapi.GroupVersion.WithKind("ManagedClusterMigration"))
	move.SetNamespace(namespace)
	move.SetName("move")
	if err := s.Create(s.t.Context(), move); err != nil {
		s.t.Fatal(err)
	}
	s.await("the manager to refuse the namespace", func(ctx context.Context) error {
		if err := s.Get(ctx, client.ObjectKeyFromObject(move), move); err != nil {
			return err
		}
		conditions, _, err := unstructured.NestedSlice(move.Object, "status", "conditions")
		for _, c := range conditions {
			if isPart(map[string]any{"reason": hubapi.ReasonNamespaceNotAllowed.Name}, c) {
				return nil
			}
		}
		return fmt.Errorf("its conditions are %v: %w", conditions, err)
	})
	if err := s.Delete(s.t.Context(), move); err != nil {
		s.t.Fatal(err)
	}
	s.expectGone(move, "the manager has removed its finalizer")
}

// kafkaFiles are those of the Secret by which a feature reaches a broker of a CA.
func kafkaFiles(t *testing.T, ca []byte) map[string][]byte {
	t.Helper()
	files := maps.Clone(certify(t, "client"))
	files["ca.crt"], files["password"] = ca, []byte("secret")
	return files
}

// listenAsBroker returns an address at which pods reach this process, and each client certificate by which a client has connected with TLS.
func (s *stage) listenAsBroker() (address string, ca []byte, clients <-chan []byte) {
	s.t.Helper()
	server, err := url.Parse(s.Config().Host)
	if err != nil {
		s.t.Fatal(err)
	}
	own := certify(s.t, server.Hostname())
	pair, err := tls.X509KeyPair(own["tls.crt"], own["tls.key"])
	if err != nil {
		s.t.Fatal(err)
	}
	listener, err := tls.Listen("tcp", net.JoinHostPort(server.Hostname(), "0"), &tls.Config{
		MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequireAnyClientCert,
	})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = listener.Close() })
	found := make(chan []byte)
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			secured, _ := connection.(*tls.Conn)
			if err := secured.HandshakeContext(s.t.Context()); err == nil {
				select {
				case found <- secured.ConnectionState().PeerCertificates[0].Raw:
				case <-s.t.Context().Done():
				}
			}
			_ = connection.Close()
		}
	}()
	return listener.Addr().String(), own["ca.crt"], found
}

// testHubAgent: the agent of a hub connects to its broker with the files of the Secret. Without Kafka it is ready, and the time of its
// last heartbeat, which has an alert, says that no heartbeat has arrived.
func (s *stage) testHubAgent() {
	t, ctx := s.t, s.t.Context()
	of := s.beside(t, agentRelease)
	if err := s.AwaitNamespace(ctx, "open-cluster-management-agent-addon", nil); err != nil {
		t.Fatal(err)
	}
	broker, ca, clients := of.listenAsBroker()
	files, metrics := kafkaFiles(t, ca), certify(t, "godwit-agent-metrics."+agentRelease+".svc")
	of.makeSecret(kafkaSecret, files)
	of.makeSecret("agent-metrics-tls", metrics)
	trust := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: of.namespace, Name: "trust"}, Data: map[string]string{"bundle.crt": string(metrics["ca.crt"])}}
	if err := s.Create(ctx, trust); err != nil {
		t.Fatal(err)
	}
	token := of.tokenOf("prometheus")
	reference, err := s.image(version).ByDigest()
	if err != nil {
		t.Fatal(err)
	}
	_, digest, _ := strings.Cut(reference, "@")
	key := s.secretData(map[string]string{"name": identity.Secret, "key": identity.Public})
	of.install(version, parse(t, agentValues, "BROKER", broker, "MANAGERKEY", key, "DIGEST", digest))
	of.expectReady(version, 1)
	if image := of.pods()[0].Spec.Containers[0].Image; image != reference {
		t.Errorf("the agent is %s, want %s", image, reference)
	}
	pair, err := tls.X509KeyPair(files["tls.crt"], files["tls.key"])
	if err != nil {
		t.Fatal(err)
	}
	of.await("the agent to connect with the certificate of the Secret", func(context.Context) error {
		select {
		case got := <-clients:
			if !bytes.Equal(got, pair.Certificate[0]) {
				return errors.New("it has connected with another certificate")
			}
			return nil
		default:
			return errors.New("it has not connected")
		}
	})
	of.await("the agent to tell that it has not sent a heartbeat", func(ctx context.Context) error {
		said, err := s.PodLog(ctx, of.namespace, of.pods()[0].Name)
		if err != nil || !strings.Contains(said, "Could not send a heartbeat") {
			return fmt.Errorf("it says %s: %w", said, err)
		}
		return nil
	})
	said, err := of.scrape(of.pods()[0], of.endpoint("ServiceMonitor", "godwit-agent-metrics", "endpoints"), token)
	if heartbeat := "godwit_cluster_migration_agent_last_heartbeat_timestamp_seconds 0\n"; err != nil || !strings.Contains(said, heartbeat) {
		t.Errorf("metrics have no %q: %v\n%s", heartbeat, err, said)
	}
	of.expectReady(version, 1)
	of.install(version, parse(t, plainAgentValues, "BROKER", broker, "MANAGERKEY", key))
	of.expectObjects(`
- {apiVersion: v1, kind: Pod, metadata: {labels: {app.kubernetes.io/component: hub-agent}}, spec: {priority: 2000, nodeSelector: {kubernetes.io/arch: ARCH}, containers: [{args: [--kafka-plaintext]}]}, status: {phase: Running}}
- {apiVersion: v1, kind: ServiceAccount, metadata: {name: godwit-agent-hub-agent, annotations: {example.com/role: own}}}
`)
}
