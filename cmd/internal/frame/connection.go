package frame

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/client-go/rest"

	"github.com/godwit-dev/godwit/cmd/internal/permission"
	"github.com/godwit-dev/godwit/cmd/internal/render"
	"github.com/godwit-dev/godwit/internal/kube"
	"github.com/godwit-dev/godwit/internal/quote"
)

// Purpose is the purpose of a connection, in the terms of `godwit rbac`.
type Purpose struct {
	Program string // as the user types it; set by Dial
	Command permission.Command
	Scope   []string // arguments of `godwit rbac` for the CRDs or namespaces

	cluster string // flags with which an administrator uses the same cluster
}

// grant returns the command with which an administrator grants a user all permissions that
// the purpose needs. The user cannot run it: RBAC lets users grant only permissions that
// they have.
func (p Purpose) grant(user string) string {
	words := append([]string{"rbac", "--for=" + p.Command.Name, subjectFlag(user)}, p.Scope...)
	for i := range words {
		words[i] = quote.Shell(words[i])
	}
	return p.Program + " " + strings.Join(words, " ") + p.cluster + " | kubectl apply" + p.cluster + " -f -"
}

// Remedy returns a sentence with the command and the user who runs it.
func (p Purpose) Remedy(user string) string { return "an administrator runs: " + p.grant(user) }

func subjectFlag(user string) string {
	s := permission.Subject(user)
	if s.Kind == rbacv1.ServiceAccountKind {
		return "--serviceaccount=" + s.Namespace + ":" + s.Name
	}
	return "--user=" + s.Name
}

const (
	// DialTimeout is a sixth of client-go's timeout: even a distant server accepts a connection within a second.
	DialTimeout = 5 * time.Second
	// firstAnswerTimeout bounds the first request, for a server that accepts connections and sends no answer.
	firstAnswerTimeout = 8 * time.Second
)

// Connection is a connection to an API server that has answered.
type Connection struct {
	Config  *rest.Config
	Client  *rest.RESTClient
	server  string
	context string // of the kubeconfig; empty in a cluster
	Purpose Purpose
}

// WhoAmI returns the user name that the API server authenticates, or a placeholder.
func (c *Connection) WhoAmI(ctx context.Context) string {
	if name := kube.UserName(ctx, c.Client); name != "" {
		return name
	}
	return "USER"
}

// ClusterUID returns the UID of the namespace kube-system, which a cluster keeps; empty if the user may not read it.
func (c *Connection) ClusterUID(ctx context.Context) string {
	namespace := &corev1.Namespace{}
	if err := kube.Do(ctx, c.Client.Get().AbsPath("api", "v1", "namespaces", metav1.NamespaceSystem)).Into(namespace); err != nil {
		return ""
	}
	return string(namespace.UID)
}

func (c *Connection) origin(ctx context.Context) *render.Origin {
	return &render.Origin{Server: c.server, ClusterUID: c.ClusterUID(ctx), User: kube.UserName(ctx, c.Client), Version: Build().Version}
}

// Where returns the address of the API server and the context of the kubeconfig.
func (c *Connection) Where() string {
	if c.context == "" {
		return c.server
	}
	return c.server + " (context " + c.context + ")"
}

// view is the command that shows the context of the kubeconfig: a command with several hubs has several contexts.
func (c *Connection) view() string {
	view := "kubectl config view --minify"
	if c.context != "" {
		view += " --context=" + quote.Shell(c.context)
	}
	return view
}

// Lacks returns the error for missing permissions.
func (c *Connection) Lacks(user string, missing []permission.Permission) *ActionableError {
	return &ActionableError{
		Reason:  render.ReasonForbidden,
		Message: fmt.Sprintf("%s lacks permissions: %s", user, permission.List(missing)),
		Remedy:  c.Purpose.Remedy(user),
	}
}

// Missing returns an error that names the permissions that the user lacks, and the command that grants them. It returns
// nil if none is missing, or if the API server does not report it.
func (c *Connection) Missing(ctx context.Context, needed []permission.Permission) error {
	if denied := c.Denied(ctx, needed); len(denied) > 0 {
		return c.Lacks(c.WhoAmI(ctx), denied)
	}
	return nil
}

// Denied returns the permissions that the user lacks. It asks the API server, which asks
// all of its authorizers. A permission counts as denied only if the API server says so.
func (c *Connection) Denied(ctx context.Context, needed []permission.Permission) []permission.Permission {
	lacking := make([][]string, len(needed))
	var reviews sync.WaitGroup
	for i, p := range needed {
		reviews.Go(func() { lacking[i] = c.deniedVerbs(ctx, p) })
	}
	reviews.Wait()
	var all []permission.Permission
	for i, p := range needed {
		if p.Verbs = lacking[i]; len(p.Verbs) > 0 {
			all = append(all, p)
		}
	}
	return all
}

func (c *Connection) deniedVerbs(ctx context.Context, p permission.Permission) []string {
	names := p.Names
	if len(names) == 0 {
		names = []string{""}
	}
	return slices.DeleteFunc(slices.Clone(p.Verbs), func(verb string) bool {
		return !slices.ContainsFunc(names, func(name string) bool { return c.deniedOne(ctx, p, verb, name) })
	})
}

func (c *Connection) deniedOne(ctx context.Context, p permission.Permission, verb, name string) bool {
	ok, err := kube.Allowed(ctx, c.Client, kube.Grant{Verb: verb, Resource: p.Resource, Name: name, Namespace: p.Namespace})
	return err == nil && !ok
}
