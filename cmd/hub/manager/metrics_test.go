package manager

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	api "github.com/godwit-dev/godwit/cmd/hub/api/v1alpha1"
)

// TestClustersAreCountedOnce: each cluster is in one state of the metric, also one that is gone or forgotten.
func TestClustersAreCountedOnce(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := api.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	m := &api.ManagedClusterMigration{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "east"}}
	m.Status.Counts = &api.ClusterCounts{Total: 21, Moved: 1, Failed: 6, Restored: 4, Gone: 3, Forgotten: 5}
	want := `
# HELP godwit_cluster_migration_clusters Clusters of all ManagedClusterMigrations, by what became of them: moving, moved, failed, restored, gone or forgotten.
# TYPE godwit_cluster_migration_clusters gauge
godwit_cluster_migration_clusters{state="failed"} 2
godwit_cluster_migration_clusters{state="forgotten"} 5
godwit_cluster_migration_clusters{state="gone"} 3
godwit_cluster_migration_clusters{state="moved"} 1
godwit_cluster_migration_clusters{state="moving"} 6
godwit_cluster_migration_clusters{state="restored"} 4
`
	if err := testutil.CollectAndCompare(NewMetrics(fake.NewClientBuilder().WithScheme(scheme).WithObjects(m).Build()), strings.NewReader(want)); err != nil {
		t.Error(err)
	}
}
