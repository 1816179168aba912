// Command cert-manager runs a component of cert-manager: --component=controller, webhook or cainjector. It accepts the flags that the
// chart of the release sets, and ignores those that it does not need. The controller issues by self-signed and by CA issuers.
package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"

	"github.com/spf13/pflag"
	"golang.org/x/sync/errgroup"
	ctrl "sigs.k8s.io/controller-runtime"

	logf "github.com/cert-manager/cert-manager/pkg/logs"

	cmwebhook "github.com/cert-manager/cert-manager/internal/webhook"
	"github.com/cert-manager/cert-manager/pkg/controller"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/approver"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/ca"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/selfsigned"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/issuing"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/keymanager"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/readiness"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/requestmanager"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/revisionmanager"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/trigger"
	_ "github.com/cert-manager/cert-manager/pkg/controller/clusterissuers"
	_ "github.com/cert-manager/cert-manager/pkg/controller/issuers"
	"github.com/cert-manager/cert-manager/pkg/healthz"
	_ "github.com/cert-manager/cert-manager/pkg/issuer/ca"
	_ "github.com/cert-manager/cert-manager/pkg/issuer/selfsigned"
	"github.com/cert-manager/cert-manager/pkg/webhook/options"
)

// health is where the chart probes the controller.
const health = ":9403"

func main() {
	logf.InitLogs()
	if err := run(ctrl.SetupSignalHandler(), os.Args[1:]); err != nil && !errors.Is(err, context.Canceled) {
		fmt.Fprintln(os.Stderr, "cert-manager:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	flags := pflag.NewFlagSet("cert-manager", pflag.ContinueOnError)
	flags.ParseErrorsAllowlist.UnknownFlags = true
	component := flags.String("component", "", "controller, webhook or cainjector")
	namespace := flags.String("cluster-resource-namespace", "", "has the Secrets of ClusterIssuers")
	if err := flags.Parse(args); err != nil {
		return err
	}
	switch *component {
	case "controller":
		return runController(ctx, *namespace)
	case "webhook":
		return runWebhook(ctx, args)
	case "cainjector":
		return runInjector(ctx)
	}
	return fmt.Errorf("there is no component %q", *component)
}

func runController(ctx context.Context, namespace string) error {
	factory, err := controller.NewContextFactory(ctx, controller.ContextOptions{
		KubernetesAPIQPS: 50, KubernetesAPIBurst: 100,
		IssuerOptions: controller.IssuerOptions{ClusterResourceNamespace: namespace},
	})
	if err != nil {
		return err
	}
	all, err := factory.Build()
	if err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", health)
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return healthz.NewServer(0).Start(ctx, listener) })
	for name, construct := range controller.Known() {
		c, err := construct(factory)
		if err != nil {
			return fmt.Errorf("make controller %s: %w", name, err)
		}
		group.Go(func() error { return c.Run(2, ctx) })
	}
	all.SharedInformerFactory.Start(ctx.Done())
	all.KubeSharedInformerFactory.Start(ctx.Done())
	all.HTTP01ResourceMetadataInformersFactory.Start(ctx.Done())
	return group.Wait()
}

func runWebhook(ctx context.Context, args []string) error {
	config, err := options.NewWebhookConfiguration()
	if err != nil {
		return err
	}
	flags := pflag.NewFlagSet("webhook", pflag.ContinueOnError)
	flags.ParseErrorsAllowlist.UnknownFlags = true
	options.AddConfigFlags(flags, config)
	if err := flags.Parse(args); err != nil {
		return err
	}
	server, err := cmwebhook.NewCertManagerWebhookServer(logf.Log, *config)
	if err != nil {
		return err
	}
	return server.Run(ctx)
}
