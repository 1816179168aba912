package permission

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	hubv1alpha1 "github.com/godwit-dev/godwit/cmd/hub/api/v1alpha1"
	"github.com/godwit-dev/godwit/internal/storageversion/resource"
)

// plan reads all domains. A domain that may not be read is NotChecked. Managed resources are custom
// resources in scope. What names versions that CRDs do not serve takes the permissions of crd-doctor, to list
// everything, Secrets as well.
func (s Scope) plan() []Permission {
	s.Listed, s.Namespace = true, ""
	all := s.crdPlan()
	for _, p := range s.revisionPlan() {
		p.Need = Optional
		all = append(all, p)
	}
	migrations := ListMigrations()
	migrations.Need = Optional
	journal := ReadResourceJournal()
	journal.Need = Optional
	return append(all, migrations, journal)
}

// ReadResourceJournal is the permission to read what an interrupted `godwit resource run` has done.
func ReadResourceJournal() Permission {
	return Permission{
		Verbs: []string{"get"}, Resource: resource.JournalResource.GroupResource(), Names: []string{resource.JournalName}, Namespace: metav1.NamespaceSystem,
	}
}

// ListMigrations is the permission to read the status of all migrations of managed clusters.
func ListMigrations() Permission {
	return Permission{Verbs: []string{"list"}, Resource: schema.GroupResource{Group: hubv1alpha1.GroupVersion.Group, Resource: "managedclustermigrations"}}
}
