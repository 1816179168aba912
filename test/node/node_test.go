//go:build linux

package node_test

import (
	"context"
	"fmt"
	"net"
	"os"
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

// start starts a cluster with the image of whoami.
func start(t *testing.T) *node.Cluster {
	t.Helper()
	began := time.Now()
	c, err := node.Start(t.Context(), node.Options{})
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
	_, err := c.Clients.CoreV1().Pods("birds").Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PodSpec{
			NodeName: on, RestartPolicy: corev1.RestartPolicyNever,
			Containers: []corev1.Container{{Name: "main", Image: image, ImagePullPolicy: corev1.PullNever}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
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
	c := start(t)
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

// TestHold does nothing but for TestKilled.
func TestHold(t *testing.T) {
	if os.Getenv(holdVariable) == "" {
		t.Skip("only TestKilled lets this test do something")
	}
	c := start(t)
	create(t, c, "held", "localhost/pause:latest", "")
	if _, err := c.AwaitPod(t.Context(), "birds", "held", "to run", node.Running); err != nil {
		t.Fatal(err)
	}
	machine.Hold()
}

// TestKilled: a cluster with a pod leaves nothing when its test is killed.
func TestKilled(t *testing.T) {
	before, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	held, err := machine.StartHeld(t.Context(), holdVariable, func(line string) { t.Log("within: " + line) })
	if err != nil {
		t.Fatal(err)
	}
	there, err := machine.Remains(held.Folder)
	if err != nil || len(there) < 20 {
		t.Fatalf("while the cluster lives, there is only %q: this test would find nothing: %v", there, err)
	}
	began := time.Now()
	if err := held.Kill(t.Context()); err != nil {
		t.Error(err)
	}
	t.Logf("of %d processes, mounts and cgroups, nothing is left after %s", len(there), time.Since(began).Round(time.Millisecond))
	after, err := net.Interfaces()
	if err != nil || len(after) > len(before) {
		t.Errorf("interfaces of the cluster are outside of its machine: before %+v, after %+v: %v", before, after, err)
	}
}
