package agent

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/godwit-dev/godwit/cmd/hub"
	"github.com/godwit-dev/godwit/cmd/hub/cluster"
	"github.com/godwit-dev/godwit/cmd/hub/message"
	"github.com/godwit-dev/godwit/cmd/hub/target"
)

// targetPass returns the pass of an action of the target hub. The pass of ReceiveResources is in deploy.go.
func (w *work) targetPass(action hub.Action) (pass, bool) {
	h := w.targetHub()
	switch action {
	case hub.ValidateTarget:
		return w.identified(h, target.Hub.ValidateTarget), true
	case hub.GrantRegistration:
		return passOfMigration(w.grant), true
	case hub.AcceptClusters:
		return w.identified(h, target.Hub.AcceptClusters), true
	case hub.AwaitRegistration:
		return func(ctx context.Context, names []string) (cluster.Result, error) {
			h.Denied = func(requests []string) { w.reportDenied(ctx, requests) }
			return h.AwaitRegistration(ctx, names, &w.leases)
		}, true
	case hub.StopAccepting:
		return h.StopAccepting, true
	case hub.DeleteCreated:
		return h.DeleteCreated, true
	case hub.FinishMoved:
		return w.identified(h, target.Hub.FinishMoved), true
	case hub.RevokeRegistration:
		return passOfMigration(func(ctx context.Context) (string, error) { return "", w.revoke(ctx) }), true
	}
	return nil, false
}

// identified returns a pass for which the hub knows the identities of the clusters at the source hub, if the process has access to that hub.
func (w *work) identified(h target.Hub, act func(h target.Hub, ctx context.Context, clusters []string) (cluster.Result, error)) pass {
	return func(ctx context.Context, clusters []string) (_ cluster.Result, err error) {
		if w.Identities != nil {
			if h.Identities, err = w.Identities(ctx, clusters); err != nil {
				return cluster.Result{}, fmt.Errorf("read the ManagedClusters of the source hub: %w", err)
			}
		}
		return act(h, ctx, clusters)
	}
}

func (w *work) targetHub() target.Hub {
	b := w.task.Target
	account := types.NamespacedName{Namespace: w.Namespace, Name: b.ManagedServiceAccountName}
	if !b.OwnAccount {
		account.Namespace = b.InstallNamespace
	}
	return target.Hub{
		Hub: w.hubWith(b.UserObjects), Account: account, OtherNamespace: account.Namespace != w.Namespace,
		Reconnect: reconnectTimeout(b.ReconnectTimeoutSeconds), Issued: w.found.addCertificate,
	}
}

// revoke also revokes what an account in the other namespace was granted: a user may have installed or removed the add-on since
// GrantRegistration.
func (w *work) revoke(ctx context.Context) error {
	h := w.targetHub()
	h.Denied = func(requests []string) { w.found.setDenied(requests) } // the final report has them
	if err := h.RevokeRegistration(ctx); err != nil {
		return err
	}
	h.Denied = nil
	for _, namespace := range []string{w.Namespace, w.task.Target.InstallNamespace} {
		if namespace == h.Account.Namespace || namespace == "" {
			continue
		}
		h.Account.Namespace, h.OtherNamespace = namespace, namespace != w.Namespace
		return h.RevokeRegistration(ctx)
	}
	return nil
}

// reportDenied reports requests that the migration has denied, when there is another one.
func (w *work) reportDenied(ctx context.Context, requests []string) {
	if w.found.setDenied(requests) {
		w.publish(ctx)
	}
}

// grant grants the permission to register. It also issues the bootstrap kubeconfig if the manager has none.
func (w *work) grant(ctx context.Context) (waits string, err error) {
	h, b := w.targetHub(), w.task.Target
	if waits, err := h.GrantRegistration(ctx); err != nil || waits != "" || b.Bootstrap == nil {
		return waits, err
	}
	key, err := sealingKeyOf(b.SourceSealingKey, b.FromHub)
	if err != nil {
		return "", err
	}
	token, err := h.IssueToken(ctx, time.Duration(b.Bootstrap.TokenLifetimeSeconds)*time.Second)
	if err != nil {
		return "", err
	}
	kubeconfig, err := cluster.Kubeconfig(b.Bootstrap.Server, b.Bootstrap.CABundle, token)
	if err != nil {
		return "", err
	}
	w.progress.bootstrap, err = message.SealSecret(key, w.migration.uid, kubeconfig)
	return "", err
}
