package version

import (
	"context"
	"encoding/json"
	"errors"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/godwit-dev/godwit/cmd/internal/frame"
	"github.com/godwit-dev/godwit/cmd/internal/permission"
	"github.com/godwit-dev/godwit/cmd/internal/serving"
)

type options struct {
	*frame.App
	client bool
	output frame.Output
}

// unreadable returns a program whose state could not be read.
func unreadable(role string, cause error) Program {
	return Program{Role: role, State: StateNotReadable, Message: frame.OneLine(cause)}
}

// ofCluster returns the programs of the cluster. It returns an error if the user has selected a cluster that does not
// answer.
func (o *options) ofCluster(ctx context.Context) ([]Program, error) {
	c, err := o.Dial(ctx, frame.Purpose{Command: Permissions, Scope: o.scope()})
	if err != nil {
		all := []Program{unreadable(RoleManager, errors.New("the API server is not readable")), unreadable(RoleAPIServer, err)}
		if errors.Is(err, frame.ErrNoCluster) {
			return all, nil
		}
		return all, err
	}
	return append(o.managers(ctx, c), o.apiServer(ctx, c)), nil
}

// scope is that of the roles for this command.
func (o *options) scope() []string {
	if *o.Cluster.Namespace != "" {
		return []string{"--namespace=" + *o.Cluster.Namespace}
	}
	return []string{"--all-namespaces"}
}

// managers looks in all namespaces, unless the user names one.
func (o *options) managers(ctx context.Context, c *frame.Connection) []Program {
	namespace, where := *o.Cluster.Namespace, "any namespace"
	if namespace != "" {
		where = "namespace " + namespace
	}
	var list coordinationv1.LeaseList
	err := c.Client.Get().AbsPath("/apis/coordination.k8s.io/v1").NamespaceIfScoped(namespace, namespace != "").Resource("leases").
		Param("labelSelector", serving.LeaseSelector).Do(ctx).Into(&list)
	switch {
	case apierrors.IsForbidden(err):
		lacks := c.Lacks(c.WhoAmI(ctx), Permissions.Permissions(permission.Scope{Namespace: namespace}))
		if namespace == "" {
			lacks.Remedy = "name the namespace of the manager with --namespace, or " + lacks.Remedy
		}
		return []Program{unreadable(RoleManager, lacks)}
	case err != nil:
		return []Program{unreadable(RoleManager, c.Explain(ctx, err))}
	}
	return managers(list.Items, where, o.Clock.Now())
}

func (o *options) apiServer(ctx context.Context, c *frame.Connection) Program {
	p := Program{Role: RoleAPIServer, State: StateFound, Server: c.Where()}
	body, err := c.Client.Get().AbsPath("/version").Do(ctx).Raw()
	if err == nil {
		var answer struct{ GitVersion, GoVersion, Platform, GitCommit string }
		err = json.Unmarshal(body, &answer)
		p.Version, p.GoVersion, p.Platform, p.Commit = answer.GitVersion, answer.GoVersion, answer.Platform, answer.GitCommit
	}
	if err != nil {
		p.State, p.Message = StateNotReadable, frame.OneLine(c.Explain(ctx, err))
	}
	return p
}
