package kube

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/godwit-dev/godwit/internal/quote"
)

// Grant is the permission for one verb on one resource.
type Grant struct {
	Verb string
	// Resource has its subresource after a slash, if there is one.
	Resource schema.GroupResource
	// Name restricts the permission to one object, Namespace to one namespace.
	Name, Namespace string
}

func (g Grant) String() string {
	text := g.Verb + " " + ResourceArgument(g.Resource)
	if g.Name != "" {
		text += " " + g.Name
	}
	if g.Namespace != "" {
		text += " in namespace " + g.Namespace
	}
	return text
}

// Command returns kubectl commands that create a role with exactly this permission and bind it
// to the user. The role's name contains the user's name, so that the commands for two users
// do not collide.
func (g Grant) Command(user string) string {
	if user == "" {
		user = "USER"
	}
	role := strings.Map(nameRune, strings.Join(slices.DeleteFunc(
		[]string{"godwit", g.Verb, g.Resource.String(), g.Name, user}, func(s string) bool { return s == "" }), "-"))
	kind, scope := "clusterrole", ""
	if g.Namespace != "" {
		kind, scope = "role", " --namespace="+g.Namespace
	}
	rule := fmt.Sprintf("--verb=%s --resource=%s", g.Verb, ResourceArgument(g.Resource))
	if g.Name != "" {
		rule += " --resource-name=" + g.Name
	}
	subject := "--user=" + quote.Shell(user)
	if sa, ok := strings.CutPrefix(user, "system:serviceaccount:"); ok {
		subject = "--serviceaccount=" + sa
	}
	return fmt.Sprintf("kubectl create %[1]s %[2]s%[3]s %[4]s && kubectl create %[1]sbinding %[2]s%[3]s --%[1]s=%[2]s %[5]s",
		kind, role, scope, rule, subject)
}

// nameRune keeps the characters that are valid in the name of any object.
func nameRune(r rune) rune {
	if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
		return r
	}
	return '-'
}

// ResourceArgument formats a resource as kubectl takes it: the subresource comes after the
// group.
func ResourceArgument(r schema.GroupResource) string {
	resource, subresource, ok := strings.Cut(r.Resource, "/")
	if !ok {
		return r.String()
	}
	return schema.GroupResource{Group: r.Group, Resource: resource}.String() + "/" + subresource
}
