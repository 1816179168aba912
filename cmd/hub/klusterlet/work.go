package klusterlet

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	operatorv1 "open-cluster-management.io/api/operator/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-dev/godwit/cmd/hub/cluster"
	"github.com/godwit-dev/godwit/internal/format"
)

// WorkName is the name of the ManifestWork.
const WorkName = "godwit-klusterlet"

// annotationRecord has the stage, and what the cluster has reported before the first change.
const annotationRecord = "godwit.dev/migration-klusterlet"

// record is the content of the annotation. The update that changes the stage also writes it.
type record struct {
	Format int   `json:"format"`
	Stage  Stage `json:"stage"`
	Facts
}

// Work is the ManifestWork with which a migration configures the klusterlet of a cluster.
type Work struct {
	Client client.Client
	// UID of the migration.
	UID     string
	Cluster string
	// Moved means that the source has given the klusterlet two hubs already.
	Moved bool
}

// State is what a ManifestWork has.
type State struct {
	Facts
	// Stage is empty without a ManifestWork.
	Stage Stage
	work  *workv1.ManifestWork
}

// name returns namespace/name of the ManifestWork, for messages.
func (w Work) name() string { return w.Cluster + "/" + WorkName }

// Find reads the state. Its stage is empty if the migration has no ManifestWork for the cluster.
func (w Work) Find(ctx context.Context) (State, error) {
	s := State{work: &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Namespace: w.Cluster, Name: WorkName}}}
	err := w.Client.Get(ctx, client.ObjectKeyFromObject(s.work), s.work)
	switch {
	case apierrors.IsNotFound(err):
		return s, nil
	case err != nil:
		return s, err
	case !cluster.IsOwned(s.work, w.UID):
		return s, cluster.Fail(cluster.ReasonForeignObject, "ManifestWork %s exists and does not belong to the migration: delete it, or wait for the end of the migration with UID %q",
			w.name(), s.work.Labels[cluster.LabelMigration])
	}
	s.Stage = Reading
	text, ok := s.work.Annotations[annotationRecord]
	if !ok {
		return s, nil
	}
	if err := cluster.CheckFormat(s.work, annotationRecord); err != nil {
		return s, err
	}
	r := record{}
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		return s, cluster.Fail(cluster.ReasonForeignObject, "annotation %s of ManifestWork %s can't be read: %v", annotationRecord, w.name(), err)
	}
	s.Stage, s.Facts = r.Stage, r.Facts
	return s, nil
}

// Kubeconfig returns the kubeconfig in a Secret of the ManifestWork, or nil.
func (s State) Kubeconfig(name string) []byte {
	for _, m := range s.work.Spec.Workload.Manifests {
		secret := corev1.Secret{}
		if err := json.Unmarshal(m.Raw, &secret); err == nil && secret.Kind == "Secret" && secret.Name == name {
			return secret.Data[cluster.KubeconfigKey]
		}
	}
	return nil
}

// Read returns the state when the cluster has reported what it has. Before, it creates the ManifestWork, and returns what it waits for.
func (w Work) Read(ctx context.Context) (s State, waits string, err error) {
	s, err = w.Find(ctx)
	if err != nil || s.Stage != "" && s.Stage != Reading {
		return s, "", err
	}
	if s.Stage == "" {
		return s, w.waits(), w.write(ctx, &s, Config{Stage: Reading})
	}
	r := reportOf(s.work, klusterlets, Name)
	if _, read := r.numbers[valueGeneration]; !read && r.found {
		return s, w.waits() + ": " + r.problem, nil
	}
	if err := r.check(w.Cluster); err != nil && (!w.Moved || !r.found) {
		return s, "", err
	}
	s.Namespace, s.Gates = r.namespace(), r.gates()
	if err := w.write(ctx, &s, Config{Stage: Reading}); err != nil {
		return s, "", err
	}
	agent := reportOf(s.work, secrets, HubSecret)
	if agent.found && agent.texts[valueHub] == "" {
		return s, w.waits() + ": " + agent.problem, nil
	}
	s.Hub, err = agent.hub(w.Cluster)
	return s, "", err
}

// waits says what is missing until the cluster has applied the ManifestWork.
func (w Work) waits() string { return "the cluster has not applied ManifestWork " + w.name() }

// Apply writes a stage, with what the cluster has reported. It returns what it waits for until the cluster has applied it, and its klusterlet
// operator has observed it.
func (w Work) Apply(ctx context.Context, s State, c Config) (waits string, err error) {
	if err := w.write(ctx, &s, c); err != nil {
		return "", err
	}
	if !cluster.IsApplied(s.work, s.work.Generation) {
		return w.waits() + failures(s.work), nil
	}
	two, known := c.Stage.two()
	if !known {
		return "", nil
	}
	r := reportOf(s.work, klusterlets, Name)
	isTwo := r.texts[valueType] == string(operatorv1.LocalSecrets) && r.texts[valueFirst] == SourceSecret
	if generation := r.numbers[valueGeneration]; isTwo != two || generation == 0 || r.numbers[valueObserved] < generation {
		return fmt.Sprintf("the klusterlet operator of the cluster has not observed what ManifestWork %s has changed in Klusterlet %s", w.name(), Name), nil
	}
	return "", nil
}

// failures returns why the cluster has not applied objects, or empty.
func failures(work *workv1.ManifestWork) string {
	var text strings.Builder
	for _, m := range work.Status.ResourceStatus.Manifests {
		if c := meta.FindStatusCondition(m.Conditions, workv1.ManifestApplied); c != nil && c.Status == metav1.ConditionFalse {
			fmt.Fprintf(&text, ": %s %s: %s", m.ResourceMeta.Kind, m.ResourceMeta.Name, c.Message)
		}
	}
	return text.String()
}

// write creates the ManifestWork or updates it to a stage, unless it has this stage with this content already.
func (w Work) write(ctx context.Context, s *State, c Config) error {
	spec, err := specOf(s.Facts, c)
	if err != nil {
		return err
	}
	text, err := json.Marshal(spec)
	if err != nil {
		return fmt.Errorf("hash ManifestWork %s: %w", w.name(), err)
	}
	sum := sha256.Sum256(text)
	wanted := &workv1.ManifestWork{}
	cluster.MarkOwned(wanted, w.UID, hex.EncodeToString(sum[:]))
	if s.Stage != "" && s.Stage == c.Stage && cluster.SameContent(s.work, wanted) {
		return nil
	}
	edit := func() error {
		s.work.Spec = spec
		cluster.MarkOwned(s.work, w.UID, hex.EncodeToString(sum[:]))
		if c.Stage == Reading {
			return nil
		}
		text, err := json.Marshal(record{format.Current, c.Stage, s.Facts})
		if err == nil {
			s.work.Annotations[annotationRecord] = string(text)
		}
		return err
	}
	if s.Stage == "" {
		if err := edit(); err != nil {
			return fmt.Errorf("create ManifestWork %s: %w", w.name(), err)
		}
		err = w.Client.Create(ctx, s.work)
	} else {
		err = cluster.Patch(ctx, w.Client, s.work, edit)
	}
	if err != nil {
		return fmt.Errorf("write ManifestWork %s: %w", w.name(), err)
	}
	s.Stage = c.Stage
	return nil
}

// Remove deletes the ManifestWork. It returns what it waits for until the cluster has removed what goes with it.
func (w Work) Remove(ctx context.Context, s State) (waits string, err error) {
	if s.Stage == "" {
		return "", nil
	}
	if err := cluster.Delete(ctx, w.Client, s.work); err != nil {
		return "", fmt.Errorf("delete ManifestWork %s: %w", w.name(), err)
	}
	if err := w.Client.Get(ctx, client.ObjectKeyFromObject(s.work), s.work); err != nil {
		return "", client.IgnoreNotFound(err)
	}
	return fmt.Sprintf("ManifestWork %s is being deleted; the work agent of the cluster removes its finalizer", w.name()), nil
}

// ReleaseWorks removes the finalizer of the work agent from the ManifestWorks of a cluster that has left the hub. The agent can't remove it
// any more, and the hub does not delete a ManagedCluster that has ManifestWorks.
func ReleaseWorks(ctx context.Context, c client.Client, name string) error {
	works := &workv1.ManifestWorkList{}
	if err := c.List(ctx, works, client.InNamespace(name)); err != nil {
		return err
	}
	for i := range works.Items {
		w := &works.Items[i]
		at := slices.Index(w.Finalizers, workv1.ManifestWorkFinalizer)
		if at < 0 {
			continue
		}
		err := client.IgnoreNotFound(cluster.Patch(ctx, c, w, func() error {
			w.Finalizers = slices.Delete(slices.Clone(w.Finalizers), at, at+1)
			return nil
		}))
		if err != nil {
			return fmt.Errorf("remove finalizer %s of ManifestWork %s/%s: %w", workv1.ManifestWorkFinalizer, name, w.Name, err)
		}
	}
	return nil
}
