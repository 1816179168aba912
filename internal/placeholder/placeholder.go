// Package placeholder has the words that stand for names in the fix of a reason: a finding of the reason has the names of its object
// in their place.
package placeholder

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/godwit-dev/godwit"
)

// Placeholders that several packages need.
const (
	File      = "FILE"
	Group     = "GROUP"
	Name      = "NAME"
	Namespace = "NAMESPACE"
	Release   = "RELEASE"
	Resource  = "RESOURCE"
	User      = "USER"
	Version   = "VERSION"
)

// Object stands for the object of a finding.
func Object() godwit.Object {
	return godwit.Object{Resource: Resource, Namespace: Namespace, Name: Name}
}

// CRD stands for the CRD of a finding. It has one version, which is not served, and a conversion webhook.
func CRD() *apiextensionsv1.CustomResourceDefinition {
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: Name},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group:    Group,
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{Name: Version, Storage: true}},
			Conversion: &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.WebhookConverter, Webhook: &apiextensionsv1.WebhookConversion{
				ClientConfig: &apiextensionsv1.WebhookClientConfig{Service: &apiextensionsv1.ServiceReference{Namespace: Namespace, Name: "SERVICE"}},
			}},
		},
	}
}
