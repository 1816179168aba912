package manager

import (
	"bytes"
	"context"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-dev/godwit/cmd/hub"
	api "github.com/godwit-dev/godwit/cmd/hub/api/v1alpha1"
	"github.com/godwit-dev/godwit/cmd/hub/message"
	"github.com/godwit-dev/godwit/cmd/hub/seal"
)

// exchange is the data that the manager passes from one hub to the other: public keys, and a kubeconfig that only the
// source can open. It is stored in ConfigMap <migration>-keys until the migration has settled, with the signature of the manager: a client
// that could change a key there would open what is sealed to it.
type exchange struct {
	source, target []byte
	kubeconfig     message.Sealed
	// changed says that another client has changed the ConfigMap, of which nothing is used then; empty if none has.
	changed string
}

// explain returns a problem that names the missing part of the exchange, or the change because of which it is missing.
func (x exchange) explain(missing string, args ...any) *problem {
	if x.changed != "" {
		return &problem{api.ReasonKeysChanged.Name, x.changed}
	}
	return &problem{api.ReasonFailed.Name, fmt.Sprintf(missing, args...)}
}

// Keys of the ConfigMap.
const (
	keySource     = "sourceSealingKey"
	keyTarget     = "targetSealingKey"
	keyKubeconfig = "bootstrapSecret"
	// keyChanged says that another client has changed the ConfigMap before, so that keys may be missing.
	keyChanged = "changed"
)

// exchangeName is the name of the ConfigMap.
func exchangeName(m *api.ManagedClusterMigration) string { return m.Name + "-keys" }

// exchangeOf reads the stored exchange of a migration.
func (r *Reconciler) exchangeOf(ctx context.Context, m migration) (exchange, error) {
	kept, err := readShard(ctx, r.Reader, m.object, exchangeName(m.object))
	if err != nil || kept == nil {
		return exchange{}, err
	}
	if !r.isOurs(m.object, kept) {
		return exchange{changed: r.reportChanged(m.object, kept)}, nil
	}
	return exchange{changed: string(kept.BinaryData[keyChanged]), source: kept.BinaryData[keySource], target: kept.BinaryData[keyTarget], kubeconfig: kept.BinaryData[keyKubeconfig]}, nil
}

// contentOf returns what the signature of an exchange covers.
func contentOf(m *api.ManagedClusterMigration, data map[string][]byte) seal.Content {
	return seal.Content{Migration: string(m.UID), Name: exchangeName(m), Data: data}
}

// isOurs reports whether the manager has written an exchange.
func (r *Reconciler) isOurs(m *api.ManagedClusterMigration, kept *corev1.ConfigMap) bool {
	return contentOf(m, kept.BinaryData).IsSigned(r.Identity.Key(), kept.Annotations[seal.Annotation])
}

// reportChanged records an event about an exchange that another client has changed, and returns its text.
func (r *Reconciler) reportChanged(m *api.ManagedClusterMigration, kept *corev1.ConfigMap) string {
	text := fmt.Sprintf("ConfigMap %s/%s with the keys of the hubs is not signed by the manager, which uses nothing of it: the key of the manager was replaced, or another client has changed the ConfigMap, "+
		"which `kubectl -n %s get configmap %s -o yaml --show-managed-fields` shows", kept.Namespace, kept.Name, kept.Namespace, kept.Name)
	r.warn(m, api.ReasonKeysChanged.Name, text)
	return text
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
		created.Annotations = map[string]string{seal.Annotation: contentOf(m.object, brought).Sign(r.Identity)}
		if err := r.Client.Create(ctx, created); err != nil {
			return r.explainNameConflict(ctx, m.object, created.Name, err)
		}
		return nil
	}
	merged := map[string][]byte{}
	isOurs := r.isOurs(m.object, kept)
	if isOurs {
		maps.Copy(merged, kept.BinaryData)
	} else {
		merged[keyChanged] = []byte(r.reportChanged(m.object, kept))
	}
	maps.Copy(merged, brought)
	if isOurs && maps.EqualFunc(merged, kept.BinaryData, bytes.Equal) {
		return nil
	}
	kept.BinaryData = merged
	metav1.SetMetaDataAnnotation(&kept.ObjectMeta, seal.Annotation, contentOf(m.object, merged).Sign(r.Identity))
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
