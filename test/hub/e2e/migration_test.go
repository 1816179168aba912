package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-dev/godwit"
	api "github.com/godwit-dev/godwit/cmd/hub/api/v1alpha1"
	"github.com/godwit-dev/godwit/test/process"
)

// migration is a ManagedClusterMigration of hub1 to hub2.
type migration struct {
	t      *testing.T
	in     *installation
	object *api.ManagedClusterMigration
}

// migrate creates a ManagedClusterMigration from the first hub to the second, in the namespace default of the global hub.
func (in *installation) migrate(t *testing.T, name string, change func(*api.ManagedClusterMigrationSpec), clusters ...string) *migration {
	t.Helper()
	m := &migration{t: t, in: in, object: &api.ManagedClusterMigration{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: name},
		Spec: api.ManagedClusterMigrationSpec{
			From: api.HubName(in.hub1.Name), To: api.HubName(in.hub2.Name), OnUserObjects: api.UserObjectsAccept, // each site has an object that no rule moves
		},
	}}
	for _, cluster := range clusters {
		m.object.Spec.IncludedManagedClusters = append(m.object.Spec.IncludedManagedClusters, api.ClusterName(cluster))
	}
	if change != nil {
		change(&m.object.Spec)
	}
	if err := in.global.Create(t.Context(), m.object); err != nil {
		t.Fatal(err)
	}
	return m
}

// read reads the migration as it is now.
func (m *migration) read() *api.ManagedClusterMigration {
	m.t.Helper()
	if err := m.in.global.Get(m.t.Context(), client.ObjectKeyFromObject(m.object), m.object); err != nil {
		m.t.Fatal(err)
	}
	return m.object
}

// order of the phases. Rollbacking and Failed come after every other one.
var order = []api.Phase{
	"", api.PhasePending, api.PhaseValidating, api.PhaseInitializing, api.PhaseDeploying, api.PhaseRegistering, api.PhaseCleaning, api.PhaseCompleted,
	api.PhaseRollbacking, api.PhaseFailed,
}

// mustReach waits for a phase, and fails the test when the migration takes another way.
func (m *migration) mustReach(phase api.Phase) {
	m.t.Helper()
	m.mustReachWithin(patience, phase)
}

func (m *migration) mustReachWithin(limit time.Duration, phase api.Phase) {
	m.t.Helper()
	awaitWithin(m.t, limit, fmt.Sprintf("phase %s of %s", phase, m.object.Name), func(context.Context) error {
		now := m.read().Status
		switch {
		case now.Phase == phase && (phase != api.PhaseCompleted && phase != api.PhaseFailed || now.CompletionTime != nil):
			return nil
		case slices.Index(order, now.Phase) > slices.Index(order, phase):
			m.t.Fatalf("migration %s is in phase %s, want %s: %s", m.object.Name, now.Phase, phase, m.describe())
		}
		return fmt.Errorf("%s", m.describe())
	})
}

// describe is the status, with the ends of the logs.
func (m *migration) describe() string {
	status, err := json.MarshalIndent(m.object.Status, "", " ")
	if err != nil {
		m.t.Fatal(err)
	}
	var text strings.Builder
	text.Write(status)
	for _, d := range []*daemon{m.in.manager, m.in.source, m.in.target} {
		text.WriteString("\n" + d.name + ":" + process.Tail(d.log))
	}
	return text.String()
}

// mustHave fails the test unless a condition has a status and a reason.
func (m *migration) mustHave(kind string, status metav1.ConditionStatus, reason *godwit.Reason) {
	m.t.Helper()
	c := meta.FindStatusCondition(m.object.Status.Conditions, kind)
	if c == nil || c.Status != status || reason != nil && c.Reason != reason.Name {
		m.t.Errorf("condition %s of %s is %+v, want %s %s", kind, m.object.Name, c, status, reason)
	}
}
