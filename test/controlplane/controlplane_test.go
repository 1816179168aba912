package controlplane_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/godwit-dev/godwit/test/controlplane"
)

// TestServesThePinnedVersion, or that of the programs in KUBEBUILDER_ASSETS.
func TestServesThePinnedVersion(t *testing.T) {
	want := "v1.37.1"
	if assets := os.Getenv("KUBEBUILDER_ASSETS"); assets != "" {
		printed, err := exec.CommandContext(t.Context(), filepath.Join(assets, "kube-apiserver"), "--version").Output()
		if err != nil {
			t.Fatal(err)
		}
		want = strings.TrimPrefix(strings.TrimSpace(string(printed)), "Kubernetes ")
	}
	version, err := clientsFor(t, shared.Config()).Discovery().ServerVersion()
	if err != nil {
		t.Fatal(err)
	}
	if version.GitVersion != want || !strings.HasPrefix(want, "v"+version.Major+"."+version.Minor+".") {
		t.Errorf("server version = %+v, want %s", version, want)
	}
}

func TestEtcdHoldsWhatTheServerStores(t *testing.T) {
	namespace := createNamespace(t, shared.Config())
	response, err := shared.Etcd().Get(t.Context(), "/registry/namespaces/"+namespace)
	if err != nil {
		t.Fatal(err)
	}
	if response.Count != 1 {
		t.Errorf("etcd holds %d such namespaces, want 1", response.Count)
	}
}

func TestUserHasNoPermissionsAtFirst(t *testing.T) {
	user, err := shared.AddUser("jane", "auditors")
	if err != nil {
		t.Fatal(err)
	}
	_, err = clientsFor(t, user).CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{})
	if !apierrors.IsForbidden(err) {
		t.Fatalf("list namespaces without permission: %v, want Forbidden", err)
	}
	if !strings.Contains(err.Error(), `"jane"`) {
		t.Errorf("error %v, want it to name the user jane", err)
	}
}

func TestKubeconfigIsSelfContained(t *testing.T) {
	path := filepath.Join(t.TempDir(), "made", "admin.kubeconfig")
	if err := controlplane.WriteKubeconfig(path, shared.Config()); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o600 {
		t.Errorf("the administrator's credentials have mode %v, want 0600", info.Mode())
	}
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := clientsFor(t, config).CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Errorf("use the written kubeconfig: %v", err)
	}
}

func TestRestartKeepsData(t *testing.T) {
	namespace := createNamespace(t, shared.Config())
	identity, err := shared.Identity(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	namespaces := clientsFor(t, shared.Config()).CoreV1().Namespaces()
	// By default a stopping server would wait for the watch of a controller.
	watch, err := namespaces.Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer watch.Stop()

	began := time.Now()
	if err := shared.StopAPIServer(); err != nil {
		t.Fatal(err)
	}
	t.Logf("stopped in %s", time.Since(began).Round(time.Millisecond))
	if _, err := namespaces.Get(t.Context(), namespace, metav1.GetOptions{}); err == nil {
		t.Error("a stopped server answers")
	}
	if err := shared.StartAPIServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := shared.RestartAPIServer(t.Context()); err != nil {
		t.Fatal(err)
	}

	if _, err := namespaces.Get(t.Context(), namespace, metav1.GetOptions{}); err != nil {
		t.Errorf("after a restart, with the same client: %v", err)
	}
	after, err := shared.Identity(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if identity != after {
		t.Errorf("identity after the restart = %s, want %s", after, identity)
	}
}

// TestRestartEtcd: etcd keeps its data, and the API server connects again.
func TestRestartEtcd(t *testing.T) {
	cp := start(t, controlplane.Options{})
	namespace := createNamespace(t, cp.Config())
	if err := cp.StopEtcd(); err != nil {
		t.Fatal(err)
	}
	other := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "meanwhile"}}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	if _, err := clientsFor(t, cp.Config()).CoreV1().Namespaces().Create(ctx, other, metav1.CreateOptions{}); err == nil {
		t.Error("an API server without etcd stored an object, want an error")
	}
	if err := cp.StartEtcd(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := clientsFor(t, cp.Config()).CoreV1().Namespaces().Get(t.Context(), namespace, metav1.GetOptions{}); err != nil {
		t.Errorf("after a restart of etcd: %v", err)
	}
}

func TestStopLeavesNothing(t *testing.T) {
	cp := start(t, controlplane.Options{})
	if _, err := cp.StartControllerManager(t.Context()); err != nil {
		t.Fatal(err)
	}
	second, err := cp.StartSecond(t.Context(), "frozen")
	skipUnsupported(t, err)
	if err := second.Pause(t.Context()); err != nil {
		t.Fatal(err)
	}
	if running := processesOf(t, cp.Dir()); len(running) != 4 {
		t.Errorf("processes = %q, want etcd, two API servers and a controller manager", running)
	}

	for range 2 {
		if err := cp.Stop(); err != nil {
			t.Error(err)
		}
	}

	if running := processesOf(t, cp.Dir()); len(running) != 0 {
		t.Errorf("left running: %q, want none", running)
	}
	if _, err := os.Stat(cp.Dir()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("left behind: %s (%v)", cp.Dir(), err)
	}
	if err := cp.StartAPIServer(t.Context()); err == nil {
		t.Error("a server started after Stop, want an error")
	}
}

func TestOptions(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "kept")
	var output bytes.Buffer
	cp := start(t, controlplane.Options{Dir: dir, APIServerArgs: []string{"--service-cluster-ip-range=10.9.0.0/24"}, Output: &output})
	services := clientsFor(t, cp.Config()).CoreV1().Services("default")
	var service *corev1.Service
	eventually(t, "the API server's own service", func() bool {
		var err error
		service, err = services.Get(t.Context(), "kubernetes", metav1.GetOptions{})
		return err == nil
	})
	if service.Spec.ClusterIP != "10.9.0.1" {
		t.Errorf("the API server's service is %s: the flag did not replace the default", service.Spec.ClusterIP)
	}
	if err := cp.Stop(); err != nil {
		t.Fatal(err)
	}

	for _, name := range []string{"etcd", "kube-apiserver"} {
		log, err := os.ReadFile(filepath.Join(dir, name+".log"))
		if err != nil {
			t.Errorf("Options.Dir was not kept: %v", err)
		}
		lastLine := log[bytes.LastIndexByte(bytes.TrimSpace(log), '\n')+1:]
		if !bytes.Contains(output.Bytes(), lastLine) {
			t.Errorf("the output lacks what %s wrote last: %s", name, lastLine)
		}
	}
	if _, err := controlplane.Start(t.Context(), controlplane.Options{Dir: dir}); err == nil {
		t.Error("started on a folder that another control plane has used")
	}
}

func TestStartThatFailsLeavesNothing(t *testing.T) {
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	for name, test := range map[string]struct {
		ctx    context.Context
		assets string
		args   []string
		want   string
		reason string
	}{
		"assets without binaries": {
			assets: t.TempDir(), want: "make controlplane",
			reason: "the variable names the folder, so no other one is used, and the error has the remedy",
		},
		"flag that the server does not know": {
			args: []string{"--no-such-flag=1"}, want: "unknown flag: --no-such-flag",
			reason: "the cause is in the server's output only",
		},
		"flag without a value": {
			args: []string{"-v"}, want: "--name=value",
			reason: "its value could be the next argument",
		},
		"canceled": {
			ctx: canceled, want: context.Canceled.Error(),
			reason: "the caller canceled the start",
		},
	} {
		t.Run(name, func(t *testing.T) {
			temporary := t.TempDir()
			t.Setenv("TMPDIR", temporary)
			if test.assets != "" {
				t.Setenv("KUBEBUILDER_ASSETS", test.assets)
			}
			if test.ctx == nil {
				test.ctx = t.Context()
			}
			cp, err := controlplane.Start(test.ctx, controlplane.Options{APIServerArgs: test.args})
			if err == nil {
				t.Fatalf("started: %s", errors.Join(errors.New(test.reason), cp.Stop()))
			}
			t.Log(err)
			if !strings.Contains(err.Error(), test.want) {
				t.Errorf("error = %v, want it to contain %q: %s", err, test.want, test.reason)
			}
			if left, err := os.ReadDir(temporary); len(left) > 0 || err != nil {
				t.Errorf("left behind: %v %v", left, err)
			}
			if running := processesOf(t, temporary); len(running) > 0 {
				t.Errorf("left running: %q", running)
			}
		})
	}
}
