// Package serving has what the processes in a cluster share: their endpoints, their leader election, and their
// namespace.
package serving

import (
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/godwit-dev/godwit/internal/kube"
)

// Options of a process.
type Options struct {
	MetricsAddress  string // "0": none
	InsecureMetrics bool   // over HTTP, for every client
	// MetricsCertDir has tls.crt and tls.key of the metrics server. They are read again when they change. Empty: the process signs a
	// certificate itself, which no client can verify.
	MetricsCertDir string
	HealthAddress  string // "0": none
	PprofAddress   string // empty: none
	LeaderElection bool
	Namespace      string // of the process; empty: the pod's own
	Version        string // of the program, for the labels of its lease
}

// namespaceFile is where a ServiceAccount's volume says which namespace a pod is in.
const namespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

// OwnNamespace returns the namespace of the process. It is empty outside a cluster, unless the user specifies one.
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

// Certificate is the name of the file in MetricsCertDir that has the certificate, and PrivateKey that of its key, as in a Secret
// of type kubernetes.io/tls.
const (
	Certificate = "tls.crt"
	PrivateKey  = "tls.key"
)

// Validate returns an error if the options do not allow serving metrics. Without this check, the process would serve a
// certificate that no client can verify.
func (o Options) Validate() error {
	switch {
	case o.MetricsCertDir == "" || o.MetricsAddress == "0":
		return nil
	case o.InsecureMetrics:
		return errors.New("--metrics-cert-dir is for HTTPS, and --metrics-insecure serves plain HTTP: leave one out")
	}
	if _, err := tls.LoadX509KeyPair(filepath.Join(o.MetricsCertDir, Certificate), filepath.Join(o.MetricsCertDir, PrivateKey)); err != nil {
		return fmt.Errorf("--metrics-cert-dir: load the certificate of the metrics server: %w; the folder needs %s and %s, as in a Secret of type kubernetes.io/tls",
			err, Certificate, PrivateKey)
	}
	return nil
}

// WithoutEndpoints returns the options of a second manager in the same process.
func (o Options) WithoutEndpoints() Options {
	o.MetricsAddress, o.HealthAddress, o.PprofAddress = "0", "0", ""
	return o
}

// Manager returns the options of a manager with leader election. Without the name of a lease, the manager starts at
// once.
func (o Options) Manager(scheme *runtime.Scheme, lease string) manager.Options {
	m := manager.Options{
		Scheme:                        scheme,
		MapperProvider:                kube.NewMapper,
		HealthProbeBindAddress:        o.HealthAddress,
		PprofBindAddress:              o.PprofAddress,
		LeaderElection:                o.LeaderElection && lease != "",
		LeaderElectionID:              lease,
		LeaderElectionNamespace:       o.Namespace,
		LeaderElectionLabels:          o.labels(lease),
		LeaderElectionReleaseOnCancel: true, // the process ends with the manager
		Metrics:                       metricsserver.Options{BindAddress: o.MetricsAddress, CertDir: o.MetricsCertDir, CertName: Certificate, KeyName: PrivateKey},
	}
	if !o.InsecureMetrics {
		m.Metrics.SecureServing = true
		m.Metrics.FilterProvider = filters.WithAuthenticationAndAuthorization
	}
	return m
}
