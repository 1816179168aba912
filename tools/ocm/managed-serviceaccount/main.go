// Command managed-serviceaccount runs the agent of the managed-serviceaccount addon for one cluster: it creates the
// ServiceAccounts that ManagedServiceAccounts of the hub describe, and keeps their tokens in Secrets of the hub. It runs
// the TokenReconciler of the addon's project. The agent of that project listens on a fixed port, so only one can run on a
// machine.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	authv1beta1 "open-cluster-management.io/managed-serviceaccount/apis/authentication/v1beta1"
	"open-cluster-management.io/managed-serviceaccount/pkg/addon/agent/controller"
	"open-cluster-management.io/managed-serviceaccount/pkg/common"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

func main() {
	hub := flag.String("hub-kubeconfig", "", "kubeconfig of the hub, which has the ManagedServiceAccounts")
	spoke := flag.String("spoke-kubeconfig", "", "kubeconfig of the cluster, which has the ServiceAccounts")
	cluster := flag.String("cluster-name", "", "name of the cluster, and of its namespace on the hub")
	namespace := flag.String("namespace", "open-cluster-management-agent-addon", "namespace of the ServiceAccounts on the cluster")
	flag.Parse()
	ctrl.SetLogger(klog.Background())
	if err := run(ctrl.SetupSignalHandler(), *hub, *spoke, *cluster, *namespace); err != nil {
		fmt.Fprintln(os.Stderr, "managed-serviceaccount:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, hubFile, spokeFile, cluster, namespace string) error {
	hub, err := clientcmd.BuildConfigFromFlags("", hubFile)
	if err != nil {
		return fmt.Errorf("read --hub-kubeconfig: %w", err)
	}
	spoke, err := clientcmd.BuildConfigFromFlags("", spokeFile)
	if err != nil {
		return fmt.Errorf("read --spoke-kubeconfig: %w", err)
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, authv1beta1.AddToScheme} {
		if err := add(scheme); err != nil {
			return err
		}
	}
	mgr, err := ctrl.NewManager(hub, ctrl.Options{
		Scheme:  scheme,
		Metrics: metricsserver.Options{BindAddress: "0"},
		Cache:   cache.Options{DefaultNamespaces: map[string]cache.Config{cluster: {}}},
	})
	if err != nil {
		return fmt.Errorf("make a manager for the hub: %w", err)
	}
	accounts, err := accountsOf(spoke, namespace)
	if err != nil {
		return err
	}
	if err := mgr.Add(accounts); err != nil {
		return err
	}
	hubClients, err := kubernetes.NewForConfig(hub)
	if err != nil {
		return err
	}
	spokeClients, err := kubernetes.NewForConfig(spoke)
	if err != nil {
		return err
	}
	if err := (&controller.TokenReconciler{
		Cache:                mgr.GetCache(),
		HubClient:            mgr.GetClient(),
		HubNativeClient:      hubClients,
		SpokeNativeClient:    spokeClients,
		SpokeDiscoveryClient: spokeClients.Discovery(),
		SpokeClientConfig:    spoke,
		SpokeNamespace:       namespace,
		ClusterName:          cluster,
		SpokeCache:           accounts,
	}).SetupWithManager(mgr); err != nil {
		return fmt.Errorf("set up the token reconciler: %w", err)
	}
	return mgr.Start(ctx)
}

// accountsOf returns a cache of the ServiceAccounts that belong to ManagedServiceAccounts.
func accountsOf(config *rest.Config, namespace string) (cache.Cache, error) {
	managed := labels.SelectorFromSet(labels.Set{common.LabelKeyIsManagedServiceAccount: "true"})
	accounts, err := cache.New(config, cache.Options{ByObject: map[client.Object]cache.ByObject{
		&corev1.ServiceAccount{}: {Namespaces: map[string]cache.Config{namespace: {LabelSelector: managed}}},
	}})
	if err != nil {
		return nil, fmt.Errorf("make a cache of ServiceAccounts: %w", err)
	}
	return accounts, nil
}
