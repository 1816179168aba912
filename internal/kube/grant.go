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
	// Resource with its subresource after a slash, if it has one.
	Resource schema.GroupResource
	// Name restricts the grant to one object, Namespace to one namespace.
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

// Command creates a role with exactly this permission and binds it to the user. The role's
// name contains the user's: a command for another user must not find the name taken.
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

// nameRune keeps the characters that the name of any object may have.
func nameRune(r rune) rune {
	if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
		return r
	}
	return '-'
}

// ResourceArgument writes a resource as kubectl takes it: the subresource comes after the
// group.
func ResourceArgument(r schema.GroupResource) string {
	resource, subresource, ok := strings.Cut(r.Resource, "/")
	if !ok {
		return r.String()
	}
	return schema.GroupResource{Group: r.Group, Resource: resource}.String() + "/" + subresource
}
