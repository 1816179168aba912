package target

import (
	"context"

	"github.com/godwit-dev/godwit/cmd/hub/cluster"
)

// StopAccepting sets hubAcceptsClient to false, and prevents automatic approval from setting it again. It does nothing
// for a cluster that the hub does not have, and for one that a user has imported there since, or that another client has planted. It reports the certificate that the
// cluster has got here.
func (h Hub) StopAccepting(ctx context.Context, clusters []string) (cluster.Result, error) {
	return h.Each(ctx, clusters, func(ctx context.Context, name string) (string, error) {
		mc, err := h.Find(ctx, name)
		switch {
		case err != nil || mc == nil:
			return "", err
		case !cluster.IsOwned(mc, h.UID):
			return "", nil
		}
		// A user may have deleted the namespace, and no client without permission can have the hub accept a cluster.
		if created, err := h.created(ctx, mc); err != nil || !created && !mc.Spec.HubAcceptsClient {
			return "", err
		}
		original, err := cluster.OriginalOf(mc, h.UID)
		if err != nil {
			return "", err
		}
		if err := cluster.Patch(ctx, h.Client, mc, func() error {
			original.Replace(mc, cluster.AnnotationAccepted, "migration "+h.UID)
			mc.Spec.HubAcceptsClient = false
			return original.Save(mc)
		}); err != nil {
			return "", err
		}
		return "", h.reportCertificate(ctx, name)
	})
}
