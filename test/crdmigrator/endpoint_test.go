package crdmigrator_test

import (
	"encoding/pem"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/godwit-dev/godwit/test/controlplane"
)

// endpoint is an HTTPS server that the API server calls: a webhook of any kind.
type endpoint struct {
	url     string
	ca      []byte
	handler http.Handler
	server  *httptest.Server
}

func newEndpoint(t *testing.T, handler http.Handler) *endpoint {
	t.Helper()
	e := &endpoint{handler: handler}
	address, err := controlplane.FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	e.listen(t, address)
	e.url, e.ca = e.server.URL, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: e.server.Certificate().Raw})
	return e
}

func (e *endpoint) listen(t *testing.T, address string) {
	t.Helper()
	listener, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	e.server = &httptest.Server{Listener: listener, Config: &http.Server{Handler: e.handler}}
	e.server.StartTLS()
	t.Cleanup(e.server.Close)
}

// down stops the server, so that connections are refused.
func (e *endpoint) down() { e.server.Close() }

// up starts the server again at its address.
func (e *endpoint) up(t *testing.T) {
	t.Helper()
	e.listen(t, strings.TrimPrefix(e.url, "https://"))
}
