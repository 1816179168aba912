//go:build linux

package pods_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-dev/godwit/test/controlplane"
	"github.com/godwit-dev/godwit/test/hub/ocm"
	"github.com/godwit-dev/godwit/test/node"
	"github.com/godwit-dev/godwit/test/program"
)

const (
	// operatorNamespace has the operators, and agentNamespace the agents of a cluster.
	operatorNamespace = "open-cluster-management"
	hubNamespace      = "open-cluster-management-hub"
	agentNamespace    = "open-cluster-management-agent"
	// longest is how long pods of a cluster may take on a busy machine.
	longest = 15 * time.Minute
)

// site is a cluster with a node.
type site struct {
	*node.Cluster
	client.Client
	name       string
	kubeconfig string
	images     map[string]string
}

// startSite starts a cluster, with images of programs.
func startSite(t *testing.T, name string, programs ...string) *site {
	t.Helper()
	began := time.Now()
	c, err := node.Start(t.Context(), node.Options{Name: name})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
	})
	s := &site{Cluster: c, name: name, images: map[string]string{}}
	if s.Client, err = client.New(c.Config(), client.Options{Scheme: ocm.Scheme()}); err != nil {
		t.Fatal(err)
	}
	if s.kubeconfig, err = c.Kubeconfig("admin", c.Config()); err != nil {
		t.Fatal(err)
	}
	for _, p := range programs {
		image, err := node.ImageOf(t.Context(), p)
		if err == nil {
			err = c.Load(t.Context(), image)
		}
		if err == nil {
			s.images[p], err = image.ByDigest()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		if t.Failed() {
			s.show(t)
		}
	})
	t.Logf("%s started in %s", name, time.Since(began).Round(time.Second))
	return s
}

// show logs the pods of a failed test, and the end of the logs of those of Open Cluster Management.
func (s *site) show(t *testing.T) {
	t.Helper()
	out, _ := s.kubectl(context.Background(), "get", "pods,managedclusters,klusterlets,manifestworks", "-A", "-o", "wide")
	t.Logf("%s:\n%s", s.name, out)
	for _, namespace := range []string{operatorNamespace, hubNamespace, agentNamespace} {
		names, _ := s.kubectl(context.Background(), "-n", namespace, "get", "pods", "-o", "name")
		for pod := range strings.FieldsSeq(names) {
			if !strings.HasPrefix(pod, "pod/") {
				continue
			}
			out, _ := s.kubectl(context.Background(), "-n", namespace, "logs", pod, "--tail=25")
			t.Logf("%s %s:\n%s", s.name, pod, out)
		}
	}
}

// kubectl runs kubectl as the administrator of the cluster.
func (s *site) kubectl(ctx context.Context, args ...string) (string, error) {
	kubectl, err := controlplane.Kubectl()
	if err != nil {
		return "", err
	}
	out, _, err := run(ctx, s.kubeconfig, kubectl, args...)
	return out, err
}

// helm installs a chart of Open Cluster Management as its users do, with images by digest.
func (s *site) helm(t *testing.T, release, chart string, values map[string]any) {
	t.Helper()
	charts, err := chartsFolder(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	helm, err := program.Helm(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(values)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "values.json")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	out, code, err := run(t.Context(), s.kubeconfig, helm, "install", release, filepath.Join(charts, chart), "--namespace="+operatorNamespace, "--create-namespace", "--values="+file)
	if err != nil {
		t.Fatalf("helm install %s on %s: exit code %d: %v\n%s", release, s.name, code, err, out)
	}
}

// run runs a program with a kubeconfig, and without a configuration of its own. It returns what the program prints.
func run(ctx context.Context, kubeconfig, path string, args ...string) (string, int, error) {
	command := exec.CommandContext(ctx, path, args...)
	command.Env = []string{"KUBECONFIG=" + kubeconfig, "HOME=" + filepath.Dir(kubeconfig), "PATH=" + os.Getenv("PATH")}
	var out bytes.Buffer
	command.Stdout, command.Stderr = &out, &out
	err := command.Run()
	code := 0
	if failed := (*exec.ExitError)(nil); errors.As(err, &failed) {
		code = failed.ExitCode()
	}
	return out.String(), code, err
}

// await checks again and again until there is no error, and fails the test in the end.
func await(t *testing.T, what string, check func(context.Context) error) {
	t.Helper()
	began := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), longest)
	defer cancel()
	for {
		err := check(ctx)
		if err == nil {
			t.Logf("%s: after %s", what, time.Since(began).Round(time.Second))
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("wait for %s: %v", what, err)
		case <-time.After(time.Second):
		}
	}
}

// awaitDeployments waits until the pods of Deployments are ready, of which a namespace has at least some.
func (s *site) awaitDeployments(t *testing.T, namespace string, atLeast int) {
	t.Helper()
	await(t, fmt.Sprintf("the Deployments of %s in %s", s.name, namespace), func(ctx context.Context) error {
		list := &appsv1.DeploymentList{}
		if err := s.List(ctx, list, client.InNamespace(namespace)); err != nil {
			return err
		}
		for _, d := range list.Items {
			if d.Status.ObservedGeneration != d.Generation || d.Status.ReadyReplicas != *d.Spec.Replicas || d.Status.Replicas != *d.Spec.Replicas {
				return fmt.Errorf("%s has status %+v", d.Name, d.Status)
			}
		}
		if len(list.Items) < atLeast {
			return fmt.Errorf("%d Deployments, want at least %d", len(list.Items), atLeast)
		}
		return nil
	})
}

// conditionOf returns a condition, or one without a status.
func conditionOf(conditions []metav1.Condition, kind string) metav1.Condition {
	for _, c := range conditions {
		if c.Type == kind {
			return c
		}
	}
	return metav1.Condition{Type: kind}
}
