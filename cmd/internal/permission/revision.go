package permission

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/godwit-dev/godwit/api/v1alpha1"
)

var controllerRevisions = schema.GroupResource{Group: appsv1.GroupName, Resource: "controllerrevisions"}

// revisionPlan reads. A list that is refused leaves nothing to say: a reference that
// was not looked for can be lost.
func (s Scope) revisionPlan() []Permission {
	all := []Permission{{Resource: crds, Verbs: []string{"get"}}}
	for _, r := range slices.Concat(s.Family.Referrers, s.Family.Readers) {
		all = append(all, s.in(r.Resource, Required, "list"))
	}
	// To tell a typo from a namespace without revisions, and a namespace that is being
	// deleted from one that lost a revision.
	namespaces := Permission{Resource: schema.GroupResource{Resource: "namespaces"}, Verbs: []string{"get"}, Need: Optional}
	if s.Namespace != "" {
		namespaces.Names = []string{s.Namespace}
	}
	return append(all, namespaces)
}

// revisionRun writes references and revisions. The new revisions have owners, whose
// deletion they block as the old ones do.
func (s Scope) revisionRun() []Permission {
	all := append(s.revisionPlan(), s.references()...)
	all = append(all, s.in(controllerRevisions, Required, "get", "create", "update", "delete"))
	for _, o := range s.Family.Owners {
		all = append(all, s.in(schema.GroupResource{Group: o.Group, Resource: o.Resource + "/finalizers"}, RequiredIfEnforced, "update"))
	}
	return all
}

// revisionRollback looks for upgrades that the manager has under way. It makes a revision
// only where a restore of a snapshot would look up one that is gone, and where an object
// names one while it is removed. Where it may not, it leaves the snapshot as it is, and
// reports the reference.
func (s Scope) revisionRollback() []Permission {
	all := append(s.revisionPlan(), s.references()...)
	for _, o := range s.Family.Owners {
		all = append(all, s.in(schema.GroupResource{Group: o.Group, Resource: o.Resource + "/finalizers"}, Optional, "update"))
	}
	return append(all,
		s.in(controllerRevisions, Optional, "create"),
		s.in(controllerRevisions, Required, "get", "update", "delete"),
		s.in(schema.GroupResource{Group: v1alpha1.GroupVersion.Group, Resource: "controllerrevisionupgrades"}, Optional, "list"))
}

// revisionFix writes one revision, and reads the object that becomes its controller.
func (s Scope) revisionFix() []Permission {
	all := []Permission{{Resource: crds, Verbs: []string{"get"}}, s.in(controllerRevisions, Required, "get", "update")}
	for _, o := range s.Family.Owners {
		all = append(all,
			s.in(schema.GroupResource{Group: o.Group, Resource: o.Resource}, Required, "get"),
			s.in(schema.GroupResource{Group: o.Group, Resource: o.Resource + "/finalizers"}, RequiredIfEnforced, "update"))
	}
	return all
}

// references are written to the objects that hold them.
func (s Scope) references() []Permission {
	var all []Permission
	for _, r := range s.Family.Referrers {
		if r.Resource == controllerRevisions {
			continue // their references are fixed
		}
		all = append(all, s.in(r.Resource, Required, "get", "patch"))
		for _, sub := range r.Subresources {
			all = append(all, s.in(schema.GroupResource{Group: r.Resource.Group, Resource: r.Resource.Resource + "/" + sub}, Required, "patch"))
		}
	}
	return all
}

func (s Scope) in(r schema.GroupResource, need Need, verbs ...string) Permission {
	return Permission{Resource: r, Verbs: verbs, Namespace: s.Namespace, Need: need}
}
