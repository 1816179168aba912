package ocm

import (
	"context"
	"path/filepath"
	"reflect"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-dev/godwit/test/hub/klusterlet"
)

// Hub returns the API server of the hub at which the agent is registered; empty before its first registration.
func (c *Cluster) Hub() string {
	config, err := c.hubConfig()
	if err != nil {
		return ""
	}
	return config.Host
}

// hubConfig reads the kubeconfig that the agent wrote after its registration at a hub.
func (c *Cluster) hubConfig() (*rest.Config, error) {
	return clientcmd.BuildConfigFromFlags("", filepath.Join(c.hubDir(), "kubeconfig"))
}

// applyWork simulates the work agent and the klusterlet operator: it applies the work that configures the klusterlet. It reads
// the work from the hub of the registration agent, with the agent's credentials.
func (c *Cluster) applyWork(ctx context.Context) error {
	config, err := c.hubConfig()
	if err != nil { // the agent is not registered yet
		return nil
	}
	hub, err := client.New(config, client.Options{Scheme: Scheme()})
	if err != nil {
		return err
	}
	crds, work := &workv1.ManifestWork{}, &workv1.ManifestWork{}
	for name, w := range map[string]*workv1.ManifestWork{c.Name + "-klusterlet-crds": crds, c.Name + "-klusterlet": work} {
		if err := hub.Get(ctx, client.ObjectKey{Namespace: c.Name, Name: name}, w); err != nil {
			return err
		}
	}
	now := appliedWork{server: config.Host, uid: work.UID, generation: work.Generation}
	if !c.isApplied(now) && len(work.Spec.ManifestConfigs) == 0 {
		configured, err := klusterlet.ConfigurationOf(work)
		if err != nil {
			return err
		}
		if err := c.configure(configured.Kubeconfigs, configured.Timeout); err != nil {
			return err
		}
	}
	for _, w := range []*workv1.ManifestWork{crds, work} {
		if !meta.SetStatusCondition(&w.Status.Conditions, metav1.Condition{
			Type: workv1.WorkApplied, Status: metav1.ConditionTrue, Reason: "AppliedManifestWorkComplete", ObservedGeneration: w.Generation,
		}) {
			continue
		}
		if err := hub.Status().Update(ctx, w); err != nil {
			return err
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.applied = now
	return nil
}

func (c *Cluster) isApplied(work appliedWork) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.applied == work
}

// configure restarts the agent if its configuration has changed. The kubelet starts the next one.
func (c *Cluster) configure(bootstraps [][]byte, timeout int32) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if reflect.DeepEqual(c.bootstraps, bootstraps) && c.timeout == timeout {
		return nil
	}
	c.bootstraps, c.timeout = bootstraps, timeout
	if c.agent.Ended() {
		return nil
	}
	return c.agent.Kill()
}
