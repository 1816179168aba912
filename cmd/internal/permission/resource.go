package permission

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/godwit-dev/godwit/internal/storageversion"
	"github.com/godwit-dev/godwit/internal/storageversion/resource"
)

// readResources is what a command needs to find resources and the API servers.
func (s Scope) readResources() []Permission {
	all := OfGrants(resource.ReadPermissions(), Required)
	for _, r := range s.Resources {
		if r.Custom {
			all = append(all, ReadCRD(r.Name()))
		}
	}
	return append(all, OfGrants(storageversion.ServerPermissions(), Optional)...)
}

// objectsOf are the permissions on the objects.
func (s Scope) objectsOf(readOnly bool) []Permission {
	var all []Permission
	for _, r := range s.Resources {
		all = append(all, OfGrants(resource.RequiredPermissions(r, resource.Options{Namespace: s.Namespace, ReadOnly: readOnly}), Required)...)
	}
	return all
}

func (s Scope) resourcePlan() []Permission {
	return append(s.readResources(), s.objectsOf(true)...)
}

func (s Scope) resourceRun() []Permission {
	all := append(s.readResources(), s.objectsOf(false)...)
	return append(all, OfGrants(resource.JournalPermissions(s.Installation), Required)...)
}

// resourceVerify also reads the namespace kube-system, by which it knows the etcd of the cluster.
func (s Scope) resourceVerify() []Permission {
	return append(s.resourcePlan(), Permission{
		Resource: schema.GroupResource{Resource: "namespaces"}, Verbs: []string{"get"}, Names: []string{"kube-system"},
	})
}
