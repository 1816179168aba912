package frame

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/godwit-dev/godwit/cmd/internal/permission"
	"github.com/godwit-dev/godwit/cmd/internal/render"
	"github.com/godwit-dev/godwit/internal/apierror"
	"github.com/godwit-dev/godwit/internal/quote"
	"github.com/godwit-dev/godwit/internal/storageversion/decision"
)

// errNoAnswer is the cause of a first request without an answer in time.
var errNoAnswer = fmt.Errorf("connected, but got no answer within %v", firstAnswerTimeout)

// BadKubeconfig returns the error for flags and a kubeconfig that select no cluster.
func BadKubeconfig(err error) error {
	remedy := "list the contexts: kubectl config get-contexts"
	if clientcmd.IsConfigurationInvalid(err) && !clientcmd.IsContextNotFound(err) {
		return &ActionableError{Reason: render.ReasonUnreadable, Message: "the kubeconfig can't be used: " + OneLine(err), Remedy: "correct what the message names, in: kubectl config view --minify", Cause: err}
	}
	if strings.Contains(err.Error(), "no such file") {
		remedy = "name a file that exists with --kubeconfig or KUBECONFIG"
	}
	return &ActionableError{Reason: render.ReasonUnreadable, Message: "no cluster is chosen: " + OneLine(err), Remedy: remedy, Cause: err}
}

// ErrNoCluster means that neither flags nor a kubeconfig select a cluster.
var ErrNoCluster = errors.New("no cluster is chosen")

func noKubeconfig(tried string) error {
	return &ActionableError{
		Reason:  render.ReasonUnreadable,
		Message: ErrNoCluster.Error() + ": no kubeconfig exists, and no server answers at kubectl's default " + tried,
		Remedy:  "name one: --kubeconfig FILE, or KUBECONFIG=FILE",
		Cause:   ErrNoCluster,
	}
}

func (c *Connection) notKubernetes() error {
	return &ActionableError{
		Reason:  render.ReasonUnreadable,
		Message: c.Where() + " answers, but is not a Kubernetes API server: it has no /version",
		Remedy:  "check the address with `" + c.view() + "`",
	}
}

// Explain adds the next step to the error of a request.
func (c *Connection) Explain(ctx context.Context, err error) *ActionableError {
	var known *ActionableError
	switch {
	case ctx.Err() != nil:
		return &ActionableError{Reason: render.ReasonUnreadable, Message: context.Cause(ctx).Error(), Cause: context.Cause(ctx)}
	case errors.As(err, &known):
		return known
	case apierror.IsEndOfRun(err):
		return c.explainEnd(err)
	case apierrors.IsForbidden(err):
		return c.forbidden(ctx, err)
	}
	if why, ok := Unreachable(err); ok {
		remedy := "check the address with `" + c.view() + "`, or choose another context"
		if errors.Is(err, errNoAnswer) { // an API server that is overloaded accepts connections
			remedy = "see whether it is overloaded with `kubectl get --raw /readyz`, " + remedy
		}
		return &ActionableError{Reason: render.ReasonUnreadable, Message: fmt.Sprintf("%s can't be reached: %s", c.Where(), why), Remedy: remedy, Cause: err}
	}
	return &ActionableError{Reason: render.ReasonUnreadable, Message: OneLine(err), Remedy: "check the server with `kubectl get --raw /readyz`, then try again", Cause: err}
}

// explainEnd adds the next step to an answer that each other request would get as well.
func (c *Connection) explainEnd(err error) *ActionableError {
	if apierror.Of(err).Class == apierror.StorageFull {
		f := decision.EtcdFull(quote.Line(apierror.Message(err)))
		return &ActionableError{Reason: f.Reason, Message: fmt.Sprintf("%s: %s", c.Where(), f.Message), Remedy: f.Fix.String(), Cause: err}
	}
	f := decision.Unauthorized()
	return &ActionableError{
		Reason: f.Reason, Cause: err, Remedy: f.Fix.String(),
		Message: fmt.Sprintf("%s does not accept the credentials: they are expired or wrong", c.Where()),
	}
}

// ExplainBy adds the next step to the error of a request. After a 403, missing may return a better error, which names
// all missing permissions of the command.
func (c *Connection) ExplainBy(ctx context.Context, err error, missing func(context.Context) error) error {
	if ctx.Err() == nil && apierrors.IsForbidden(err) {
		if lacks := missing(ctx); lacks != nil {
			return lacks
		}
	}
	return c.Explain(ctx, err)
}

// forbidden names the missing permission and the command that grants it.
func (c *Connection) forbidden(ctx context.Context, err error) *ActionableError {
	var status apierrors.APIStatus
	errors.As(err, &status)
	d := status.Status().Details
	if d == nil || d.Kind != "customresourcedefinitions" {
		return &ActionableError{Reason: render.ReasonForbidden, Message: OneLine(err), Cause: err}
	}
	p := c.Lacks(c.WhoAmI(ctx), []permission.Permission{permission.ReadCRD(d.Name)})
	p.Cause = err
	return p
}

// Unreachable returns why the API server did not answer, and false for an error that the API server sent.
func Unreachable(err error) (string, bool) {
	var (
		status   apierrors.APIStatus
		timeout  net.Error
		wrapped  *url.Error
		unsigned x509.UnknownAuthorityError
	)
	switch {
	case errors.Is(err, errNoAnswer):
		return errNoAnswer.Error(), true
	case errors.As(err, &status):
		return "", false
	case errors.As(err, &unsigned):
		return "its certificate is not signed by the kubeconfig's certificate authority: is this another cluster, or a proxy?", true
	case errors.As(err, &timeout) && timeout.Timeout():
		return "no answer in time", true
	case errors.As(err, &wrapped):
		return OneLine(wrapped.Err), true
	}
	return "", false
}
