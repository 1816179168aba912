package target

import (
	"context"
	"fmt"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-dev/godwit/cmd/hub"
	"github.com/godwit-dev/godwit/cmd/hub/cluster"
)

// IssueToken issues a token of the bootstrap account on a hub without ManagedServiceAccounts. The token must be valid
// for the lifetime of the migration with its rollback, because an agent that restarts with an expired token changes
// hubs: it fails if the API server grants less. It requests [hub.AfterEnd] more, because a cluster needs the token
// until the cleanup has replaced it; the API server may grant less of this.
func (h Hub) IssueToken(ctx context.Context, lifetime time.Duration) (token string, err error) {
	return h.issue(ctx, lifetime, lifetime+hub.AfterEnd)
}

// IssueShortToken issues a token that is valid for a time and no longer, for a process that issues another one when it needs one.
func (h Hub) IssueShortToken(ctx context.Context, lifetime time.Duration) (token string, err error) {
	return h.issue(ctx, lifetime, lifetime)
}

// issue requests a token for a time. It fails if the API server grants less than the least time.
func (h Hub) issue(ctx context.Context, least, wanted time.Duration) (token string, err error) {
	account := h.account()
	if err := cluster.Share(ctx, h.Client, account, h.UID, func() error { return nil }); err != nil {
		return "", fmt.Errorf("create bootstrap account %s: %w", h.Account, err)
	}
	seconds := int64(wanted / time.Second)
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}}
	if err := h.Client.SubResource("token").Create(ctx, account, request); err != nil {
		return "", fmt.Errorf("request a token of bootstrap account %s: %w", h.Account, err)
	}
	// The response has the lifetime that the API server grants.
	if granted := request.Spec.ExpirationSeconds; granted == nil || time.Duration(*granted)*time.Second < least {
		return "", cluster.Fail(cluster.ReasonAPI, "the API server issues tokens until %s at most, and the migration needs %s: raise its --service-account-max-token-expiration",
			request.Status.ExpirationTimestamp.UTC().Format(time.RFC3339), least)
	}
	return request.Status.Token, nil
}

func (h Hub) account() *corev1.ServiceAccount {
	return &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: h.Account.Namespace, Name: h.Account.Name}}
}

// revokeTokens deletes the account with its last owner, if migrations have created it.
func (h Hub) revokeTokens(ctx context.Context) error {
	err := client.IgnoreNotFound(cluster.Unshare(ctx, h.Client, h.account(), h.UID))
	if h.OtherNamespace && apierrors.IsForbidden(err) {
		return nil // the add-on deletes the account
	}
	if err != nil {
		return fmt.Errorf("delete bootstrap account %s: %w", h.Account, err)
	}
	return nil
}
