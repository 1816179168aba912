package e2e_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/godwit-dev/godwit/test/node"
)

// tokenFolder is where a pod has the token of its ServiceAccount.
const tokenFolder = "/var/run/secrets/kubernetes.io/serviceaccount"

// tokenKubeconfig names a file with a token instead of a token. The address is that of the Service kubernetes.
const tokenKubeconfig = `apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "https://10.0.0.1:443", certificate-authority: ` + tokenFolder + `/ca.crt}}]
users: [{name: u, user: {tokenFile: ` + tokenFolder + `/token}}]
contexts: [{name: c, context: {cluster: c, user: u}}]
current-context: c
`

// TestCommandInPod: the commands of the image work in a restricted pod, as its ServiceAccount, which a pod has without a kubeconfig, or
// with one that names the file of the token. The permissions are those that godwit rbac prints in a pod.
func TestCommandInPod(t *testing.T) {
	s := newStage(t, version)
	const namespace = "commands"
	if err := s.AwaitNamespace(t.Context(), namespace, restricted); err != nil {
		t.Fatal(err)
	}
	g := s.define("command.example.com", 5)
	if said := s.runInPod(namespace, "version", 0, "version"); !strings.HasPrefix(said, "godwit "+version+" (commit ") {
		t.Errorf("it is %q, want version %s", said, version)
	}
	roles := filepath.Join(t.TempDir(), "roles.yaml")
	said := s.runInPod(namespace, "rbac", 0, "rbac", "--for=crd-run", "--serviceaccount="+namespace+":default", g.crd())
	if err := os.WriteFile(roles, []byte(said), 0o600); err != nil {
		t.Fatal(err)
	}
	s.kubectl("apply", "-f", roles)
	config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "kubeconfig"}, Data: map[string]string{"config": tokenKubeconfig}}
	if err := s.Create(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	g.flip()
	if said := s.runInPod(namespace, "plan", 1, "--kubeconfig=/etc/kubeconfig/config", "crd", "plan", g.crd()); !strings.Contains(said, "5") {
		t.Errorf("the plan does not count 5 objects:\n%s", said)
	}
	if said := s.runInPod(namespace, "run", 0, "crd", "run", g.crd(), "--yes", "--settle=1s"); !strings.Contains(said, "Succeeded") {
		t.Errorf("the run does not say that it has succeeded:\n%s", said)
	}
	g.expectMigrated()
}

// TestPluginInPod: kubectl finds the program of the plugin's archive, and both are the ServiceAccount of their pod.
func TestPluginInPod(t *testing.T) {
	s := newStage(t, version)
	const namespace = "plugin"
	if err := s.AwaitNamespace(t.Context(), namespace, nil); err != nil { // not restricted: its pod has a folder of the node
		t.Fatal(err)
	}
	g := s.define("plugin.example.com", 3)
	g.flip()
	bin := filepath.Join(s.Cluster.Dir(), "plugin")
	if err := os.Mkdir(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	s.mustRun("tar", "-xzf", s.archive("kubectl-godwit"), "-C", bin)
	s.mustRun("cp", s.kubectlProgram(), bin)
	run := func(name string, exitCode int32) string {
		pod := commandPod(namespace, name, "godwit", "crd", "plan", g.crd())
		pod.Spec.Volumes = []corev1.Volume{{Name: "bin", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: bin}}}}
		c := &pod.Spec.Containers[0]
		c.Command, c.Env = []string{"/opt/bin/kubectl"}, []corev1.EnvVar{{Name: "PATH", Value: "/opt/bin"}}
		c.VolumeMounts = []corev1.VolumeMount{{Name: "bin", MountPath: "/opt/bin", ReadOnly: true}}
		return s.runPod(pod, exitCode)
	}
	const forbidden = 2
	if said := run("forbidden", forbidden); !strings.Contains(said, "system:serviceaccount:plugin:default") || !strings.Contains(said, "godwit rbac") {
		t.Errorf("without permissions it does not name the user and the next command:\n%s", said)
	}
	s.kubectl("create", "clusterrolebinding", "plugin", "--clusterrole=cluster-admin", "--serviceaccount="+namespace+":default")
	if said := run("granted", 1); !strings.Contains(said, g.crd()) {
		t.Errorf("the plan does not name %s:\n%s", g.crd(), said)
	}
}

// archive returns the archive of the release for this machine that has the program under a name.
func (s *stage) archive(name string) string {
	s.t.Helper()
	found, err := filepath.Glob(filepath.Join(s.release(version), name+"_*_"+runtime.GOOS+"_"+runtime.GOARCH+".tar.gz"))
	if err != nil || len(found) != 1 {
		s.t.Fatalf("archives of %s are %q, want one: %v", name, found, err)
	}
	return found[0]
}

// runInPod runs a command of the image, and returns what it has written.
func (s *stage) runInPod(namespace, name string, exitCode int32, args ...string) string {
	s.t.Helper()
	return s.runPod(commandPod(namespace, name, args...), exitCode)
}

// commandPod is a restricted pod that runs a command of the image.
func commandPod(namespace, name string, args ...string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: corev1.PodSpec{
			RestartPolicy:   corev1.RestartPolicyNever,
			SecurityContext: restrictedPod(),
			Volumes: []corev1.Volume{{Name: "kubeconfig", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
				LocalObjectReference: corev1.LocalObjectReference{Name: "kubeconfig"}, Optional: new(true),
			}}}},
			Containers: []corev1.Container{{
				Name: "godwit", Image: imageRepository + ":" + version, Args: args,
				VolumeMounts:    []corev1.VolumeMount{{Name: "kubeconfig", MountPath: "/etc/kubeconfig"}},
				SecurityContext: restrictedContainer(),
			}},
		},
	}
}

// runPod returns what the pod's command has written, and fails the test if it has another exit code.
func (s *stage) runPod(pod *corev1.Pod, exitCode int32) string {
	s.t.Helper()
	if err := s.Create(s.t.Context(), pod); err != nil {
		s.t.Fatal(err)
	}
	said, err := s.AwaitEnd(s.t.Context(), pod.Namespace, pod.Name)
	failed := (*node.FailedError)(nil)
	if errors.As(err, &failed) && failed.ExitCode == exitCode {
		err = nil
	} else if err == nil && exitCode != 0 {
		err = fmt.Errorf("it has succeeded, want exit code %d", exitCode)
	}
	if err != nil {
		s.t.Errorf("%s: %v\n%s", strings.Join(pod.Spec.Containers[0].Args, " "), err, said)
	}
	return said
}
