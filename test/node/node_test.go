//go:build linux

package node_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/godwit-dev/godwit/test/machine"
	"github.com/godwit-dev/godwit/test/node"
)

// holdVariable tells TestHold to start a cluster, and to wait.
const holdVariable = "GODWIT_TEST_NODE_HOLD"

func TestMain(m *testing.M) {
	if os.Getenv("GODWIT_E2E_NODE") == "" {
		fmt.Println("skipped: these tests need programs of a node: run `make e2e-node`")
		return
	}
	prepare := node.Prepare("github.com/godwit-dev/godwit/test/node/whoami")
	if os.Getenv(holdVariable) != "" {
		prepare = func(context.Context) error { return nil } // the test has prepared that started this one
	}
	os.Exit(machine.Main(context.Background(), m, prepare))
}

// start starts a cluster with a namespace.
func start(t *testing.T, o node.Options) *node.Cluster {
	t.Helper()
	began := time.Now()
	c, err := node.Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
	})
	t.Logf("started in %s", time.Since(began).Round(time.Millisecond))
	if err := c.AwaitNamespace(t.Context(), "birds", nil); err != nil {
		t.Fatal(err)
	}
	return c
}

func load(t *testing.T, c *node.Cluster, name string) {
	t.Helper()
	image, err := node.ImageOf(t.Context(), name)
	if err == nil {
		err = c.Load(t.Context(), image)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func create(t *testing.T, c *node.Cluster, name, image, on string) {
	t.Helper()
	p := podOf(name, image)
	p.Spec.NodeName = on
	if _, err := c.Clients.CoreV1().Pods("birds").Create(t.Context(), p, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// podOf returns a pod whose only container runs once.
func podOf(name, image string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever,
			Containers:    []corev1.Container{{Name: "main", Image: image, ImagePullPolicy: corev1.PullNever}},
		},
	}
}

func expectWhoami(t *testing.T, c *node.Cluster, name string) {
	t.Helper()
	said, err := c.AwaitEnd(t.Context(), "birds", name)
	if want := "system:serviceaccount:birds:default\n"; said != want || err != nil {
		t.Errorf("pod %s says %q, want %q: %v", name, said, want, err)
	}
}

// TestCluster: pods of two nodes are scheduled, get tokens, and reach the API server by its Service. A kubelet restarts under them.
func TestCluster(t *testing.T) {
	c := start(t, node.Options{})
	second, err := c.AddNode(t.Context(), "node2")
	if err != nil {
		t.Fatal(err)
	}
	load(t, c, "whoami")
	create(t, c, "scheduled", "localhost/whoami:latest", "")
	create(t, c, "second", "localhost/whoami:latest", second.Name)
	create(t, c, "lasting", "localhost/pause:latest", second.Name)
	for _, name := range []string{"scheduled", "second"} {
		expectWhoami(t, c, name)
	}
	running := func(p *corev1.Pod) bool {
		return len(p.Status.ContainerStatuses) == 1 && p.Status.ContainerStatuses[0].State.Running != nil
	}
	before, err := c.AwaitPod(t.Context(), "birds", "lasting", "to run", running)
	if err != nil {
		t.Fatal(err)
	}
	if err := second.StopKubelet(); err != nil {
		t.Fatal(err)
	}
	if err := second.StartKubelet(t.Context()); err != nil {
		t.Fatal(err)
	}
	create(t, c, "later", "localhost/whoami:latest", second.Name)
	expectWhoami(t, c, "later")
	after, err := c.AwaitPod(t.Context(), "birds", "lasting", "to run", running)
	if err != nil || after.Status.ContainerStatuses[0].ContainerID != before.Status.ContainerStatuses[0].ContainerID {
		t.Errorf("a restart of the kubelet has replaced a container: %+v: %v", after.Status, err)
	}
}

// TestClusters: pods of two clusters on one machine reach the API server of their own, and that of the other one unless they are cut off.
func TestClusters(t *testing.T) {
	clusters := []*node.Cluster{start(t, node.Options{Name: "east"}), start(t, node.Options{Name: "west"})}
	for i, c := range clusters {
		load(t, c, "whoami")
		create(t, c, "own", "localhost/whoami:latest", "")
		visit(t, c, clusters[1-i], "visitor")
	}
	for _, c := range clusters {
		expectWhoami(t, c, "own")
		expectVisit(t, c, "visitor")
	}
	east, west := clusters[0], clusters[1]
	if err := east.CutOff(address(t, west)); err != nil {
		t.Fatal(err)
	}
	visit(t, east, west, "lost")
	create(t, east, "home", "localhost/whoami:latest", "")
	visit(t, west, east, "opposite")
	expectWhoami(t, east, "home")
	expectVisit(t, west, "opposite")
	failed := (*node.FailedError)(nil)
	if said, err := east.AwaitEnd(t.Context(), "birds", "lost"); !errors.As(err, &failed) {
		t.Errorf("a pod that is cut off from an API server says %q, want an error: %v", said, err)
	}
	if err := east.Reconnect(address(t, west)); err != nil {
		t.Fatal(err)
	}
	visit(t, east, west, "again")
	expectVisit(t, east, "again")
}

// address returns the address of the API server of a cluster.
func address(t *testing.T, c *node.Cluster) string {
	t.Helper()
	server, err := url.Parse(c.Config().Host)
	if err != nil {
		t.Fatal(err)
	}
	return server.Hostname()
}

// visit creates a pod that asks the API server of another cluster.
func visit(t *testing.T, from, to *node.Cluster, name string) {
	t.Helper()
	user, err := to.AddUser(name)
	if err != nil {
		t.Fatal(err)
	}
	file, err := to.Kubeconfig(name, user)
	if err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string][]byte{"kubeconfig": content}}
	if _, err := from.Clients.CoreV1().Secrets("birds").Create(t.Context(), secret, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	p := podOf(name, "localhost/whoami:latest")
	p.Spec.Volumes = []corev1.Volume{{Name: "to", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: name}}}}
	p.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "to", MountPath: "/to"}}
	p.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "KUBECONFIG", Value: "/to/kubeconfig"}}
	if _, err := from.Clients.CoreV1().Pods("birds").Create(t.Context(), p, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func expectVisit(t *testing.T, c *node.Cluster, name string) {
	t.Helper()
	said, err := c.AwaitEnd(t.Context(), "birds", name)
	if said != name+"\n" || err != nil {
		t.Errorf("pod %s says %q, want its name: %v", name, said, err)
	}
}

// TestHold does nothing but for TestKilled.
func TestHold(t *testing.T) {
	if os.Getenv(holdVariable) == "" {
		t.Skip("only TestKilled lets this test do something")
	}
	c := start(t, node.Options{})
	create(t, c, "held", "localhost/pause:latest", "")
	if _, err := c.AwaitPod(t.Context(), "birds", "held", "to run", node.Running); err != nil {
		t.Fatal(err)
	}
	rules, err := node.Rules(t.Context())
	if err != nil || !slices.ContainsFunc(rules, func(rule string) bool { return strings.Contains(rule, "KUBE-SERVICES") }) {
		t.Fatalf("the rules of the machine are %q, want those of kube-proxy: the test would find nothing: %v", rules, err)
	}
	machine.Hold()
}

// TestKilled: a cluster with a pod leaves nothing when its test is killed. Its interfaces, listeners and rules of iptables are never seen
// from outside.
func TestKilled(t *testing.T) {
	before := network(t)
	held, err := machine.StartHeld(t.Context(), holdVariable, func(line string) { t.Log("within: " + line) })
	if err != nil {
		t.Fatal(err)
	}
	there, err := machine.Remains(held.Folder)
	if err != nil || len(there) < 20 {
		t.Fatalf("while the cluster lives, there is only %q: this test would find nothing: %v", there, err)
	}
	expectNoMore(t, before)
	began := time.Now()
	if err := held.Kill(t.Context()); err != nil {
		t.Error(err)
	}
	t.Logf("of %d processes, mounts and cgroups, nothing is left after %s", len(there), time.Since(began).Round(time.Millisecond))
	expectNoMore(t, before)
}

// network returns the interfaces, the listeners and the rules of iptables of this machine.
func network(t *testing.T) []string {
	t.Helper()
	there, err := machine.Network()
	if err != nil {
		t.Fatal(err)
	}
	rules, err := node.Rules(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return append(there, rules...)
}

// expectNoMore fails if the network has something that it had not before. What a cluster of another test has left may have gone.
func expectNoMore(t *testing.T, before []string) {
	t.Helper()
	for _, now := range network(t) {
		if !slices.Contains(before, now) {
			t.Errorf("%s of the cluster is outside of its machine", now)
		}
	}
}
