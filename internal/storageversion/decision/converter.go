package decision

import (
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/internal/kube"
)

// converter is the conversion webhook of a CRD, with the address that the CRD configures.
type converter apiextensionsv1.WebhookClientConfig

// conversionWebhook is nil for a CRD without one.
func conversionWebhook(crd *apiextensionsv1.CustomResourceDefinition) *converter {
	return (*converter)(kube.ConversionWebhook(crd))
}

func (c *converter) String() string {
	switch {
	case c == nil:
		return "which its spec does not name"
	case c.Service != nil:
		return fmt.Sprintf("service %s/%s", c.Service.Namespace, c.Service.Name)
	case c.URL != nil:
		return *c.URL
	}
	return "which its spec does not locate"
}

// bringUp is the fix for a webhook that does not answer.
func (c *converter) bringUp(crd string) godwit.Fix {
	if c != nil && c.Service != nil {
		return BringUp(c.endpoints())
	}
	return BringUpConversion(crd)
}

// endpoints shows the addresses of the pods of the webhook's service.
func (c *converter) endpoints() godwit.Show {
	return godwit.Show{
		Object:   godwit.Object{Resource: "endpointslices", Namespace: c.Service.Namespace},
		Selector: "kubernetes.io/service-name=" + c.Service.Name,
	}
}

// fix is the fix for a webhook that answers, and does not convert.
func (c *converter) fix(crd string) godwit.Fix {
	fix := godwit.Do("fix the webhook")
	if c != nil && c.Service != nil {
		fix = fix.After("see where its pods are", c.endpoints())
	}
	return fix.Or(godwit.Do("fix its configuration in the CRD", godwit.Edit{Object: kube.CRDObject(crd)}))
}
