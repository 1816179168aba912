package crdmigrator

import (
	"slices"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// servedWithin is how long after the condition Established an API server may still
// answer 404: it learns of the CRD by a watch, for which the settle time has the
// same 15 s.
const servedWithin = DefaultSettle / watchShare

// starting reports a list that failed because the CRD is new: every API server
// serves it within seconds, without a user's action. Names that another CRD has are
// no such case.
func (e *UnlistedError) starting(crd *apiextensionsv1.CustomResourceDefinition, now time.Time) bool {
	switch e.Reason {
	case ReasonNotEstablished:
		refused := slices.ContainsFunc(crd.Status.Conditions, func(c apiextensionsv1.CustomResourceDefinitionCondition) bool {
			return c.Type == apiextensionsv1.NamesAccepted && c.Status == apiextensionsv1.ConditionFalse
		})
		return !refused && crd.DeletionTimestamp == nil
	case ReasonNotServed:
		return slices.ContainsFunc(crd.Status.Conditions, func(c apiextensionsv1.CustomResourceDefinitionCondition) bool {
			return c.Type == apiextensionsv1.Established && c.Status == apiextensionsv1.ConditionTrue && now.Sub(c.LastTransitionTime.Time) < servedWithin
		})
	}
	return false
}
