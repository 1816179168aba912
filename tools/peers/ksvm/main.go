// Command ksvm runs the migrator of kube-storage-version-migrator as the program of that project does, with the limits in
// that project's manifests: --kube-api-qps=40 --kube-api-burst=1000. It leaves out the metrics and health endpoints, which
// listen on fixed ports of all addresses and which a measurement does not need.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/kube-storage-version-migrator/pkg/clients/clientset"
	"sigs.k8s.io/kube-storage-version-migrator/pkg/controller"
)

func main() {
	kubeconfig := flag.String("kubeconfig", "", "the cluster")
	qps := flag.Float64("kube-api-qps", 40, "queries per second")
	burst := flag.Int("kube-api-burst", 1000, "queries in one burst")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *kubeconfig, float32(*qps), *burst); err != nil {
		fmt.Fprintln(os.Stderr, "ksvm:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, kubeconfig string, qps float32, burst int) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	config.QPS, config.Burst = qps, burst
	objects, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	migrations, err := clientset.NewForConfig(config)
	if err != nil {
		return err
	}
	go func() { // the migrator does not cancel a list that has begun
		<-ctx.Done()
		os.Exit(0)
	}()
	controller.NewKubeMigrator(objects, migrations).Run(ctx)
	return nil
}
