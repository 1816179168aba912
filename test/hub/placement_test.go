package hub_test

import (
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/cmd/hub/cluster"
	"github.com/godwit-dev/godwit/cmd/hub/source"
)

// placement creates a Placement that has selected so many clusters, with decisions of some.
func placement(t *testing.T, c client.Client, at client.ObjectKey, selected int32, decisions ...string) {
	t.Helper()
	p := &clusterv1beta1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: at.Namespace, Name: at.Name}}
	if err := c.Create(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	p.Status.NumberOfSelectedClusters = selected
	if err := c.Status().Update(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	// The scheduler writes at most 100 clusters into one decision.
	for i, part := range slices.Collect(slices.Chunk(decisions, 2)) {
		d := &clusterv1beta1.PlacementDecision{ObjectMeta: metav1.ObjectMeta{
			Namespace: at.Namespace, Name: at.Name + "-decision-" + string(rune('1'+i)), Labels: map[string]string{clusterv1beta1.PlacementLabel: at.Name},
		}}
		if err := c.Create(t.Context(), d); err != nil {
			t.Fatal(err)
		}
		for _, cluster := range part {
			d.Status.Decisions = append(d.Status.Decisions, clusterv1beta1.ClusterDecision{ClusterName: cluster})
		}
		if err := c.Status().Update(t.Context(), d); err != nil {
			t.Fatal(err)
		}
	}
}

// TestPlacement: the Placement in the namespace of the agent selects the clusters, by all of its
// decisions. One of the same name elsewhere, which other users may write, selects none.
//
// Matrix: H10.
func TestPlacement(t *testing.T) {
	t.Parallel()
	c := hubClient(t, shared.Config())
	own, other := newNamespace(t, c), newNamespace(t, c)
	placement(t, c, client.ObjectKey{Namespace: own, Name: "eu"}, 3, "c3", "c1", "c2")
	placement(t, c, client.ObjectKey{Namespace: other, Name: "eu"}, 1, "stolen")
	placement(t, c, client.ObjectKey{Namespace: other, Name: "elsewhere"}, 1, "stolen")
	placement(t, c, client.ObjectKey{Namespace: own, Name: "incomplete"}, 3, "c1", "c2")
	placement(t, c, client.ObjectKey{Namespace: own, Name: "nothing"}, 0)
	hub := source.Hub{Hub: cluster.Hub{Client: c}, AgentNamespace: own}
	cases := map[string]struct {
		name     string
		clusters []string
		waits    string
		fails    *godwit.Reason
	}{
		"AllDecisions": {name: "eu", clusters: []string{"c1", "c2", "c3"}},
		"Incomplete":   {name: "incomplete", waits: "are not complete"},
		"Nothing":      {name: "nothing"},
		"Elsewhere":    {name: "elsewhere", fails: cluster.ReasonPlacement},
		"Gone":         {name: "gone", fails: cluster.ReasonPlacement},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			clusters, waits, err := hub.ResolvePlacement(t.Context(), tc.name)
			switch {
			case tc.fails != nil:
				if err == nil || !strings.HasPrefix(err.Error(), tc.fails.Name+": ") {
					t.Errorf("%v, want %s", err, tc.fails)
				}
			case err != nil || !slices.Equal(clusters, tc.clusters) || !strings.Contains(waits, tc.waits) || (waits == "") != (tc.waits == ""):
				t.Errorf("clusters %v, waits for %q, %v; want %v, %q", clusters, waits, err, tc.clusters, tc.waits)
			}
		})
	}
}
