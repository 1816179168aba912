package controlplane_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/godwit-dev/godwit/test/controlplane"
	"github.com/godwit-dev/godwit/test/process"
)

// shared is for tests that do not stop a server. Other tests start a control plane of their own.
var shared *controlplane.ControlPlane

// parentDir, if set, makes the test program the parent that TestDiesWithParent kills.
const parentDir = "GODWIT_TEST_ORPHAN_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(parentDir); dir != "" {
		waitToBeKilled(dir)
	}
	cp, err := controlplane.Start(context.Background(), controlplane.Options{})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	shared = cp
	code := m.Run()
	if err := cp.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// start gives a test a control plane of its own.
func start(t *testing.T, o controlplane.Options) *controlplane.ControlPlane {
	t.Helper()
	began := time.Now()
	cp := o.StartFor(t)
	t.Logf("started in %s", time.Since(began).Round(time.Millisecond))
	return cp
}

func clientsFor(t *testing.T, config *rest.Config) *kubernetes.Clientset {
	t.Helper()
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return clients
}

// createNamespace returns a new name, because without the controller manager no namespace is ever deleted.
func createNamespace(t *testing.T, config *rest.Config) string {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}
	created, err := clientsFor(t, config).CoreV1().Namespaces().Create(t.Context(), namespace, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return created.Name
}

// eventually polls until controllers have done their work.
func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	if err := process.Poll(context.WithoutCancel(t.Context()), what, func(context.Context) error {
		if done() {
			return nil
		}
		return errors.New("not yet")
	}); err != nil {
		t.Fatal(err)
	}
}
