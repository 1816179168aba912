package plan

import (
	"context"
	"encoding/json"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/godwit-dev/godwit/cmd/hub/api/v1alpha1"
	"github.com/godwit-dev/godwit/cmd/internal/cluster/clusterpermission"
	"github.com/godwit-dev/godwit/cmd/internal/cluster/clusterreport"
	"github.com/godwit-dev/godwit/cmd/internal/permission"
	"github.com/godwit-dev/godwit/cmd/internal/plan/planreport"
	"github.com/godwit-dev/godwit/internal/quicklist"
)

// isHub reports whether the cluster is a global hub. A CRD of the same name without our annotation
// belongs to another project, and Godwit does not act on its objects.
func (s *scanner) isHub() bool {
	for i := range s.crds {
		if crd := &s.crds[i]; crd.Name == api.CRDName {
			return crd.Annotations[api.OwnerAnnotation] == api.Owner
		}
	}
	return false
}

// planHub reads the status of the migrations of managed clusters.
func (s *scanner) planHub(ctx context.Context) planreport.Row {
	list := &api.ManagedClusterMigrationList{}
	err := quicklist.Retry(ctx, func(ctx context.Context) error {
		text, err := s.Client.Get().AbsPath("/apis", api.GroupVersion.Group, api.GroupVersion.Version, "managedclustermigrations").MaxRetries(0).Do(ctx).Raw()
		if err != nil {
			return err
		}
		return json.Unmarshal(text, list)
	})
	if err != nil {
		return s.failed(ctx, planreport.Hubs, err, []permission.Permission{clusterpermission.ListMigrations()})
	}
	migrations := make([]planreport.Migration, len(list.Items))
	for i := range list.Items {
		m := &list.Items[i]
		stalled := meta.FindStatusCondition(m.Status.Conditions, api.ConditionStalled)
		migrations[i] = planreport.Migration{
			Migration: clusterreport.SummaryOf(m, s.app.Clock.Now()), Stalled: stalled != nil && stalled.Status == metav1.ConditionTrue,
		}
	}
	return planreport.HubRow(migrations, s.app.Hint)
}
