package hub_test

import (
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
)

// TestWebhooksLetAgents asks what the webhook of Open Cluster Management asks when an agent creates a
// ManagedCluster, or accepts it: without a label of the user, a cluster is in the default set.
//
// Matrix: H79.
func TestWebhooksLetAgents(t *testing.T) {
	t.Parallel()
	m := newMove(t, 1)
	for what, attributes := range map[string]authorizationv1.ResourceAttributes{
		"the default set": {Group: "cluster.open-cluster-management.io", Resource: "managedclustersets", Subresource: "join", Name: "default", Verb: "create"},
		"a set":           {Group: "cluster.open-cluster-management.io", Resource: "managedclustersets", Subresource: "join", Name: "eu", Verb: "create"},
		"acceptance":      {Group: "register.open-cluster-management.io", Resource: "managedclusters", Subresource: "accept", Name: m.sites[0].name, Verb: "update"},
	} {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User: m.target.config.Impersonate.UserName, Groups: m.target.config.Impersonate.Groups, ResourceAttributes: &attributes,
		}}
		if err := m.target.c.Create(t.Context(), review); err != nil {
			t.Fatal(err)
		}
		if !review.Status.Allowed {
			t.Errorf("%s: the agent may not %s %s/%s", what, attributes.Verb, attributes.Resource, attributes.Subresource)
		}
	}
}
