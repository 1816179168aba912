package permission

import (
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/godwit-dev/godwit/crdmigrator/rescue"
	"github.com/godwit-dev/godwit/internal/storageversion"
	"github.com/godwit-dev/godwit/internal/storageversion/preflight"
)

var crds = schema.GroupResource{Group: apiextensionsv1.GroupName, Resource: "customresourcedefinitions"}

func (s Scope) readCRDs() []Permission {
	if s.Listed || len(s.CRDs) == 0 {
		return []Permission{{Resource: crds, Verbs: []string{"get", "list"}}}
	}
	return []Permission{{Resource: crds, Verbs: []string{"get"}, Names: slices.Clone(s.CRDs)}}
}

// ReadCRD is the permission to read one CustomResourceDefinition, or to list all where
// the name is empty.
func ReadCRD(name string) Permission {
	if name == "" {
		return Permission{Resource: crds, Verbs: []string{"list"}}
	}
	return Permission{Resource: crds, Verbs: []string{"get"}, Names: []string{name}}
}

// objects are the resources of the custom resources in scope.
func (s Scope) objects() []schema.GroupResource {
	var all []schema.GroupResource
	for _, name := range s.CRDs {
		all = append(all, schema.ParseGroupResource(name))
	}
	for _, group := range s.APIGroups {
		all = append(all, schema.GroupResource{Group: group, Resource: "*"})
	}
	return all
}

// crdPlan reads. Without the permission to write, the dry run of the write is left out.
func (s Scope) crdPlan() []Permission {
	all := s.readCRDs()
	for _, r := range s.objects() {
		all = append(all, Permission{Resource: r, Verbs: []string{"list"}, Need: Optional})
	}
	return append(all, OfGrants(storageversion.OptionalPermissions(schema.GroupResource{}, storageversion.Options{}), Optional)...)
}

func (s Scope) crdRun() []Permission {
	o := storageversion.Options{Policy: storageversion.Policy{Write: s.Write}}
	all := s.readCRDs()
	for _, r := range s.objects() {
		all = append(all, OfGrants(storageversion.RequiredPermissions(r, o), Required)...)
	}
	for _, r := range s.objects() {
		all = append(all, OfGrants(storageversion.OptionalPermissions(r, o), Optional)...)
	}
	for _, d := range s.Dependents {
		r := schema.ParseGroupResource(d)
		all = append(all, Permission{Resource: r, Verbs: []string{"list", "patch"}, Need: Optional},
			Permission{Resource: r, Verbs: []string{"delete"}, Need: RequiredIfEnforced})
		if strings.Contains(r.Group, ".") { // its CRD, if it has one, says at which version it is written
			all = append(all, Permission{Resource: crds, Verbs: []string{"get"}, Names: []string{d}, Need: Optional})
		}
	}
	return append(all, OfGrants(preflight.OptionalPermissions(), Optional)...)
}

// crdDoctor reads the metadata of every object. RBAC can't restrict a list to metadata.
func (s Scope) crdDoctor() []Permission {
	return []Permission{
		{Resource: crds, Verbs: []string{"get", "list"}},
		{Resource: schema.GroupResource{Group: "*", Resource: "*"}, Verbs: []string{"list"}, Need: Optional},
	}
}

// crdCheck has the API server try the next release by a dry run, which takes the
// permission of the write itself.
func (s Scope) crdCheck() []Permission {
	all := append(s.readCRDs(),
		Permission{Resource: crds, Verbs: []string{"create"}, Need: Optional},
		Permission{Resource: crds, Verbs: []string{"update"}, Names: slices.Clone(s.CRDs), Need: Optional})
	for _, r := range s.objects() {
		all = append(all, Permission{Resource: r, Verbs: []string{"list"}})
	}
	return all
}

// crdRescue migrates, and writes the CRD before and after, for which the permissions of a migration are enough.
func (s Scope) crdRescue() []Permission {
	all := s.readCRDs()
	for _, r := range s.objects() {
		all = append(all, OfGrants(rescue.Grants(r), Required)...)
	}
	return append(all, OfGrants(storageversion.OptionalPermissions(schema.GroupResource{}, storageversion.Options{}), Optional)...)
}
