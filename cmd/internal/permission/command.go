package permission

// Command is a command that needs permissions, as `godwit rbac --for` names it.
type Command struct {
	Name string
	Of   Target
	// Installation is the namespace in which the guide installs what the command uses, the manager or the agent of a
	// hub; empty for a command that uses neither.
	Installation string
	// List lists what the command needs in a scope, the reading permissions first.
	List func(Scope) []Permission
}

// String is the name.
func (c Command) String() string { return c.Name }

// Permissions lists what the command needs in a scope, the reading permissions first.
func (c Command) Permissions(s Scope) []Permission {
	if c.List == nil {
		return nil
	}
	return c.List(s)
}

// Target says what a command is about, which the arguments of `godwit rbac` select.
type Target string

// Targets.
const (
	// Namespaces: a command about objects in one namespace or in all.
	Namespaces Target = ""
	// CRDs: a command about CustomResourceDefinitions and their objects.
	CRDs Target = "CRDs"
	// Resources: a command about the objects of any resources.
	Resources Target = "Resources"
	// ManagedResources: a command about managed resources, which the CRDs of the scope name.
	ManagedResources Target = "ManagedResources"
	// Migrations: a command about the migrations of managed clusters, in one namespace or in all.
	Migrations Target = "Migrations"
	// Hub: a command about one hub of managed clusters.
	Hub Target = "Hub"
	// Agent: the agent of a hub, which runs as a ServiceAccount.
	Agent Target = "Agent"
)

// Namespaces of the installation guide. The manager and the agent of one hub each keep a key there, in a
// Secret of the same name.
const (
	ManagerNamespace = "godwit"
	AgentNamespace   = "godwit-agent"
)
