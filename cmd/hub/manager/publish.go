package manager

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// HubHeartbeats is the name of the ConfigMap with the manager's [Receipts], in its namespace, for users and for
	// preflights. The manager does not read it.
	HubHeartbeats = "godwit-hub-heartbeats"
	// receiptsKey is the key of [HubHeartbeats] with the receipts as JSON.
	receiptsKey = "receipts"
	// PublishInterval is how often the manager writes its receipts.
	PublishInterval = 5 * time.Second
)

// Receipts records what the manager has received from the agents of all enrolled hubs.
type Receipts struct {
	// Published is when the manager wrote the receipts, by its clock; zero if never.
	Published time.Time          `json:"published"`
	Hubs      map[string]Receipt `json:"hubs"`
}

// ReadReceipts reads the receipts that the manager in a namespace has published. Published is zero if the manager has
// published none.
func ReadReceipts(ctx context.Context, reader client.Reader, namespace string) (all Receipts, err error) {
	published := &corev1.ConfigMap{}
	key := client.ObjectKey{Namespace: namespace, Name: HubHeartbeats}
	err = reader.Get(ctx, key, published)
	if apierrors.IsNotFound(err) {
		return all, nil
	}
	if err == nil {
		err = json.Unmarshal([]byte(published.Data[receiptsKey]), &all)
	}
	if err != nil {
		return all, fmt.Errorf("read the heartbeats of hubs in ConfigMap %s: %w", key, err)
	}
	return all, nil
}

// publish writes the receipts of hubs.
func (r *Reconciler) publish(ctx context.Context, hubs map[string]string) error {
	known := r.receipts.all()
	all := Receipts{Published: r.Clock.Now().UTC(), Hubs: make(map[string]Receipt, len(hubs))}
	for name := range hubs {
		all.Hubs[name] = known[name]
	}
	text, err := json.Marshal(all)
	if err != nil {
		return err
	}
	published := &corev1.ConfigMap{}
	key := client.ObjectKey{Namespace: r.Namespace, Name: HubHeartbeats}
	err = r.Reader.Get(ctx, key, published)
	published.Data = map[string]string{receiptsKey: string(text)}
	switch {
	case apierrors.IsNotFound(err):
		published.ObjectMeta = metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}
		err = r.Client.Create(ctx, published)
	case err == nil:
		err = r.Client.Update(ctx, published)
	}
	if err != nil {
		return fmt.Errorf("write the heartbeats of hubs to ConfigMap %s: %w", key, err)
	}
	return nil
}
