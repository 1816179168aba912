// Package identity stores the identities of the manager and of agents: a permanent key in a Secret, and its public half
// as text. Users enroll a hub with the manager, and configure the manager at a hub, with this text.
package identity

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-dev/godwit/cmd/hub/message"
	"github.com/godwit-dev/godwit/internal/format"
)

const (
	// Secret is the name of the Secret with the identity, in the namespace of the manager and of each agent. It is
	// created at the first start. A user who can read it can act as the manager or as that hub.
	Secret = "godwit-hub-identity" //nolint:gosec // the name of a Secret
	// Private is the key of [Secret] with 32 bytes.
	Private = "private"
	// Public is the key of [Secret] with the text of [Format].
	Public = "public"
	// Name is the key of [Secret] with the name of its owner.
	Name = "name"
)

// Owner is the manager or an agent. Each needs a namespace of its own on an API server: a Secret that
// two share would let the agent sign commands as the manager.
type Owner struct {
	// Namespace of the [Secret].
	Namespace string
	// Name is [message.ManagerName], or that of the agent's hub.
	Name string
}

// String names the owner in a message.
func (o Owner) String() string {
	switch o.Name {
	case message.ManagerName:
		return "the manager"
	case "":
		return "an unknown owner"
	}
	return "the agent of hub " + o.Name
}

// OwnerOf returns the owner of the identity in a Secret.
func OwnerOf(secret *corev1.Secret) Owner {
	return Owner{Namespace: secret.Namespace, Name: string(secret.Data[Name])}
}

// Ensure reads the identity of an owner, and creates it if it does not exist. If two processes create it at the same
// time, both get the first one. The reader must not be a cache.
func Ensure(ctx context.Context, w client.Writer, reader client.Reader, o Owner) (message.Identity, error) {
	secret := &corev1.Secret{}
	key := client.ObjectKey{Namespace: o.Namespace, Name: Secret}
	err := reader.Get(ctx, key, secret)
	if apierrors.IsNotFound(err) {
		if err = o.create(ctx, w); err == nil || apierrors.IsAlreadyExists(err) {
			err = reader.Get(ctx, key, secret)
		}
	}
	if err != nil {
		return message.Identity{}, fmt.Errorf("read the identity in Secret %s: %w", key, err)
	}
	if err := format.CheckData(fmt.Sprintf("Secret %s", key), secret.Data); err != nil {
		return message.Identity{}, fmt.Errorf("read the identity: %w; %s", err, format.Do)
	}
	if other := OwnerOf(secret); other != o {
		return message.Identity{}, fmt.Errorf("%s can't run in namespace %s: Secret %s there is the identity of %s; run the two in namespaces of their own", o, o.Namespace, Secret, other)
	}
	own, err := message.ReadIdentity(secret.Data[Private])
	if err != nil {
		return message.Identity{}, fmt.Errorf("key %s of Secret %s: %w; restore it from a backup, or delete the Secret, restart and enroll again", Private, key, err)
	}
	return own, nil
}

func (o Owner) create(ctx context.Context, w client.Writer) error {
	own, err := message.NewIdentity()
	if err != nil {
		return err
	}
	return w.Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: o.Namespace, Name: Secret},
		Data:       map[string][]byte{Private: own.Bytes(), Public: []byte(Format(own.Key())), Name: []byte(o.Name), format.Key: fmt.Append(nil, format.Current)},
	})
}

// Format writes a public key as text.
func Format(k message.IdentityKey) string { return base64.StdEncoding.EncodeToString(k.Bytes()) }

// Fingerprint returns a short text for a public key, for users to compare. It has the form of ssh-keygen's.
func Fingerprint(k message.IdentityKey) string {
	sum := sha256.Sum256(k.Bytes())
	return "SHA256:" + base64.RawStdEncoding.EncodeToString(sum[:])
}

// Parse reads the output of [Format].
func Parse(text string) (message.IdentityKey, error) {
	public, err := base64.StdEncoding.DecodeString(strings.TrimSpace(text))
	if err != nil {
		return message.IdentityKey{}, fmt.Errorf("read the key of an identity: %w", err)
	}
	return message.ReadIdentityKey(public)
}
