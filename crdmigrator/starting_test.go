package crdmigrator

import (
	"fmt"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

func TestStarting(t *testing.T) {
	t.Parallel()
	now := time.Now()
	condition := func(kind apiextensionsv1.CustomResourceDefinitionConditionType, status apiextensionsv1.ConditionStatus, age time.Duration) apiextensionsv1.CustomResourceDefinitionCondition {
		return apiextensionsv1.CustomResourceDefinitionCondition{Type: kind, Status: status, LastTransitionTime: metav1.NewTime(now.Add(-age))}
	}
	for name, test := range map[string]struct {
		reason     string // of the error
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
			if got := (&UnlistedError{Reason: test.reason}).starting(crd, now); got != test.want {
				t.Errorf("starting: %v, want %v", got, test.want)
			}
		})
	}
}

// laggingDiscovery is a client whose discovery document does not name the resource yet.
type laggingDiscovery struct {
	meta.RESTMapper
	err error
}

func (l laggingDiscovery) KindFor(schema.GroupVersionResource) (schema.GroupVersionKind, error) {
	return schema.GroupVersionKind{}, l.err
}

// TestNewCRDWhoseDiscoveryLags is a 404 of the API server, which passes by itself.
func TestNewCRDWhoseDiscoveryLags(t *testing.T) {
	t.Parallel()
	widgets := schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}
	missing := apierrors.NewNotFound(schema.GroupResource{}, "")
	for name, err := range map[string]error{
		"no match":   &meta.NoResourceMatchError{PartialResource: widgets},
		"no group":   &apiutil.ErrResourceDiscoveryFailed{widgets.GroupVersion(): missing},
		"as a cause": fmt.Errorf("look up the kind: %w", &meta.NoKindMatchError{GroupKind: schema.GroupKind{Group: "example.com", Kind: "Widget"}}),
	} {
		_, err := listThrough(nil, laggingDiscovery{err: err})(t.Context(), widgets, 1, "")
		crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "widgets.example.com"}}
		if e := unlisted(crd, err); e.Reason != ReasonNotServed {
			t.Errorf("%s: %v, want %s", name, e, ReasonNotServed)
		}
	}
}
