package manager

import (
	"cmp"
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-dev/godwit/cmd/hub"
	api "github.com/godwit-dev/godwit/cmd/hub/api/v1alpha1"
	"github.com/godwit-dev/godwit/cmd/hub/cluster"
	"github.com/godwit-dev/godwit/cmd/hub/message"
	"github.com/godwit-dev/godwit/cmd/hub/reach"
)

const (
	// accountAddon is the add-on whose agent keeps the tokens of ManagedServiceAccounts.
	accountAddon = "managed-serviceaccount"
	// tokenFactor is the lifetime of a token as a multiple of a whole migration with its rollback and [hub.AfterEnd].
	// The add-on renews a token when a fifth of its lifetime is left, and migrations between the same hubs share it: so
	// every token that a cluster gets is valid long enough. The token ends with the account.
	tokenFactor = 5
)

// issueBootstrap creates a ManagedServiceAccount and waits for its token. On a global hub without
// ManagedServiceAccounts, the target issues a token later. Until the token exists, it returns what it waits for, or a
// problem that waiting does not solve.
func (r *Reconciler) issueBootstrap(ctx context.Context, m migration) (waits string, p *problem, err error) {
	address, p, err := r.address(ctx, m.to())
	if p != nil || err != nil {
		return "", p, err
	}
	served, err := r.servesAccounts(ctx, m)
	if err != nil || !served {
		return "", nil, err
	}
	account := m.account()
	if err := cluster.Share(ctx, r.Client, account, m.uid(), func() error {
		lifetime := tokenFactor * (m.state.Timeouts.Total() + hub.AfterEnd)
		if known, _, _ := unstructured.NestedString(account.Object, "spec", "rotation", "validity"); known != "" {
			if d, err := time.ParseDuration(known); err == nil && d > lifetime {
				lifetime = d // another migration needs it
			}
		}
		return unstructured.SetNestedMap(account.Object, map[string]any{"enabled": true, "validity": lifetime.String()}, "spec", "rotation")
	}); err != nil {
		if r.final(ctx, err) {
			return "", &problem{api.ReasonFailed.Name, fmt.Sprintf("create ManagedServiceAccount %s/%s: %v", m.to(), account.GetName(), err)}, nil
		}
		return "", nil, fmt.Errorf("create ManagedServiceAccount %s/%s: %w", m.to(), account.GetName(), err)
	}
	secret, found, err := r.token(ctx, m)
	if err != nil {
		return "", nil, err
	}
	if found {
		if waits := r.tokenExpiresEarly(m, account); waits != "" || len(address.CABundle) > 0 { // CheckHubs has checked the CA
			return waits, nil, nil
		}
		return "", untrusted(ctx, withCA(address, secret)), nil
	}
	return fmt.Sprintf("add-on %s of hub %s has issued no token for ManagedServiceAccount %s", accountAddon, m.to(), account.GetName()), nil, nil
}

// tokenExpiresEarly returns a message if the add-on's token expires before the migration may end. Another migration
// with shorter timeouts has requested it. The add-on issues a new one only when the token expires or its Secret is
// deleted.
func (r *Reconciler) tokenExpiresEarly(m migration, account *unstructured.Unstructured) string {
	text, _, _ := unstructured.NestedString(account.Object, "status", "expirationTimestamp")
	expires, err := time.Parse(time.RFC3339, text)
	if needed := r.Clock.Now().Add(m.state.Timeouts.Total()); err != nil || !expires.Before(needed) {
		return "" // the add-on has not written the expiry yet
	}
	return fmt.Sprintf("the token of ManagedServiceAccount %s/%s expires at %s, and the migration may take %s: have another one issued: kubectl -n %s delete secret %s",
		m.to(), account.GetName(), text, m.state.Timeouts.Total(), m.to(), account.GetName())
}

// token reads the secret of the ManagedServiceAccount.
func (r *Reconciler) token(ctx context.Context, m migration) (secret *corev1.Secret, found bool, err error) {
	secret = &corev1.Secret{}
	key := client.ObjectKey{Namespace: m.to(), Name: accountName(m.from(), m.to())}
	err = r.Reader.Get(ctx, key, secret)
	if apierrors.IsNotFound(err) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("read Secret %s of the ManagedServiceAccount: %w", key, err)
	}
	return secret, len(secret.Data[corev1.ServiceAccountTokenKey]) > 0, nil
}

// withCA returns an address with the CA of a token, unless a user has given one.
func withCA(a reach.Address, token *corev1.Secret) reach.Address {
	if ca := token.Data[corev1.ServiceAccountRootCAKey]; len(a.CABundle) == 0 && len(ca) > 0 {
		a.CABundle, a.Token = ca, client.ObjectKeyFromObject(token).String()
	}
	return a
}

// revokeBootstrap removes the migration from the owners of the account. It deletes the account with its last owner,
// which revokes the token.
func (r *Reconciler) revokeBootstrap(ctx context.Context, m migration) error {
	served, err := r.servesAccounts(ctx, m)
	if err != nil || !served {
		return err
	}
	if err := cluster.Unshare(ctx, r.Client, m.account(), m.uid()); err != nil {
		return fmt.Errorf("delete ManagedServiceAccount %s/%s: %w", m.to(), accountName(m.from(), m.to()), err)
	}
	return nil
}

// installNamespace returns the namespace in which the add-on creates the ServiceAccount of a ManagedServiceAccount. An agent that makes the
// account itself uses its own namespace; agents of v0.1.0 use this one.
func (r *Reconciler) installNamespace(ctx context.Context, name string) (string, error) {
	if r.Direct != nil {
		return r.Namespace, nil
	}
	addon := &unstructured.Unstructured{}
	addon.SetGroupVersionKind(cluster.AddOnKind)
	err := r.Reader.Get(ctx, client.ObjectKey{Namespace: name, Name: accountAddon}, addon)
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return cluster.AccountNamespace, nil
	}
	if err != nil {
		return "", fmt.Errorf("read ManagedClusterAddOn %s/%s: %w", name, accountAddon, err)
	}
	if namespace, _, _ := unstructured.NestedString(addon.Object, "status", "namespace"); namespace != "" {
		return namespace, nil
	}
	return cluster.AccountNamespace, nil
}

// ownAccount reports whether the agent of the target makes the bootstrap account. What phase Initializing has come to stays: a user may install or
// remove the add-on during the migration, and an API server that restarts may not list the CRD of ManagedServiceAccounts yet.
func (r *Reconciler) ownAccount(ctx context.Context, m migration, x exchange) (bool, error) {
	if len(x.kubeconfig) > 0 { // the target has issued it
		return true, nil
	}
	served, err := r.servesAccounts(ctx, m)
	stage := cmp.Or(m.state.RollbackStage, m.state.Stage)
	if err != nil || served || r.Direct != nil || hub.StageNumber(stage) <= hub.StageNumber(api.PhaseInitializing) {
		return !served, err
	}
	_, hasToken, err := r.token(ctx, m)
	return !hasToken, err
}

// kubeconfig returns the sealed kubeconfig that the source gives its klusterlets. With a ManagedServiceAccount the
// manager creates it, and seals it to the source; otherwise the target has created it.
func (r *Reconciler) kubeconfig(ctx context.Context, m migration, x exchange) (message.Sealed, error) {
	own, err := r.ownAccount(ctx, m, x)
	if err != nil || own {
		if err == nil && len(x.kubeconfig) == 0 {
			err = x.explain("hub %s has issued no bootstrap kubeconfig: upgrade its agent", m.to())
		}
		return x.kubeconfig, err
	}
	key, err := message.ReadSealingKey(x.source)
	if err != nil {
		return nil, x.explain("hub %s has sent no sealing key, to which the bootstrap kubeconfig is sealed: %v", m.from(), err)
	}
	address, p, err := r.address(ctx, m.to())
	if p != nil || err != nil {
		return nil, problemOrError(p, err)
	}
	secret, found, err := r.token(ctx, m)
	if err != nil || !found {
		return nil, problemOrError(&problem{api.ReasonFailed.Name, "the Secret of the ManagedServiceAccount is gone: a user has deleted it, or add-on " + accountAddon + " was removed"}, err)
	}
	address = withCA(address, secret)
	text, err := cluster.Kubeconfig(address.URL, address.CABundle, string(secret.Data[corev1.ServiceAccountTokenKey]))
	if err != nil {
		return nil, err
	}
	return message.SealSecret(key, m.uid(), text)
}
