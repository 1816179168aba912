package source

import (
	"context"
	"time"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/godwit-dev/godwit/cmd/hub/cluster"
	"github.com/godwit-dev/godwit/cmd/hub/klusterlet"
)

// plain is a hub of Open Cluster Management without the import controller. A ManifestWork of the migration configures each klusterlet.
//
// The bootstrap kubeconfig that such a cluster has from its user is mostly expired, and an agent that knows two hubs checks it whenever it
// starts. So the migration gives the klusterlet one for this hub as well, of an account of its own.
type plain struct{ Hub }

func (h plain) work(name string) klusterlet.Work {
	return klusterlet.Work{Client: h.Client, UID: h.UID, Cluster: name}
}

func (h plain) share(ctx context.Context, _ []string, kubeconfig []byte) (installed []byte, waits string, err error) {
	waits, err = h.Returns.GrantRegistration(ctx)
	return kubeconfig, waits, err
}

func (h plain) install(ctx context.Context, mc *clusterv1.ManagedCluster, kubeconfig []byte) (waits string, err error) {
	original, err := cluster.OriginalOf(mc, h.UID)
	if err != nil {
		return "", err
	}
	if err := cluster.Patch(ctx, h.Client, mc, func() error {
		original.Replace(mc, cluster.AnnotationMigrating, h.UID)
		return original.Save(mc)
	}); err != nil {
		return "", err
	}
	w := h.work(mc.Name)
	s, waits, err := w.Read(ctx)
	if err != nil || waits != "" {
		return waits, err
	}
	own := s.Kubeconfig(klusterlet.SourceSecret)
	if own == nil {
		if own, err = h.issue(ctx, s, kubeconfig); err != nil {
			return "", err
		}
	}
	if installed := s.Kubeconfig(klusterlet.TargetSecret); cluster.ExpiresLater(installed, kubeconfig) {
		kubeconfig = installed
	}
	waits, err = w.Apply(ctx, s, klusterlet.Config{Stage: klusterlet.TwoHubs, Source: own, Target: kubeconfig, Reconnect: h.Reconnect})
	if err != nil || waits != "" {
		return waits, err
	}
	return h.orphanWorks(ctx, mc.Name)
}

// withoutExpiry is the lifetime of the token of this hub if that of the target has none.
const withoutExpiry = 24 * time.Hour

// issue issues the bootstrap kubeconfig of this hub, which is valid for as long as that of the target.
func (h plain) issue(ctx context.Context, s klusterlet.State, other []byte) ([]byte, error) {
	lifetime := withoutExpiry
	if expires, ok := cluster.Expires(other); ok {
		lifetime = time.Until(expires)
	}
	token, err := h.Returns.IssueToken(ctx, lifetime)
	if err != nil {
		return nil, err
	}
	return s.Bootstrap(token)
}

// revert restores the Klusterlet. The cluster applies this when it is at this hub.
func (h plain) revert(ctx context.Context, mc *clusterv1.ManagedCluster) error {
	w := h.work(mc.Name)
	s, err := w.Find(ctx)
	if err != nil || s.Stage != klusterlet.TwoHubs {
		return err
	}
	_, err = w.Apply(ctx, s, klusterlet.Config{Stage: klusterlet.Restored})
	return err
}

// end waits until the klusterlet is as before, and removes the ManifestWork.
func (h plain) end(ctx context.Context, name string) (waits string, err error) {
	w := h.work(name)
	s, err := w.Find(ctx)
	if err != nil {
		return "", err
	}
	if s.Stage == klusterlet.TwoHubs || s.Stage == klusterlet.Restored {
		if waits, err := w.Apply(ctx, s, klusterlet.Config{Stage: klusterlet.Restored}); err != nil || waits != "" {
			return waits, err
		}
	}
	if waits, err := w.Remove(ctx, s); err != nil || waits != "" {
		return waits, err
	}
	mc, err := h.Live().Find(ctx, name)
	if err != nil || mc == nil {
		return "", err
	}
	original, err := cluster.OriginalOf(mc, h.UID)
	if err != nil {
		return "", err
	}
	return "", cluster.Patch(ctx, h.Client, mc, func() error {
		original.Restore(mc, cluster.AnnotationMigrating)
		return original.Save(mc)
	})
}

// unshare revokes what share has granted.
func (h plain) unshare(ctx context.Context) error {
	if needed, err := h.needed(ctx); err != nil || needed {
		return err
	}
	return h.Returns.RevokeRegistration(ctx)
}

// release removes the ManifestWork of a cluster that has left, and lets the hub delete those of users.
func (h plain) release(ctx context.Context, name string) error {
	if err := klusterlet.ReleaseWorks(ctx, h.Client, name); err != nil {
		return err
	}
	s, err := h.work(name).Find(ctx)
	if err != nil {
		return err
	}
	_, err = h.work(name).Remove(ctx, s)
	return err
}
