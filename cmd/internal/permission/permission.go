package permission

import (
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/godwit-dev/godwit/internal/kube"
	storagedecision "github.com/godwit-dev/godwit/internal/storageversion/decision"
	"github.com/godwit-dev/godwit/internal/storageversion/resource"
	"github.com/godwit-dev/godwit/revision/decision"
)

// Permission is a set of verbs on one resource.
type Permission struct {
	Verbs []string
	// Resource with its subresource after a slash, if it has one.
	Resource schema.GroupResource
	// Names of the objects; none means all.
	Names []string
	// Namespace of the objects; empty means all, or objects without a namespace.
	Namespace string
	Need      Need
}

// Need is the effect of a missing permission.
type Need int

const (
	// Required means that the command refuses to begin.
	Required Need = iota
	// RequiredIfEnforced means Required where the API server runs the admission plugin
	// OwnerReferencesPermissionEnforcement, as OpenShift does, and unused elsewhere.
	RequiredIfEnforced
	// Optional means that the command continues without it, with less information.
	Optional
)

// String is the permission as in "alice lacks the permission to …".
func (p Permission) String() string {
	text := strings.Join(p.Verbs, ", ") + " " + kube.ResourceArgument(p.Resource)
	if len(p.Names) > 0 {
		text += " " + strings.Join(p.Names, ", ")
	}
	if p.Namespace != "" {
		text += " in namespace " + p.Namespace
	}
	return text
}

// List returns several permissions in one sentence.
func List(all []Permission) string {
	texts := make([]string, len(all))
	for i, p := range all {
		texts[i] = p.String()
	}
	return strings.Join(texts, "; ")
}

// OfGrants converts the permissions of a library.
func OfGrants(grants []kube.Grant, need Need) []Permission {
	all := make([]Permission, len(grants))
	for i, g := range grants {
		all[i] = Permission{Verbs: []string{g.Verb}, Resource: g.Resource, Namespace: g.Namespace, Need: need}
		if g.Name != "" {
			all[i].Names = []string{g.Name}
		}
	}
	return all
}

// merged joins permissions that differ in their verbs, and then those that differ in
// their objects.
func merged(all []Permission) []Permission {
	all = join(all, func(a, b Permission) bool { return slices.Equal(a.Names, b.Names) }, func(into *Permission, p Permission) {
		into.Verbs = union(into.Verbs, p.Verbs)
	})
	return join(all, func(a, b Permission) bool {
		return len(a.Names) > 0 && len(b.Names) > 0 && slices.Equal(a.Verbs, b.Verbs)
	}, func(into *Permission, p Permission) { into.Names = union(into.Names, p.Names) })
}

// join folds each permission into the first of the same resource and namespace that
// matches.
func join(all []Permission, match func(a, b Permission) bool, fold func(into *Permission, p Permission)) []Permission {
	var joined []Permission
	for _, p := range all {
		at := slices.IndexFunc(joined, func(j Permission) bool {
			return j.Resource == p.Resource && j.Namespace == p.Namespace && match(j, p)
		})
		if at < 0 {
			p.Verbs, p.Names = slices.Clone(p.Verbs), slices.Clone(p.Names)
			joined = append(joined, p)
			continue
		}
		fold(&joined[at], p)
	}
	return joined
}

func union(a, b []string) []string {
	for _, one := range b {
		if !slices.Contains(a, one) {
			a = append(a, one)
		}
	}
	return a
}

// Scope selects the objects of a command. Each command uses the fields of its domain.
type Scope struct {
	// CRDs names CustomResourceDefinitions, and APIGroups all of a group.
	CRDs, APIGroups []string
	// Resources are those of `godwit resource`.
	Resources []resource.Resource
	// Listed means that the command lists CRDs, with a selector or all of them.
	Listed bool
	// Dependents are resources whose ownerReferences a run repairs.
	Dependents []string
	// Write of a run; empty means the default.
	Write storagedecision.Write
	// Family of the revisions.
	Family decision.Description
	// Namespace of the revisions, of the managed resources or of the migrations; empty means all.
	Namespace string
	// Installation is the namespace of the manager, of the agent of a hub, or of the journal of a run.
	Installation string
}

// crds is the resource of CustomResourceDefinitions.
var crds = schema.GroupResource{Group: apiextensionsv1.GroupName, Resource: "customresourcedefinitions"}

// CRDPermission returns a permission on CustomResourceDefinitions: on those with the names, or on all.
func CRDPermission(need Need, verb string, names ...string) Permission {
	return Permission{Resource: crds, Verbs: []string{verb}, Names: slices.Clone(names), Need: need}
}

// ReadCRD returns the permission to read one CustomResourceDefinition, or to list all if the name is empty.
func ReadCRD(name string) Permission {
	if name == "" {
		return CRDPermission(Required, "list")
	}
	return CRDPermission(Required, "get", name)
}

// ReadCRDs returns the permissions to read the CustomResourceDefinitions in scope.
func (s Scope) ReadCRDs() []Permission {
	if s.Listed || len(s.CRDs) == 0 {
		return []Permission{{Resource: crds, Verbs: []string{"get", "list"}}}
	}
	return []Permission{CRDPermission(Required, "get", s.CRDs...)}
}

// Objects returns the resources of the custom resources in scope.
func (s Scope) Objects() []schema.GroupResource {
	var all []schema.GroupResource
	for _, name := range s.CRDs {
		all = append(all, schema.ParseGroupResource(name))
	}
	for _, group := range s.APIGroups {
		all = append(all, schema.GroupResource{Group: group, Resource: "*"})
	}
	return all
}

// In returns a permission on objects of a resource in the namespace of the scope.
func (s Scope) In(r schema.GroupResource, need Need, verbs ...string) Permission {
	return Permission{Resource: r, Verbs: verbs, Namespace: s.Namespace, Need: need}
}
