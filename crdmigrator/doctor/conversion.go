package doctor

import (
	"fmt"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/internal/storageversion/ownerreference"
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
			Fix: installService().Or(rescueWithoutWebhook(s.Owners.CRD)),
		},
	}
	if len(s.Versions) == 1 {
		finding.Message = fmt.Sprintf("the conversion webhook of %s is Service %s, which does not exist; with one version nothing is converted", s.Owners.CRD, s.Conversion)
		finding.Fix = installService().Or(removeWebhook(s.withoutConversion))
	}
	return []Finding{finding}
}

// UnreadOf returns the resources that could not be read and that concern a CRD. The others are those whose own fault it is, and not
// the CRD's: their ownerReferences are not known, and nothing else of the CRD.
func (f Facts) UnreadOf(s Subject) []ownerreference.Unread {
	var all []ownerreference.Unread
	for _, u := range f.Unread {
		if !u.Alone || u.Of(s.Owners.Resource.GroupResource()) {
			all = append(all, u)
		}
	}
	return all
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
