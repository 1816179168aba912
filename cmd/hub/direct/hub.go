package direct

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// maxLabel bounds the readable part of the name of a hub.
const maxLabel = 30

// ID identifies a hub, also under another name of its context or on another machine.
type ID string

// IDOf reads the ID of a hub: a hash of the UID of namespace kube-system, which a cluster keeps for life, and of the namespace of the
// state. Names of objects that migrations between two hubs share are made of it, and migrations of two namespaces have bootstrap accounts
// of their own.
func IDOf(ctx context.Context, hub client.Reader, namespace string) (ID, error) {
	system := &corev1.Namespace{}
	if err := hub.Get(ctx, client.ObjectKey{Name: metav1.NamespaceSystem}, system); err != nil {
		return "", fmt.Errorf("read namespace %s: %w", metav1.NamespaceSystem, err)
	}
	sum := sha256.Sum256([]byte(string(system.UID) + "/" + namespace))
	return ID(hex.EncodeToString(sum[:4])), nil
}

// Name returns a name for the hub of a context, which is valid in names of objects. Two hubs never have the same name.
func (id ID) Name(context string) string {
	label := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, strings.ToLower(context))
	label = strings.Trim(label[:min(len(label), maxLabel)], "-")
	if label == "" {
		label = "hub"
	}
	return label + "-" + string(id)
}

// Is reports whether a name is of this hub.
func (id ID) Is(name string) bool { return strings.HasSuffix(name, "-"+string(id)) }
