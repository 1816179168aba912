package frame

import (
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/godwit-dev/godwit/cmd/internal/permission"
	"github.com/godwit-dev/godwit/internal/quote"
)

// Purpose says what a connection is for, in the terms of `godwit rbac`.
type Purpose struct {
	Program string // as the user types it
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

// Remedy returns the command and who runs it.
func (p Purpose) Remedy(user string) string { return "an administrator runs: " + p.grant(user) }

func subjectFlag(user string) string {
	s := permission.Subject(user)
	if s.Kind == rbacv1.ServiceAccountKind {
		return "--serviceaccount=" + s.Namespace + ":" + s.Name
	}
	return "--user=" + s.Name
}
