// Package v1 has the kind of the provider.
//
// +kubebuilder:object:generate=true
// +groupName=records.example.org
package v1

import (
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

//go:generate go run sigs.k8s.io/controller-tools/cmd/controller-gen@v0.22.0 object paths=. crd:maxDescLen=400 output:crd:dir=../../crds
//go:generate sh -c "mkdir -p ../../package && go -C ../.. run . policies > ../../package/policies.yaml"

// GroupVersion is the group and the version of the kind.
var GroupVersion = schema.GroupVersion{Group: "records.example.org", Version: "v1"}

// AddToScheme adds the kind to a scheme.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion, &Record{}, &RecordList{})
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}

// RecordParameters are a record of a zone.
type RecordParameters struct {
	// Zone is the zone of the record, such as example.org.
	// +kubebuilder:validation:MinLength=1
	Zone string `json:"zone"`
	// Name is the name of the record within the zone, such as www.
	// +kubebuilder:validation:MinLength=1
	Name string `json:"name"`
	// Value is what the name stands for.
	Value string `json:"value"`
	// TTL is in seconds.
	// +kubebuilder:default=300
	TTL int64 `json:"ttl,omitempty"`
}

// RecordSpec is what the user asks for.
type RecordSpec struct {
	xpv2.ManagedResourceSpec `json:",inline"`

	// +kubebuilder:validation:XValidation:rule="self.zone == oldSelf.zone",message="zone can't change; create another Record"
	// +kubebuilder:validation:XValidation:rule="self.name == oldSelf.name",message="name can't change; create another Record"
	ForProvider RecordParameters `json:"forProvider"`
}

// RecordStatus is what the API has. It is left out while nothing is observed: the API server would refuse empty values of
// required fields, and with them every condition.
type RecordStatus struct {
	xpv2.ManagedResourceStatus `json:",inline"`

	// +optional
	AtProvider RecordParameters `json:"atProvider,omitzero"`
}

// Record is a record of a zone. Its external name is ZONE/NAME.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:categories=crossplane;managed
// +kubebuilder:metadata:annotations="godwit.dev/external-name-fields=spec.forProvider.zone=Immutable,spec.forProvider.name=Immutable"
type Record struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	Spec RecordSpec `json:"spec"`
	// +optional
	Status RecordStatus `json:"status,omitzero"`
}

// RecordList is a list.
//
// +kubebuilder:object:root=true
type RecordList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`

	Items []Record `json:"items"`
}

// The methods of resource.ModernManaged follow. Crossplane's angryjet generates the same.

// GetCondition returns a condition of the status.
func (r *Record) GetCondition(t xpv2.ConditionType) xpv2.Condition { return r.Status.GetCondition(t) }

// SetConditions sets conditions of the status.
func (r *Record) SetConditions(c ...xpv2.Condition) { r.Status.SetConditions(c...) }

// GetManagementPolicies returns what may be done with the external resource.
func (r *Record) GetManagementPolicies() xpv2.ManagementPolicies { return r.Spec.ManagementPolicies }

// SetManagementPolicies sets what may be done with the external resource.
func (r *Record) SetManagementPolicies(p xpv2.ManagementPolicies) { r.Spec.ManagementPolicies = p }

// GetProviderConfigReference names the ProviderConfig.
func (r *Record) GetProviderConfigReference() *xpv2.ProviderConfigReference {
	return r.Spec.ProviderConfigReference
}

// SetProviderConfigReference names the ProviderConfig.
func (r *Record) SetProviderConfigReference(ref *xpv2.ProviderConfigReference) {
	r.Spec.ProviderConfigReference = ref
}

// GetWriteConnectionSecretToReference names the connection secret.
func (r *Record) GetWriteConnectionSecretToReference() *xpv2.LocalSecretReference {
	return r.Spec.WriteConnectionSecretToReference
}

// SetWriteConnectionSecretToReference names the connection secret.
func (r *Record) SetWriteConnectionSecretToReference(ref *xpv2.LocalSecretReference) {
	r.Spec.WriteConnectionSecretToReference = ref
}
