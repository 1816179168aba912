package v1

import (
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ProviderConfigSpec says how to reach a directory.
type ProviderConfigSpec struct {
	// URL of the server, such as ldap://localhost:389.
	// +kubebuilder:validation:Pattern=`^ldaps?://`
	URL string `json:"url"`
	// BaseDN is the entry that contains all entries.
	// +kubebuilder:validation:MinLength=1
	BaseDN string `json:"baseDN"`
	// BindDN is the user of the provider.
	BindDN string `json:"bindDN"`
	// PasswordSecretRef names the password of the user.
	PasswordSecretRef xpv2.LocalSecretKeySelector `json:"passwordSecretRef"`
}

// ProviderConfig says how to reach a directory, for the objects in its namespace.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:categories=crossplane
type ProviderConfig struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`

	Spec ProviderConfigSpec `json:"spec"`
}

// PersonParameters are the fields of an entry of class inetOrgPerson.
type PersonParameters struct {
	// Parent is the DN of the entry that contains the person.
	// +kubebuilder:validation:MinLength=1
	Parent string `json:"parent"`
	// UID is the login name. With Parent it makes the DN, which may change.
	// +kubebuilder:validation:MinLength=1
	UID string `json:"uid"`
	// CommonName is the whole name.
	// +kubebuilder:validation:MinLength=1
	CommonName string `json:"commonName"`
	// Surname is the family name.
	// +kubebuilder:validation:MinLength=1
	Surname string `json:"surname"`
	// Mail is an address. Several persons may have the same.
	Mail string `json:"mail,omitempty"`
	// Title is the title of the person's position.
	Title string `json:"title,omitempty"`
}

// PersonSpec is what the user asks for.
type PersonSpec struct {
	xpv2.ManagedResourceSpec `json:",inline"`

	ForProvider PersonParameters `json:"forProvider"`
}

// PersonStatus is what the directory has. If no entry was found, atProvider is left out (omitzero): the API server would refuse
// a status with empty values of required fields, and the conditions in it.
type PersonStatus struct {
	xpv2.ManagedResourceStatus `json:",inline"`

	// +optional
	AtProvider PersonParameters `json:"atProvider,omitzero"`
}

// Person is a person in the directory. Its external name is the entryUUID.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:categories=crossplane;managed
// +kubebuilder:metadata:annotations="godwit.dev/external-name-fields=None"
type Person struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`

	Spec PersonSpec `json:"spec"`
	// +optional
	Status PersonStatus `json:"status,omitzero"`
}

// GroupParameters are the fields of an entry of class groupOfNames.
type GroupParameters struct {
	// Parent is the DN of the entry that contains the group.
	// +kubebuilder:validation:MinLength=1
	Parent string `json:"parent"`
	// CommonName is the name of the group. With Parent it makes the DN, which may change.
	// +kubebuilder:validation:MinLength=1
	CommonName string `json:"commonName"`
	// Description is for people.
	Description string `json:"description,omitempty"`
}

// GroupSpec is what the user asks for.
type GroupSpec struct {
	xpv2.ManagedResourceSpec `json:",inline"`

	ForProvider GroupParameters `json:"forProvider"`
}

// GroupStatus is what the directory has.
type GroupStatus struct {
	xpv2.ManagedResourceStatus `json:",inline"`

	// +optional
	AtProvider GroupParameters `json:"atProvider,omitzero"`
}

// Group is a group in the directory, without its members. Its external name is the entryUUID.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:categories=crossplane;managed
// +kubebuilder:metadata:annotations="godwit.dev/external-name-fields=None"
type Group struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`

	Spec GroupSpec `json:"spec"`
	// +optional
	Status GroupStatus `json:"status,omitzero"`
}

// MembershipParameters are a group and one of its members.
//
// +kubebuilder:validation:XValidation:rule="has(self.group) || has(self.groupRef)",message="group or groupRef is required"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.group) || has(self.group) && self.group == oldSelf.group",message="group can't change; create another Membership"
type MembershipParameters struct {
	// Group is the entryUUID of the group.
	// +kubebuilder:validation:Pattern=`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`
	Group string `json:"group,omitempty"`
	// GroupRef names the Group whose external name is the group.
	GroupRef *xpv2.NamespacedReference `json:"groupRef,omitempty"`
	// Member is the DN of the member.
	// +kubebuilder:validation:MinLength=1
	Member string `json:"member"`
}

// MembershipObservation is what the directory has.
type MembershipObservation struct {
	// Group is the entryUUID of the group.
	Group string `json:"group,omitempty"`
	// Member is the DN of the member.
	Member string `json:"member,omitempty"`
}

// MembershipSpec is what the user asks for.
type MembershipSpec struct {
	xpv2.ManagedResourceSpec `json:",inline"`

	ForProvider MembershipParameters `json:"forProvider"`
}

// MembershipStatus is what the directory has.
type MembershipStatus struct {
	xpv2.ManagedResourceStatus `json:",inline"`

	// +optional
	AtProvider MembershipObservation `json:"atProvider,omitzero"`
}

// Membership is one member of a group. Its external name is GROUP/MEMBER: the entryUUID of the group and the DN of the
// member. A DN identifies a member only within a group.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:categories=crossplane;managed
// +kubebuilder:metadata:annotations="godwit.dev/external-name-fields=spec.forProvider.group=Immutable,spec.forProvider.member=Mutable"
type Membership struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`

	Spec MembershipSpec `json:"spec"`
	// +optional
	Status MembershipStatus `json:"status,omitzero"`
}

// ProviderConfigList is a list.
//
// +kubebuilder:object:root=true
type ProviderConfigList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`

	Items []ProviderConfig `json:"items"`
}

// PersonList is a list.
//
// +kubebuilder:object:root=true
type PersonList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`

	Items []Person `json:"items"`
}

// GroupList is a list.
//
// +kubebuilder:object:root=true
type GroupList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`

	Items []Group `json:"items"`
}

// MembershipList is a list.
//
// +kubebuilder:object:root=true
type MembershipList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`

	Items []Membership `json:"items"`
}
