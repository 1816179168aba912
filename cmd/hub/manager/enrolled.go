package manager

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-dev/godwit/cmd/hub/identity"
	"github.com/godwit-dev/godwit/cmd/hub/message"
)

// EnrolledHubs is the name of the ConfigMap of enrolled hubs, in the namespace of the manager. It has the public key of
// each hub's agent, in the format of package identity. A user who can write it can act as any hub.
const EnrolledHubs = "godwit-enrolled-hubs"

// enrolled reads the keys of all enrolled hubs, as text.
func (r *Reconciler) enrolled(ctx context.Context) (map[string]string, error) {
	hubs := &corev1.ConfigMap{}
	key := client.ObjectKey{Namespace: r.Namespace, Name: EnrolledHubs}
	err := client.IgnoreNotFound(r.Reader.Get(ctx, key, hubs))
	if err != nil {
		return nil, fmt.Errorf("read the enrolled hubs in ConfigMap %s: %w", key, err)
	}
	return hubs.Data, nil
}

// notEnrolled returns the message for a hub without a key.
func notEnrolled(hub string) string {
	return fmt.Sprintf("hub %s is not enrolled: add the key of its agent to ConfigMap %s with `godwit cluster enroll %s`", hub, EnrolledHubs, hub)
}

// hubKey returns the key of an enrolled hub. If the key is missing or malformed, it returns a problem.
func (r *Reconciler) hubKey(ctx context.Context, hub string) (key message.IdentityKey, problem string, err error) {
	if r.Direct != nil {
		return r.Identity.Key(), "", nil
	}
	hubs, err := r.enrolled(ctx)
	if err != nil {
		return key, "", err
	}
	text, ok := hubs[hub]
	if !ok {
		return key, notEnrolled(hub), nil
	}
	if key, err = identity.Parse(text); err != nil {
		return key, fmt.Sprintf("key %s of ConfigMap %s/%s: %v; copy it from Secret %s of the agent's namespace", hub, r.Namespace, EnrolledHubs, err, identity.Secret), nil
	}
	return key, "", nil
}
