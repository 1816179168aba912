package decision

import (
	"errors"
	"fmt"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/godwit-dev/godwit"
)

// ErrOtherScope is the error of an object that no request reaches: it has a namespace although its CRD is cluster-scoped, or none
// although the CRD is namespaced. The scope of a CRD can't be changed. Objects of another scope stay in etcd if the CRD was deleted
// without its finalizer, and created again with another scope.
var ErrOtherScope = errors.New("no request reaches it: in etcd, it has another scope than its CRD")

// OfOtherScope reports whether an object with this namespace, which is empty for none, has another scope than its CRD.
func OfOtherScope(crd *apiextensionsv1.CustomResourceDefinition, namespace string) bool {
	return crd.Spec.Scope != "" && (crd.Spec.Scope == apiextensionsv1.NamespaceScoped) == (namespace == "")
}

// KeyOfOtherScope reports whether a key in etcd is that of an object of another scope than its CRD.
func KeyOfOtherScope(crd *apiextensionsv1.CustomResourceDefinition, key string) bool {
	_, object, found := strings.Cut(key, "/"+crd.Spec.Group+"/"+crd.Spec.Names.Plural+"/")
	if !found {
		return false
	}
	namespace, _, namespaced := strings.Cut(object, "/")
	if !namespaced {
		namespace = ""
	}
	return OfOtherScope(crd, namespace)
}

// Unreachable are objects that were listed, and that no other request reaches.
type Unreachable struct {
	Objects int64
	// Example is the key of one of them: that in etcd, or its namespace and name.
	Example string
	// More means that there may be others.
	More bool
}

// OtherScope is the finding for such objects.
func OtherScope(crd *apiextensionsv1.CustomResourceDefinition, u Unreachable) godwit.Finding {
	scope := "have a namespace, although the CRD is cluster-scoped"
	if crd.Spec.Scope == apiextensionsv1.NamespaceScoped {
		scope = "have no namespace, although the CRD is namespaced"
	}
	number := fmt.Sprintf("%d objects", u.Objects)
	if u.Objects == 1 {
		number, scope = "1 object", strings.Replace(scope, "have", "has", 1)
	}
	if u.More {
		number = "at least " + number
	}
	return godwit.Finding{
		Reason:  ReasonOtherScope,
		Message: fmt.Sprintf("%s of %s in etcd %s, such as %s: no request can write or delete them", number, crd.Name, scope, u.Example),
		Fix:     deleteKeys(crd),
	}
}
