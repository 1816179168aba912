package source

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/godwit-dev/godwit/cmd/hub/cluster"
	"github.com/godwit-dev/godwit/cmd/hub/message"
	"github.com/godwit-dev/godwit/cmd/hub/resource"
)

// chunk is the number of clusters that are collected before they are sent. It bounds memory.
const chunk = 16

// maxKubeconfig bounds the bootstrap kubeconfig of this hub, in bytes: it may contain a certificate bundle.
const maxKubeconfig = 64 << 10

// Send sends a bundle to the target. It returns when the transport has accepted the bundle.
type Send func(ctx context.Context, b message.ResourceBundle) error

// Parcel selects the objects to send: all objects of clusters, or only the missing ones.
type Parcel struct {
	Clusters []string
	// Total is the number of clusters of the migration.
	Total int
	// Missing are the gaps that the target has reported for these clusters.
	Missing []message.Gap
}

// SendResources pauses the provisioning of clusters, collects their objects, and sends them. A cluster is done when the
// transport has accepted all of its objects.
func (h Hub) SendResources(ctx context.Context, p Parcel, send Send) (cluster.Result, error) {
	h.Hub = h.Pass()
	total := cluster.Result{Gone: map[string]string{}, Waiting: map[string]string{}, Failed: map[string]*cluster.Error{}}
	for names := range slices.Chunk(p.Clusters, chunk) {
		r, err := h.sendChunk(ctx, p, names, send)
		total.Add(r)
		if err != nil {
			return total, err
		}
	}
	return total, nil
}

func (h Hub) sendChunk(ctx context.Context, p Parcel, names []string, send Send) (cluster.Result, error) {
	var mutex sync.Mutex
	var collected []message.Resources
	r, err := h.Each(ctx, names, func(ctx context.Context, name string) (string, error) {
		all, err := h.collect(ctx, name)
		if err != nil {
			return "", err
		}
		mutex.Lock()
		defer mutex.Unlock()
		collected = append(collected, all)
		return "", nil
	})
	if err != nil {
		return r, err
	}
	slices.SortFunc(collected, func(a, b message.Resources) int { return slices.Compare([]string{a.Cluster}, []string{b.Cluster}) })
	bundles, err := p.pack(collected, &r)
	if err != nil {
		return r, err
	}
	for _, b := range bundles {
		if err := send(ctx, b); err != nil {
			return r, err
		}
	}
	return r, nil
}

// pack packs the clusters into bundles. It fails a cluster with an object that does not fit into a message.
func (p Parcel) pack(collected []message.Resources, r *cluster.Result) ([]message.ResourceBundle, error) {
	for {
		var bundles []message.ResourceBundle
		var err error
		if len(p.Missing) > 0 {
			bundles, err = message.PackMissing(p.Total, collected, gapsOf(p.Missing, collected))
		} else {
			bundles, err = message.Pack(p.Total, collected)
		}
		large := (*message.TooLargeError)(nil)
		if !errors.As(err, &large) {
			return bundles, err
		}
		r.Fail(large.Cluster, cluster.Fail(cluster.ReasonTooLarge, "%v: make the object smaller", large))
		collected = slices.DeleteFunc(collected, func(c message.Resources) bool { return c.Cluster == large.Cluster })
	}
}

// gapsOf returns the gaps of the collected clusters.
func gapsOf(gaps []message.Gap, collected []message.Resources) []message.Gap {
	var kept []message.Gap
	for _, g := range gaps {
		for _, c := range collected {
			switch {
			case c.Cluster != g.ClusterName:
			case g.First+g.Objects > len(c.Objects):
				// The cluster has fewer objects than before: all of it is sent.
				kept = append(kept, message.Gap{ClusterName: g.ClusterName})
			default:
				kept = append(kept, g)
			}
		}
	}
	return kept
}

// collect pauses a cluster, and returns its resources in the form for the target.
func (h Hub) collect(ctx context.Context, name string) (message.Resources, error) {
	all := message.Resources{Cluster: name}
	if _, _, err := h.prepared(ctx, name); err != nil {
		return all, err
	}
	var err error
	if all.SourceKubeconfig, err = h.ownKubeconfig(ctx, name); err != nil {
		return all, err
	}
	objects, err := h.Objects(ctx, name, h.MigrationRules())
	if err != nil {
		return all, err
	}
	// Pause all objects before the first one is encoded.
	for _, o := range objects {
		if err := cluster.Pause(ctx, h.Client, o, h.UID); err != nil {
			return all, err
		}
	}
	all.Objects = make([]json.RawMessage, len(objects))
	for i, o := range objects {
		if all.Objects[i], err = h.encode(o); err != nil {
			return all, err
		}
	}
	return all, nil
}

// ownKubeconfig reads the bootstrap kubeconfig with which the cluster has registered at this hub. The cluster needs it
// to return.
func (h Hub) ownKubeconfig(ctx context.Context, name string) ([]byte, error) {
	if imports, err := h.Imports(); err != nil || !imports {
		return nil, err
	}
	k, err := h.klusterlet(ctx, name)
	if err != nil {
		return nil, err
	}
	own := k.OwnKubeconfig()
	switch {
	case own == nil:
		return nil, cluster.Fail(cluster.ReasonNoKlusterletWork, "ManifestWork %s has no bootstrap kubeconfig of the source hub, by which the cluster could return: import it with the import controller", k.Name())
	case len(own) > maxKubeconfig:
		return nil, cluster.Fail(cluster.ReasonTooLarge, "the bootstrap kubeconfig in ManifestWork %s has %d bytes, and may have %d", k.Name(), len(own), maxKubeconfig)
	}
	return own, nil
}

// encode returns the form of an object for the target: without the fields of this hub, and with the original values
// that the target restores.
func (h Hub) encode(o cluster.Object) (json.RawMessage, error) {
	sent := o.DeepCopy()
	if o.Rule.Kind == "ManagedCluster" {
		if err := h.toTarget(sent); err != nil {
			return nil, err
		}
	}
	resource.Clean(sent.Object)
	if !o.Rule.Status {
		identity := cluster.IdentityIn(sent)
		delete(sent.Object, "status")
		if identity != "" { // the target recognizes the cluster by it, and writes no status
			sent.Object["status"] = map[string]any{"clusterClaims": []any{map[string]any{"name": cluster.ClaimID, "value": identity}}}
		}
	}
	text, err := json.Marshal(sent.Object)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", cluster.Name(h.Client, o.Unstructured), err)
	}
	return text, nil
}

// toTarget restores the user's values in a ManagedCluster, except the marks of the migration: the target does not have
// the migration's KlusterletConfig.
func (h Hub) toTarget(mc *unstructured.Unstructured) error {
	original, err := cluster.OriginalOf(mc, h.UID)
	if err != nil {
		return err
	}
	original.Restore(mc, cluster.AnnotationKlusterletConfig)
	original.HubAcceptsClient = nil
	return original.Save(mc)
}
