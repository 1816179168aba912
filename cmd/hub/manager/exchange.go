package manager

import (
	"bytes"
	"context"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-dev/godwit/cmd/hub"
	api "github.com/godwit-dev/godwit/cmd/hub/api/v1alpha1"
	"github.com/godwit-dev/godwit/cmd/hub/message"
)

// exchange is the data that the manager passes from one hub to the other: public keys, and a kubeconfig that only the
// source can open. It is stored in ConfigMap <migration>-keys until the migration has settled.
type exchange struct {
	source, target []byte
	kubeconfig     message.Sealed
}

// Keys of the ConfigMap.
const (
	keySource     = "sourceSealingKey"
	keyTarget     = "targetSealingKey"
	keyKubeconfig = "bootstrapSecret"
)

// exchangeName is the name of the ConfigMap.
func exchangeName(m *api.ManagedClusterMigration) string { return m.Name + "-keys" }

// exchangeOf reads the stored exchange of a migration.
func (r *Reconciler) exchangeOf(ctx context.Context, m migration) (exchange, error) {
	kept, err := readShard(ctx, r.Reader, m.object, exchangeName(m.object))
	if err != nil || kept == nil {
		return exchange{}, err
	}
	return exchange{source: kept.BinaryData[keySource], target: kept.BinaryData[keyTarget], kubeconfig: kept.BinaryData[keyKubeconfig]}, nil
}

// saveExchange stores the data of a report for the other hub. It must be stored before the state that follows from the
// report: the commands of that state need it.
func (r *Reconciler) saveExchange(ctx context.Context, m migration, p hub.Party, b message.StatusBundle) error {
	brought := map[string][]byte{}
	add := func(key string, data []byte) {
		if len(data) > 0 {
			brought[key] = data
		}
	}
	if p == hub.Source {
		add(keySource, b.SealingKey)
	} else {
		add(keyTarget, b.SealingKey)
		add(keyKubeconfig, b.BootstrapSecret)
	}
	if len(brought) == 0 {
		return nil
	}
	kept, err := readShard(ctx, r.Reader, m.object, exchangeName(m.object))
	if err != nil {
		return err
	}
	if kept == nil {
		created := &corev1.ConfigMap{ObjectMeta: metadataOf(m.object, exchangeName(m.object)), BinaryData: brought}
		if err := r.Client.Create(ctx, created); err != nil {
			return r.explainNameConflict(ctx, m.object, created.Name, err)
		}
		return nil
	}
	merged := maps.Clone(kept.BinaryData)
	if merged == nil {
		merged = map[string][]byte{}
	}
	maps.Copy(merged, brought)
	if maps.EqualFunc(merged, kept.BinaryData, bytes.Equal) {
		return nil
	}
	kept.BinaryData = merged
	if err := r.Client.Update(ctx, kept); err != nil {
		return fmt.Errorf("write ConfigMap %s/%s: %w", kept.Namespace, kept.Name, err)
	}
	return nil
}

// deleteExchange deletes the keys of a migration that has ended.
func (r *Reconciler) deleteExchange(ctx context.Context, m migration) error {
	kept, err := readShard(ctx, r.Reader, m.object, exchangeName(m.object))
	if err != nil || kept == nil {
		return err
	}
	if err := r.Client.Delete(ctx, kept, client.Preconditions{UID: &kept.UID}); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete ConfigMap %s/%s: %w", kept.Namespace, kept.Name, err)
	}
	return nil
}
