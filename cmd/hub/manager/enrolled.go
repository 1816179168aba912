package manager

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-dev/godwit/cmd/hub"
	api "github.com/godwit-dev/godwit/cmd/hub/api/v1alpha1"
	"github.com/godwit-dev/godwit/cmd/hub/identity"
	"github.com/godwit-dev/godwit/cmd/hub/message"
)

const (
	// EnrolledHubs is the name of the ConfigMap of enrolled hubs, in the namespace of the manager. It has the public key of
	// each hub's agent, in the format of package identity. A user who can write it can act as any hub.
	EnrolledHubs = "godwit-enrolled-hubs"
	// replacementsAnnotation of [EnrolledHubs] has a [Replacement] for hubs, as JSON.
	replacementsAnnotation = "godwit.dev/same-hub-keys"
)

// Replacement is what a user has said of a new key: it belongs to the same hub as other keys before. Migrations that began
// with one of these continue with the new key.
type Replacement struct {
	// Key is the fingerprint of the new key, and Replaces has those of the others. It says nothing about a later key.
	Key      string   `json:"key"`
	Replaces []string `json:"replaces"`
}

// SetReplacement records in the ConfigMap of enrolled hubs that the key of a hub replaces others, or with none that it does not.
func SetReplacement(hubs *corev1.ConfigMap, hub string, key message.IdentityKey, others []string) error {
	all, err := replacements(hubs)
	if err != nil {
		return err
	}
	delete(all, hub)
	if len(others) > 0 {
		all[hub] = Replacement{Key: identity.Fingerprint(key), Replaces: others}
	}
	if len(all) == 0 {
		delete(hubs.Annotations, replacementsAnnotation)
		return nil
	}
	text, err := json.Marshal(all)
	if err != nil {
		return err
	}
	metav1.SetMetaDataAnnotation(&hubs.ObjectMeta, replacementsAnnotation, string(text))
	return nil
}

// Replaces reports whether the key of a hub replaces one with a fingerprint.
func Replaces(hubs *corev1.ConfigMap, hub string, key message.IdentityKey, fingerprint string) (bool, error) {
	all, err := replacements(hubs)
	return all[hub].Key == identity.Fingerprint(key) && slices.Contains(all[hub].Replaces, fingerprint), err
}

func replacements(hubs *corev1.ConfigMap) (map[string]Replacement, error) {
	all := map[string]Replacement{}
	text, ok := hubs.Annotations[replacementsAnnotation]
	if !ok {
		return all, nil
	}
	if err := json.Unmarshal([]byte(text), &all); err != nil {
		return nil, fmt.Errorf("read annotation %s of ConfigMap %s/%s: %w; remove the annotation and enroll the hubs again that had new keys", replacementsAnnotation, hubs.Namespace, hubs.Name, err)
	}
	return all, nil
}

// enrolledKeys reads the keys of all enrolled hubs, as text.
func (r *Reconciler) enrolledKeys(ctx context.Context) (map[string]string, error) {
	hubs, err := r.enrolled(ctx)
	if err != nil {
		return nil, err
	}
	return hubs.Data, nil
}

// enrolled reads the ConfigMap of enrolled hubs, which is empty if it does not exist.
func (r *Reconciler) enrolled(ctx context.Context) (*corev1.ConfigMap, error) {
	hubs := &corev1.ConfigMap{}
	key := client.ObjectKey{Namespace: r.Namespace, Name: EnrolledHubs}
	err := client.IgnoreNotFound(r.Reader.Get(ctx, key, hubs))
	if err != nil {
		return nil, fmt.Errorf("read the enrolled hubs in ConfigMap %s: %w", key, err)
	}
	return hubs, nil
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
	key, problem = r.keyIn(hubs, hub)
	return key, problem, nil
}

func (r *Reconciler) keyIn(hubs *corev1.ConfigMap, hub string) (key message.IdentityKey, problem string) {
	text, ok := hubs.Data[hub]
	if !ok {
		return key, notEnrolled(hub)
	}
	key, err := identity.Parse(text)
	if err != nil {
		return key, fmt.Sprintf("key %s of ConfigMap %s/%s: %v; copy it from Secret %s of the agent's namespace", hub, r.Namespace, EnrolledHubs, err, identity.Secret)
	}
	return key, ""
}

// partyKey is the key of a hub, and its number in a migration.
type partyKey struct {
	message.IdentityKey
	number int32
}

// partyKey returns the key with which a hub takes part in a migration. It is the one that is enrolled when the manager first
// needs it, and later one by which a user has replaced it. A hub that was enrolled with any other key is another hub: that
// is a problem with reason HubReplaced. Reason Failed means that the hub has no key.
func (r *Reconciler) partyKey(ctx context.Context, m *api.ManagedClusterMigration, p hub.Party) (partyKey, *problem, error) {
	if r.Direct != nil {
		return partyKey{IdentityKey: r.Identity.Key()}, nil, nil
	}
	name := hubOf(m, p)
	hubs, err := r.enrolled(ctx)
	if err != nil {
		return partyKey{}, nil, err
	}
	key, wrong := r.keyIn(hubs, name)
	if wrong != "" {
		return partyKey{}, &problem{api.ReasonFailed.Name, wrong}, nil
	}
	own := identity.Fingerprint(key)
	if known := KeyOf(m, p); known != nil && known.Fingerprint == own {
		return partyKey{key, known.Number}, nil, nil
	}
	var wrongAnnotation error
	known, err := r.setKey(ctx, m, p, func(known api.HubKey) api.HubKey {
		continues := known.Fingerprint == ""
		if !continues {
			continues, wrongAnnotation = Replaces(hubs, name, key, known.Fingerprint)
		}
		if continues {
			known.Fingerprint, known.Number = own, known.Number+1
		}
		return known
	})
	switch {
	case err != nil:
		return partyKey{}, nil, err
	case wrongAnnotation != nil:
		return partyKey{}, &problem{api.ReasonHubReplaced.Name, wrongAnnotation.Error()}, nil
	case known.Fingerprint != own:
		return partyKey{}, &problem{api.ReasonHubReplaced.Name, replacedMessage(name, known.Fingerprint, own)}, nil
	}
	return partyKey{key, known.Number}, nil, nil
}

// replacedMessage says that a hub was enrolled with another key than that of a migration. A stored message has 240 bytes: the keys are last.
func replacedMessage(name, known, enrolled string) string {
	return fmt.Sprintf("hub %s has another key than in this migration: run `godwit cluster enroll %s --same-hub` if it has a new key; "+
		"if it is another hub, enroll the former hub again, or delete the migration. Its key is %s, and was %s", name, name, enrolled, known)
}

// setKey changes the key of a party in the status of a migration, and returns it. It writes nothing if it has not changed.
func (r *Reconciler) setKey(ctx context.Context, m *api.ManagedClusterMigration, p hub.Party, change func(api.HubKey) api.HubKey) (api.HubKey, error) {
	at := client.ObjectKeyFromObject(m)
	defer r.locks.Acquire(at)()
	for {
		present := &api.ManagedClusterMigration{}
		if err := r.Reader.Get(ctx, at, present); err != nil {
			return api.HubKey{}, err
		}
		if present.Status.Progress == nil {
			return api.HubKey{}, fmt.Errorf("managedclustermigration %s has no status.progress", at)
		}
		field := &present.Status.Progress.TargetKey
		if p == hub.Source {
			field = &present.Status.Progress.SourceKey
		}
		before := api.HubKey{}
		if *field != nil {
			before = **field
		}
		after := change(before)
		if after == before {
			return after, nil
		}
		*field = &after
		if err := r.Client.Status().Update(ctx, present); !apierrors.IsConflict(err) || ctx.Err() != nil {
			return after, err
		}
	}
}

// KeyOf returns the key of a party in a migration; nil if it has none yet.
func KeyOf(m *api.ManagedClusterMigration, p hub.Party) *api.HubKey {
	switch {
	case m.Status.Progress == nil:
		return nil
	case p == hub.Source:
		return m.Status.Progress.SourceKey
	}
	return m.Status.Progress.TargetKey
}

// PartyOf returns the party that a hub is in a migration, or empty.
func PartyOf(m *api.ManagedClusterMigration, name string) hub.Party {
	switch name {
	case string(m.Spec.From):
		return hub.Source
	case string(m.Spec.To):
		return hub.Target
	}
	return ""
}

// hubOf returns the name of the hub of a party.
func hubOf(m *api.ManagedClusterMigration, p hub.Party) string {
	if p == hub.Source {
		return string(m.Spec.From)
	}
	return string(m.Spec.To)
}
