package frame

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/godwit-dev/godwit/cmd/internal/render"
	"github.com/godwit-dev/godwit/internal/quote"
)

// Dial chooses the cluster by kubectl's rules and checks that its API server answers.
func (a *App) Dial(ctx context.Context, p Purpose) (*Connection, error) {
	loader := a.Cluster.ToRawKubeConfigLoader()
	raw, err := loader.RawConfig()
	if err != nil && !clientcmd.IsEmptyConfig(err) {
		return nil, BadKubeconfig(err)
	}
	if err := a.checkContext(raw); err != nil {
		return nil, err
	}
	config, err := a.Cluster.ToRESTConfig()
	if err != nil {
		return nil, BadKubeconfig(err)
	}
	config.Dial = (&net.Dialer{Timeout: DialTimeout, KeepAlive: 30 * time.Second}).DialContext
	config.WarningHandlerWithContext = &warnings{console: a.Console}
	config.UserAgent = "godwit/" + Build().Version
	p.Program, p.cluster = a.Program, a.administratorFlags()
	c := &Connection{Config: config, server: config.Host, context: raw.CurrentContext, Purpose: p}
	if *a.Cluster.Context != "" {
		c.context = *a.Cluster.Context
	}
	if c.Client, err = plainClient(config); err != nil {
		return nil, BadKubeconfig(err)
	}
	noConfig := clientcmd.IsEmptyConfig(clientcmd.Validate(raw)) && *a.Cluster.APIServer == ""
	if err := c.checkServer(ctx, noConfig); err != nil {
		return c, err
	}
	setOrigin(ctx, c.origin)
	return c, nil
}

// checkContext refuses a context whose cluster the kubeconfig does not have: client-go would connect to kubectl's
// default address instead.
func (a *App) checkContext(raw clientcmdapi.Config) error {
	name := cmp.Or(*a.Cluster.Context, raw.CurrentContext)
	chosen, found := raw.Contexts[name]
	if !found || *a.Cluster.APIServer != "" || *a.Cluster.ClusterName != "" || raw.Clusters[chosen.Cluster] != nil {
		return nil
	}
	return &ActionableError{
		Reason:  render.ReasonUnreadable,
		Message: fmt.Sprintf("%v: context %q is of cluster %q, which the kubeconfig does not have", ErrNoCluster, name, chosen.Cluster),
		Remedy:  "choose another context: kubectl config get-contexts; or correct this one: kubectl config set-context " + quote.Shell(name) + " --cluster=CLUSTER",
	}
}

// InContext returns an invocation for another context of the same kubeconfig. It keeps an impersonation.
func (a *App) InContext(name string) *App {
	other := *a
	flags := genericclioptions.NewConfigFlags(true)
	flags.KubeConfig, flags.Context = a.Cluster.KubeConfig, &name
	flags.Impersonate, flags.ImpersonateUID, flags.ImpersonateGroup = a.Cluster.Impersonate, a.Cluster.ImpersonateUID, a.Cluster.ImpersonateGroup
	other.Cluster = flags
	return &other
}

// KubeConfig returns the kubeconfig for completion, or an empty one if it can't be read.
func (a *App) KubeConfig() clientcmdapi.Config {
	config, err := a.Cluster.ToRawKubeConfigLoader().RawConfig()
	if err != nil {
		return clientcmdapi.Config{}
	}
	return config
}

// Contexts returns the contexts of the kubeconfig, sorted.
func (a *App) Contexts() []string {
	return slices.Sorted(maps.Keys(a.KubeConfig().Contexts))
}

// plainClient returns a client without a rate limit, for the requests before and after a migration. client-go's default
// of five per second would delay the access reviews of a command by seconds.
func plainClient(config *rest.Config) (*rest.RESTClient, error) {
	config = rest.CopyConfig(config)
	config.QPS = -1
	config.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	return rest.UnversionedRESTClientFor(config)
}

// SharedConfig returns the configuration for any number of clients over one transport. client-go does not share
// transports of a configuration with its own dial function.
func SharedConfig(c *rest.Config) (*rest.Config, error) {
	transport, err := rest.TransportFor(c)
	if err != nil {
		return nil, err
	}
	host, _, err := rest.DefaultServerUrlFor(c)
	if err != nil {
		return nil, err
	}
	return &rest.Config{
		Host: host.String(), APIPath: c.APIPath, Transport: transport, Timeout: c.Timeout, WarningHandlerWithContext: c.WarningHandlerWithContext,
	}, nil
}

// checkServer checks that an API server answers and accepts the credentials. It also accepts a 403: the user may lack
// the permission to read /version.
func (c *Connection) checkServer(ctx context.Context, noConfig bool) error {
	ctx, cancel := context.WithTimeoutCause(ctx, firstAnswerTimeout, errNoAnswer)
	defer cancel()
	body, err := c.Client.Get().AbsPath("/version").MaxRetries(0).Do(ctx).Raw()
	_, gone := Unreachable(err)
	switch {
	case apierrors.IsForbidden(err):
		return nil
	case err == nil && bytes.Contains(body, []byte(`"gitVersion"`)):
		return nil
	case errors.Is(context.Cause(ctx), errNoAnswer):
		return c.Explain(context.WithoutCancel(ctx), errNoAnswer)
	case ctx.Err() == nil && noConfig && gone:
		return noKubeconfig(c.server)
	case ctx.Err() == nil && (err == nil || apierrors.IsNotFound(err)):
		return c.notKubernetes()
	}
	return c.Explain(ctx, err)
}
