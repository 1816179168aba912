package doctor

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/godwit-dev/godwit"
)

// autoManaged is the label of the APIServices that the API server makes for CRDs, and removes when no CRD serves the version.
const autoManaged = "kube-aggregator.kubernetes.io/automanaged"

// checkAPIServices finds APIServices of versions that no CRD of the group serves. If another API server serves the version, there
// is no finding.
func checkAPIServices(f Facts, s Subject) []Finding {
	if !f.first(s) {
		return nil
	}
	var findings []Finding
	for i := range f.APIServices {
		a := &f.APIServices[i]
		available := meta.IsStatusConditionPresentAndEqual(a.Status.Conditions, "Available", metav1.ConditionTrue)
		if a.Spec.Group != s.Owners.Kind.Group || f.servedInGroup(a.Spec.Group, a.Spec.Version) || a.Labels[autoManaged] == "true" ||
			a.Spec.Service != nil && available {
			continue
		}
		findings = append(findings, Finding{
			Objects: 1,
			Finding: godwit.Finding{
				Severity: godwit.Blocks, Reason: ReasonAPIServiceNotServed,
				Message: fmt.Sprintf("apiservice %s is of a version that no API server serves: discovery names the version, and each request at it fails", a.Name),
				Fix:     deleteAPIService(a.Name),
			},
		})
	}
	return findings
}
