package permission

import "k8s.io/apimachinery/pkg/runtime/schema"

// version reads the leases of managers: no other object tells which version runs.
func (s Scope) version() []Permission {
	return []Permission{{
		Resource: schema.GroupResource{Group: "coordination.k8s.io", Resource: "leases"}, Verbs: []string{"list"}, Namespace: s.Namespace, Need: Optional,
	}}
}
