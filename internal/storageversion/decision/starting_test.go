package decision

import (
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/godwit-dev/godwit"
)

func TestStarting(t *testing.T) {
	t.Parallel()
	now := time.Now()
	condition := func(kind apiextensionsv1.CustomResourceDefinitionConditionType, status apiextensionsv1.ConditionStatus, age time.Duration) apiextensionsv1.CustomResourceDefinitionCondition {
		return apiextensionsv1.CustomResourceDefinitionCondition{Type: kind, Status: status, LastTransitionTime: metav1.NewTime(now.Add(-age))}
	}
	for name, test := range map[string]struct {
		reason     *godwit.Reason // of the error
		conditions []apiextensionsv1.CustomResourceDefinitionCondition
		deleted    bool
		want       bool
	}{
		"without conditions": {reason: ReasonNotEstablished, want: true},
		"names accepted":     {reason: ReasonNotEstablished, conditions: []apiextensionsv1.CustomResourceDefinitionCondition{condition(apiextensionsv1.NamesAccepted, apiextensionsv1.ConditionTrue, 0)}, want: true},
		"names of another":   {reason: ReasonNotEstablished, conditions: []apiextensionsv1.CustomResourceDefinitionCondition{condition(apiextensionsv1.NamesAccepted, apiextensionsv1.ConditionFalse, 0)}},
		"being deleted":      {reason: ReasonNotEstablished, deleted: true},
		"404 at once":        {reason: ReasonNotServed, conditions: []apiextensionsv1.CustomResourceDefinitionCondition{condition(apiextensionsv1.Established, apiextensionsv1.ConditionTrue, time.Second)}, want: true},
		"404 for long":       {reason: ReasonNotServed, conditions: []apiextensionsv1.CustomResourceDefinitionCondition{condition(apiextensionsv1.Established, apiextensionsv1.ConditionTrue, servedWithin)}},
		"forbidden":          {reason: ReasonForbidden, conditions: []apiextensionsv1.CustomResourceDefinitionCondition{condition(apiextensionsv1.Established, apiextensionsv1.ConditionTrue, 0)}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			crd := &apiextensionsv1.CustomResourceDefinition{Status: apiextensionsv1.CustomResourceDefinitionStatus{Conditions: test.conditions}}
			if test.deleted {
				crd.DeletionTimestamp = &metav1.Time{Time: now}
			}
			if got := (&UnlistedError{Finding: godwit.Finding{Reason: test.reason}}).ServedSoon(crd, now); got != test.want {
				t.Errorf("starting: %v, want %v", got, test.want)
			}
		})
	}
}
