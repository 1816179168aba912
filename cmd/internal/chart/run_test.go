//go:build linux

package chart_test

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-dev/godwit/api/v1alpha1"
	"github.com/godwit-dev/godwit/crdmigrator"
	"github.com/godwit-dev/godwit/internal/storageversion/decision"
	"github.com/godwit-dev/godwit/test/controlplane"
)

// TestManagerWorksAsRendered: the binary, with the arguments, the environment and
// the configuration of the chart, by the token of its ServiceAccount.
func TestManagerWorksAsRendered(t *testing.T) {
	c := newCluster(t)
	const namespace, group, objects = "rendered", "rendered.example.com", 30
	c.restrictedNamespace(namespace)
	rendered := render(t, namespace, "storageVersionMigrator: {scopes: [{group: "+group+"}], defaults: {settle: 0s}}\nmetrics: {podMonitor: {enabled: true}}\n")
	c.apply(rendered)
	if err := controlplane.AwaitServed(t.Context(), c.cfg, "crdmigrations.godwit.dev"); err != nil {
		t.Fatal(err)
	}
	crd := c.define(group, objects)
	m := c.start(namespace, rendered)

	await(t, "the manager to be ready", func() bool {
		code, _ := get("http://"+m.addresses["health"]+m.ready, "")
		return code == http.StatusOK
	})
	c.flip(crd)
	await(t, "the migration to succeed", func() bool {
		m := &v1alpha1.CRDMigration{}
		if err := c.Get(t.Context(), client.ObjectKey{Name: crd}, m); err != nil {
			return false
		}
		ready := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionReady)
		return ready != nil && ready.Reason == decision.ReasonSucceeded.Name
	})
	stored, err := c.plane.CountStored(t.Context(), group, "geese")
	if err != nil || stored[group+"/v2"] != objects || len(stored) != 1 {
		t.Errorf("etcd holds %v, want %d of v2: %v", stored, objects, err)
	}

	metrics := "https://" + m.addresses["metrics"] + "/metrics"
	if code, _ := get(metrics, ""); code != http.StatusUnauthorized {
		t.Errorf("metrics without a token: %d", code)
	}
	if code, _ := get(metrics, c.as(namespace, m.account).BearerToken); code != http.StatusForbidden {
		t.Errorf("metrics for a client without the permission: %d", code)
	}
	reader := find[rbacv1.ClusterRoleBinding](t, named(rendered, "godwit-metrics-reader"), "ClusterRoleBinding").Subjects[0]
	code, text := get(metrics, c.as(reader.Namespace, reader.Name).BearerToken)
	if want := fmt.Sprintf(`godwit_crd_objects_total{crd=%q,outcome="migrated"} %d`, crd, objects); code != http.StatusOK || !strings.Contains(text, want) {
		t.Errorf("metrics for their reader: %d, want %s in\n%s", code, want, text)
	}

	m.end()
	if said := m.stderr.String(); strings.Contains(said, "forbidden") {
		t.Errorf("a right is missing:\n%s", said)
	}
}

// manager is one under way, as its container says.
type manager struct {
	t         *testing.T
	account   string
	addresses map[string]string // by the name of the port
	ready     string            // the path of the probe
	image     string            // the folder of its root
	stderr    *bytes.Buffer     // to be read once it has ended
	command   *exec.Cmd
	ended     chan error
}

// start starts what the Deployment has for its only container, in the image, with
// the ConfigMap where its volume is. Two things are as they are outside a cluster:
// every port is a free one of the loopback device, and a kubeconfig beside the
// program holds the ServiceAccount's token.
func (c *cluster) start(namespace string, rendered []*unstructured.Unstructured) *manager {
	c.t.Helper()
	pod := find[appsv1.Deployment](c.t, rendered, "Deployment").Spec.Template.Spec
	container := pod.Containers[0]
	m := &manager{
		t: c.t, account: pod.ServiceAccountName, addresses: map[string]string{}, ready: container.ReadinessProbe.HTTPGet.Path,
		stderr: &bytes.Buffer{}, ended: make(chan error, 1),
	}
	image := newImage(c.t)
	m.image = image
	c.mountSecrets(namespace, pod, image)
	mount(c.t, find[corev1.ConfigMap](c.t, rendered, "ConfigMap"), filepath.Join(image, container.VolumeMounts[0].MountPath))
	kubeconfig, err := controlplane.Kubeconfig(c.as(namespace, m.account))
	if err != nil {
		c.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(image, "kubeconfig"), kubeconfig, 0o644); err != nil {
		c.t.Fatal(err)
	}
	m.command = inside(image, m.onLoopback(container)...)
	m.command.Env = []string{"KUBECONFIG=/kubeconfig"}
	for _, e := range container.Env {
		m.command.Env = append(m.command.Env, e.Name+"="+e.Value)
	}
	m.command.Stderr = m.stderr
	if err := m.command.Start(); err != nil {
		c.t.Fatal(err)
	}
	go func() { m.ended <- m.command.Wait() }()
	c.t.Cleanup(m.end)
	return m
}

// mountSecrets writes the Secrets that the pod mounts.
func (c *cluster) mountSecrets(namespace string, pod corev1.PodSpec, image string) {
	c.t.Helper()
	for _, v := range pod.Volumes {
		if v.Secret == nil {
			continue
		}
		secret := &corev1.Secret{}
		if err := c.Get(c.t.Context(), client.ObjectKey{Namespace: namespace, Name: v.Secret.SecretName}, secret); err != nil {
			c.t.Fatal(err)
		}
		for _, at := range pod.Containers[0].VolumeMounts {
			if at.Name != v.Name {
				continue
			}
			files := &corev1.ConfigMap{Data: map[string]string{}}
			for name, content := range secret.Data {
				files.Data[name] = string(content)
			}
			mount(c.t, files, filepath.Join(image, at.MountPath))
		}
	}
}

// scrape reads the metrics as Prometheus does by a ServiceMonitor: it verifies the certificate.
func (m *manager) scrape(host, token string, ca []byte) error {
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(ca) {
		return errors.New("the CA is no certificate")
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, ServerName: host}, DisableKeepAlives: true}
	request, err := http.NewRequest(http.MethodGet, "https://"+m.addresses["metrics"]+"/metrics", http.NoBody)
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+token)
	answer, err := (&http.Client{Transport: transport, Timeout: time.Minute}).Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusOK {
		return errors.New(answer.Status)
	}
	return nil
}

// onLoopback are the arguments with other addresses.
func (m *manager) onLoopback(container corev1.Container) []string {
	m.t.Helper()
	args := strings.Join(container.Args, "\n")
	for _, port := range container.Ports {
		m.addresses[port.Name] = freeAddress(m.t)
		there := fmt.Sprintf("=:%d", port.ContainerPort)
		if !strings.Contains(args, there) {
			m.t.Fatalf("no argument has the port %s:\n%s", there, args)
		}
		args = strings.ReplaceAll(args, there, "="+m.addresses[port.Name])
	}
	return strings.Split(args, "\n")
}

// end ends it as a kubelet does. Again, it does nothing.
func (m *manager) end() {
	m.t.Helper()
	if m.ended == nil {
		return
	}
	_ = m.command.Process.Signal(syscall.SIGTERM)
	if err := <-m.ended; err != nil {
		m.t.Errorf("the manager ended with %v", err)
	}
	m.ended = nil
	if m.t.Failed() {
		m.t.Log(m.stderr.String())
	}
}

func named(objects []*unstructured.Unstructured, name string) []*unstructured.Unstructured {
	var found []*unstructured.Unstructured
	for _, o := range objects {
		if o.GetName() == name {
			found = append(found, o)
		}
	}
	return found
}

func freeAddress(t *testing.T) string {
	t.Helper()
	address, err := controlplane.FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	return address
}

// get asks as Prometheus does, which can't verify a certificate that the manager
// signed itself. The code is 0 if no server answers.
func get(url, token string) (code int, body string) {
	request, err := http.NewRequest(http.MethodGet, url, http.NoBody)
	if err != nil {
		return 0, err.Error()
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}
	answer, err := (&http.Client{Transport: transport, Timeout: time.Minute}).Do(request)
	if err != nil {
		return 0, err.Error()
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return 0, err.Error()
	}
	return answer.StatusCode, string(text)
}

func version(name string, storage bool) apiextensionsv1.CustomResourceDefinitionVersion {
	return apiextensionsv1.CustomResourceDefinitionVersion{
		Name: name, Served: true, Storage: storage,
		Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object"}},
	}
}

// define installs geese with v1 alone, and some objects.
func (c *cluster) define(group string, objects int) string {
	c.t.Helper()
	crd := &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "geese." + group, Labels: map[string]string{crdmigrator.AutoMigrateLabel: crdmigrator.AutoMigrateValue}},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: group, Scope: apiextensionsv1.ClusterScoped,
			Names:    apiextensionsv1.CustomResourceDefinitionNames{Plural: "geese", Kind: "Goose"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{version("v1", true)},
		},
	}
	if err := controlplane.InstallCRDs(c.t.Context(), c.cfg, crd); err != nil {
		c.t.Fatal(err)
	}
	for i := range objects {
		o := &unstructured.Unstructured{}
		o.SetAPIVersion(group + "/v1")
		o.SetKind("Goose")
		o.SetName(fmt.Sprintf("goose-%d", i))
		if err := c.Create(c.t.Context(), o); err != nil {
			c.t.Fatal(err)
		}
	}
	return crd.Name
}

// flip makes v2 the storage version.
func (c *cluster) flip(crd string) {
	c.t.Helper()
	_, err := controlplane.UpdateCRD(c.t.Context(), c.cfg, crd, func(there *apiextensionsv1.CustomResourceDefinition) {
		there.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{version("v1", false), version("v2", true)}
	})
	if err != nil {
		c.t.Fatal(err)
	}
}
