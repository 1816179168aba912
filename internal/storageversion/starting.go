package storageversion

import (
	"fmt"
	"slices"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/internal/kube"
	"github.com/godwit-dev/godwit/internal/storageversion/internal/settle"
)

// servedWithin is how long after the condition Established an API server may still
// answer 404: it learns of the CRD by a watch, for which the settle time has the
// same 15 s.
const servedWithin = settle.WatchLag

// starting reports a list that failed because the CRD is new: every API server
// serves it within seconds, without a user's action. Names that another CRD has are
// no such case.
func (e *UnlistedError) starting(crd *apiextensionsv1.CustomResourceDefinition, now time.Time) bool {
	switch e.Reason {
	case ReasonNotEstablished:
		return namesRefused(crd) == nil && crd.DeletionTimestamp == nil
	case ReasonNotServed:
		return slices.ContainsFunc(crd.Status.Conditions, func(c apiextensionsv1.CustomResourceDefinitionCondition) bool {
			return c.Type == apiextensionsv1.Established && c.Status == apiextensionsv1.ConditionTrue && now.Sub(c.LastTransitionTime.Time) < servedWithin
		})
	}
	return false
}

func whyNotEstablished(crd *apiextensionsv1.CustomResourceDefinition) string {
	if c := namesRefused(crd); c != nil {
		return c.Message
	}
	return "condition Established is not True"
}

// namesRefused is nil unless another CRD of the group has a name of this one.
func namesRefused(crd *apiextensionsv1.CustomResourceDefinition) *apiextensionsv1.CustomResourceDefinitionCondition {
	for i, c := range crd.Status.Conditions {
		if c.Type == apiextensionsv1.NamesAccepted && c.Status == apiextensionsv1.ConditionFalse {
			return &crd.Status.Conditions[i]
		}
	}
	return nil
}

// establish is what to do about a CRD that is not served.
func establish(crd *apiextensionsv1.CustomResourceDefinition) godwit.Fix {
	if namesRefused(crd) == nil {
		return godwit.Do("wait", godwit.WaitFor{Object: kube.CRDObject(crd.Name), Condition: string(apiextensionsv1.Established)})
	}
	return godwit.Do(fmt.Sprintf("see which CRD of group %s has the name", crd.Spec.Group), godwit.Show{
		Object: kube.CRDObject(""), Output: "custom-columns=CRD:.metadata.name,NAMES:.status.acceptedNames",
	}).Then("delete that one, or choose other names", godwit.Edit{Object: kube.CRDObject(crd.Name)})
}
