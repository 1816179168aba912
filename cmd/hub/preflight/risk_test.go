package preflight

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/godwit-dev/godwit"
)

func work(name string, policy workv1.DeletePropagationPolicyType, labels map[string]string) workv1.ManifestWork {
	w := workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
	if policy != "" {
		w.Spec.DeleteOption = &workv1.DeleteOption{PropagationPolicy: policy}
	}
	return w
}

func TestRisks(t *testing.T) {
	const lease = time.Minute
	for name, test := range map[string]struct {
		reason   string
		observed clusterFacts
		accept   bool
		blocks   []*godwit.Reason
		risks    []*godwit.Reason
	}{
		"Nothing":     {reason: "The cluster has nothing that stays behind."},
		"Klusterlet":  {reason: "The import controller creates these on the target.", observed: clusterFacts{works: []workv1.ManifestWork{work("c1-klusterlet", "", nil), work("c1-klusterlet-crds", "", nil)}}},
		"Orphan":      {reason: "The work agent leaves what such a work has applied.", observed: clusterFacts{works: []workv1.ManifestWork{work("app", workv1.DeletePropagationPolicyTypeOrphan, nil)}}},
		"Foreground":  {reason: "The work agent deletes it, unless the user accepts that.", observed: clusterFacts{works: []workv1.ManifestWork{work("app", workv1.DeletePropagationPolicyTypeForeground, nil)}}, blocks: []*godwit.Reason{ReasonWorkStays}},
		"Selectively": {reason: "The work agent deletes a part of it.", observed: clusterFacts{works: []workv1.ManifestWork{work("app", workv1.DeletePropagationPolicyTypeSelectivelyOrphan, nil)}}, blocks: []*godwit.Reason{ReasonWorkStays}},
		"Default":     {reason: "The default is Foreground.", observed: clusterFacts{works: []workv1.ManifestWork{work("app", "", nil)}}, blocks: []*godwit.Reason{ReasonWorkStays}},
		"Accepted":    {reason: "An accepted work is a risk.", observed: clusterFacts{works: []workv1.ManifestWork{work("app", "", nil)}}, accept: true, risks: []*godwit.Reason{ReasonWorkStays}},
		"AddOn":       {reason: "A work of an add-on is one risk with it.", observed: clusterFacts{addOns: []string{"search"}, works: []workv1.ManifestWork{work("addon-search-deploy-0", "", map[string]string{addOnLabel: "search"})}}, risks: []*godwit.Reason{ReasonAddOnStays}},
		"Finalizer":   {reason: "The agent that would end it is gone.", observed: clusterFacts{held: []heldObject{{"observabilityaddon", "observability-addon", []string{"observability.open-cluster-management.io/addon-cleanup"}}}}, risks: []*godwit.Reason{ReasonAddOnFinalizer}},
		"Applied":     {reason: "Argo CD would set the acceptance back.", observed: clusterFacts{appliedBy: "argocd-controller"}, risks: []*godwit.Reason{ReasonApplied}},
		"OldLease":    {reason: "A renewal may be as old as the lease.", observed: clusterFacts{lease: lease, skew: -lease - 30*time.Second}},
		"SlowClock":   {reason: "The lease is too old for the clock of the hub.", observed: clusterFacts{lease: lease, skew: -lease - 2*time.Minute}, risks: []*godwit.Reason{ReasonClock}},
		"FastClock":   {reason: "No clock that is right renews in the future.", observed: clusterFacts{lease: lease, skew: 10 * time.Minute}, risks: []*godwit.Reason{ReasonClock}},
	} {
		blocks, risks := test.observed.risks("c1", test.accept)
		if got := reasons(blocks); !slices.Equal(got, test.blocks) {
			t.Errorf("%s: %s It is blocked by %v, want %v", name, test.reason, got, test.blocks)
		}
		if got := reasons(risks); !slices.Equal(got, test.risks) {
			t.Errorf("%s: %s The risks are %v, want %v", name, test.reason, got, test.risks)
		}
	}
}

func TestFinalizersOfAgents(t *testing.T) {
	got := ofAgent([]string{"observability.open-cluster-management.io/addon-cleanup", "cluster.open-cluster-management.io/addon-pre-delete", "foregroundDeletion"})
	if len(got) != 2 {
		t.Errorf("only agents remove %v", got)
	}
}

func reasons(findings []godwit.Finding) (all []*godwit.Reason) {
	for _, f := range findings {
		all = append(all, f.Reason)
	}
	return all
}

func TestRiskNamesFewWorks(t *testing.T) {
	var o clusterFacts
	for i := range 9 {
		o.works = append(o.works, work(fmt.Sprintf("app%d", i), "", nil))
	}
	blocks, _ := o.risks("c1", false)
	if len(blocks) != 1 || !strings.HasPrefix(blocks[0].Message, "ManifestWork app0, app1, app2 and 6 others of the source hub") {
		t.Errorf("nine works block with %v", blocks)
	}
}
