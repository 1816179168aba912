// Package resourcepermission lists the permissions for each command of `godwit resource`.
package resourcepermission

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/godwit-dev/godwit/cmd/internal/permission"
	"github.com/godwit-dev/godwit/internal/storageversion"
	"github.com/godwit-dev/godwit/internal/storageversion/resource"
)

// Commands.
var (
	Plan   = permission.Command{Name: "resource-plan", Of: permission.Resources, List: forPlan}
	Run    = permission.Command{Name: "resource-run", Of: permission.Resources, List: forRun}
	Verify = permission.Command{Name: "resource-verify", Of: permission.Resources, List: forVerify}
)

// readResources is what a command needs to find resources and the API servers.
func readResources(s permission.Scope) []permission.Permission {
	all := permission.OfGrants(resource.ReadPermissions(), permission.Required)
	for _, r := range s.Resources {
		if r.Custom {
			all = append(all, permission.ReadCRD(r.Name()))
		}
	}
	return append(all, permission.OfGrants(storageversion.ServerPermissions(), permission.Optional)...)
}

// objectsOf are the permissions on the objects.
func objectsOf(s permission.Scope, readOnly bool) []permission.Permission {
	var all []permission.Permission
	for _, r := range s.Resources {
		all = append(all, permission.OfGrants(resource.RequiredPermissions(r, resource.Options{Namespace: s.Namespace, ReadOnly: readOnly}), permission.Required)...)
	}
	return all
}

func forPlan(s permission.Scope) []permission.Permission {
	return append(readResources(s), objectsOf(s, true)...)
}

func forRun(s permission.Scope) []permission.Permission {
	all := append(readResources(s), objectsOf(s, false)...)
	return append(all, permission.OfGrants(resource.JournalPermissions(s.Installation), permission.Required)...)
}

// forVerify also reads the namespace kube-system, to recognize the etcd of the cluster.
func forVerify(s permission.Scope) []permission.Permission {
	return append(forPlan(s), permission.Permission{
		Resource: schema.GroupResource{Resource: "namespaces"}, Verbs: []string{"get"}, Names: []string{"kube-system"},
	})
}

// ReadJournal is the permission to read what an interrupted `godwit resource run` has done.
func ReadJournal() permission.Permission {
	return permission.Permission{
		Verbs: []string{"get"}, Resource: resource.JournalResource.GroupResource(), Names: []string{resource.JournalName}, Namespace: metav1.NamespaceSystem,
	}
}
