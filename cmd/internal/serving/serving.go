// Package serving has what the processes that run in a cluster have in common: their endpoints,
// their place as the one process that works, and the namespace they are in.
package serving

import (
	"os"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// Options of a process.
type Options struct {
	MetricsAddress  string // "0": none
	InsecureMetrics bool   // over HTTP, for every client
	HealthAddress   string // "0": none
	PprofAddress    string // empty: none
	LeaderElection  bool
	Namespace       string // of the process; empty: the pod's own
}

// namespaceFile is where a ServiceAccount's volume says which namespace a pod is in.
const namespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

// OwnNamespace is the namespace of the process. It is empty outside a cluster, unless the user
// names one.
func (o Options) OwnNamespace() string {
	if o.Namespace != "" {
		return o.Namespace
	}
	text, err := os.ReadFile(namespaceFile)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}

// WithoutEndpoints are the options of a second manager in the same process.
func (o Options) WithoutEndpoints() Options {
	o.MetricsAddress, o.HealthAddress, o.PprofAddress = "0", "0", ""
	return o
}

// Manager returns the options of a manager that is elected by a lease. Without the name of a
// lease it works at once.
func (o Options) Manager(scheme *runtime.Scheme, lease string) manager.Options {
	m := manager.Options{
		Scheme:                        scheme,
		HealthProbeBindAddress:        o.HealthAddress,
		PprofBindAddress:              o.PprofAddress,
		LeaderElection:                o.LeaderElection && lease != "",
		LeaderElectionID:              lease,
		LeaderElectionNamespace:       o.Namespace,
		LeaderElectionReleaseOnCancel: true, // the process ends with the manager
		Metrics:                       metricsserver.Options{BindAddress: o.MetricsAddress},
	}
	if !o.InsecureMetrics {
		m.Metrics.SecureServing = true
		m.Metrics.FilterProvider = filters.WithAuthenticationAndAuthorization
	}
	return m
}
