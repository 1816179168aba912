package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/godwit-dev/godwit/bench/internal/frame"
	"github.com/godwit-dev/godwit/walk"
)

const (
	// perSecond is the rate of a busy controller, and far below the limit of the server.
	perSecond = 50
	// clientObjects is the number of objects of the second client.
	clientObjects = 20
)

// neighbour is the second client.
type neighbour struct {
	objects typedcorev1.ConfigMapInterface
}

func newNeighbour(ctx context.Context, cluster *frame.Cluster) (*neighbour, error) {
	const name = "neighbour"
	user, _, err := cluster.AddUser(ctx, name)
	if err != nil {
		return nil, err
	}
	clients, err := kubernetes.NewForConfig(user)
	if err != nil {
		return nil, err
	}
	if err := cluster.CreateNamespace(ctx, name); err != nil {
		return nil, err
	}
	n := &neighbour{objects: clients.CoreV1().ConfigMaps(name)}
	for i := range clientObjects {
		o := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: objectName(i)}, Data: map[string]string{"turn": "none"}}
		if _, err := n.objects.Create(ctx, o, metav1.CreateOptions{}); err != nil {
			return nil, err
		}
	}
	return n, nil
}

func objectName(i int) string { return fmt.Sprintf("object-%d", i%clientObjects) }

// measure sends requests at a steady rate, even if earlier requests have not ended. The time of a request begins when the request
// was due, so that a request that the client sends late counts as slow.
func (n *neighbour) measure(ctx context.Context, d time.Duration) ([]time.Duration, error) {
	const every = time.Second / perSecond
	took := make([]time.Duration, int(d/every))
	failed := make([]error, len(took))
	var underWay sync.WaitGroup
	defer underWay.Wait()
	began := time.Now()
	for i := range took {
		due := began.Add(time.Duration(i) * every)
		if err := walk.Wait(ctx, time.Until(due)); err != nil {
			return nil, err
		}
		underWay.Go(func() {
			failed[i] = n.request(ctx, i)
			took[i] = time.Since(due)
		})
	}
	underWay.Wait()
	if err := errors.Join(failed...); err != nil {
		return nil, fmt.Errorf("the second client: %w", err)
	}
	return took, nil
}

// request sends a request as a controller does: mostly reads of single objects, and some writes.
func (n *neighbour) request(ctx context.Context, i int) error {
	var err error
	switch i % 10 {
	case 0:
		_, err = n.objects.List(ctx, metav1.ListOptions{})
	case 1, 4, 7:
		patch := fmt.Appendf(nil, `{"data":{"turn":"%d"}}`, time.Now().UnixNano())
		_, err = n.objects.Patch(ctx, objectName(i/3), types.MergePatchType, patch, metav1.PatchOptions{})
	default:
		_, err = n.objects.Get(ctx, objectName(i), metav1.GetOptions{})
	}
	return err
}
