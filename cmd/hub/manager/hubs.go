package manager

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/godwit-dev/godwit/cmd/hub/api/v1alpha1"
	"github.com/godwit-dev/godwit/cmd/hub/kafka"
	"github.com/godwit-dev/godwit/cmd/hub/message"
	"github.com/godwit-dev/godwit/cmd/hub/reach"
)

// checkHubs checks that both hubs are available and that the manager reaches them. It runs before anything is sent to
// either. It waits for a heartbeat and for the broker up to maxHeartbeatAge.
func (r *Reconciler) checkHubs(ctx context.Context, m migration) (waits string, p *problem, err error) {
	if r.Direct != nil {
		p, err = r.checkAddress(ctx, m)
		return "", p, err
	}
	if p := checkNamespace(m.object.Namespace, r.Allowed); p != nil {
		return "", p, nil
	}
	for _, name := range []string{m.from(), m.to()} {
		if why, err := reach.Available(ctx, r.Reader, name); why != "" || err != nil {
			return "", notReady(why, err), err
		}
		if _, problems, err := r.hubKey(ctx, name); problems != "" || err != nil {
			return "", notReady(problems, err), err
		}
	}
	if waits, p := r.checkBroker(ctx, m); waits != "" || p != nil {
		return waits, p, nil
	}
	for _, name := range []string{m.from(), m.to()} {
		if waits, p := r.checkHeartbeat(m, name); waits != "" || p != nil {
			return waits, p, nil
		}
	}
	p, err = r.checkAddress(ctx, m) // last: what waits is repeated, and a dial takes seconds where nothing answers
	return "", p, err
}

// checkNamespace returns a problem if the manager begins no migrations of a namespace. If none is allowed by name, all are.
func checkNamespace(namespace string, allowed []string) *problem {
	if len(allowed) == 0 || slices.Contains(allowed, namespace) {
		return nil
	}
	return &problem{api.ReasonNamespaceNotAllowed.Name, fmt.Sprintf(
		"the manager begins no migrations of namespace %s: create it in one of %s, or add the namespace to --migration-namespaces of the manager (clusterMigration.namespaces of the chart)",
		namespace, strings.Join(allowed, ", "))}
}

// address returns how managed clusters reach a hub.
func (r *Reconciler) address(ctx context.Context, name string) (reach.Address, *problem, error) {
	if r.Direct != nil {
		return reach.Address{ClientConfig: r.Direct.Target, Hub: name, Direct: true}, nil, nil
	}
	a, err := reach.Of(ctx, r.Reader, name)
	if err != nil || a.URL != "" {
		return a, nil, err
	}
	return a, &problem{api.ReasonHubAddressUnknown.Name, a.Unknown()}, nil
}

// checkAddress checks that clusters verify the target hub. Clusters may reach what the manager does not.
func (r *Reconciler) checkAddress(ctx context.Context, m migration) (*problem, error) {
	a, p, err := r.address(ctx, m.to())
	if p != nil || err != nil {
		return nil, err // IssueBootstrap says that there is no address
	}
	if len(a.CABundle) == 0 {
		if served, err := r.servesAccounts(ctx, m); served || err != nil {
			return nil, err // IssueBootstrap checks the CA of the token
		}
	}
	return untrusted(ctx, a), nil
}

func untrusted(ctx context.Context, a reach.Address) *problem {
	if why, _ := a.Check(ctx); why != "" {
		return &problem{api.ReasonHubAddressUntrusted.Name, why}
	}
	return nil
}

func notReady(message string, err error) *problem {
	if err != nil {
		return nil //nolint:nilerr // the caller returns the error: an error is no problem of the migration
	}
	return &problem{api.ReasonHubNotReady.Name, message}
}

// checkBroker creates the topics; this fails if the broker refuses.
func (r *Reconciler) checkBroker(ctx context.Context, m migration) (waits string, p *problem) {
	topics := []string{message.SpecTopic(m.from()), message.StatusTopic(m.from()), message.SpecTopic(m.to()), message.StatusTopic(m.to()), message.MigrationTopic(m.to())}
	err := r.Transport.EnsureTopics(ctx, topics...)
	for _, name := range []string{m.from(), m.to()} {
		if refused := r.receipts.get(name).Refused; err == nil && refused != "" {
			return "", &problem{api.ReasonBrokerRefused.Name, refused}
		}
	}
	var forbidden *kafka.ForbiddenError
	switch {
	case err == nil:
		return "", nil
	case errors.As(err, &forbidden), r.Clock.Since(m.state.Since) > maxHeartbeatAge:
		return "", &problem{api.ReasonBrokerRefused.Name, err.Error()}
	}
	return "the broker: " + err.Error(), nil
}

// checkHeartbeat checks the last heartbeat of a hub.
func (r *Reconciler) checkHeartbeat(m migration, name string) (waits string, p *problem) {
	known, now := r.receipts.get(name), r.Clock.Now()
	began := m.state.Since
	if known.CaughtUp.After(began) {
		began = known.CaughtUp
	}
	problem := known.Problem(name, now)
	switch {
	case problem == "":
		return "", nil
	case known.Heartbeat.IsZero() && (known.CaughtUp.IsZero() || now.Sub(began) <= maxHeartbeatAge) && now.Sub(m.state.Since) <= 2*maxHeartbeatAge:
		return fmt.Sprintf("the agent of hub %s has sent no heartbeat yet", name), nil
	}
	return "", notReady(problem, nil)
}

// AccountKind is the kind of ManagedServiceAccounts. The manager reads only a few of their fields.
var AccountKind = schema.GroupVersionKind{Group: "authentication.open-cluster-management.io", Version: "v1beta1", Kind: "ManagedServiceAccount"}

// account returns the ManagedServiceAccount of a pair of hubs. Migrations between the same hubs share it, so the end of
// one does not revoke the token of another.
func (m migration) account() *unstructured.Unstructured {
	a := &unstructured.Unstructured{}
	a.SetGroupVersionKind(AccountKind)
	a.SetNamespace(m.to())
	a.SetName(accountName(m.from(), m.to()))
	return a
}

// accountName returns a hash: two names of hubs and a prefix may be too long for a name.
func accountName(from, to string) string {
	sum := sha256.Sum256([]byte(from + "/" + to))
	return "godwit-migration-" + hex.EncodeToString(sum[:8])
}

// servesAccounts reports whether there is a global hub with ManagedServiceAccounts.
func (r *Reconciler) servesAccounts(ctx context.Context, m migration) (bool, error) {
	if r.Direct != nil {
		return false, nil
	}
	return ServesAccounts(ctx, r.Reader, m.account())
}

// ServesAccounts reads a ManagedServiceAccount, which may not exist, and reports whether the hub serves the kind. The client caches the mapping of
// a kind, also after the CRD was deleted with the add-on, so the API server decides.
func ServesAccounts(ctx context.Context, reader client.Reader, a client.Object) (bool, error) {
	switch err := reader.Get(ctx, client.ObjectKeyFromObject(a), a); {
	case err == nil:
		return true, nil
	case meta.IsNoMatchError(err):
		return false, nil
	case apierrors.IsNotFound(err):
		// The API server answers for a kind that it serves; the answer for an unknown path has this cause.
		return !apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse), nil
	default:
		return false, fmt.Errorf("read ManagedServiceAccount %s/%s: %w", a.GetNamespace(), a.GetName(), err)
	}
}
