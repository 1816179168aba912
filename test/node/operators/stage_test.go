package operators_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-dev/godwit/test/controlplane"
	"github.com/godwit-dev/godwit/test/node"
	"github.com/godwit-dev/godwit/test/program"
)

// stage is a test on the shared cluster.
type stage struct {
	*node.Cluster
	client.Client
	t *testing.T

	kubeconfig string
	path       string // has kubectl and godwit
}

// newStage returns the shared cluster, with the images of an operator. It skips the test of an operator that is not selected.
func newStage(t *testing.T, o operator) *stage {
	t.Helper()
	if o.programs != nil && !slices.ContainsFunc(selected(), func(s operator) bool { return slices.Equal(s.programs, o.programs) }) {
		t.Skip("the operator is not selected: run make e2e-operators")
	}
	c, err := shared()
	if err != nil {
		t.Fatal(err)
	}
	s := &stage{Cluster: c, t: t}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme} {
		utilruntime.Must(add(scheme))
	}
	if s.Client, err = client.New(c.Config(), client.Options{Scheme: scheme}); err != nil {
		t.Fatal(err)
	}
	if s.kubeconfig, err = c.Kubeconfig("admin", c.Config()); err != nil {
		t.Fatal(err)
	}
	kubectl, err := controlplane.Kubectl()
	if err != nil {
		t.Fatal(err)
	}
	root, err := program.Root(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s.path = filepath.Join(root, "bin", "operators") + ":" + filepath.Dir(kubectl)
	for _, name := range o.programs {
		image, err := node.ImageOf(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Load(t.Context(), image); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// command runs a program as the administrator of the cluster, without a configuration of its own.
func (s *stage) command(ctx context.Context, name string, args ...string) (string, error) {
	var out bytes.Buffer
	err := s.commandTo(ctx, &out, name, args...)
	return out.String(), err
}

// commandTo is command, and writes what the program says as soon as it says so.
func (s *stage) commandTo(ctx context.Context, out io.Writer, name string, args ...string) error {
	path := s.path + ":" + os.Getenv("PATH")
	command := exec.CommandContext(ctx, name, args...)
	if name == "godwit" || name == "kubectl" {
		for dir := range strings.SplitSeq(s.path, ":") {
			if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
				command = exec.CommandContext(ctx, filepath.Join(dir, name), args...)
			}
		}
	}
	command.Env = []string{
		"KUBECONFIG=" + s.kubeconfig, "HOME=" + s.Dir(), "PATH=" + path, "ETCD_FLAGS=--etcd-servers=" + s.EtcdEndpoint(),
	}
	command.Stdout, command.Stderr = out, out
	return command.Run()
}

func (s *stage) mustRun(name string, args ...string) string {
	s.t.Helper()
	began := time.Now()
	out, err := s.command(s.t.Context(), name, args...)
	if err != nil {
		s.t.Fatalf("%s %s: %v\n%s", filepath.Base(name), strings.Join(args, " "), err, out)
	}
	s.t.Logf("%s %s: %s", filepath.Base(name), strings.Join(args, " "), time.Since(began).Round(time.Millisecond))
	return out
}

// longest is how long operators of others may take for hundreds of objects on a busy machine.
const longest = 20 * time.Minute

// await checks again and again, and fails the test in the end. It leaves the machine time for what it waits for.
func (s *stage) await(what string, check func(context.Context) error) {
	s.t.Helper()
	began := time.Now()
	ctx, cancel := context.WithTimeout(s.t.Context(), longest)
	defer cancel()
	for {
		err := check(ctx)
		if err == nil {
			s.t.Logf("%s: after %s", what, time.Since(began).Round(time.Millisecond))
			return
		}
		select {
		case <-ctx.Done():
			s.t.Fatalf("wait for %s: %v", what, err)
		case <-time.After(500 * time.Millisecond):
		}
	}
}

// awaitDeployments waits until all pods of a namespace's Deployments are of their last template, and ready.
func (s *stage) awaitDeployments(namespace string) {
	s.t.Helper()
	s.await("the Deployments of "+namespace+" to be ready", func(ctx context.Context) error {
		list := &appsv1.DeploymentList{}
		if err := s.List(ctx, list, client.InNamespace(namespace)); err != nil {
			return err
		}
		for _, d := range list.Items {
			if d.Status.ObservedGeneration != d.Generation || d.Status.UpdatedReplicas != *d.Spec.Replicas ||
				d.Status.ReadyReplicas != *d.Spec.Replicas || d.Status.Replicas != *d.Spec.Replicas {
				return fmt.Errorf("%s has status %+v", d.Name, d.Status)
			}
		}
		if len(list.Items) == 0 {
			return fmt.Errorf("%s has no Deployment", namespace)
		}
		return nil
	})
}

// showIfFailed shows the pods of a failed test, and the end of their logs.
func (s *stage) showIfFailed(namespace string) {
	s.t.Cleanup(func() {
		if !s.t.Failed() {
			return
		}
		out, _ := s.command(context.Background(), "kubectl", "-n", namespace, "get", "pods,events", "-o", "wide")
		s.t.Log(out)
		for p := range strings.FieldsSeq(first(s.command(context.Background(), "kubectl", "-n", namespace, "get", "pods", "-o", "name"))) {
			out, _ = s.command(context.Background(), "kubectl", "-n", namespace, "logs", p, "--tail=30")
			s.t.Log(p + ":\n" + out)
		}
	})
}

func first(out string, _ error) string { return out }
