package database

import (
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the group and the version of the kind. Its CRD is in package test/jobservice/provider.
var GroupVersion = schema.GroupVersion{Group: "jobs.example.org", Version: "v1"}

// Kind is the kind of [Database].
var Kind = GroupVersion.WithKind("Database")

// Database is a database of the job service. Its external name is the GUID that the service makes.
type Database struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`

	Spec   Spec   `json:"spec"`
	Status Status `json:"status,omitzero"`
}

// Spec is what the user asks for.
type Spec struct {
	xpv2.ManagedResourceSpec `json:",inline"`

	ForProvider Parameters `json:"forProvider"`
}

// Status is what the service has.
type Status struct {
	xpv2.ManagedResourceStatus `json:",inline"`

	AtProvider Observation `json:"atProvider,omitzero"`
}

// Parameters are the fields that the user chooses.
type Parameters struct {
	Name string `json:"name"`
	Size int    `json:"size,omitempty"`
}

// Observation is what the service says about a database.
type Observation struct {
	Parameters `json:",inline"`

	ID string `json:"id,omitempty"`
}

// List is a list of databases.
type List struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`

	Items []Database `json:"items"`
}

// AddToScheme adds the kind to a scheme.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypeWithName(Kind, &Database{})
	scheme.AddKnownTypeWithName(GroupVersion.WithKind("DatabaseList"), &List{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}

// DeepCopyInto copies the database.
func (d *Database) DeepCopyInto(to *Database) {
	*to = *d
	d.ObjectMeta.DeepCopyInto(&to.ObjectMeta)
	d.Spec.ManagedResourceSpec.DeepCopyInto(&to.Spec.ManagedResourceSpec)
	d.Status.ManagedResourceStatus.DeepCopyInto(&to.Status.ManagedResourceStatus)
}

// DeepCopyObject implements runtime.Object.
func (d *Database) DeepCopyObject() runtime.Object {
	to := &Database{}
	d.DeepCopyInto(to)
	return to
}

// DeepCopyObject implements runtime.Object.
func (l *List) DeepCopyObject() runtime.Object {
	to := &List{TypeMeta: l.TypeMeta, Items: make([]Database, len(l.Items))}
	l.ListMeta.DeepCopyInto(&to.ListMeta)
	for i := range l.Items {
		l.Items[i].DeepCopyInto(&to.Items[i])
	}
	return to
}

// GetManagementPolicies implements resource.Managed, as the functions below.
func (d *Database) GetManagementPolicies() xpv2.ManagementPolicies { return d.Spec.ManagementPolicies }

// SetManagementPolicies sets spec.managementPolicies.
func (d *Database) SetManagementPolicies(p xpv2.ManagementPolicies) { d.Spec.ManagementPolicies = p }

// GetCondition returns a condition of the status.
func (d *Database) GetCondition(t xpv2.ConditionType) xpv2.Condition { return d.Status.GetCondition(t) }

// SetConditions sets conditions of the status.
func (d *Database) SetConditions(c ...xpv2.Condition) { d.Status.SetConditions(c...) }

// GetWriteConnectionSecretToReference returns spec.writeConnectionSecretToRef.
func (d *Database) GetWriteConnectionSecretToReference() *xpv2.LocalSecretReference {
	return d.Spec.WriteConnectionSecretToReference
}

// SetWriteConnectionSecretToReference sets spec.writeConnectionSecretToRef.
func (d *Database) SetWriteConnectionSecretToReference(r *xpv2.LocalSecretReference) {
	d.Spec.WriteConnectionSecretToReference = r
}

// GetProviderConfigReference returns spec.providerConfigRef.
func (d *Database) GetProviderConfigReference() *xpv2.ProviderConfigReference {
	return d.Spec.ProviderConfigReference
}

// SetProviderConfigReference sets spec.providerConfigRef.
func (d *Database) SetProviderConfigReference(r *xpv2.ProviderConfigReference) {
	d.Spec.ProviderConfigReference = r
}
