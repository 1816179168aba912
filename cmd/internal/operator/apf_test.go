package operator

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-dev/godwit/internal/storageversion/decision"
)

// squeeze gives a user the least share of the API server that there is, for all it
// asks for. What goes beyond is answered as response says.
func (c *cluster) squeeze(user string, response flowcontrolv1.LimitResponse) {
	c.t.Helper()
	level := &flowcontrolv1.PriorityLevelConfiguration{
		ObjectMeta: objectMeta(c.group),
		Spec: flowcontrolv1.PriorityLevelConfigurationSpec{
			Type: flowcontrolv1.PriorityLevelEnablementLimited,
			Limited: &flowcontrolv1.LimitedPriorityLevelConfiguration{
				NominalConcurrencyShares: new(int32(1)), BorrowingLimitPercent: new(int32(0)), LimitResponse: response,
			},
		},
	}
	all := []string{"*"}
	flow := &flowcontrolv1.FlowSchema{
		ObjectMeta: objectMeta(c.group),
		Spec: flowcontrolv1.FlowSchemaSpec{
			PriorityLevelConfiguration: flowcontrolv1.PriorityLevelConfigurationReference{Name: c.group},
			MatchingPrecedence:         10,
			Rules: []flowcontrolv1.PolicyRulesWithSubjects{{
				Subjects:         []flowcontrolv1.Subject{{Kind: flowcontrolv1.SubjectKindUser, User: &flowcontrolv1.UserSubject{Name: user}}},
				ResourceRules:    []flowcontrolv1.ResourcePolicyRule{{Verbs: all, APIGroups: all, Resources: all, Namespaces: all, ClusterScope: true}},
				NonResourceRules: []flowcontrolv1.NonResourcePolicyRule{{Verbs: all, NonResourceURLs: all}},
			}},
		},
	}
	for _, o := range []client.Object{level, flow} {
		if err := c.Create(c.t.Context(), o); err != nil {
			c.t.Fatal(err)
		}
	}
	c.await("the flow schema to be in force", func() bool {
		if err := c.Get(c.t.Context(), client.ObjectKeyFromObject(flow), flow); err != nil {
			c.t.Fatal(err)
		}
		for _, condition := range flow.Status.Conditions {
			if condition.Type == flowcontrolv1.FlowSchemaConditionDangling {
				return condition.Status == flowcontrolv1.ConditionFalse
			}
		}
		return false
	})
}

// requests sums up a counter of the API server's own about the squeezed ones.
func (c *cluster) requests(counter string) (n int) {
	c.t.Helper()
	clients, err := kubernetes.NewForConfig(c.plane.Config())
	if err != nil {
		c.t.Fatal(err)
	}
	text, err := clients.RESTClient().Get().AbsPath("/metrics").DoRaw(c.t.Context())
	if err != nil {
		c.t.Fatal(err)
	}
	line := regexp.MustCompile(`(?m)^` + counter + `\{[^}]*priority_level="` + regexp.QuoteMeta(c.group) + `"[^}]*\} (\S+)$`)
	for _, found := range line.FindAllStringSubmatch(string(text), -1) {
		value, err := strconv.ParseFloat(found[1], 64)
		if err != nil {
			c.t.Fatal(err)
		}
		n += int(value)
	}
	return n
}

// TestThrottledByPriorityAndFairness: what the API server lets through is what is
// written, and nothing fails.
func TestThrottledByPriorityAndFairness(t *testing.T) {
	t.Parallel()
	own := ownPlane(t)
	for name, test := range map[string]struct {
		response flowcontrolv1.LimitResponse
		rejected bool
	}{
		"rejected": {flowcontrolv1.LimitResponse{Type: flowcontrolv1.LimitResponseTypeReject}, true},
		"queued": {flowcontrolv1.LimitResponse{Type: flowcontrolv1.LimitResponseTypeQueue, Queuing: &flowcontrolv1.QueuingConfiguration{
			Queues: 1, HandSize: 1, QueueLengthLimit: 100,
		}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			c := newClusterOn(t, own)
			const n = 150
			_, user := c.serviceAccount(func(rbacv1.PolicyRule) bool { return false })
			name := strings.ReplaceAll(c.group, ".", "-")
			c.squeeze(fmt.Sprintf("system:serviceaccount:%s:%s", name, name), test.response)
			geese, ducks := c.define("geese", n, optedIn), c.define("ducks", n, optedIn)
			manager := c.manageAs(user, "storageVersionMigrator: {scopes: [{group: "+c.group+"}], defaults: {settle: 0s}}")
			c.flip(geese)
			c.flip(ducks)
			for _, crd := range []string{geese, ducks} {
				m := c.awaitReason(crd, decision.ReasonSucceeded.Name)
				if done := m.Status.Storage; done.Failed > 0 || done.Total() != n || len(m.Status.Failures) > 0 {
					t.Errorf("%s: %+v, failures %+v", crd, done, m.Status.Failures)
				}
				c.mustBeMigratedOnce(crd, n)
			}
			manager.mustEnd()
			// client-go reports each request that the end of the process cuts off.
			running, _, _ := strings.Cut(manager.stderr.String(), "Stopping and waiting for")
			if errors := strings.Count(running, `"level":"error"`); errors > 0 {
				t.Errorf("%d errors in the log:\n%s", errors, manager.stderr)
			}
			seen, rejected := c.requests("apiserver_flowcontrol_dispatched_requests_total"), c.requests("apiserver_flowcontrol_rejected_requests_total")
			if test.rejected != (rejected > 0) || seen < 2*n {
				t.Errorf("%d requests let through, %d rejected", seen, rejected)
			}
			t.Logf("%d objects of 2 CRDs: %d requests let through, %d rejected with 429", 2*n, seen, rejected)
		})
	}
}
