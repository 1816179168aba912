package version

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/godwit-dev/godwit/cmd/internal/permission"
)

// Permissions returns the permissions of `godwit version`. It finds managers by their leases: no other object has the
// running version.
var Permissions = permission.Command{Name: "version", List: func(s permission.Scope) []permission.Permission {
	return []permission.Permission{s.In(schema.GroupResource{Group: "coordination.k8s.io", Resource: "leases"}, permission.Optional, "list")}
}}
