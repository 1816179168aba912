package e2e_test

import (
	"context"
	"flag"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/go-logr/logr"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	api "github.com/godwit-dev/godwit/hub/api/v1alpha1"
	"github.com/godwit-dev/godwit/hub/identity"
	hubkafka "github.com/godwit-dev/godwit/hub/kafka"
	"github.com/godwit-dev/godwit/hub/manager"
	"github.com/godwit-dev/godwit/test/controlplane"
	"github.com/godwit-dev/godwit/test/hub/ocm"
)

// startManager starts the controllers of the manager as a process: this program, see TestMain.
func (in *installation) startManager(_ context.Context, _ string) error {
	kubeconfig := filepath.Join(in.folder, "manager.kubeconfig")
	if err := controlplane.WriteKubeconfig(kubeconfig, in.hub1.Config()); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	in.manager = &daemon{name: "manager", program: self, log: filepath.Join(in.folder, "manager.log"), args: []string{
		"manager", kubeconfig, in.broker.Address(),
	}}
	return in.manager.start()
}

// runManager runs the controllers of the manager until the process is told to end.
func runManager(args []string) error {
	flag.CommandLine = flag.NewFlagSet("manager", flag.ExitOnError)
	ctx := ctrl.SetupSignalHandler()
	ctrl.SetLogger(logr.FromSlogHandler(slog.NewJSONHandler(os.Stderr, nil)))
	cfg, err := clientcmd.BuildConfigFromFlags("", args[0])
	if err != nil {
		return err
	}
	cfg.QPS = -1
	scheme := ocm.Scheme()
	if err := api.AddToScheme(scheme); err != nil {
		return err
	}
	mgr, err := ctrl.NewManager(cfg, ctrl.Options{Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"}})
	if err != nil {
		return err
	}
	c, err := client.New(cfg, client.Options{Scheme: scheme, Mapper: mgr.GetRESTMapper()})
	if err != nil {
		return err
	}
	own, err := identity.Ensure(ctx, c, c, managerNamespace)
	if err != nil {
		return err
	}
	transport, err := hubkafka.New(hubkafka.Options{Brokers: []string{args[1]}, ClientID: "godwit-manager"})
	if err != nil {
		return err
	}
	defer transport.Close()
	r := &manager.Reconciler{
		Client: c, Reader: c, Recorder: mgr.GetEventRecorder("godwit"), Clock: clock.RealClock{}, Transport: transport,
		Metrics: manager.NewMetrics(c), Namespace: managerNamespace, Identity: own,
	}
	if err := r.SetupWithManager(mgr); err != nil {
		return err
	}
	return mgr.Start(ctx)
}
