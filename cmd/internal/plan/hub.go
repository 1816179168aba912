package plan

import (
	"context"
	"encoding/json"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	api "github.com/godwit-dev/godwit/cmd/hub/api/v1alpha1"
	"github.com/godwit-dev/godwit/cmd/hub/direct"
	"github.com/godwit-dev/godwit/cmd/internal/cluster/clusterpermission"
	"github.com/godwit-dev/godwit/cmd/internal/cluster/clusterreport"
	"github.com/godwit-dev/godwit/cmd/internal/permission"
	"github.com/godwit-dev/godwit/cmd/internal/plan/planreport"
	"github.com/godwit-dev/godwit/internal/quicklist"
	"github.com/godwit-dev/godwit/internal/quote"
)

// servesMigrations reports whether the cluster is a global hub. A CRD of the same name without our annotation
// belongs to another project, and Godwit does not act on its objects.
func (s *scanner) servesMigrations() bool {
	crd := s.crd(api.CRDName)
	return crd != nil && crd.Annotations[api.OwnerAnnotation] == api.Owner
}

// hasManagedClusters reports whether the cluster is a hub, from which `godwit cluster move` may have moved clusters.
func (s *scanner) hasManagedClusters() bool {
	return s.crd("managedclusters."+clusterv1.GroupName) != nil
}

func (s *scanner) crd(name string) *apiextensionsv1.CustomResourceDefinition {
	for i := range s.crds {
		if s.crds[i].Name == name {
			return &s.crds[i]
		}
	}
	return nil
}

// planHub reads the status of the migrations of managed clusters: those of a global hub, and those that a command carries out.
func (s *scanner) planHub(ctx context.Context) planreport.Row {
	var migrations []planreport.Migration
	if s.servesMigrations() {
		list := &api.ManagedClusterMigrationList{}
		if err := s.read(ctx, list, "", "/apis", api.GroupVersion.Group, api.GroupVersion.Version, "managedclustermigrations"); err != nil {
			return s.failed(ctx, planreport.Hubs, err, []permission.Permission{clusterpermission.ListMigrations()})
		}
		for i := range list.Items {
			m := &list.Items[i]
			words := m.Name + " -n " + m.Namespace
			migrations = append(migrations, s.migration(m, s.app.Hint("cluster status "+words), s.app.Hint("cluster retry "+words+" --failed")))
		}
	}
	if s.hasManagedClusters() {
		stored, row := s.storedMigrations(ctx)
		if row != nil {
			return *row
		}
		migrations = append(migrations, stored...)
	}
	return planreport.HubRow(migrations)
}

// storedMigrations reads the migrations that commands carry out, or returns the row that says why it can't.
func (s *scanner) storedMigrations(ctx context.Context) ([]planreport.Migration, *planreport.Row) {
	fail := func(s *scanner, err error, needed ...permission.Permission) ([]planreport.Migration, *planreport.Row) {
		row := s.failed(ctx, planreport.Hubs, err, needed)
		return nil, &row
	}
	if err := s.read(ctx, &corev1.Namespace{}, "", "/api", "v1", "namespaces", direct.Namespace); apierrors.IsNotFound(err) {
		return nil, nil
	} else if err != nil {
		return fail(s, err, clusterpermission.FindStored())
	}
	list := &corev1.ConfigMapList{}
	if err := s.read(ctx, list, direct.LabelMigration, "/api", "v1", "namespaces", direct.Namespace, "configmaps"); err != nil {
		return fail(s.withNamespace(direct.Namespace), err, clusterpermission.ListStored(direct.Namespace))
	}
	stored := direct.Migrations(list)
	all := make([]planreport.Migration, len(stored))
	for i := range stored {
		words := "cluster status " + stored[i].Name + " --from-context=" + quote.Shell(nameOf(s.app))
		all[i] = s.migration(&stored[i], s.app.InContext("").Hint(words), "")
	}
	return all, nil
}

// read reads an object, or a list of those with labels.
func (s *scanner) read(ctx context.Context, into any, labels string, path ...string) error {
	return quicklist.Retry(ctx, func(ctx context.Context) error {
		request := s.Client.Get().AbsPath(path...).MaxRetries(0)
		if labels != "" {
			request.Param("labelSelector", labels)
		}
		text, err := request.Do(ctx).Raw()
		if err != nil {
			return err
		}
		return json.Unmarshal(text, into)
	})
}

// withNamespace returns a scanner whose remedies grant permissions in a namespace that most clusters do not have.
func (s *scanner) withNamespace(name string) *scanner {
	connection, other := *s.Connection, *s
	connection.Purpose.Scope = append(slices.Clone(connection.Purpose.Scope), "--godwit-namespace="+name)
	other.Connection = &connection
	return &other
}

func (s *scanner) migration(m *api.ManagedClusterMigration, status, retry string) planreport.Migration {
	stalled := meta.FindStatusCondition(m.Status.Conditions, api.ConditionStalled)
	return planreport.Migration{
		Migration: clusterreport.SummaryOf(m, s.app.Clock.Now()), Stalled: stalled != nil && stalled.Status == metav1.ConditionTrue,
		Status: status, Retry: retry,
	}
}
