package e2e_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-dev/godwit/api/v1alpha1"
	"github.com/godwit-dev/godwit/test/controlplane"
	"github.com/godwit-dev/godwit/test/node"
	"github.com/godwit-dev/godwit/test/process"
	"github.com/godwit-dev/godwit/test/program"
)

const (
	imageRepository = "ghcr.io/godwit-dev/godwit"
	// system is the namespace of the manager, and the name of its release and Deployment is manager.
	system  = "godwit-system"
	manager = "godwit"
	// managerPods selects the pods of the manager.
	managerPods = "app.kubernetes.io/name=godwit"
)

// restricted makes a namespace refuse every Pod that the restricted Pod Security Standard refuses.
var restricted = map[string]string{
	"pod-security.kubernetes.io/enforce": "restricted", "pod-security.kubernetes.io/enforce-version": "latest",
}

// nonRoot is the user of images.
const nonRoot = 65532

// restrictedPod is what such a namespace requires of a pod. The pod may write to its volumes.
func restrictedPod() *corev1.PodSecurityContext {
	return &corev1.PodSecurityContext{
		RunAsNonRoot: new(true), FSGroup: new(int64(nonRoot)), SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
	}
}

// restrictedContainer is what such a namespace requires of a container.
func restrictedContainer() *corev1.SecurityContext {
	return &corev1.SecurityContext{
		AllowPrivilegeEscalation: new(false), ReadOnlyRootFilesystem: new(true), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
	}
}

// stage is a test on a cluster, of a release in a namespace.
type stage struct {
	*cluster
	client.Client
	t *testing.T

	helmProgram, kubeconfig string
	// name is that of the release.
	name, namespace string
}

// newStage returns the shared cluster with an empty namespace for the manager, and with the images of the versions. At the end of the
// test, no release is installed.
func newStage(t *testing.T, versions ...string) *stage {
	t.Helper()
	c, err := shared()
	if err != nil {
		t.Fatal(err)
	}
	return newStageOn(t, c, versions...)
}

// newStageOn is newStage on another cluster.
func newStageOn(t *testing.T, c *cluster, versions ...string) *stage {
	t.Helper()
	s := &stage{cluster: c, t: t, name: manager, namespace: system}
	var err error
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, v1alpha1.AddToScheme} {
		utilruntime.Must(add(scheme))
	}
	if s.Client, err = client.New(c.Config(), client.Options{Scheme: scheme}); err != nil {
		t.Fatal(err)
	}
	if s.helmProgram, err = program.Helm(t.Context()); err != nil {
		t.Fatal(err)
	}
	if s.kubeconfig, err = c.Kubeconfig("admin", c.Config()); err != nil {
		t.Fatal(err)
	}
	for _, v := range versions {
		if err := c.Load(t.Context(), s.image(v)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := c.Clients.CoreV1().Namespaces().Get(t.Context(), system, metav1.GetOptions{}); err != nil {
		if err := c.AwaitNamespace(t.Context(), system, restricted); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(s.end)
	return s
}

// beside is the stage for a release of another name, in a namespace of that name.
func (s *stage) beside(t *testing.T, name string) *stage {
	t.Helper()
	of := *s
	of.t, of.name, of.namespace = t, name, name
	if err := s.AwaitNamespace(t.Context(), name, restricted); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(of.end)
	return &of
}

// end uninstalls what the test has left, and shows the manager's log of a failed test.
func (s *stage) end() {
	s.t.Helper()
	if s.t.Failed() {
		out, _ := s.command(context.Background(), s.kubectlProgram(), "-n", s.namespace, "get", "pods,events,crdmigrations", "-o", "wide")
		s.t.Log(out)
		out, _ = s.command(context.Background(), s.kubectlProgram(), "-n", s.namespace, "logs", "-l", managerPods, "--tail=40", "--prefix")
		s.t.Log(out)
	}
	if out, err := s.command(context.Background(), s.helmProgram, "uninstall", s.name, "-n", s.namespace, "--wait", "--ignore-not-found"); err != nil {
		s.t.Errorf("%v: %s", err, out)
	}
}

// release returns the folder of a release.
func (*stage) release(v string) string {
	if v == olderThanIt {
		return filepath.Join(os.Getenv(olderReleasesVariable), v)
	}
	return filepath.Join(os.Getenv(releasesVariable), v)
}

// image returns the image of a release, with the name that users pull.
func (s *stage) image(v string) node.Image {
	return node.Image{Repository: imageRepository, Layout: filepath.Join(s.release(v), "image")}
}

func (s *stage) chart(v string) string {
	return filepath.Join(s.release(v), "godwit-"+strings.TrimPrefix(v, "v")+".tgz")
}

// command runs a program as the administrator of the cluster, without a configuration of its own.
func (s *stage) command(ctx context.Context, name string, args ...string) (string, error) {
	command := exec.CommandContext(ctx, name, args...)
	command.Env = []string{"KUBECONFIG=" + s.kubeconfig, "HOME=" + s.Cluster.Dir(), "PATH=" + os.Getenv("PATH")}
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
	s.t.Logf("%s %s: %s", filepath.Base(name), args[0], time.Since(began).Round(time.Millisecond))
	return out
}

// helm runs a command for the release.
func (s *stage) helm(args ...string) string {
	s.t.Helper()
	return s.mustRun(s.helmProgram, append(args, "--namespace="+s.namespace)...)
}

func (s *stage) kubectlProgram() string {
	path, err := controlplane.Kubectl()
	if err != nil {
		s.t.Fatal(err)
	}
	return path
}

func (s *stage) kubectl(args ...string) string {
	s.t.Helper()
	return s.mustRun(s.kubectlProgram(), args...)
}

// install installs a version, or upgrades to it, as the README of the chart says, and waits until all its pods are ready.
func (s *stage) install(v string, values map[string]any) {
	s.t.Helper()
	s.installWith(v, values, "--wait", "--timeout=3m")
}

func (s *stage) installWith(v string, values map[string]any, flags ...string) {
	s.t.Helper()
	text, err := json.Marshal(values)
	if err != nil {
		s.t.Fatal(err)
	}
	file := filepath.Join(s.t.TempDir(), "values.json")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		s.t.Fatal(err)
	}
	s.helm(append([]string{"upgrade", "--install", s.name, s.chart(v), "--values=" + file}, flags...)...)
}

// pods returns the release's pods, in the order of their names.
func (s *stage) pods() []corev1.Pod {
	s.t.Helper()
	list := &corev1.PodList{}
	selector, err := metav1.ParseToLabelSelector(managerPods)
	if err != nil {
		s.t.Fatal(err)
	}
	if err := s.List(s.t.Context(), list, client.InNamespace(s.namespace), client.MatchingLabels(selector.MatchLabels)); err != nil {
		s.t.Fatal(err)
	}
	slices.SortFunc(list.Items, func(a, b corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	return list.Items
}

// await polls, and fails the test in the end.
func (s *stage) await(what string, check func(context.Context) error) {
	s.t.Helper()
	began := time.Now()
	if err := process.Poll(s.t.Context(), what, check); err != nil {
		s.t.Fatal(err)
	}
	s.t.Logf("%s: after %s", what, time.Since(began).Round(time.Millisecond))
}

// expectReady fails unless the pods run the version and no container has restarted.
func (s *stage) expectReady(v string, want int) {
	s.t.Helper()
	pods := s.pods()
	if len(pods) != want {
		s.t.Errorf("%d pods, want %d", len(pods), want)
	}
	for _, p := range pods {
		status := p.Status.ContainerStatuses[0]
		if !status.Ready || status.RestartCount > 0 {
			s.t.Errorf("pod %s: %+v", p.Name, status)
		}
		said, err := s.PodLog(s.t.Context(), p.Namespace, p.Name)
		if err != nil || strings.Contains(strings.ToLower(said), "forbidden") || strings.Contains(said, "panic") {
			s.t.Errorf("pod %s of %s says: %v\n%s", p.Name, v, err, said)
		}
	}
}

// merged adds values to others.
func merged(values ...map[string]any) map[string]any {
	all := map[string]any{}
	for _, v := range values {
		maps.Copy(all, v)
	}
	return all
}

// usage is the memory of a container in MiB: what it has allocated, and the working set, which has the pages of files that it was the
// first to read as well. kubectl top shows the working set.
type usage struct{ RSS, WorkingSet uint64 }

// memory returns the memory of the manager's containers, by their pods, as their kubelets count it. A kubelet counts a new container some
// seconds later.
func (s *stage) memory() map[string]usage {
	s.t.Helper()
	found := map[string]usage{}
	for _, p := range s.pods() {
		text := s.kubectl("get", "--raw", "/api/v1/nodes/"+p.Spec.NodeName+"/proxy/stats/summary")
		var summary struct {
			Pods []struct {
				PodRef     struct{ Name string }
				Containers []struct {
					Memory struct{ RSSBytes, WorkingSetBytes uint64 }
				}
			}
		}
		if err := json.Unmarshal([]byte(text), &summary); err != nil {
			s.t.Fatal(fmt.Errorf("%w: %s", err, text))
		}
		for _, of := range summary.Pods {
			for _, c := range of.Containers {
				if of.PodRef.Name == p.Name {
					found[p.Name] = usage{c.Memory.RSSBytes >> 20, c.Memory.WorkingSetBytes >> 20}
				}
			}
		}
	}
	return found
}
