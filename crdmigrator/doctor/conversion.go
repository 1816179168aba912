package doctor

import (
	"fmt"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/internal/kube"
)

// services is the resource whose list proves that a Service does not exist.
const services = "services"

// checkConversion finds a conversion webhook whose Service does not exist.
func checkConversion(f Facts, s Subject) []Finding {
	if s.Conversion == nil || f.unread(services) {
		return nil
	}
	if _, exists := f.Services[*s.Conversion]; exists {
		return nil
	}
	finding := Finding{
		Objects: 1,
		Finding: godwit.Finding{
			Severity: severity(len(s.Versions) > 1), Reason: ReasonConversionServiceNotFound,
			Message: fmt.Sprintf("the conversion webhook of %s is Service %s, which does not exist: the API server can't read objects that are stored at another version than the requested one",
				s.Owners.CRD, s.Conversion),
			Fix: godwit.Do("install again what has this Service").Or(
				godwit.Do("if it is gone for good, rescue the objects without it", godwit.RescueObjects{CRD: s.Owners.CRD, WithoutWebhook: true})),
		},
	}
	if len(s.Versions) == 1 {
		finding.Message = fmt.Sprintf("the conversion webhook of %s is Service %s, which does not exist; with one version nothing is converted", s.Owners.CRD, s.Conversion)
	}
	if s.SameSchemas {
		without := godwit.Do("convert without a webhook, since all versions have the same schema", godwit.Patch{
			Object: kube.CRDObject(s.Owners.CRD), Type: godwit.PatchMerge, Body: `{"spec":{"conversion":{"strategy":"None","webhook":null}}}`,
		})
		finding.Fix = without.Or(finding.Fix)
	}
	return []Finding{finding}
}

// unread reports whether a resource could not be read.
func (f Facts) unread(resource string) bool {
	for _, u := range f.Unread {
		if u.Resource == resource {
			return true
		}
	}
	return false
}
