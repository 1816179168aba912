package storageversion

import (
	"context"
	"fmt"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/internal/kube"
	"github.com/godwit-dev/godwit/internal/storageversion/decision"
	"github.com/godwit-dev/godwit/internal/storageversion/internal/settle"
)

// discovery asks the server that answers for the objects of a CRD. It asks for the APIService only if the server has not adopted
// the storage version, or does not answer: the API server may forward the request to a server that is gone.
func (m *Migrator) discovery(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition) (d decision.Discovery, err error) {
	resource := kube.ResourceOf(crd)
	d.Found, d.Hash, err = m.client.Discovery(ctx, resource)
	if ctx.Err() != nil || err == nil && d.Answering(crd) == decision.AnsweredByAdopted {
		return d, err
	}
	var unread error
	d.Service, d.Unavailable, unread = m.client.ForwardsTo(ctx, resource.GroupVersion())
	switch {
	case d.Service != "":
		return d, nil
	case err != nil:
		return d, err
	case apierrors.IsForbidden(unread), apierrors.IsNotFound(unread):
		return d, nil
	}
	return d, unread
}

// observeAnswering asks the server that answers, if it can.
func (m *Migrator) observeAnswering(ctx context.Context, f *decision.Facts) error {
	if f.CRD.DeletionTimestamp != nil || !kube.Serves(f.CRD, kube.StorageVersion(f.CRD)) {
		return nil
	}
	d, err := m.discovery(ctx, f.CRD)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return nil //nolint:nilerr // the run asks again, and needs the answer
	}
	f.Discovery = &d
	return nil
}

// checkAnswering returns a [decision.NotSettledError] if the server that answers has not adopted the storage version, and a
// [decision.BlockedError] if it is not the CRD's.
func (m *Migrator) checkAnswering(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition) error {
	d, err := m.discovery(ctx, crd)
	if err != nil {
		return fmt.Errorf("ask which server answers for the objects of %s: %w", crd.Name, err)
	}
	switch d.Answering(crd) {
	case decision.AnsweredByOther:
		return &decision.BlockedError{CRD: crd.Name, Blockers: []godwit.Finding{decision.OtherServerAnswers(crd, d)}}
	case decision.AnsweredByLate:
		return m.sawLate(crd, "")
	}
	return nil
}

// askLimit bounds the question to one API server, which may not be reachable at its own address.
const askLimit = 3 * time.Second

var errAskOver = fmt.Errorf("no answer within %v", askLimit)

// checkEachServer asks each API server at its own address. It returns a [decision.NotSettledError] if one has not adopted the storage
// version. A server that does not answer there is known by its lease alone.
func (m *Migrator) checkEachServer(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition) error {
	if !m.options.AskEachServer {
		return nil
	}
	for _, address := range m.endpoints(ctx) {
		if m.answering(ctx, crd, address) == decision.AnsweredByLate {
			return m.sawLate(crd, address)
		}
	}
	return context.Cause(ctx)
}

// answering asks the API server at an address.
func (m *Migrator) answering(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition, address string) decision.Answering {
	server, err := m.client.ServerAt(address)
	if err != nil {
		return decision.AnsweredByUnknown
	}
	ctx, cancel := kube.WithLimit(ctx, askLimit, errAskOver)
	defer cancel()
	found, hash, err := server.Discovery(ctx, kube.ResourceOf(crd))
	if err != nil {
		return decision.AnsweredByUnknown
	}
	return decision.Discovery{Found: found, Hash: hash}.Answering(crd)
}

// sawLate adds to the history of the CRD that a server has another storage version: the one at an address, or the one that answers if
// it is empty. It returns a [decision.NotSettledError].
func (m *Migrator) sawLate(crd *apiextensionsv1.CustomResourceDefinition, address string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.client.Clock.Now()
	m.historyOf(crd).SawLate(now)
	return &decision.NotSettledError{Until: now.Add(settle.Again), Wait: settle.Again, Late: true, Address: address}
}

// historyOf returns the history of the leases since the last change of a CRD. The caller holds the lock.
func (m *Migrator) historyOf(crd *apiextensionsv1.CustomResourceDefinition) *settle.History {
	history, spec := m.leases[crd.Name], kube.GenerationOf(crd)
	if history == nil || history.Spec != spec {
		history = &settle.History{Spec: spec}
		m.leases[crd.Name] = history
	}
	return history
}

// endpoints are the addresses of the service kubernetes; none if the user may not read them, which shows less and hides nothing.
func (m *Migrator) endpoints(ctx context.Context) []string {
	all, err := m.client.Endpoints(ctx)
	if err != nil {
		return nil
	}
	return all
}
