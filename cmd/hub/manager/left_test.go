package manager

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/godwit-dev/godwit/cmd/hub"
	api "github.com/godwit-dev/godwit/cmd/hub/api/v1alpha1"
)

// recorded has the notes of events by what makes two events one: a recorder of Kubernetes counts those of the same type, reason and action.
type recorded map[string]string

// Eventf implements events.EventRecorder.
func (r recorded) Eventf(_, _ runtime.Object, kind, reason, action, note string, args ...any) { //nolint:revive // the interface has so many
	r[kind+" "+reason+" "+action] = fmt.Sprintf(note, args...)
}

// TestEventsOfCertificatesAreSeveral: the same for certificates.
//
// Matrix: H140.
func TestEventsOfCertificatesAreSeveral(t *testing.T) {
	before := hub.State{Phase: api.PhaseFailed, Stage: api.PhaseRollbacking}
	for i := range 50 {
		before.Clusters = append(before.Clusters, hub.Cluster{Name: fmt.Sprintf("cluster-%02d", i), State: hub.Restored, Certificate: time.Unix(1_700_000_000, 0)})
	}
	after := before.Abandon()
	events := recorded{}
	(&Reconciler{Recorder: events}).announce(&api.ManagedClusterMigration{}, before, after, time.Time{})
	count := 0
	for what := range events {
		if strings.Contains(what, api.ReasonCertificateIssued.Name) {
			count++
		}
	}
	if want := len(after.NotesOfCertificates()); count != want || want < 3 {
		t.Errorf("%d events about certificates differ, want %d: %v", count, want, events)
	}
}

// TestEventsOfLeftAreSeveral: what does not fit into one event is in several, of which none is counted as another one.
//
// Matrix: H131.
func TestEventsOfLeftAreSeveral(t *testing.T) {
	s := hub.State{Phase: api.PhaseFailed, Stage: api.PhaseRollbacking, Abandoned: true}
	for i := range 50 {
		s.Clusters = append(s.Clusters, hub.Cluster{Name: fmt.Sprintf("cluster-%02d", i), State: hub.Returning})
	}
	events := recorded{}
	(&Reconciler{Recorder: events}).announceLeft(t.Context(), &api.ManagedClusterMigration{}, "left: ", s)
	if want := len(s.NotesOfLeft()); len(events) != want || want < 3 {
		t.Errorf("%d events differ, want %d: %v", len(events), want, events)
	}
}
