package manager

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/cmd/hub"
	api "github.com/godwit-dev/godwit/cmd/hub/api/v1alpha1"
	"github.com/godwit-dev/godwit/cmd/hub/seal"
	"github.com/godwit-dev/godwit/internal/format"
)

// migration is a ManagedClusterMigration with its state, as read from the API server.
type migration struct {
	object *api.ManagedClusterMigration
	state  hub.State
}

func (m migration) from() string { return string(m.object.Spec.From) }
func (m migration) to() string   { return string(m.object.Spec.To) }
func (m migration) uid() string  { return string(m.object.UID) }

// hubOf returns the name of the hub of a party.
func (m migration) hubOf(p hub.Party) string { return hubOf(m.object, p) }

// errStateLost means that ConfigMaps of a migration were deleted or changed.
var errStateLost = errors.New("the state of the migration is lost")

// AnnotationUnreadable says why a store can read no more of a migration than its spec, and is in memory alone. The migration does nothing.
const AnnotationUnreadable = "unreadable"

// WhyUnreadable returns the reason of an error of [ReadState]. It returns nil if another attempt may succeed.
func WhyUnreadable(err error) *godwit.Reason {
	switch {
	case errors.As(err, new(*format.NewerError)):
		return api.ReasonNewerFormat
	case errors.Is(err, errStateLost):
		return api.ReasonStateLost
	}
	return nil
}

// load reads a migration and its state.
func (r *Reconciler) load(ctx context.Context, key types.NamespacedName) (migration, error) {
	m := migration{object: &api.ManagedClusterMigration{}}
	if err := r.Reader.Get(ctx, key, m.object); err != nil {
		return m, err
	}
	return m, r.restore(ctx, &m)
}

func (r *Reconciler) restore(ctx context.Context, m *migration) (err error) {
	m.state, err = readState(ctx, r.Reader, m.object, r.checkShard)
	return err
}

// ReadState reads the stored state of a migration: its progress in the status, and its clusters in ConfigMaps. It does not prove that the manager
// has written them: what it returns is for a user to see.
func ReadState(ctx context.Context, reader client.Reader, m *api.ManagedClusterMigration) (hub.State, error) {
	return readState(ctx, reader, m, func(*api.ManagedClusterMigration, int, *corev1.ConfigMap) error { return nil })
}

// checkShard proves that the manager has written a ConfigMap with a part of the state: it is the one of the last commit, or it is signed and
// follows that commit, of which the manager was interrupted. An earlier release has committed no digests.
func (r *Reconciler) checkShard(m *api.ManagedClusterMigration, n int, shard *corev1.ConfigMap) error {
	if format.CheckData("", shard.Data) != nil {
		return nil //nolint:nilerr // of a newer release: hub.Restore refuses it
	}
	digests := m.Status.Progress.ShardDigests
	content := sealed(m, shard.Name, shard.Data)
	content.Before = digests
	if len(digests) == 0 || n < len(digests) && content.Digest() == digests[n] || content.IsSigned(r.Identity.Key(), shard.Annotations[seal.Annotation]) {
		return nil
	}
	return fmt.Errorf("%w: another client has changed ConfigMap %s/%s, or has restored an older one", errStateLost, shard.Namespace, shard.Name)
}

// sealed returns the content of a ConfigMap of a migration, for its proof.
func sealed(m *api.ManagedClusterMigration, name string, data map[string]string) seal.Content {
	return seal.Content{Migration: string(m.UID), Name: name, Data: seal.Texts(data)}
}

func readState(ctx context.Context, reader client.Reader, m *api.ManagedClusterMigration, check func(*api.ManagedClusterMigration, int, *corev1.ConfigMap) error) (hub.State, error) {
	if why := m.Annotations[AnnotationUnreadable]; why != "" {
		return hub.State{}, fmt.Errorf("%w: %s", errStateLost, why)
	}
	if err := format.CheckObject(fmt.Sprintf("managedclustermigration %s/%s", m.Namespace, m.Name), m); err != nil {
		return hub.State{}, fmt.Errorf("%w; %s", err, format.Do)
	}
	var shards []map[string]string
	progress := m.Status.Progress
	for n := 0; progress != nil && n < int(progress.Shards); n++ {
		shard, err := readShard(ctx, reader, m, hub.ShardName(m.Name, n))
		if err != nil {
			return hub.State{}, err
		}
		if shard == nil {
			break // Restore counts them
		}
		if err := check(m, n, shard); err != nil {
			return hub.State{}, err
		}
		shards = append(shards, shard.Data)
	}
	state, err := hub.Restore(m.Spec, m.Status.Phase, progress, shards)
	switch {
	case errors.As(err, new(*format.NewerError)):
		return hub.State{}, fmt.Errorf("managedclustermigration %s/%s: %w; %s", m.Namespace, m.Name, err, format.Do)
	case err != nil:
		return hub.State{}, fmt.Errorf("%w: %w", errStateLost, err)
	}
	return state, nil
}

// labelState is on the ConfigMaps of a migration, with the UID of the migration. They have no owner while work is left: a foreground
// deletion of the migration would delete what it owns before the migration.
const labelState = "godwit.dev/migration-state"

// ownerOf returns the owner of the ConfigMaps of a migration that has ended.
func ownerOf(m *api.ManagedClusterMigration) []metav1.OwnerReference {
	owner := *metav1.NewControllerRef(m, api.GroupVersion.WithKind("ManagedClusterMigration"))
	owner.BlockOwnerDeletion = nil
	return []metav1.OwnerReference{owner}
}

// metadataOf returns the metadata of a ConfigMap of a migration in which work is left.
func metadataOf(m *api.ManagedClusterMigration, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: m.Namespace, Name: name, Labels: map[string]string{labelState: string(m.UID)}}
}

// belongsTo reports whether a ConfigMap is of a migration. Earlier releases set an owner, and no label.
func belongsTo(shard *corev1.ConfigMap, m *api.ManagedClusterMigration) bool {
	return shard.Labels[labelState] == string(m.UID) || metav1.IsControlledBy(shard, m)
}

// ownState makes a migration that has ended the owner of the ConfigMaps with its state, so that they are deleted with it.
func (r *Reconciler) ownState(ctx context.Context, m migration) error {
	for n := 0; m.object.Status.Progress != nil && n < int(m.object.Status.Progress.Shards); n++ {
		shard, err := readShard(ctx, r.Reader, m.object, hub.ShardName(m.object.Name, n))
		if err != nil {
			return err
		}
		if shard == nil || metav1.IsControlledBy(shard, m.object) {
			continue
		}
		shard.OwnerReferences = ownerOf(m.object)
		if err := client.IgnoreNotFound(r.Client.Update(ctx, shard)); err != nil {
			return fmt.Errorf("write the owner of ConfigMap %s/%s: %w", shard.Namespace, shard.Name, err)
		}
	}
	return nil
}

// readShard reads a ConfigMap of the migration, or returns nil. It also returns nil if the ConfigMap belongs to a
// deleted migration of the same name: explainNameConflict deletes it.
func readShard(ctx context.Context, reader client.Reader, m *api.ManagedClusterMigration, name string) (*corev1.ConfigMap, error) {
	shard := &corev1.ConfigMap{}
	err := reader.Get(ctx, client.ObjectKey{Namespace: m.Namespace, Name: name}, shard)
	if apierrors.IsNotFound(err) || err == nil && !belongsTo(shard, m) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read ConfigMap %s/%s: %w", m.Namespace, name, err)
	}
	return shard, nil
}

// apply computes the state that follows an event and writes it: the ConfigMaps first, and the status as the commit. A
// conflict means that another client has changed the migration; apply then builds and applies the event again. It
// writes nothing if the event is nil.
func (r *Reconciler) apply(ctx context.Context, key types.NamespacedName, event func(migration) (hub.Event, error)) (migration, error) {
	defer r.locks.Acquire(key)()
	for {
		m, err := r.load(ctx, key)
		if err != nil {
			return m, err
		}
		e, err := event(m)
		if err != nil || e == nil {
			return m, err
		}
		err = r.save(ctx, &m, hub.Step(m.state, e))
		if !apierrors.IsConflict(err) || ctx.Err() != nil {
			return m, err
		}
	}
}

// fixedEvent returns the function that returns an event.
func fixedEvent(e hub.Event) func(migration) (hub.Event, error) {
	return func(migration) (hub.Event, error) { return e, nil }
}

// commitTimeout bounds the writes of a manager that is told to end.
const commitTimeout = 10 * time.Second

// save writes the differences to the next state, and updates the migration in memory. A manager that is told to end commits what it
// has begun to write: if its key is replaced meanwhile, the next one can't prove it.
func (r *Reconciler) save(ctx context.Context, m *migration, next hub.State) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), commitTimeout)
	defer cancel()
	shards := next.Shards(m.object.Name)
	digests := make([]string, len(shards))
	for n, s := range shards {
		digests[n] = sealed(m.object, s.Name, s.Data).Digest()
		if err := r.saveShard(ctx, m.object, n, s, next.Settled()); err != nil {
			return err
		}
	}
	before := m.object.DeepCopy()
	now := r.Clock.Now()
	fill(m.object, next, len(shards), now)
	m.object.Status.Progress.ShardDigests = digests
	m.object.Status.Progress.SourceKey, m.object.Status.Progress.TargetKey = KeyOf(before, hub.Source), KeyOf(before, hub.Target)
	if !equality.Semantic.DeepEqual(before.Status, m.object.Status) {
		if err := r.Client.Status().Update(ctx, m.object); err != nil {
			m.object = before
			return err
		}
	}
	r.announce(m.object, m.state, next, now)
	m.state = next
	return nil
}

// saveShard writes a part of the state. It does not create one again that was committed: with the migration, the garbage collector deletes it,
// maybe since the migration was read.
func (r *Reconciler) saveShard(ctx context.Context, m *api.ManagedClusterMigration, n int, s hub.Shard, settled bool) error {
	known, err := readShard(ctx, r.Reader, m, s.Name)
	if err != nil {
		return err
	}
	content := sealed(m, s.Name, s.Data)
	if progress := m.Status.Progress; progress != nil {
		if known == nil && n < int(progress.Shards) {
			return fmt.Errorf("%w: ConfigMap %s/%s is deleted", errStateLost, m.Namespace, s.Name)
		}
		content.Before = progress.ShardDigests
	}
	signature := content.Sign(r.Identity)
	if known == nil {
		created := &corev1.ConfigMap{ObjectMeta: metadataOf(m, s.Name), Data: s.Data}
		created.Annotations = map[string]string{seal.Annotation: signature}
		if err := r.Client.Create(ctx, created); err != nil {
			return r.explainNameConflict(ctx, m, s.Name, err)
		}
		return nil
	}
	if err := format.CheckData(fmt.Sprintf("ConfigMap %s/%s", m.Namespace, s.Name), known.Data); err != nil {
		return fmt.Errorf("%w; %s", err, format.Do) // a newer release has written it since it was read
	}
	owned := len(known.OwnerReferences) > 0 && !settled // by an earlier release
	if maps.Equal(known.Data, s.Data) && !owned {
		return nil
	}
	known.Data = s.Data
	metav1.SetMetaDataAnnotation(&known.ObjectMeta, seal.Annotation, signature)
	if owned {
		known.OwnerReferences, known.Labels = nil, metadataOf(m, s.Name).Labels
	}
	if err := r.Client.Update(ctx, known); err != nil {
		return fmt.Errorf("write ConfigMap %s/%s: %w", m.Namespace, s.Name, err)
	}
	return nil
}

// explainNameConflict returns what to do about a foreign ConfigMap that has the name of a shard.
func (r *Reconciler) explainNameConflict(ctx context.Context, m *api.ManagedClusterMigration, name string, err error) error {
	if !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create ConfigMap %s/%s: %w", m.Namespace, name, err)
	}
	taken := &corev1.ConfigMap{}
	if failed := r.Reader.Get(ctx, client.ObjectKey{Namespace: m.Namespace, Name: name}, taken); failed != nil {
		return failed
	}
	if owner := metav1.GetControllerOf(taken); taken.Labels[labelState] != "" || owner != nil && owner.Kind == "ManagedClusterMigration" {
		// It belongs to a deleted migration of the same name. The caller tries again.
		if failed := client.IgnoreNotFound(r.Client.Delete(ctx, taken, client.Preconditions{UID: &taken.UID})); failed != nil {
			return failed
		}
		return apierrors.NewConflict(corev1.Resource("configmaps"), name, err)
	}
	return fmt.Errorf("ConfigMap %s/%s does not belong to the migration: rename or delete it: %w", m.Namespace, name, err)
}

// secondsLeft returns the remaining time of a phase, in whole seconds, for a message. It is at least one second: a late
// command must be executed too.
func secondsLeft(until, now time.Time) time.Duration {
	return max(until.Sub(now).Truncate(time.Second), time.Second)
}
