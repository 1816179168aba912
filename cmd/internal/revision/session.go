package revision

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/godwit-dev/godwit/cmd/internal/frame"
	"github.com/godwit-dev/godwit/cmd/internal/permission"
	"github.com/godwit-dev/godwit/revision"
	"github.com/godwit-dev/godwit/revision/decision"
)

// session is a connection over which revisions of one family are upgraded.
type session struct {
	*frame.Connection
	*revision.Upgrader
	family decision.Family
	// installed is the release of the software that the family belongs to.
	installed decision.Software
	scope     *selection
	// clusterFlags are those of printed commands.
	clusterFlags string
}

// missing returns an error that names the permissions that the user lacks and the command that
// grants them. It returns nil if no permission is missing, or if the API server does not say.
// Namespace is one of those in scope.
func (s *session) missing(ctx context.Context, namespace string) error {
	needed := s.Purpose.Command.Permissions(permission.Scope{Family: s.family.Describe(), Namespace: s.scope.namespace})
	needed = slices.DeleteFunc(needed, func(p permission.Permission) bool { return p.Need == permission.Optional })
	denied := slices.DeleteFunc(s.Connection.Denied(ctx, needed), func(p permission.Permission) bool {
		return !s.served(ctx, p.Resource.Group) || p.Need == permission.RequiredIfEnforced && !s.isOwnerDeletionEnforced(ctx, namespace, p)
	})
	if len(denied) == 0 {
		return nil
	}
	return s.Lacks(s.WhoAmI(ctx), denied)
}

// served reports whether the API server serves a group: a cluster without snapshots needs no permissions for them.
func (s *session) served(ctx context.Context, group string) bool {
	return s.Client.Get().AbsPath("/apis", group).Do(ctx).Error() == nil
}

// isOwnerDeletionEnforced checks with a dry run whether a client that blocks the deletion of an owner needs the
// permission to set the owner's finalizers. It ignores other errors: the run reports them.
func (s *session) isOwnerDeletionEnforced(ctx context.Context, namespace string, p permission.Permission) bool {
	owners := s.family.Describe().Owners
	at := slices.IndexFunc(owners, func(o decision.OwnerType) bool { return o.Group == p.Resource.Group })
	block := true
	body, err := json.Marshal(&appsv1.ControllerRevision{
		TypeMeta: metav1.TypeMeta{APIVersion: appsv1.SchemeGroupVersion.String(), Kind: "ControllerRevision"},
		ObjectMeta: metav1.ObjectMeta{GenerateName: "godwit-permissions-", OwnerReferences: []metav1.OwnerReference{{
			APIVersion: owners[at].GroupVersion().String(), Kind: owners[at].Kind, Name: "any", UID: "any", BlockOwnerDeletion: &block,
		}}},
		Data: runtime.RawExtension{Raw: []byte("{}")},
	})
	if err != nil {
		return false
	}
	err = s.Client.Post().AbsPath("/apis/apps/v1/namespaces", namespace, "controllerrevisions").
		SetHeader("Content-Type", runtime.ContentTypeJSON).Param("dryRun", metav1.DryRunAll).Body(body).Do(ctx).Error()
	return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "blockOwnerDeletion")
}

// explain names the permissions of the command that are missing.
func (s *session) explain(ctx context.Context, err error) error {
	return s.ExplainBy(ctx, err, s.missingInScope)
}

// missingInScope is missing for a command whose scope may be the whole cluster.
func (s *session) missingInScope(ctx context.Context) error {
	return s.missing(ctx, cmp.Or(s.scope.namespace, metav1.NamespaceDefault))
}
