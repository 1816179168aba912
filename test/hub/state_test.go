package hub_test

import (
	"encoding/json"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/godwit-dev/godwit/cmd/hub/api/v1alpha1"
	"github.com/godwit-dev/godwit/internal/format"
)

// frozenMigration is a file of test/state.
type frozenMigration struct {
	Phase    api.Phase             `json:"phase"`
	Progress api.MigrationProgress `json:"progress"`
	Shards   []map[string]string   `json:"shards"`
}

func frozen(t *testing.T, release string) frozenMigration {
	t.Helper()
	text, err := os.ReadFile("../state/" + release + "/migration.json")
	if err != nil {
		t.Fatal(err)
	}
	var m frozenMigration
	if err := json.Unmarshal(text, &m); err != nil {
		t.Fatal(err)
	}
	return m
}

// TestManagerAndOtherReleases: a manager that is killed leaves what v0.1.0 leaves, and one of v0.1.0's format resumes. What a newer
// release has stored is left alone, with a condition and one event, and the migration ends when the older state is back. A
// migration of which nothing is left to do has no finalizer, so that nothing blocks its deletion without a manager.
func TestManagerAndOtherReleases(t *testing.T) {
	t.Parallel()
	g, key, release := killedInInstall(t)
	defer release()
	oldest, newer := frozen(t, "v0.1.0"), frozen(t, "newer")
	m, state := g.read(key), &corev1.ConfigMap{}
	if err := g.c.Get(t.Context(), objectKey{Namespace: key.Namespace, Name: "move-state-0"}, state); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"format", "shards", "clusters"} {
		if state.Data[name] == "" || oldest.Shards[0][name] == "" {
			t.Errorf("key %s of the ConfigMap is %q, and of v0.1.0 %q", name, state.Data[name], oldest.Shards[0][name])
		}
	}
	if m.Status.Progress.Format != oldest.Progress.Format || state.Data["format"] != oldest.Shards[0]["format"] || !slices.Contains(m.Finalizers, api.Finalizer) {
		t.Errorf("the state is of format %d and %s, with finalizers %v", m.Status.Progress.Format, state.Data["format"], m.Finalizers)
	}
	before, after := m.Status.Progress.DeepCopy(), maps.Clone(state.Data)
	store := func(progress api.MigrationProgress, data map[string]string) {
		t.Helper()
		m := g.read(key)
		m.Status.Progress = &progress
		if err := g.c.Status().Update(t.Context(), m); err != nil {
			t.Fatal(err)
		}
		state.Data = data
		if err := g.c.Update(t.Context(), state); err != nil {
			t.Fatal(err)
		}
	}
	store(newer.Progress, newer.Shards[0])
	p := g.start(nil, key)
	m = g.await(key, "the manager says so", func(m *api.ManagedClusterMigration) bool {
		c := meta.FindStatusCondition(m.Status.Conditions, api.ConditionStalled)
		return c != nil && c.Status == metav1.ConditionTrue && c.Reason == api.ReasonNewerFormat.Name
	})
	message := meta.FindStatusCondition(m.Status.Conditions, api.ConditionStalled).Message
	for _, word := range []string{key.String(), "has format 2", "reads format 1", format.Do} {
		if !strings.Contains(message, word) {
			t.Errorf("%s does not say %q", message, word)
		}
	}
	g.mustAnnounce(corev1.EventTypeWarning, api.ReasonNewerFormat)
	pause(t.Context(), 6*reconcileEvery) // as many reconciliations as would repeat it
	if version := g.read(key).ResourceVersion; version != m.ResourceVersion {
		t.Errorf("the migration is written again, %s after %s", version, m.ResourceVersion)
	}
	if err := g.c.Get(t.Context(), client.ObjectKeyFromObject(state), state); err != nil || !maps.Equal(state.Data, newer.Shards[0]) {
		t.Errorf("%v: the state of the newer release is now %v", err, state.Data)
	}
	p.stop()
	store(*before, after)
	p = g.start(nil, key)
	defer p.stop()
	release()
	g.mustBeMoved(g.await(key, "the clusters have moved", settled))
	m = g.await(key, "the finalizer to be gone", func(m *api.ManagedClusterMigration) bool { return len(m.Finalizers) == 0 })
	p.stop()
	if err := g.c.Delete(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	if err := g.c.Get(t.Context(), key, &api.ManagedClusterMigration{}); !apierrors.IsNotFound(err) {
		t.Errorf("without a manager the migration is not deleted: %v", err)
	}
}
