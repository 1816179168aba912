package externalname_test

import (
	"encoding/json"
	"errors"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"

	ldapv1 "github.com/godwit-dev/godwit/examples/provider-ldap/api/v1"
	"github.com/godwit-dev/godwit/test/externalname/database"
	"github.com/godwit-dev/godwit/test/externalname/kinds"
)

// object is a managed resource with the parameters F.
type object[F any] struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`

	Spec   objectSpec[F]   `json:"spec"`
	Status objectStatus[F] `json:"status,omitzero"`
}

type objectSpec[F any] struct {
	xpv2.ManagedResourceSpec `json:",inline"`

	ForProvider F `json:"forProvider"`
}

type objectStatus[F any] struct {
	xpv2.ManagedResourceStatus `json:",inline"`

	AtProvider F `json:"atProvider,omitempty"`
}

func (o *object[F]) GetManagementPolicies() xpv2.ManagementPolicies {
	return o.Spec.ManagementPolicies
}

func (o *object[F]) SetManagementPolicies(p xpv2.ManagementPolicies) {
	o.Spec.ManagementPolicies = p
}

func (o *object[F]) GetCondition(t xpv2.ConditionType) xpv2.Condition {
	return o.Status.GetCondition(t)
}

func (o *object[F]) SetConditions(c ...xpv2.Condition) { o.Status.SetConditions(c...) }

func (o *object[F]) GetWriteConnectionSecretToReference() *xpv2.LocalSecretReference {
	return o.Spec.WriteConnectionSecretToReference
}

func (o *object[F]) SetWriteConnectionSecretToReference(r *xpv2.LocalSecretReference) {
	o.Spec.WriteConnectionSecretToReference = r
}

func (o *object[F]) GetProviderConfigReference() *xpv2.ProviderConfigReference {
	return o.Spec.ProviderConfigReference
}

func (o *object[F]) SetProviderConfigReference(r *xpv2.ProviderConfigReference) {
	o.Spec.ProviderConfigReference = r
}

func (o *object[F]) DeepCopyObject() runtime.Object { return throughJSON(o) }

type objectList[F any] struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`

	Items []object[F] `json:"items"`
}

func (l *objectList[F]) DeepCopyObject() runtime.Object { return throughJSON(l) }

func throughJSON[T any](from *T) *T {
	data, err := json.Marshal(from)
	if err != nil {
		panic(err)
	}
	to := new(T)
	if err := json.Unmarshal(data, to); err != nil {
		panic(err)
	}
	return to
}

var groupVersion = kinds.Version

// personParameters are identified by a GUID that the directory makes.
type personParameters struct {
	Name   string `json:"name"`
	Mail   string `json:"mail,omitempty"`
	Title  string `json:"title,omitempty"`
	Secret string `json:"secret,omitempty"`
}

// membershipParameters are identified by the group and the member.
type membershipParameters struct {
	Group  string `json:"group"`
	Member string `json:"member"`
	Title  string `json:"title,omitempty"`
}

type (
	person     = object[personParameters]
	membership = object[membershipParameters]
)

func newScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	_ = addToScheme(scheme)
	return scheme
}

func addToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypeWithName(groupVersion.WithKind("Person"), &person{})
	scheme.AddKnownTypeWithName(groupVersion.WithKind("PersonList"), &objectList[personParameters]{})
	scheme.AddKnownTypeWithName(groupVersion.WithKind("Membership"), &membership{})
	scheme.AddKnownTypeWithName(groupVersion.WithKind("MembershipList"), &objectList[membershipParameters]{})
	metav1.AddToGroupVersion(scheme, groupVersion)
	return errors.Join(ldapv1.AddToScheme(scheme), database.AddToScheme(scheme), clientgoscheme.AddToScheme(scheme))
}

func crd(kind, plural string) *apiextensionsv1.CustomResourceDefinition {
	open := true
	anything := apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: &open}
	spec := *anything.DeepCopy()
	spec.Properties = map[string]apiextensionsv1.JSONSchemaProps{"managementPolicies": {
		Type: "array", Default: &apiextensionsv1.JSON{Raw: []byte(`["*"]`)},
		Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &apiextensionsv1.JSONSchemaProps{Type: "string"}},
	}}
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: plural + "." + groupVersion.Group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: groupVersion.Group, Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Kind: kind, ListKind: kind + "List", Plural: plural, Singular: plural[:len(plural)-1]},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: groupVersion.Version, Served: true, Storage: true,
				Subresources: &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
					Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"spec": spec, "status": anything},
				}},
			}},
		},
	}
}
