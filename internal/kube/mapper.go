package kube

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/godwit-dev/godwit/internal/apierror"
)

// readyTimeout bounds the readiness request: a mapper has no context.
const readyTimeout = 10 * time.Second

// NewMapper returns a mapper that finds kinds with discovery, on demand. It reports a missing kind only if the API
// server is ready: for one or two seconds after its start, discovery lists no CRDs or only some. The signature is that
// of MapperProvider in the options of controller-runtime.
func NewMapper(cfg *rest.Config, clients *http.Client) (meta.RESTMapper, error) {
	mapper, err := apiutil.NewDynamicRESTMapper(cfg, clients)
	if err != nil {
		return nil, fmt.Errorf("make a mapper: %w", err)
	}
	d, err := discovery.NewDiscoveryClientForConfigAndClient(cfg, clients)
	if err != nil {
		return nil, fmt.Errorf("make a mapper: %w", err)
	}
	return readyMapper{mapper, d.RESTClient()}, nil
}

type readyMapper struct {
	meta.RESTMapper
	server rest.Interface
}

// RESTMapping implements meta.RESTMapper.
func (m readyMapper) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	return whenReady(m, kind, func() (*meta.RESTMapping, error) { return m.RESTMapper.RESTMapping(kind, versions...) })
}

// RESTMappings implements meta.RESTMapper.
func (m readyMapper) RESTMappings(kind schema.GroupKind, versions ...string) ([]*meta.RESTMapping, error) {
	return whenReady(m, kind, func() ([]*meta.RESTMapping, error) { return m.RESTMapper.RESTMappings(kind, versions...) })
}

// whenReady looks for a missing kind again after a readiness check: the server may have become ready meanwhile.
func whenReady[T any](m readyMapper, kind schema.GroupKind, find func() (T, error)) (T, error) {
	found, err := find()
	if !meta.IsNoMatchError(err) {
		return found, err
	}
	if err := m.ready(); err != nil {
		return found, fmt.Errorf("find kind %s: the API server is not ready: %w", kind, err)
	}
	return find()
}

// ready returns why the server is not ready. A server that does not report its readiness counts as ready.
func (m readyMapper) ready() error {
	ctx, cancel := context.WithTimeout(context.Background(), readyTimeout) //nolint:forbidigo // a RESTMapper gets no context
	defer cancel()
	err := Do(ctx, m.server.Get().AbsPath("/readyz")).Error()
	if apierror.TreatmentOf(err) != apierror.Retry {
		return nil
	}
	return err
}
