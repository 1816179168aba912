package etcd

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
)

// diagnoseTimeout and answerTimeout together take about five seconds.
const diagnoseTimeout = time.Second

// diagnose finds out why no etcd answered. The gRPC client only reports a timeout.
func (o Options) diagnose(ctx context.Context, config *tls.Config, cause error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	servers := strings.Join(o.Servers, ",")
	if errors.Is(cause, rpctypes.ErrPermissionDenied) || errors.Is(cause, rpctypes.ErrUserEmpty) || errors.Is(cause, rpctypes.ErrInvalidAuthToken) {
		return fmt.Errorf("etcd at %s does not let this client read %s: use the certificate of kube-apiserver "+
			"(its --etcd-certfile and --etcd-keyfile): %w", servers, o.Prefix, cause)
	}
	ctx, cancel := context.WithTimeout(ctx, diagnoseTimeout)
	defer cancel()
	why := make([]string, len(o.Servers))
	for i, server := range o.Servers {
		why[i] = server + " " + o.inspect(ctx, config, server)
	}
	return fmt.Errorf("no etcd answers at --etcd-servers: %s: compare with kube-apiserver's own flags --etcd-servers, "+
		"--etcd-cafile, --etcd-certfile and --etcd-keyfile", strings.Join(why, "; "))
}

// inspect describes in a few words the server that answers at an address.
func (o Options) inspect(ctx context.Context, config *tls.Config, server string) string {
	client := &http.Client{
		Transport:     &http.Transport{TLSClientConfig: config, DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(server, "/")+"/version", nil)
	if err != nil {
		return err.Error()
	}
	resp, err := client.Do(req)
	if err != nil {
		return o.unreachable(err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<16))
	return identify(resp, body)
}

// identify reads the answer to /version, which differs between etcd, Kubernetes and other
// servers.
func identify(resp *http.Response, body []byte) string {
	var version struct {
		Etcd       string `json:"etcdserver"`
		Kubernetes string `json:"gitVersion"`
		Kind       string `json:"kind"`
	}
	_ = json.Unmarshal(body, &version) // the server may send any text
	switch {
	case version.Etcd != "":
		return "is an etcd " + version.Etcd + " that does not answer reads: is it without a leader?"
	case version.Kubernetes != "" || version.Kind == "Status":
		return "is a Kubernetes API server, not etcd"
	case resp.StatusCode == http.StatusBadRequest && strings.Contains(string(body), "HTTPS server"):
		return "uses https: write https:// and give the TLS files"
	}
	return fmt.Sprintf("is an HTTP server (it answers %s), not etcd", resp.Status)
}

func (o Options) unreachable(err error) string {
	var (
		authority x509.UnknownAuthorityError
		hostname  x509.HostnameError
		record    tls.RecordHeaderError
		alert     tls.AlertError
		timeout   net.Error
		wrapped   *url.Error
	)
	switch {
	case errors.As(err, &authority):
		return "has a certificate that --etcd-cafile does not vouch for"
	case errors.As(err, &hostname):
		return "has a certificate for another name: " + hostname.Error()
	case errors.As(err, &record):
		return "does not use TLS: write http://"
	case errors.As(err, &alert) && o.CertFile == "":
		return "wants a client certificate: give --etcd-certfile and --etcd-keyfile"
	case errors.As(err, &alert):
		return "does not accept the client certificate of --etcd-certfile"
	case errors.As(err, &timeout) && timeout.Timeout():
		return "does not answer"
	case errors.As(err, &wrapped):
		return "can't be reached: " + wrapped.Err.Error()
	}
	return "can't be reached: " + err.Error()
}
