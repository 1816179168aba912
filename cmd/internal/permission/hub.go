package permission

// The chart gives the agent these roles.
//go:generate sh -c "go run ../../godwit rbac --for=hub-agent --serviceaccount=OWN:hub-agent > ../../../charts/godwit/files/roles/hub-agent.yaml"

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/godwit-dev/godwit/hub/agent"
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
