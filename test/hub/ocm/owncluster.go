package ocm

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/clientcmd"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-dev/godwit/test/controlplane"
	"github.com/godwit-dev/godwit/test/process"
)

const (
	// agentDeployment is the Deployment that the klusterlet operator makes for the agents.
	agentDeployment = "klusterlet-agent"
	// refreshVolumes and probeEvery are a kubelet's, shorter.
	refreshVolumes = 2 * time.Second
	probeEvery     = 5 * time.Second
	// probeFailures is after how many failures in a row a kubelet restarts a container; Kubernetes' default.
	probeFailures = 3
	// spokeFolder is the folder with the volumes of the agents.
	spokeFolder = "/spoke/"
)

// OwnCluster is a managed cluster with an API server of its own. Its klusterlet operator, and its registration agent and work agent, are
// those of Open Cluster Management. The kubelet and the controller of Deployments are simulated.
type OwnCluster struct {
	*controlplane.ControlPlane

	Name string
	// Client is the client of the cluster's administrator.
	Client client.Client

	program, kubeconfig string
	log                 *logFile
	kubelet             *loop

	mu          sync.Mutex
	unreachable []string
	operator    *process.Process
	pod         pod
	pods        int
}

// pod is the pod of the agents.
type pod struct {
	template corev1.PodTemplateSpec
	dir      string
	process  *process.Process
	address  string
	// mounted and probed are when the kubelet last did so.
	mounted, probed time.Time
	failures        int
}

// StartOwnCluster imports a cluster at a hub with the original import controller.
func StartOwnCluster(ctx context.Context, h *Hub, name string, annotations map[string]string) (*OwnCluster, error) {
	if err := h.Client.Create(ctx, &clusterv1.ManagedCluster{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: annotations},
		Spec:       clusterv1.ManagedClusterSpec{HubAcceptsClient: true, LeaseDurationSeconds: leaseSeconds},
	}); err != nil {
		return nil, fmt.Errorf("import cluster %s: %w", name, err)
	}
	return startOwnCluster(ctx, name, func(ctx context.Context) ([]*unstructured.Unstructured, error) { return h.imported(ctx, name) })
}

// manifests returns what the user of a hub applies to a cluster, so that it registers there: first the CRDs.
type manifests func(ctx context.Context) ([]*unstructured.Unstructured, error)

func startOwnCluster(ctx context.Context, name string, apply manifests) (*OwnCluster, error) {
	root, err := root()
	if err != nil {
		return nil, err
	}
	cp, err := controlplane.Start(ctx, controlplane.Options{})
	if err != nil {
		return nil, fmt.Errorf("start cluster %s: %w", name, err)
	}
	c := &OwnCluster{ControlPlane: cp, Name: name, program: filepath.Join(root, "bin", "ocm-operator", "registration-operator")}
	if err := c.start(ctx, apply); err != nil {
		return nil, errors.Join(fmt.Errorf("start cluster %s: %w", name, err), c.Stop())
	}
	return c, nil
}

func (c *OwnCluster) start(ctx context.Context, apply manifests) error {
	if _, err := c.StartControllerManager(ctx, "--controllers=namespace-controller,garbage-collector-controller,root-ca-certificate-publisher-controller,serviceaccount-controller,"+
		"clusterrole-aggregation-controller"); err != nil {
		return err
	}
	var err error
	if c.log, err = openLog(filepath.Join(c.Dir(), "kubelet.log")); err != nil {
		return err
	}
	c.kubeconfig = filepath.Join(c.Dir(), "agents.kubeconfig")
	if err := controlplane.WriteKubeconfig(c.kubeconfig, c.Config()); err != nil {
		return err
	}
	if c.Client, err = client.New(unlimited(c.Config()), client.Options{Scheme: Scheme()}); err != nil {
		return err
	}
	if err := process.Poll(ctx, "the manifests of "+c.Name, func(ctx context.Context) error { return c.importBy(ctx, apply) }); err != nil {
		return err
	}
	address, err := controlplane.FreeAddress()
	if err != nil {
		return err
	}
	c.operator, err = c.run("klusterlet operator", "operator.log", "klusterlet", "--namespace="+klusterletNamespace, "--listen="+address, "--disable-leader-election", "-v=2")
	if err != nil {
		return err
	}
	c.kubelet = startLoop(c.Name+": kubelet", c.log, c.sync)
	return nil
}

// importBy applies what the user of a hub applies to a cluster.
func (c *OwnCluster) importBy(ctx context.Context, apply manifests) error {
	objects, err := apply(ctx)
	if err != nil {
		return err
	}
	for _, o := range objects {
		err := c.Client.Patch(ctx, o, client.Apply, client.FieldOwner("kubectl"), client.ForceOwnership) //nolint:staticcheck // an object whose type is not known
		if meta.IsNoMatchError(err) {                                                                    // the CRD is new
			if c.Client, err = client.New(unlimited(c.Config()), client.Options{Scheme: Scheme()}); err != nil {
				return err
			}
			return fmt.Errorf("%s is not served yet", o.GetKind())
		}
		if err != nil {
			return fmt.Errorf("apply %s %s: %w", o.GetKind(), o.GetName(), err)
		}
	}
	return nil
}

// run starts the program, with the cluster's kubeconfig.
func (c *OwnCluster) run(what, log string, args ...string) (*process.Process, error) {
	out, err := os.OpenFile(filepath.Join(c.Dir(), log), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open log: %w", err)
	}
	defer func() { _ = out.Close() }() // the process has its own
	command := exec.Command(c.program, append(args, "--kubeconfig="+c.kubeconfig)...)
	command.Env = append(os.Environ(), "POD_NAME="+strings.ReplaceAll(what, " ", "-"))
	command.Stdout, command.Stderr = out, out
	return process.Start(what+" of "+c.Name, command)
}

// sync is a pass of the kubelet, and of the controller of Deployments.
func (c *OwnCluster) sync(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	d := &appsv1.Deployment{}
	err := c.Client.Get(ctx, client.ObjectKey{Namespace: klusterletNamespace, Name: agentDeployment}, d)
	if apierrors.IsNotFound(err) {
		return c.endPod()
	}
	if err != nil {
		return err
	}
	if c.pod.dir == "" || !equality.Semantic.DeepEqual(c.pod.template, d.Spec.Template) {
		if err := c.endPod(); err != nil {
			return err
		}
		c.pods++
		c.pod = pod{template: d.Spec.Template, dir: filepath.Join(c.Dir(), fmt.Sprintf("pod-%d", c.pods))}
		if err := os.MkdirAll(filepath.Join(c.pod.dir, spokeFolder, "hub-kubeconfig"), 0o700); err != nil {
			return err
		}
	}
	if time.Since(c.pod.mounted) > refreshVolumes {
		if err := c.mount(ctx); err != nil {
			return err
		}
	}
	if c.pod.process == nil || c.pod.process.Ended() {
		return c.runAgents()
	}
	return c.probe(ctx)
}

// endPod ends the agents, if they run.
func (c *OwnCluster) endPod() error {
	p := c.pod.process
	c.pod = pod{}
	if p == nil || p.Ended() {
		return nil
	}
	err := p.Kill()
	<-p.Exited()
	return err
}

// mount writes the Secrets of the pod into its folder.
func (c *OwnCluster) mount(ctx context.Context) error {
	for _, v := range c.pod.template.Spec.Volumes {
		if v.Secret == nil {
			continue
		}
		secret := &corev1.Secret{}
		if err := c.Client.Get(ctx, client.ObjectKey{Namespace: klusterletNamespace, Name: v.Secret.SecretName}, secret); err != nil {
			return fmt.Errorf("mount Secret %s: %w", v.Secret.SecretName, err)
		}
		for _, m := range c.pod.template.Spec.Containers[0].VolumeMounts {
			if m.Name != v.Name {
				continue
			}
			if err := c.reroute(secret.Data); err != nil {
				return err
			}
			if err := writeFiles(filepath.Join(c.pod.dir, m.MountPath), secret.Data); err != nil {
				return err
			}
		}
	}
	c.pod.mounted = time.Now()
	return nil
}

// CutOff makes a hub unreachable for the cluster: bootstrap kubeconfigs for the hub that it gets afterwards have a proxy that does not listen.
func (c *OwnCluster) CutOff(h *Hub) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.unreachable = append(c.unreachable, h.Config().Host)
}

// reroute sets the proxy of unreachable hubs in the kubeconfig of a Secret.
func (c *OwnCluster) reroute(data map[string][]byte) (err error) {
	for _, server := range c.unreachable {
		if data[kubeconfigKey], err = throughProxy(data[kubeconfigKey], server, closedProxy); err != nil {
			return err
		}
	}
	return nil
}

// writeFiles replaces files whose content has changed.
func writeFiles(dir string, files map[string][]byte) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for name, content := range files {
		file := filepath.Join(dir, name)
		if old, err := os.ReadFile(file); err == nil && bytes.Equal(old, content) {
			continue
		}
		if err := os.WriteFile(file+".new", content, 0o600); err != nil {
			return err
		}
		if err := os.Rename(file+".new", file); err != nil {
			return err
		}
	}
	return nil
}

// runAgents starts the container with the agents.
func (c *OwnCluster) runAgents() error {
	address, err := controlplane.FreeAddress()
	if err != nil {
		return err
	}
	var args []string
	for _, a := range c.pod.template.Spec.Containers[0].Args {
		if strings.TrimPrefix(a, "/") != "registration-operator" {
			args = append(args, strings.Replace(a, spokeFolder, c.pod.dir+spokeFolder, 1))
		}
	}
	args = append(args, "--listen="+address, "--disable-leader-election", "--hub-kubeconfig-dir="+filepath.Join(c.pod.dir, spokeFolder, "hub-kubeconfig"))
	c.pod.process, err = c.run("agents", "agents.log", args...)
	c.pod.address, c.pod.probed, c.pod.failures = address, time.Now(), 0
	return err
}

// probe is the liveness probe, after whose failures the container is restarted: an agent that must restart says so by it.
func (c *OwnCluster) probe(ctx context.Context) error {
	if time.Since(c.pod.probed) < probeEvery {
		return nil
	}
	c.pod.probed = time.Now()
	ctx, cancel := context.WithTimeout(ctx, probeEvery)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+c.pod.address+"/healthz", nil)
	if err != nil {
		return err
	}
	probes := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}} //nolint:gosec // as a kubelet does
	response, err := probes.Do(request)
	if err == nil {
		_ = response.Body.Close()
		if response.StatusCode == http.StatusOK {
			c.pod.failures = 0
			return nil
		}
	}
	if c.pod.failures++; c.pod.failures < probeFailures {
		return nil
	}
	return c.pod.process.Kill()
}

// Hub returns the API server of the hub at which the agents are registered; empty without agents.
func (c *OwnCluster) Hub() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pod.dir == "" {
		return ""
	}
	config, err := clientcmd.BuildConfigFromFlags("", filepath.Join(c.pod.dir, spokeFolder, "hub-kubeconfig", "kubeconfig"))
	if err != nil {
		return ""
	}
	return config.Host
}

// Stop ends the cluster. It may be called again.
func (c *OwnCluster) Stop() error {
	c.kubelet.stop()
	c.mu.Lock()
	defer c.mu.Unlock()
	errs := []error{c.endPod()}
	if c.operator != nil && !c.operator.Ended() {
		errs = append(errs, c.operator.Kill())
	}
	return errors.Join(append(errs, c.ControlPlane.Stop())...)
}

// RestartAgents ends the agents. The kubelet starts them again.
func (c *OwnCluster) RestartAgents() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pod.process == nil || c.pod.process.Ended() {
		return nil
	}
	err := c.pod.process.Kill()
	<-c.pod.process.Exited()
	return err
}
