package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the group and the version of all kinds of this package.
var GroupVersion = schema.GroupVersion{Group: "ldap.example.org", Version: "v1"}

// AddToScheme adds the kinds of this package to a scheme.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion,
		&ProviderConfig{}, &ProviderConfigList{}, &Person{}, &PersonList{},
		&Group{}, &GroupList{}, &Membership{}, &MembershipList{},
	)
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}
