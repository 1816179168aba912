package cli

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/cmd/internal/permission"
	"github.com/godwit-dev/godwit/cmd/internal/report"
	"github.com/godwit-dev/godwit/crdmigrator"
)

// problem is an error as a person gets to see it: one line with the object, the
// cause and the next step. Commands that are several have a line each.
type problem struct {
	reason  string // of a blocker
	message string
	remedy  string
	cause   error
}

func (p *problem) Error() string {
	if p.remedy == "" {
		return p.message
	}
	return p.message + "; " + p.remedy
}

func (p *problem) Unwrap() error { return p.cause }

func (p *problem) blocker() godwit.Blocker {
	return godwit.Blocker{Reason: p.reason, Message: p.message, Remedy: p.remedy}
}

// errNoAnswer is the cause of a first request that took too long.
var errNoAnswer = fmt.Errorf("connected, but got no answer within %v", firstAnswerTimeout)

func badKubeconfig(err error) error {
	remedy := "see what there is: kubectl config get-contexts"
	if strings.Contains(err.Error(), "no such file") {
		remedy = "name a file that exists by --kubeconfig or KUBECONFIG"
	}
	return &problem{reason: report.ReasonUnreadable, message: "no cluster is chosen: " + oneLine(err), remedy: remedy, cause: err}
}

func noKubeconfig(tried string) error {
	return &problem{
		reason:  report.ReasonUnreadable,
		message: "no cluster is chosen: there is no kubeconfig, and nobody answers at kubectl's default " + tried,
		remedy:  "name one: --kubeconfig FILE, or KUBECONFIG=FILE",
	}
}

func (c *connection) notKubernetes() error {
	return &problem{
		reason:  report.ReasonUnreadable,
		message: c.where() + " answers, but is not a Kubernetes API server: it has no /version",
		remedy:  "check the address with `kubectl config view --minify`",
	}
}

// explain turns what a request met into what a person can act on. What it does
// not know it passes on as it is.
func (c *connection) explain(ctx context.Context, err error) *problem {
	var known *problem
	switch {
	case ctx.Err() != nil:
		return &problem{reason: report.ReasonUnreadable, message: context.Cause(ctx).Error(), cause: context.Cause(ctx)}
	case errors.As(err, &known):
		return known
	case errors.Is(err, crdmigrator.ErrNotFound):
		return &problem{reason: report.ReasonNotFound, message: err.Error(), remedy: "see what there is: kubectl get crd", cause: err}
	case apierrors.IsUnauthorized(err):
		return &problem{
			reason:  report.ReasonUnreadable,
			message: fmt.Sprintf("%s does not accept the credentials: they are expired or wrong", c.where()),
			remedy:  "renew them, and check with: kubectl auth whoami",
			cause:   err,
		}
	case apierrors.IsForbidden(err):
		return c.forbidden(ctx, err)
	}
	if why, ok := unreachable(err); ok {
		return &problem{
			reason:  report.ReasonUnreadable,
			message: fmt.Sprintf("%s can't be reached: %s", c.where(), why),
			remedy:  "check the address with `kubectl config view --minify`, or choose another cluster by --context",
			cause:   err,
		}
	}
	return &problem{reason: report.ReasonUnreadable, message: oneLine(err), remedy: "check the server with `kubectl get --raw /readyz`, then try again", cause: err}
}

// forbidden names the permission that is missing and the command that grants it.
func (c *connection) forbidden(ctx context.Context, err error) *problem {
	var status apierrors.APIStatus
	errors.As(err, &status)
	d := status.Status().Details
	if d == nil || d.Kind != "customresourcedefinitions" {
		return &problem{reason: report.ReasonForbidden, message: oneLine(err), cause: err}
	}
	p := c.lacks(c.whoAmI(ctx), []permission.Permission{permission.ReadCRD(d.Name)})
	p.cause = err
	return p
}

// unreachable says why no answer came; false for an error that is an answer.
func unreachable(err error) (string, bool) {
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
		return oneLine(wrapped.Err), true
	}
	return "", false
}

func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }
