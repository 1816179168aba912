package cli

import (
	"bytes"
	"context"
	"errors"
	"net"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/godwit-dev/godwit/crdmigrator"
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

// session is a cluster that has answered, as a certain user.
type session struct {
	*crdmigrator.Migrator
	policy  crdmigrator.Policy
	limiter *walk.Limiter // nil: the migrator has one of its own
	client  *rest.RESTClient
	server  string
	context string // of the kubeconfig; empty in a cluster
}

// connect chooses the cluster by kubectl's rules and makes sure that it
// answers.
func (a *app) connect(ctx context.Context, o crdmigrator.Options) (*session, error) {
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
	config.WarningHandler = rest.NewWarningWriter(a.console, rest.WarningWriterOptions{Deduplicate: true})
	config.UserAgent = "godwit/" + buildInfo().Version
	s := &session{policy: o.Policy, limiter: o.Limiter, server: config.Host, context: raw.CurrentContext}
	if *a.cluster.Context != "" {
		s.context = *a.cluster.Context
	}
	if s.client, err = plainClient(config); err != nil {
		return nil, badKubeconfig(err)
	}
	if s.Migrator, err = crdmigrator.New(config, o); err != nil {
		return nil, badKubeconfig(err)
	}
	noConfig := clientcmd.IsEmptyConfig(clientcmd.Validate(raw)) && *a.cluster.APIServer == ""
	return s, s.greet(ctx, noConfig)
}

func plainClient(config *rest.Config) (*rest.RESTClient, error) {
	config = rest.CopyConfig(config)
	config.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	return rest.UnversionedRESTClientFor(config)
}

// greet finds out whether anybody answers and accepts the credentials, before
// more is asked. Who may not read /version has an answer, too.
func (s *session) greet(ctx context.Context, noConfig bool) error {
	ctx, cancel := context.WithTimeoutCause(ctx, firstAnswerTimeout, errNoAnswer)
	defer cancel()
	body, err := s.client.Get().AbsPath("/version").MaxRetries(0).Do(ctx).Raw()
	_, gone := unreachable(err)
	switch {
	case apierrors.IsForbidden(err):
		return nil
	case err == nil && bytes.Contains(body, []byte(`"gitVersion"`)):
		return nil
	case errors.Is(context.Cause(ctx), errNoAnswer):
		return s.explain(context.WithoutCancel(ctx), errNoAnswer)
	case ctx.Err() == nil && noConfig && gone:
		return noKubeconfig(s.server)
	case ctx.Err() == nil && (err == nil || apierrors.IsNotFound(err)):
		return s.notKubernetes()
	}
	return s.explain(ctx, err)
}

// whoAmI is the name the API server knows the user by, or a placeholder.
func (s *session) whoAmI(ctx context.Context) string {
	review := &authenticationv1.SelfSubjectReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "authentication.k8s.io/v1", Kind: "SelfSubjectReview"},
	}
	err := s.client.Post().AbsPath("/apis/authentication.k8s.io/v1/selfsubjectreviews").Body(review).Do(ctx).Into(review)
	if err != nil || review.Status.UserInfo.Username == "" {
		return "USER"
	}
	return review.Status.UserInfo.Username
}

// where names the cluster to a person.
func (s *session) where() string {
	if s.context == "" {
		return s.server
	}
	return s.server + " (context " + s.context + ")"
}
