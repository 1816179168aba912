package permission

// The chart gives the agent these roles.
//go:generate sh -c "go run ../../godwit rbac --for=hub-agent --serviceaccount=OWN:hub-agent > ../../../charts/godwit/files/roles/hub-agent.yaml"

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/godwit-dev/godwit/cmd/hub/agent"
	hubv1alpha1 "github.com/godwit-dev/godwit/cmd/hub/api/v1alpha1"
	"github.com/godwit-dev/godwit/cmd/hub/manager"
	"github.com/godwit-dev/godwit/cmd/hub/preflight"
)

// hubAgent is what the agent needs whose namespace the scope has.
func (s Scope) hubAgent() []Permission {
	var all []Permission
	for _, p := range agent.Permissions(s.Namespace) {
		all = append(all, Permission{
			Verbs: p.Verbs, Resource: schema.GroupResource{Group: p.Group, Resource: p.Resource}, Names: p.Names, Namespace: p.Namespace,
		})
	}
	return all
}

// clusterPreflight reads the global hub.
func (s Scope) clusterPreflight() []Permission {
	return ofPreflight(preflight.GlobalPermissions(s.Namespace, s.Installation))
}

// clusterHub reads a hub.
func (s Scope) clusterHub() []Permission {
	return ofPreflight(preflight.ViewPermissions(s.Installation))
}

// clusterRun creates migrations, and aborts them by an annotation.
func (s Scope) clusterRun() []Permission {
	migrations := schema.GroupResource{Group: hubv1alpha1.GroupVersion.Group, Resource: "managedclustermigrations"}
	return append(s.clusterPreflight(), Permission{Verbs: []string{"create", "patch"}, Resource: migrations, Namespace: s.Namespace})
}

// clusterEnroll writes the keys of hubs on the global hub. Who has it can act as any hub.
func (s Scope) clusterEnroll() []Permission {
	configMaps := schema.GroupResource{Resource: "configmaps"}
	return []Permission{
		{Verbs: []string{"get"}, Resource: schema.GroupResource{Group: "cluster.open-cluster-management.io", Resource: "managedclusters"}},
		{Verbs: []string{"get", "update"}, Resource: configMaps, Names: []string{manager.EnrolledHubs}, Namespace: s.Installation},
		{Verbs: []string{"create"}, Resource: configMaps, Namespace: s.Installation},
	}
}

func ofPreflight(list []preflight.Permission) []Permission {
	all := make([]Permission, len(list))
	for i, p := range list {
		all[i] = Permission{Verbs: p.Verbs, Resource: schema.GroupResource{Group: p.Group, Resource: p.Resource}, Names: p.Names, Namespace: p.Namespace}
	}
	return all
}
