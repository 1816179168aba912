// Package process has the flags of the commands that run in a cluster until a signal stops them: `godwit manager` and
// `godwit agent`.
//
// broker.go has those for Kafka, and process.go the others.
package process

import (
	"context"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/godwit-dev/godwit/cmd/internal/frame"
	"github.com/godwit-dev/godwit/cmd/internal/serving"
)

// Flags are the flags of the commands that run in a cluster until a signal stops them.
type Flags struct {
	serving.Options
	verbose int
}

// AddTo adds the flags.
func (f *Flags) AddTo(c *cobra.Command) {
	flags := c.Flags()
	flags.StringVar(&f.MetricsAddress, "metrics-bind-address", ":8443", "where metrics are served, to clients authorized for `get /metrics`; 0 for nowhere")
	flags.BoolVar(&f.InsecureMetrics, "metrics-insecure", false, "serve metrics over plain HTTP, to every client")
	flags.StringVar(&f.MetricsCertDir, "metrics-cert-dir", "", "folder with tls.crt and tls.key for metrics, read again when they change (default: a certificate that no client can verify)")
	flags.StringVar(&f.HealthAddress, "health-probe-bind-address", ":8081", "where /healthz and /readyz are served")
	flags.StringVar(&f.PprofAddress, "pprof-bind-address", "", "where profiles are served (default: nowhere)")
	flags.BoolVar(&f.LeaderElection, "leader-elect", true, "make sure that one process works and the others stand by")
}

// AddVerboseTo adds the flag of the log, which is the last one.
func (f *Flags) AddVerboseTo(c *cobra.Command) {
	c.Flags().CountVarP(&f.verbose, "verbose", "v", "log more; twice for still more")
}

// Start returns the context of the process, which has its log, and the configuration of its cluster.
func (f *Flags) Start(a *frame.App, c *cobra.Command, name string) (context.Context, *rest.Config, error) {
	if err := f.Validate(); err != nil {
		return nil, nil, err
	}
	cfg, err := a.Cluster.ToRESTConfig()
	if err != nil {
		return nil, nil, frame.BadKubeconfig(err)
	}
	f.Version = frame.Build().Version
	cfg.UserAgent = name + "/" + f.Version
	logger := a.Logger(f.verbose)
	log.SetLogger(logger)
	return logr.NewContext(c.Context(), logger), cfg, nil
}
