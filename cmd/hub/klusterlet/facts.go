package klusterlet

import (
	"encoding/base64"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	ocmfeature "open-cluster-management.io/api/feature"
	operatorv1 "open-cluster-management.io/api/operator/v1"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/godwit-dev/godwit/cmd/hub/cluster"
)

// Facts are what a cluster has reported of its klusterlet before the migration changed it.
type Facts struct {
	// Namespace has the agents and their Secrets.
	Namespace string `json:"namespace"`
	// Gates are the feature gates of registration that the user has set.
	Gates []operatorv1.FeatureGate `json:"gates,omitempty"`
	// Hub is the kubeconfig by which the agent is registered. It has no credentials: they are in other keys of its Secret.
	Hub []byte `json:"hub"`
}

const (
	// DefaultNamespace has the agents, unless the Klusterlet names another one.
	DefaultNamespace = "open-cluster-management-agent"
	// maxGates is the most feature gates that are read. Open Cluster Management has 5 of them.
	maxGates = 16
	// maxHub bounds the kubeconfig that a cluster reports, in bytes: it may contain a certificate bundle.
	maxHub = 64 << 10

	multipleHubs = string(ocmfeature.MultipleHubs)
)

// Names of the values that the work agent reports.
const (
	valueNamespace  = "namespace"
	valueMode       = "mode"
	valueDriver     = "driver"
	valueType       = "type"
	valueFirst      = "first"
	valueGeneration = "generation"
	valueObserved   = "observed"
	valueHub        = "hub"
)

func valueGate(i int) string     { return fmt.Sprintf("gate%d", i) }
func valueGateMode(i int) string { return fmt.Sprintf("mode%d", i) }

// report is what the work agent has reported of an object.
type report struct {
	found bool // false if the cluster does not have the object
	// problem is why the work agent has not read the object yet, or empty.
	problem string
	texts   map[string]string
	numbers map[string]int64
}

// reportOf returns the report of the object of a resource and a name, in a status that the work agent has written.
func reportOf(work *workv1.ManifestWork, resource, name string) report {
	r := report{found: true, problem: "the cluster has not reported " + resource + " " + name, texts: map[string]string{}, numbers: map[string]int64{}}
	for _, m := range work.Status.ResourceStatus.Manifests {
		if m.ResourceMeta.Resource != resource || m.ResourceMeta.Name != name {
			continue
		}
		available := meta.FindStatusCondition(m.Conditions, workv1.ManifestAvailable)
		if applied := meta.FindStatusCondition(m.Conditions, workv1.ManifestApplied); applied != nil && applied.Status == metav1.ConditionFalse {
			r.problem = applied.Message
		}
		switch {
		case available == nil:
		case available.Status == metav1.ConditionFalse:
			r.found = false
		case available.Status == metav1.ConditionUnknown:
			r.problem = available.Message
		}
		for _, v := range m.StatusFeedbacks.Values {
			switch {
			case v.Value.String != nil:
				r.texts[v.Name] = *v.Value.String
			case v.Value.Integer != nil:
				r.numbers[v.Name] = *v.Value.Integer
			}
		}
	}
	return r
}

// namespace returns the namespace of the agents.
func (r report) namespace() string {
	if n := r.texts[valueNamespace]; n != "" {
		return n
	}
	return DefaultNamespace
}

// gates returns the feature gates of registration.
func (r report) gates() []operatorv1.FeatureGate {
	var gates []operatorv1.FeatureGate
	for i := range maxGates {
		if feature := r.texts[valueGate(i)]; feature != "" {
			gates = append(gates, operatorv1.FeatureGate{Feature: feature, Mode: operatorv1.FeatureGateModeType(r.texts[valueGateMode(i)])})
		}
	}
	return gates
}

// check refuses a klusterlet that the ManifestWork can't configure.
func (r report) check(name string) error {
	refuse := func(why string) error {
		return cluster.Fail(cluster.ReasonKlusterlet, "%s can't change hubs: %s", name, why)
	}
	gates, why := r.gates(), unsuitable(operatorv1.InstallMode(r.texts[valueMode]), r.texts[valueDriver])
	switch {
	case !r.found:
		return refuse("it has no Klusterlet " + Name + "; remove it from the migration, and join it to the other hub by hand")
	case why != "":
		return refuse(why + "; remove it from the migration")
	case r.texts[valueType] == string(operatorv1.LocalSecrets), modeOf(gates, multipleHubs) == operatorv1.FeatureGateModeTypeEnable:
		return refuse("its Klusterlet has bootstrap kubeconfigs of several hubs already; disable the feature gate " + multipleHubs + " there, and remove spec.registrationConfiguration.bootstrapKubeConfigs")
	case len(gates) == maxGates:
		return refuse(fmt.Sprintf("its Klusterlet sets %d feature gates of registration or more; remove those that it does not need", maxGates))
	}
	return nil
}

// unsuitable returns why no bootstrap kubeconfig brings a klusterlet to another hub, or empty.
func unsuitable(mode operatorv1.InstallMode, driver string) string {
	switch {
	case mode == operatorv1.InstallModeHosted, mode == operatorv1.InstallModeSingletonHosted:
		return "its Klusterlet runs on a hosting cluster"
	case driver != "" && driver != operatorv1.CSRAuthType:
		return "its Klusterlet registers by " + driver + ", and a migration by CertificateSigningRequests"
	}
	return ""
}

func modeOf(gates []operatorv1.FeatureGate, feature string) operatorv1.FeatureGateModeType {
	for _, g := range gates {
		if g.Feature == feature {
			return g.Mode
		}
	}
	return ""
}

// hub returns the kubeconfig by which the agent is registered.
func (r report) hub(name string) ([]byte, error) {
	text, err := base64.StdEncoding.DecodeString(r.texts[valueHub])
	if err == nil {
		_, err = clusterOf(text)
	}
	if err != nil || len(text) > maxHub {
		return nil, cluster.Fail(cluster.ReasonKlusterlet, "%s has reported no kubeconfig in Secret %s by which its agent is registered: see whether the agent runs", name, HubSecret)
	}
	return text, nil
}

// clusterOf returns the current cluster of a kubeconfig, by its name.
func clusterOf(text []byte) (map[string]*clientcmdapi.Cluster, error) {
	config, err := clientcmd.Load(text)
	if err != nil {
		return nil, fmt.Errorf("read the kubeconfig of an agent: %w", err)
	}
	current := config.Contexts[config.CurrentContext]
	if current == nil || config.Clusters[current.Cluster] == nil {
		return nil, errors.New("the kubeconfig of an agent has no current cluster")
	}
	c := config.Clusters[current.Cluster]
	c.LocationOfOrigin = ""
	return map[string]*clientcmdapi.Cluster{current.Cluster: c}, nil
}

// Bootstrap returns a bootstrap kubeconfig for the hub at which the agent is registered, with a token, or without credentials. An agent with
// this one keeps its certificate: server, CA, proxy and the name of the cluster are the same.
func (f Facts) Bootstrap(token string) ([]byte, error) {
	clusters, err := clusterOf(f.Hub)
	if err != nil {
		return nil, err
	}
	const name = "bootstrap"
	config := clientcmdapi.NewConfig()
	config.Clusters = clusters
	for known := range clusters {
		config.Contexts[name] = &clientcmdapi.Context{Cluster: known, AuthInfo: name, Namespace: "default"}
	}
	config.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: token}
	config.CurrentContext = name
	text, err := clientcmd.Write(*config)
	if err != nil {
		return nil, fmt.Errorf("write a bootstrap kubeconfig: %w", err)
	}
	return text, nil
}
