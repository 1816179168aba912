package operators_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

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

// newStage returns the shared cluster.
func newStage(t *testing.T) *stage {
	t.Helper()
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
	return s
}

// command runs a program as the administrator of the cluster, without a configuration of its own.
func (s *stage) command(ctx context.Context, name string, args ...string) (string, error) {
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
	var out bytes.Buffer
	command.Stdout, command.Stderr = &out, &out
	err := command.Run()
	return out.String(), err
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
