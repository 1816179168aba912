package godwit

import (
	"slices"
	"strings"
)

// Fix is the fix of a [Finding]: alternative ways, the best first. It is a value, so that each program can print it for
// its own users: a command line prints commands, an operator prints [Fix.String].
type Fix []Way

// Way is one way to fix a problem: steps, in their order.
type Way []FixStep

// FixStep is one step of a [Way].
type FixStep struct {
	// Do is the step in the imperative, as in "serve version v2 for the time of the run".
	Do string
	// Actions carry out the step, one after the other. They are empty if only the user knows how.
	Actions []Action
}

// Do returns a fix with one way of one step.
func Do(what string, actions ...Action) Fix { return Fix{Way{{Do: what, Actions: actions}}} }

// Or returns the fix with further ways, which are worse than its own.
func (f Fix) Or(others ...Fix) Fix { return slices.Concat(append([]Fix{f}, others...)...) }

// Then returns the fix with a step at the end of each way.
func (f Fix) Then(what string, actions ...Action) Fix {
	after := make(Fix, len(f))
	for i, way := range f {
		after[i] = append(slices.Clip(way), FixStep{Do: what, Actions: actions})
	}
	return after
}

// After returns the fix with a step at the beginning of each way.
func (f Fix) After(what string, actions ...Action) Fix {
	all := make(Fix, len(f))
	for i, way := range f {
		all[i] = append(Way{{Do: what, Actions: actions}}, way...)
	}
	return all
}

// Actions returns all actions of all ways.
func (f Fix) Actions() []Action {
	var all []Action
	for _, way := range f {
		for _, step := range way {
			all = append(all, step.Actions...)
		}
	}
	return all
}

// String returns a sentence without commands.
func (f Fix) String() string {
	return f.Text(func(s FixStep) string { return s.Do })
}

// Text joins the steps in the words of a program.
func (f Fix) Text(word func(FixStep) string) string {
	ways := make([]string, len(f))
	for i, way := range f {
		steps := make([]string, len(way))
		for k, step := range way {
			steps[k] = word(step)
		}
		ways[i] = strings.Join(steps, "; then ")
	}
	return strings.Join(ways, "; or ")
}

// Action is an action that a program can execute or print for a user: [RunMigration], [PlanMigration],
// [VerifyMigration], [RescueObjects], [GrantPermission], [Patch], [Annotate], [Edit], [Delete], [Show], [Request],
// [WaitFor], [TryFile] or [CheckRelease], of external names [RollBackNames], and of stored revisions [UpgradeRevisions], [PlanRevisions], [RollBackRevision] or [FixRevision].
type Action interface{ action() }

// RunMigration migrates the objects of a CRD.
type RunMigration struct {
	CRD string
	// Write is how objects are written; empty means the default.
	Write string
	// DryRun sends each write as a dry run.
	DryRun bool
	// AcceptDenials starts the run even if the API server refuses to write some objects.
	AcceptDenials bool
	// AcceptLosses are the paths of values that the run may drop, separated by commas.
	AcceptLosses string
	// AcceptChanges are the paths that admission may change, separated by commas.
	AcceptChanges string
	// OwnerReferences selects the ownerReferences to repair; empty means the default.
	OwnerReferences string
}

// PlanMigration plans the migration of a CRD.
type PlanMigration struct{ CRD string }

// VerifyMigration reads etcd to find the versions at which objects of a CRD are stored.
type VerifyMigration struct{ CRD string }

// RescueObjects makes objects readable that are stored at a version that their CRD does not have.
type RescueObjects struct {
	CRD string
	// WithoutWebhook converts in the API server, without the conversion webhook.
	WithoutWebhook bool
	// Undo restores the CRD as it was before an interrupted rescue.
	Undo bool
}

// GrantPermission gives a user one permission.
type GrantPermission struct {
	// User is the user name in the API server; empty if it is not known.
	User string
	Verb string
	// Group and Resource are the resource. A subresource follows after a slash.
	Group, Resource string
	// Namespace and Name restrict the permission; empty means all.
	Namespace, Name string
}

// Object names an object to a client, as kubectl does.
type Object struct {
	// Resource is a name such as "crd", "lease" or "widgets.example.com".
	Resource string
	// Namespace is empty for an object that has none.
	Namespace string
	// Name is empty for all objects of the resource.
	Name string
}

// PatchJSON and PatchMerge are the types of a [Patch].
const (
	PatchJSON  = "json"
	PatchMerge = "merge"
)

// Patch changes an object.
type Patch struct {
	Object      Object
	Subresource string
	// Type is PatchJSON or PatchMerge.
	Type string
	Body string
	// Owner is who applied the changed fields from a manifest.
	Owner Owner
}

// Owner is who applies fields from a manifest, and does so again. The zero value is none.
type Owner struct {
	// Manager is a field manager such as "flux" or "helm".
	Manager string
	// ServerSide means that its next apply conflicts with a change by another client. Otherwise it sets the fields back.
	ServerSide bool
}

// Annotate sets an annotation of an object, also if it has another value.
type Annotate struct {
	Object     Object
	Key, Value string
}

// Edit opens an object for the user to change.
type Edit struct{ Object Object }

// Delete deletes an object.
type Delete struct{ Object Object }

// Show reads objects.
type Show struct {
	Object   Object
	Selector string // of labels
	Output   string // as for kubectl get --output
}

// Request sends a GET to a path of the API server.
type Request struct {
	Path string
	// Verbose shows which server answers.
	Verbose bool
}

// WaitFor waits until an object has a condition.
type WaitFor struct {
	Object    Object
	Condition string
}

// TryFile applies the manifest in a file as a dry run.
type TryFile struct{ File string }

// CheckRelease checks the CRDs in a file against a cluster.
type CheckRelease struct{ File string }

// RollBackNames restores the external names before the last renaming, of the managed resources of a CRD.
type RollBackNames struct {
	Resource string
	// Namespace is empty for all namespaces.
	Namespace string
}

// UpgradeRevisions upgrades the stored revisions of a namespace.
type UpgradeRevisions struct {
	Namespace string
	// OnRunning is the policy for revisions that running objects use; empty means the default.
	OnRunning string
	// TargetVersion is empty for the storage version.
	TargetVersion string
	// AllowLosses upgrades even if the target version lacks fields: their values are kept, but not read.
	AllowLosses bool
}

// PlanRevisions plans the upgrade of the stored revisions of a namespace.
type PlanRevisions struct{ Namespace string }

// RollBackRevision repoints the references to a revision that was upgraded.
type RollBackRevision struct {
	Namespace, Name string
	// OnRunning is as in [UpgradeRevisions].
	OnRunning string
}

// FixRevision sets the controller or the labels of a stored revision, or says which revision holds
// what a missing one held.
type FixRevision struct {
	Namespace, Name string
	// Owner is the controller to set, as KIND/NAME; empty to set none.
	Owner string
	// Labels are the keys of labels to set. Only the user knows their values.
	Labels []string
	// Replacement is the revision that holds the same; empty where this one exists.
	Replacement string
}

func (RunMigration) action()    {}
func (PlanMigration) action()   {}
func (VerifyMigration) action() {}
func (RescueObjects) action()   {}
func (GrantPermission) action() {}
func (Patch) action()           {}
func (Annotate) action()        {}
func (Edit) action()            {}
func (Delete) action()          {}
func (Show) action()            {}
func (Request) action()         {}
func (WaitFor) action()         {}
func (TryFile) action()         {}
func (CheckRelease) action()    {}

func (RollBackNames) action() {}

func (UpgradeRevisions) action() {}
func (PlanRevisions) action()    {}
func (RollBackRevision) action() {}
func (FixRevision) action()      {}
