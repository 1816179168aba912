package kube

import (
	"cmp"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/godwit-dev/godwit"
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

// Fix returns the fix that grants exactly this permission to a user.
func (g Grant) Fix(user string) godwit.Fix {
	return godwit.Do(fmt.Sprintf("grant %s the permission to %s", cmp.Or(user, "the user"), g), godwit.GrantPermission{
		User: user, Verb: g.Verb, Group: g.Resource.Group, Resource: g.Resource.Resource, Namespace: g.Namespace, Name: g.Name,
	})
}

// ResourceArgument formats a resource for kubectl: the subresource comes after the group.
func ResourceArgument(r schema.GroupResource) string {
	resource, subresource, ok := strings.Cut(r.Resource, "/")
	if !ok {
		return r.String()
	}
	return schema.GroupResource{Group: r.Group, Resource: resource}.String() + "/" + subresource
}
