package hub_test

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/godwit-dev/godwit/cmd/hub/api/v1alpha1"
	"github.com/godwit-dev/godwit/cmd/hub/direct"
	"github.com/godwit-dev/godwit/test/fault"
)

// storeRaw creates a ConfigMap with the label of a migration.
func (d *directMove) storeRaw(name string, data map[string]string) {
	d.t.Helper()
	o := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: d.namespace, Name: name, Labels: map[string]string{direct.LabelMigration: "broken"}}, Data: data}
	if err := d.source.c.Create(d.t.Context(), o); err != nil {
		d.t.Fatal(err)
	}
}

// TestBrokenDirectMigrationStallsAlone: beside a migration that a process carries out, other ConfigMaps of migrations can't be read, and so does
// a stored command. The clusters of the sound one move. A migration of a cluster that an unreadable one names waits.
//
// Matrix: H127.
func TestBrokenDirectMigrationStallsAlone(t *testing.T) {
	t.Parallel()
	d := newDirectMove(t, 1, nil)
	spec := `"spec":{"from":"` + d.source.name + `","to":"` + d.target.name + `","includedManagedClusters":["taken"]}`
	d.storeRaw("x", nil)
	d.storeRaw("cut-migration", map[string]string{"migration": `{"spec":{"from":"a"`})
	d.storeRaw("odd-migration", map[string]string{"migration": `{"status":7,` + spec + `}`})
	d.storeRaw("newer-migration", map[string]string{"migration": `{` + spec + `}`, "format": "2"})
	command := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: d.namespace, Name: "godwit-migration-of-another", Labels: map[string]string{"godwit.dev/hub-migration": "another"}}}
	command.Data = map[string][]byte{"task": []byte("{")}
	if err := d.source.c.Create(t.Context(), command); err != nil {
		t.Fatal(err)
	}

	list := &api.ManagedClusterMigrationList{}
	if err := d.store.List(t.Context(), list); err != nil {
		t.Fatal(err)
	}
	want := map[string]struct{ reason, cause string }{
		"x":     {api.ReasonStateLost.Name, "its name does not end in -migration"},
		"cut":   {api.ReasonStateLost.Name, "unexpected end of JSON input; restore it from a backup, or delete it"},
		"odd":   {api.ReasonStateLost.Name, "kubectl -n " + d.namespace + " delete configmap odd-migration"},
		"newer": {api.ReasonNewerFormat.Name, "a newer release wrote it"},
		"move":  {},
	}
	for i := range list.Items {
		m := &list.Items[i]
		expected, known := want[m.Name]
		delete(want, m.Name)
		c := meta.FindStatusCondition(m.Status.Conditions, api.ConditionStalled)
		switch {
		case !known:
			t.Errorf("the list has %q", m.Name)
		case expected.reason == "" && c != nil, expected.reason != "" && (c == nil || c.Reason != expected.reason || !strings.Contains(c.Message, expected.cause)):
			t.Errorf("%s: condition %+v, want %s with %q", m.Name, c, expected.reason, expected.cause)
		}
	}
	if len(want) > 0 {
		t.Errorf("the list lacks %v", want)
	}

	if err := d.run(t.Context(), "one", &fault.Transport{}); err != nil {
		t.Fatal(err)
	}
	d.mustBeMoved()

	waits := &directMove{move: d.move, namespace: d.namespace, store: d.store, clock: d.clock}
	waits.migration = &api.ManagedClusterMigration{ObjectMeta: metav1.ObjectMeta{Namespace: d.namespace, Name: "waits", Annotations: d.migration.Annotations}}
	waits.migration.Spec = *d.migration.Spec.DeepCopy()
	waits.migration.Spec.IncludedManagedClusters = []api.ClusterName{"taken"}
	if err := d.store.Create(t.Context(), waits.migration); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- waits.run(ctx, "two", &fault.Transport{}) }()
	waits.await("the migration waits for the unreadable one", func() bool {
		c := meta.FindStatusCondition(waits.read().Status.Conditions, api.ConditionStarted)
		return c != nil && c.Reason == api.ReasonWaiting.Name && (strings.Contains(c.Message, d.namespace+"/odd") || strings.Contains(c.Message, d.namespace+"/newer"))
	})
	stop()
	<-ended
}
