package cluster

import (
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/godwit-dev/godwit/cmd/hub"
	api "github.com/godwit-dev/godwit/cmd/hub/api/v1alpha1"
	"github.com/godwit-dev/godwit/cmd/hub/preflight"
	"github.com/godwit-dev/godwit/cmd/internal/cluster/clusterreport"
	"github.com/godwit-dev/godwit/cmd/internal/frame"
)

func TestNextName(t *testing.T) {
	known := []api.ManagedClusterMigration{{ObjectMeta: metav1.ObjectMeta{Name: "east-retry-1"}}, {ObjectMeta: metav1.ObjectMeta{Name: "east-retry-2"}}}
	long := strings.Repeat("a", 54) + "-bcdefghi" // 63 characters, cut at the hyphen
	for name, test := range map[string]struct {
		reason, name, want string
		known              []api.ManagedClusterMigration
	}{
		"First":  {"Nothing has the name.", "east", "east-retry-1", nil},
		"Second": {"The first two exist.", "east", "east-retry-3", known},
		"Again":  {"A retry of a retry has the name of the first migration.", "east-retry-2", "east-retry-3", known},
		"Other":  {"The name ends like one, and has no number.", "my-retry-x", "my-retry-x-retry-1", nil},
		"Long":   {"Labels are named after it, and have 63 characters.", long, strings.Repeat("a", 54) + "-retry-1", nil},
	} {
		if got := nextName(test.name, "retry", test.known); got != test.want || len(got) > maxName {
			t.Errorf("%s: %s Got %s, want %s", name, test.reason, got, test.want)
		}
	}
}

func migrationOf(placement string, clusters ...hub.Cluster) migration {
	m := migration{ManagedClusterMigration: &api.ManagedClusterMigration{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "east"}}}
	m.Spec = api.ManagedClusterMigrationSpec{From: "hub1", To: "hub2", IncludedManagedClustersPlacementRef: placement}
	m.state.Clusters = clusters
	return m
}

func TestRetryOf(t *testing.T) {
	for name, test := range map[string]struct {
		reason    string
		of        migration
		want      []api.ClusterName
		placement string
		none      bool
	}{
		"Partial":    {reason: "Only what was not moved moves again.", of: migrationOf("", hub.Cluster{Name: "c1", State: hub.Moved}, hub.Cluster{Name: "c2", State: hub.Restored}), want: []api.ClusterName{"c2"}},
		"Placement":  {reason: "A resolved Placement is not resolved again.", of: migrationOf("east", hub.Cluster{Name: "c1", State: hub.Restored}), want: []api.ClusterName{"c1"}},
		"Unresolved": {reason: "No cluster is known.", of: migrationOf("east"), placement: "east"},
		"Moved":      {reason: "Nothing is left.", of: migrationOf("", hub.Cluster{Name: "c1", State: hub.Moved}), none: true},
	} {
		next := retryOf(test.of, nil)
		if (next == nil) != test.none {
			t.Errorf("%s: %s Got %v", name, test.reason, next)
		}
		if next == nil {
			continue
		}
		if !slices.Equal(next.Spec.IncludedManagedClusters, test.want) || next.Spec.IncludedManagedClustersPlacementRef != test.placement || next.Name != "east-retry-1" || next.Namespace != "shop" {
			t.Errorf("%s: %s Got %s/%s of %v and placement %q", name, test.reason, next.Namespace, next.Name, next.Spec.IncludedManagedClusters, next.Spec.IncludedManagedClustersPlacementRef)
		}
	}
}

func TestCodes(t *testing.T) {
	moved, partly := clusterreport.Counts{Total: 2, Moved: 2}, clusterreport.Counts{Total: 2, Moved: 1}
	for name, test := range map[string]struct {
		of            clusterreport.Migration
		status, abort frame.Code
	}{
		"Running":  {clusterreport.Migration{Phase: api.PhaseDeploying}, frame.Pending, frame.Pending},
		"Cleaning": {clusterreport.Migration{Phase: api.PhaseCompleted, Counts: moved}, frame.Pending, frame.Pending},
		"Moved":    {clusterreport.Migration{Phase: api.PhaseCompleted, Settled: true, Counts: moved}, frame.OK, frame.Partial},
		"Partly":   {clusterreport.Migration{Phase: api.PhaseCompleted, Settled: true, Counts: partly}, frame.Partial, frame.Partial},
		"Back":     {clusterreport.Migration{Phase: api.PhaseFailed, Settled: true}, frame.Refused, frame.OK},
	} {
		if got := statusCode(test.of); got != test.status {
			t.Errorf("%s: status has exit code %d, want %d", name, got, test.status)
		}
		if got := abortCode(test.of); got != test.abort {
			t.Errorf("%s: abort has exit code %d, want %d", name, got, test.abort)
		}
	}
	for decision, want := range map[preflight.Decision]frame.Code{preflight.Ready: frame.OK, preflight.NotChecked: frame.Pending, preflight.AtRisk: frame.Pending, preflight.Blocked: frame.Refused} {
		if got := preflightCode(decision); got != want {
			t.Errorf("a preflight that is %s has exit code %d, want %d", decision, got, want)
		}
	}
}
