package permission

// Command is a command that needs permissions, as `godwit rbac --for` names it.
type Command struct {
	Name string
	Of   Target
	// Installation is the namespace in which the guide installs what the command uses, the manager or the agent of a
	// hub; empty for a command that uses neither.
	Installation string
	// List returns the permissions that the command needs in a scope, those to read first.
	List func(Scope) []Permission
}

// String returns the name.
func (c Command) String() string { return c.Name }

// Permissions returns the permissions that the command needs in a scope, those to read first.
func (c Command) Permissions(s Scope) []Permission {
	if c.List == nil {
		return nil
	}
	return c.List(s)
}

// Target is the kind of objects that a command uses. The arguments of `godwit rbac` select the objects.
type Target string

// Targets.
const (
	// Namespaces means objects in one namespace or in all.
	Namespaces Target = ""
	// CRDs means CustomResourceDefinitions and their objects.
	CRDs Target = "CRDs"
	// Resources means the objects of any resources.
	Resources Target = "Resources"
	// ManagedResources means managed resources of the CRDs in scope.
	ManagedResources Target = "ManagedResources"
	// Migrations means the migrations of managed clusters, in one namespace or in all.
	Migrations Target = "Migrations"
	// Hub means one hub of managed clusters.
	Hub Target = "Hub"
	// Agent means the agent of a hub, which runs as a ServiceAccount.
	Agent Target = "Agent"
)

// Namespaces of the installation guide. The manager and the agent of one hub each keep a key there, in a
// Secret of the same name.
const (
	ManagerNamespace = "godwit"
	AgentNamespace   = "godwit-agent"
)
