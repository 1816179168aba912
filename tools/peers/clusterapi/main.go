// Command clusterapi runs Cluster API's CRD migrator for one kind, as main.go of Cluster API's core manager sets it up: one
// object at a time, metadata-only lists without the cache, priority queue, both phases, and by default
// --kube-api-qps=100 --kube-api-burst=200.
//
// It prints "ready" when it can start, starts at the first line on stdin, and ends at a signal.
package main

import (
	"bufio"
	"flag"
	"fmt"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	"sigs.k8s.io/cluster-api/controllers/crdmigrator"
	"sigs.k8s.io/cluster-api/feature"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// options of the process. Their defaults are those of Cluster API v1.13.6.
type options struct {
	kubeconfig, group, kind string
	qps                     float64
	burst                   int
}

func main() {
	var o options
	flags := flag.NewFlagSet("clusterapi", flag.ExitOnError) // controller-runtime has a flag kubeconfig of its own
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "the cluster")
	flags.StringVar(&o.group, "group", "", "API group of the kind to migrate")
	flags.StringVar(&o.kind, "kind", "Widget", "the kind to migrate")
	flags.Float64Var(&o.qps, "kube-api-qps", 100, "queries per second; negative: no limit")
	flags.IntVar(&o.burst, "kube-api-burst", 200, "queries in one burst")
	_ = flags.Parse(os.Args[1:]) // an error ends the process
	if err := run(o); err != nil {
		fmt.Fprintln(os.Stderr, "clusterapi:", err)
		os.Exit(1)
	}
}

func run(o options) error {
	ctrl.SetLogger(klog.Background())
	ctx := ctrl.SetupSignalHandler()
	mgr, err := newManager(o)
	if err != nil {
		return err
	}
	kind := &unstructured.Unstructured{}
	kind.SetGroupVersionKind(schema.GroupVersionKind{Group: o.group, Version: "v1", Kind: o.kind})
	migrator := &crdmigrator.CRDMigrator{
		Client:    mgr.GetClient(),
		APIReader: mgr.GetAPIReader(),
		Config:    map[client.Object]crdmigrator.ByObjectConfig{kind: {UseCache: false}},
	}
	if err := migrator.SetupWithManager(ctx, mgr, controller.Options{MaxConcurrentReconciles: 1}); err != nil {
		return err
	}
	fmt.Println("ready")
	if _, err := bufio.NewReader(os.Stdin).ReadString('\n'); err != nil {
		return fmt.Errorf("wait for the line that starts the manager: %w", err)
	}
	return mgr.Start(ctx)
}

func newManager(o options) (ctrl.Manager, error) {
	rest, err := clientcmd.BuildConfigFromFlags("", o.kubeconfig)
	if err != nil {
		return nil, err
	}
	rest.QPS, rest.Burst = float32(o.qps), o.burst
	rest.UserAgent = "cluster-api-controller-manager"
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		return nil, err
	}
	if err := apiextensionsv1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	priority, resync := feature.Gates.Enabled(feature.PriorityQueue), 10*time.Minute
	return ctrl.NewManager(rest, ctrl.Options{
		Scheme:     scheme,
		Controller: config.Controller{UsePriorityQueue: &priority, CacheSyncTimeout: 5 * time.Minute},
		Cache:      cache.Options{SyncPeriod: &resync},
		Client: client.Options{Cache: &client.CacheOptions{
			DisableFor: []client.Object{&corev1.ConfigMap{}, &corev1.Secret{}}, Unstructured: true,
		}},
		Metrics:                server.Options{BindAddress: "0"},
		HealthProbeBindAddress: "0",
	})
}
