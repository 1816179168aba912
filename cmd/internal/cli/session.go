package cli

import (
	"bytes"
	"context"
	"errors"
	"net"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/godwit-dev/godwit/crdmigrator"
	"github.com/godwit-dev/godwit/internal/kube"
	"github.com/godwit-dev/godwit/walk"
)

const (
	// dialTimeout is a sixth of client-go's: a server on the other side of the
	// world accepts a connection within a second.
	dialTimeout = 5 * time.Second
	// firstAnswerTimeout is for a server that accepts connections and then says
	// nothing.
	firstAnswerTimeout = 8 * time.Second
)

// connection is a cluster that has answered, as a certain user.
type connection struct {
	config  *rest.Config
	client  *rest.RESTClient
	server  string
	context string // of the kubeconfig; empty in a cluster
	purpose purpose
}

// session is a connection over which definitions are migrated.
type session struct {
	*connection
	*crdmigrator.Migrator
	policy  crdmigrator.Policy
	limiter *walk.Limiter // nil: the migrator has one of its own
}

func (a *app) connect(ctx context.Context, p purpose, o crdmigrator.Options) (*session, error) {
	c, err := a.dial(ctx, p)
	if err != nil {
		return nil, err
	}
	s := &session{connection: c, policy: o.Policy, limiter: o.Limiter}
	if s.Migrator, err = crdmigrator.New(c.config, o); err != nil {
		return nil, badKubeconfig(err)
	}
	return s, nil
}

// dial chooses the cluster by kubectl's rules and makes sure that it answers.
func (a *app) dial(ctx context.Context, p purpose) (*connection, error) {
	loader := a.cluster.ToRawKubeConfigLoader()
	raw, err := loader.RawConfig()
	if err != nil && !clientcmd.IsEmptyConfig(err) {
		return nil, badKubeconfig(err)
	}
	config, err := a.cluster.ToRESTConfig()
	if err != nil {
		return nil, badKubeconfig(err)
	}
	config.Dial = (&net.Dialer{Timeout: dialTimeout, KeepAlive: 30 * time.Second}).DialContext
	config.WarningHandlerWithContext = &warnings{console: a.console}
	config.UserAgent = "godwit/" + buildInfo().Version
	c := &connection{config: config, server: config.Host, context: raw.CurrentContext, purpose: p}
	if *a.cluster.Context != "" {
		c.context = *a.cluster.Context
	}
	if c.client, err = plainClient(config); err != nil {
		return nil, badKubeconfig(err)
	}
	noConfig := clientcmd.IsEmptyConfig(clientcmd.Validate(raw)) && *a.cluster.APIServer == ""
	return c, c.greet(ctx, noConfig)
}

func plainClient(config *rest.Config) (*rest.RESTClient, error) {
	config = rest.CopyConfig(config)
	config.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	return rest.UnversionedRESTClientFor(config)
}

// greet finds out whether anybody answers and accepts the credentials, before
// more is asked. Who may not read /version has an answer, too.
func (c *connection) greet(ctx context.Context, noConfig bool) error {
	ctx, cancel := context.WithTimeoutCause(ctx, firstAnswerTimeout, errNoAnswer)
	defer cancel()
	body, err := c.client.Get().AbsPath("/version").MaxRetries(0).Do(ctx).Raw()
	_, gone := unreachable(err)
	switch {
	case apierrors.IsForbidden(err):
		return nil
	case err == nil && bytes.Contains(body, []byte(`"gitVersion"`)):
		return nil
	case errors.Is(context.Cause(ctx), errNoAnswer):
		return c.explain(context.WithoutCancel(ctx), errNoAnswer)
	case ctx.Err() == nil && noConfig && gone:
		return noKubeconfig(c.server)
	case ctx.Err() == nil && (err == nil || apierrors.IsNotFound(err)):
		return c.notKubernetes()
	}
	return c.explain(ctx, err)
}

// whoAmI is the name the API server knows the user by, or a placeholder.
func (c *connection) whoAmI(ctx context.Context) string {
	if name := kube.UserName(ctx, c.client); name != "" {
		return name
	}
	return "USER"
}

// where names the cluster to a person.
func (c *connection) where() string {
	if c.context == "" {
		return c.server
	}
	return c.server + " (context " + c.context + ")"
}
