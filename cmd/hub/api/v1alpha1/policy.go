package v1alpha1

// EvictedWorksPolicy says what a migration does about ManifestWorks whose objects the work agent would delete.
//
// +kubebuilder:validation:Enum=Refuse;Accept;Orphan
type EvictedWorksPolicy string

const (
	// EvictedWorksRefuse refuses to move a cluster with such a ManifestWork. It is the default.
	EvictedWorksRefuse EvictedWorksPolicy = "Refuse"
	// EvictedWorksAccept accepts that the objects are deleted.
	EvictedWorksAccept EvictedWorksPolicy = "Accept"
	// EvictedWorksOrphan sets the delete option of the ManifestWorks to Orphan before the clusters leave, so that the objects
	// stay on the clusters.
	EvictedWorksOrphan EvictedWorksPolicy = "Orphan"
)

// UserObjectsPolicy says what a migration does about objects of users that no rule moves.
//
// +kubebuilder:validation:Enum=Refuse;Accept;Move;Keep
type UserObjectsPolicy string

const (
	// UserObjectsRefuse refuses to move a cluster with such an object. It is the default.
	UserObjectsRefuse UserObjectsPolicy = "Refuse"
	// UserObjectsAccept accepts that the source hub deletes the objects with the namespace.
	UserObjectsAccept UserObjectsPolicy = "Accept"
	// UserObjectsMove moves the objects with the cluster.
	UserObjectsMove UserObjectsPolicy = "Move"
	// UserObjectsKeep keeps the namespace on the source hub, with the objects in it.
	UserObjectsKeep UserObjectsPolicy = "Keep"
)

// EvictedWorks returns the policy for ManifestWorks, which is Refuse unless the user has chosen another one.
func (s ManagedClusterMigrationSpec) EvictedWorks() EvictedWorksPolicy {
	if s.OnEvictedWorks == "" {
		return EvictedWorksRefuse
	}
	return s.OnEvictedWorks
}

// UserObjects returns the policy for objects of users, which is Refuse unless the user has chosen another one.
func (s ManagedClusterMigrationSpec) UserObjects() UserObjectsPolicy {
	if s.OnUserObjects == "" {
		return UserObjectsRefuse
	}
	return s.OnUserObjects
}
