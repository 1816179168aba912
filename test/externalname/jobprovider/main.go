// Command jobprovider is the provider of the job service, as a process for the demo and for benchmarks. It also is the job service
// itself, if package jobservice starts it.
//
// `jobprovider run` runs the controller until its standard input ends, so that it ends with the process that started it.
// `jobprovider export` prints manifests that import all databases.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	xpcontroller "github.com/crossplane/crossplane-runtime/v2/pkg/controller"
	"github.com/crossplane/crossplane-runtime/v2/pkg/ratelimiter"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/godwit-dev/godwit/externalname/crossplane/export"
	"github.com/godwit-dev/godwit/test/externalname/database"
	"github.com/godwit-dev/godwit/test/jobservice"
)

func main() {
	jobservice.Main()
	code, err := command(ctrl.SetupSignalHandler(), os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "jobprovider:", err)
	}
	os.Exit(int(code))
}

func command(ctx context.Context, args []string) (export.Code, error) {
	if len(args) == 0 {
		return export.Error, errors.New("want run or export")
	}
	switch args[0] {
	case "run":
		return codeOf(run(ctx, args[1:]))
	case "export":
		return exportAll(ctx, args[1:])
	}
	return export.Error, fmt.Errorf("%q is neither run nor export", args[0])
}

func codeOf(err error) (export.Code, error) {
	if err != nil {
		return export.Error, err
	}
	return export.OK, nil
}

// run runs the controller until its standard input ends.
func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("run", flag.ContinueOnError)
	service := flags.String("service", "", "URL of the job service")
	byHand := flags.Bool("by-hand", false, "run the controller that is written on crossplane-runtime alone")
	poll := flags.Duration("poll", time.Minute, "time between two observations of a resource")
	rate := flags.Int("max-reconcile-rate", 10, "reconciliations per second, and how many at the same time")
	grace := flags.Duration("creation-grace", 30*time.Second, "time after a creation in which crossplane-runtime does not believe that a resource is gone")
	metrics := flags.String("metrics-bind-address", "0", "address to serve metrics at; 0 to serve none")
	if err := flags.Parse(args); err != nil {
		return err
	}
	ctrl.SetLogger(zap.New())
	config, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	scheme := runtime.NewScheme()
	if err := errors.Join(database.AddToScheme(scheme), corev1.AddToScheme(scheme)); err != nil {
		return err
	}
	m, err := ctrl.NewManager(ratelimiter.LimitRESTConfig(config, *rate), manager.Options{
		Scheme: scheme, Metrics: metricsserver.Options{BindAddress: *metrics},
	})
	if err != nil {
		return err
	}
	o := xpcontroller.Options{PollInterval: *poll, MaxConcurrentReconciles: *rate, GlobalRateLimiter: ratelimiter.NewGlobal(*rate)}
	client := jobservice.Client{URL: *service}
	if *byHand {
		err = database.SetupByHand(m, client, o, managed.WithCreationGracePeriod(*grace))
	} else {
		err = database.Resource(client).Setup(m, o, managed.WithCreationGracePeriod(*grace))
	}
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	return m.Start(ctx)
}

func exportAll(ctx context.Context, args []string) (export.Code, error) {
	flags := flag.NewFlagSet("export", flag.ContinueOnError)
	service := flags.String("service", "", "URL of the job service")
	namespace := flags.String("namespace", "default", "namespace of the manifests")
	if err := flags.Parse(args); err != nil {
		return export.Error, err
	}
	exporter := export.Exporter{
		Kinds: []export.Kind{database.Export(jobservice.Client{URL: *service}, *namespace)},
		Out:   os.Stdout, Log: os.Stderr,
	}
	report, err := exporter.Run(ctx)
	return export.CodeOf(report, err), err
}
