package revision_test

import (
	"context"
	"encoding/json"
	"maps"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/revision"
	"github.com/godwit-dev/godwit/revision/decision"
	"github.com/godwit-dev/godwit/test/controlplane"
	"github.com/godwit-dev/godwit/test/fault"
	"github.com/godwit-dev/godwit/walk"
)

// phaseCase is one pass over a preset, and where it ends.
type phaseCase struct {
	reason  string
	before  func(*testNamespace) // what has happened to the preset of the workload app
	may     []string             // what the pass may do with revisions; nil: everything
	killed  int                  // before this write; 0: it is not
	policy  decision.Policy
	request revision.Request
	want    revision.Phase
	why     *godwit.Reason
}

var phaseCases = map[string]phaseCase{
	"begun with, and not read": {
		reason: "nothing is known of a revision that the API server does not show",
		may:    []string{"list"}, want: revision.Analyzing, why: decision.ReasonForbidden,
	},
	"a referrer runs": {
		reason: "a user who waits for it to stop sees that the rest is in order",
		before: func(c *testNamespace) { c.setRunning("app", true) },
		want:   revision.Converted, why: decision.ReasonRunning,
	},
	"no right to create": {
		reason: "a permission does not come by itself",
		may:    []string{"get", "list", "update", "delete"}, want: revision.Failed, why: decision.ReasonRefused,
	},
	"killed before a reference is led": {
		reason: "the replacement is there, and the next pass continues",
		killed: 1, want: revision.Created,
	},
	"a referrer runs by now": {
		reason: "what was made stays, and waits with those who refer to the source",
		before: func(c *testNamespace) {
			c.pass(shared.Config(), 1, decision.Policy{}, revision.Request{Name: "app-preset"})
			c.setRunning("app", true)
		},
		want: revision.InUse, why: decision.ReasonRunning,
	},
	"what runs was started with it": {
		reason: "a place that can't be written names the source",
		before: func(c *testNamespace) { c.started(c.setRunning("app", true), "app-preset") },
		policy: decision.Policy{OnRunning: decision.Hold}, want: revision.InUse, why: decision.ReasonReferenced,
	},
	"no right to note it": {
		reason: "all references are led, and the retention can't begin",
		may:    []string{"get", "list", "create", "delete"}, want: revision.Failed, why: decision.ReasonRefused,
	},
	"killed before it is noted": {
		reason: "all references are led, and the retention has not begun",
		killed: 3, want: revision.Repointed, why: decision.ReasonUnanswered,
	},
	"no object refers to it": {
		reason: "the retention has begun",
		want:   revision.Retained, why: decision.ReasonRetained,
	},
	"no right to remove it": {
		reason: "the retention is over, and it is there",
		before: func(c *testNamespace) { c.run(decision.Policy{}); c.later(decision.DefaultRetention) },
		may:    []string{"get", "list", "create", "update"}, want: revision.Failed, why: decision.ReasonRefused,
	},
	"removed": {
		reason: "nothing is left to do",
		before: func(c *testNamespace) { c.run(decision.Policy{}); c.later(decision.DefaultRetention) },
		want:   revision.Succeeded,
	},
	"no object refers to it, and none did": {
		reason: "there is nothing to upgrade, and no user action is required",
		before: func(c *testNamespace) { c.removeReferences("app") },
		want:   revision.Skipped,
	},
	"a target that is not served": {
		reason: "a user has to choose another one",
		policy: decision.Policy{Target: "v3"}, want: revision.Failed, why: decision.ReasonTargetNotServed,
	},
	"labels that can't be written": {
		reason: "its data is at the target, so that there is nothing to convert",
		before: func(c *testNamespace) { c.run(decision.Policy{}); c.mislabel("app-preset-v2") },
		may:    []string{"get", "list"}, request: revision.Request{Name: "app-preset-v2"}, want: revision.Failed, why: decision.ReasonRefused,
	},
	"rolled back while a referrer runs": {
		reason:  "as an upgrade does, a rollback leaves it alone",
		before:  func(c *testNamespace) { c.run(decision.Policy{}); c.setRunning("app", true) },
		request: revision.Request{Name: "app-preset", Rollback: true}, want: revision.Pending, why: decision.ReasonRunning,
	},
	"rolled back, and no right to remove the replacement": {
		reason: "all references are back, and the replacement is there though its retention is over",
		before: func(c *testNamespace) {
			c.run(decision.Policy{})
			c.pass(shared.Config(), 0, decision.Policy{}, back)
			c.later(decision.DefaultRetention)
		},
		may:     []string{"get", "list", "create", "update"},
		request: back, want: revision.Failed, why: decision.ReasonRefused,
	},
	"rolled back": {
		reason:  "all references are back, and the replacement is kept for the retention",
		before:  func(c *testNamespace) { c.run(decision.Policy{}) },
		request: back, want: revision.RolledBack, why: decision.ReasonRetained,
	},
}

// TestPhases: where a pass ends for one upgrade, whatever stops it: a
// permission that it does not have, a referrer, its own end.
func TestPhases(t *testing.T) {
	for name, test := range phaseCases {
		t.Run(name, func(t *testing.T) {
			c := newNamespace(t)
			c.store("app-preset", "Preset", c.workload("app", both("app-preset")), `{"minutes":1}`)
			if test.before != nil {
				test.before(c)
			}
			if test.request.Name == "" {
				test.request.Name = "app-preset"
			}
			cfg := shared.Config()
			if test.may != nil {
				cfg = c.as(test.may)
			}
			r := c.pass(cfg, test.killed, test.policy, test.request)
			if r.Phase != test.want || r.Reason != test.why {
				t.Errorf("%s (%s: %s), want %s (%s): %s", r.Phase, r.Reason, r.Message, test.want, test.why, test.reason)
			}
		})
	}
}

// TestUpgradeThatAPassDidNotReach: its phase stays, and its result has nothing that no pass has read.
func TestUpgradeThatAPassDidNotReach(t *testing.T) {
	c := newNamespace(t)
	c.app()
	c.pass(shared.Config(), 0, decision.Policy{}, revision.Request{Name: "app-profile"}) // so that there is one thing to write
	life := &fault.Transport{Fault: fault.All()["killed before the write"]}
	u, err := revision.New(life.Config(shared.Config()), testFamily{}, revision.Options{Limiter: walk.NewLimiter(walk.Limits{MaxInFlight: 1})})
	c.must(u, err)
	life.Run(t.Context(), func(ctx context.Context) {
		results, err := u.Advance(ctx, c.namespace, []revision.Request{{Name: "app-preset"}, {Name: "app-profile"}})
		if err == nil || len(results) != 2 {
			t.Fatalf("killed, and %v: %+v", err, results)
		}
		if r := results[0]; r.Phase != revision.Converted || r.ResourceVersion == "" {
			t.Errorf("begun with: %+v", r)
		}
		if r := results[1]; r.Phase != revision.Pending || r.ResourceVersion != "" || r.Reason != nil || r.Owner.Name != "app" {
			t.Errorf("not come to: %+v", r)
		}
	})
}

// TestEveryPhaseIsReached: the cases above reach every phase that the CRD allows.
func TestEveryPhaseIsReached(t *testing.T) {
	text, err := os.ReadFile("../../api/v1alpha1/crd/godwit.dev_controllerrevisionupgrades.yaml")
	if err != nil {
		t.Fatal(err)
	}
	crds, err := controlplane.DecodeCRDs(text)
	if err != nil {
		t.Fatal(err)
	}
	var allowed []string
	for _, v := range crds[0].Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["status"].Properties["phase"].Enum {
		var phase string
		if err := json.Unmarshal(v.Raw, &phase); err != nil {
			t.Fatal(err)
		}
		allowed = append(allowed, phase)
	}
	reached := map[string]bool{}
	for _, test := range phaseCases {
		reached[string(test.want)] = true
	}
	slices.Sort(allowed)
	if diff := cmp.Diff(allowed, slices.Sorted(maps.Keys(reached))); diff != "" {
		t.Errorf("phases (-allowed +reached):\n%s", diff)
	}
}

// pass takes one preset further, as the user says. It is killed before a write, if
// kill is the number of one; the first, which is 0, makes the replacement.
func (c *testNamespace) pass(cfg *rest.Config, kill int, p decision.Policy, w revision.Request) revision.Result {
	c.t.Helper()
	life := &fault.Transport{At: kill}
	if kill > 0 {
		life.Fault = fault.All()["killed before the write"]
	}
	var results []revision.Result
	var err error
	life.Run(c.t.Context(), func(ctx context.Context) {
		results, err = c.upgrader(life.Config(cfg), p).Advance(ctx, c.namespace, []revision.Request{w})
	})
	if (err != nil) != (kill > 0) {
		c.t.Fatalf("killed before write %d: %v", kill, err)
	}
	return results[0]
}

// as is a user who may do all that it takes, but for what is not said of revisions.
func (c *testNamespace) as(verbs []string) *rest.Config {
	c.t.Helper()
	user, err := shared.AddUser(c.namespace)
	c.must(user, err)
	meta := metav1.ObjectMeta{Name: c.namespace}
	rules := []rbacv1.PolicyRule{
		{APIGroups: []string{apiextensionsv1.GroupName}, Resources: []string{"customresourcedefinitions"}, Verbs: []string{"get"}},
		{APIGroups: []string{testGroup}, Resources: []string{"workloads", "workloads/status"}, Verbs: []string{"get", "list", "patch"}},
		{APIGroups: []string{"apps"}, Resources: []string{"controllerrevisions"}, Verbs: verbs},
	}
	rbac := c.core.RbacV1()
	c.must(rbac.ClusterRoles().Create(c.t.Context(), &rbacv1.ClusterRole{ObjectMeta: meta, Rules: rules}, metav1.CreateOptions{}))
	c.must(rbac.ClusterRoleBindings().Create(c.t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: meta,
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: c.namespace},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: c.namespace}},
	}, metav1.CreateOptions{}))
	c.awaitRight(user)
	return user
}

// awaitRight waits until the authorizer, which follows by a watch, has the binding.
func (c *testNamespace) awaitRight(user *rest.Config) {
	c.t.Helper()
	clients := kubernetes.NewForConfigOrDie(user)
	ask := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: c.namespace, Verb: "list", Group: "apps", Resource: "controllerrevisions"},
	}}
	c.must(nil, wait.PollUntilContextTimeout(c.t.Context(), 20*time.Millisecond, 5*time.Minute, true, func(ctx context.Context) (bool, error) {
		answer, err := clients.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, ask, metav1.CreateOptions{})
		return err == nil && answer.Status.Allowed, err
	}))
}

// removeReferences has a workload name no revision.
func (c *testNamespace) removeReferences(workload string) {
	c.t.Helper()
	for _, part := range []string{"", "status"} {
		c.change(workload, part, func(o map[string]any) {
			unstructured.RemoveNestedField(o, "spec", "preset")
			unstructured.RemoveNestedField(o, "status", "preset")
		})
	}
}
