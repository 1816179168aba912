package preflight

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/internal/apierror"
	"github.com/godwit-dev/godwit/internal/fixtest"
	"github.com/godwit-dev/godwit/internal/kube/kubetest"
	"github.com/godwit-dev/godwit/internal/storageversion/decision"
	"github.com/godwit-dev/godwit/internal/storageversion/evidence"
)

func refused(code int32, words string) attempt {
	return attempt{namespace: "prod", name: "a", code: code, refusal: words}
}

func TestOutcomeOfAnAttempt(t *testing.T) {
	cases := map[string]struct {
		reason  string
		attempt attempt
		want    outcome
	}{
		"accepted": {
			reason: "as it went in",
			want:   outcome{effect: passes},
		},
		"changed": {
			reason:  "accepted is not the same as unchanged",
			attempt: attempt{changed: []string{"spec.color"}},
			want:    outcome{effect: changes},
		},
		"webhook denies": {
			reason:  "with the words of its owner",
			attempt: refused(403, `admission webhook "x.example.com" denied the request: not on a Friday`),
			want:    outcome{effect: denies, by: apierror.Origin{Kind: "webhook", Name: "x.example.com"}, words: "not on a Friday"},
		},
		"webhook denies without a word": {
			reason:  "the server says so itself",
			attempt: refused(400, `admission webhook "x.example.com" denied the request without explanation`),
			want:    outcome{effect: denies, by: apierror.Origin{Kind: "webhook", Name: "x.example.com"}, words: " without explanation"},
		},
		"webhook denies with a code of its own": {
			reason:  "a webhook chooses its code: 429 and 500 are denials, too",
			attempt: refused(500, `admission webhook "x.example.com" denied the request: my database is down`),
			want:    outcome{effect: denies, by: apierror.Origin{Kind: "webhook", Name: "x.example.com"}, words: "my database is down"},
		},
		"policy denies": {
			reason:  "a binding makes it apply",
			attempt: refused(422, `widgets.example.com "a" is forbidden: ValidatingAdmissionPolicy 'freeze' with binding 'prod' denied request: frozen`),
			want:    outcome{effect: denies, by: apierror.Origin{Kind: "ValidatingAdmissionPolicy", Name: "freeze", Binding: "prod"}, words: "frozen"},
		},
		"mutating policy denies": {
			reason:  "its words are others",
			attempt: refused(422, `widgets.example.com "a" is forbidden: policy 'paint' with binding 'all' denied request: no such key`),
			want:    outcome{effect: denies, by: apierror.Origin{Kind: "MutatingAdmissionPolicy", Name: "paint", Binding: "all"}, words: "no such key"},
		},
		"webhook is down": {
			reason:  "a 500 that names who is needed",
			attempt: refused(500, `Internal error occurred: failed calling webhook "x.example.com": failed to call webhook: Post "https://x": connection refused`),
			want:    outcome{effect: unreachable, by: apierror.Origin{Kind: "webhook", Name: "x.example.com"}, words: `failed to call webhook: Post "https://x": connection refused`},
		},
		"conversion is down": {
			reason:  "no object can be read, let alone written",
			attempt: refused(500, `conversion webhook for example.com/v1, Kind=Widget failed: Post "https://x": connection refused`),
			want:    outcome{effect: unreachable, by: apierror.Origin{Kind: "conversion", Name: "example.com/v1, Kind=Widget"}, words: `Post "https://x": connection refused`},
		},
		"webhook with side effects": {
			reason:  "the server does not ask it in a dry run, so nothing is known",
			attempt: refused(400, `admission webhook "x.example.com" does not support dry run`),
			want:    outcome{effect: inconclusive, by: apierror.Origin{Kind: "webhook", Name: "x.example.com"}, words: "it does not support dry runs"},
		},
		"invalid": {
			reason:  "the schema, not admission",
			attempt: refused(422, `Widget.example.com "a" is invalid: spec.color: Required value`),
			want:    outcome{effect: invalid, words: `Widget.example.com "a" is invalid: spec.color: Required value`},
		},
		"not authorized": {
			reason:  "an API server that has just started answers so to every client; the plan names missing permissions elsewhere",
			attempt: refused(403, `widgets.example.com "a" is forbidden: User "alice" cannot patch resource "widgets" in API group "example.com"`),
			want:    outcome{effect: inconclusive, forbidden: true, words: `widgets.example.com "a" is forbidden: User "alice" cannot patch resource "widgets" in API group "example.com"`},
		},
		"too many requests": {
			reason:  "the server's load is not the object's fault",
			attempt: refused(429, "too many requests"),
			want:    outcome{effect: inconclusive, words: "too many requests"},
		},
		"server error": {
			reason:  "nor is its trouble",
			attempt: refused(504, "timeout"),
			want:    outcome{effect: inconclusive, words: "timeout"},
		},
		"no answer": {
			reason:  "no answer is no refusal",
			attempt: attempt{inconclusive: "no answer within 12s"},
			want:    outcome{effect: inconclusive, words: "no answer within 12s"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, tc.attempt.outcome(), cmp.AllowUnexported(outcome{})); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// met is what attempts on widgets meant, one attempt per namespace.
func met(attempts ...attempt) observed {
	return observed{facts: decision.Facts{CRD: kubetest.Widgets(kubetest.WithStatus), Now: kubetest.Flip.Add(time.Hour)},
		result: &result{write: decision.WritePatch, attempts: attempts, namespaces: len(attempts), allSeen: true}, user: "alice"}
}

// observed is all that a preflight decides on.
type observed struct {
	facts  decision.Facts
	result *result
	user   string
}

func (o observed) plan(p decision.Policy) decision.Plan {
	o.facts.Preflight = reportFor(o.result, o.facts, p, o.user)
	return decision.PlanFor(o.facts, p)
}

func in(namespace string, a attempt) attempt {
	a.namespace = namespace
	return a
}

func with(o observed, edit func(*result)) observed {
	edit(o.result)
	return o
}

const (
	webhookSays = `admission webhook "x.example.com" denied the request: not on a Friday`
	webhookDown = `Internal error occurred: failed calling webhook "x.example.com": connection refused`
)

var painter = admissionConfig{kind: "MutatingWebhookConfiguration", object: "painters", name: "paint.example.com"}

var writeStatus = godwit.Do("write the status alone, which was tried and passes", godwit.RunMigration{CRD: "widgets.example.com", Write: "StatusPatch"})

func TestPlanForRefusals(t *testing.T) {
	exempt := func(actions ...godwit.Action) godwit.Fix {
		return godwit.Do("for the time of the run, exempt its user by an entry of matchConditions of webhook x.example.com, "+
			`{name: godwit, expression: 'request.userInfo.username != "alice"'}`, actions...)
	}
	search := exempt().After("find the configuration of webhook x.example.com", godwit.Show{
		Object: godwit.Object{Resource: "validatingwebhookconfigurations,mutatingwebhookconfigurations"}, Output: "wide",
	})
	checks := godwit.Object{Resource: "validatingwebhookconfiguration", Name: "checks"}
	leave := godwit.Do("migrate what is not refused, without the trim", godwit.RunMigration{CRD: "widgets.example.com", AcceptDenials: true})
	cases := map[string]struct {
		reason string
		facts  observed
		want   []godwit.Finding
	}{
		"all pass": {
			reason: "nothing in the way",
			facts:  met(attempt{name: "a"}),
		},
		"denied alike": {
			reason: "what denies several objects is named once",
			facts: met(in("dev", attempt{}), in("p1", refused(403, webhookSays)), in("p2", refused(403, webhookSays)),
				in("p3", refused(403, webhookSays)), in("p4", refused(403, webhookSays+" 13th"))),
			want: []godwit.Finding{{
				Reason: decision.ReasonAdmissionDenied,
				Message: "webhook x.example.com denies the write Patch of widgets.example.com, on p1/a, p2/a, p3/a and 1 more " +
					"(4 of 5 objects tried): not on a Friday",
				Fix: search.Or(leave),
			}},
		},
		"denied, and known where": {
			reason: "the configuration is named if it could be read, and the status only where it is known to pass",
			facts: with(met(refused(403, webhookSays)), func(r *result) {
				r.configs = []admissionConfig{painter, {"ValidatingWebhookConfiguration", "checks", "x.example.com"}}
				r.statusAttempts = []attempt{{namespace: "prod", name: "a"}}
			}),
			want: []godwit.Finding{{
				Reason:  decision.ReasonAdmissionDenied,
				Message: "webhook x.example.com denies the write Patch of widgets.example.com, on prod/a (1 of 1 object tried): not on a Friday",
				Fix:     writeStatus.Or(exempt(godwit.Edit{Object: checks}), leave),
			}},
		},
		"denied on the status as well": {
			reason: "what was tried and does not pass is not offered",
			facts: with(met(refused(403, webhookSays)), func(r *result) {
				r.statusAttempts = []attempt{refused(403, webhookSays)}
			}),
			want: []godwit.Finding{{
				Reason:  decision.ReasonAdmissionDenied,
				Message: "webhook x.example.com denies the write Patch of widgets.example.com, on prod/a (1 of 1 object tried): not on a Friday",
				Fix:     search.Or(leave),
			}},
		},
		"down": {
			reason: "the configuration of the webhook has its address",
			facts: with(met(refused(500, webhookDown)), func(r *result) {
				r.configs = []admissionConfig{{"ValidatingWebhookConfiguration", "checks", "x.example.com"}}
			}),
			want: []godwit.Finding{{
				Reason: decision.ReasonWebhookUnavailable,
				Message: "webhook x.example.com does not answer, without which the write Patch of widgets.example.com is refused, " +
					"on prod/a (1 of 1 object tried): connection refused",
				Fix: godwit.Do("bring the webhook up; where it is", godwit.Show{Object: checks, Output: "yaml"}).Or(leave),
			}},
		},
		"conversion is down": {
			reason: "it shows when objects are listed; leaving all of them behind is no way out",
			facts: with(met(), func(r *result) {
				r.unlisted = "conversion webhook for example.com/v1, Kind=Widget failed: connection refused"
			}),
			want: []godwit.Finding{{
				Reason: decision.ReasonWebhookUnavailable,
				Message: "the conversion webhook of widgets.example.com fails, without which no object of example.com/v1, Kind=Widget can be read: " +
					"connection refused",
				Fix: godwit.Do("bring the webhook up; where it is", godwit.Show{
					Object: godwit.Object{Resource: "crd", Name: "widgets.example.com"}, Output: "jsonpath={.spec.conversion.webhook.clientConfig}",
				}),
			}},
		},
		"invalid": {
			reason: "no webhook or policy refuses the write, so no exemption helps",
			facts:  met(refused(422, "spec.color: Required value")),
			want: []godwit.Finding{{
				Reason:  decision.ReasonObjectInvalid,
				Message: "the API server refuses the write Patch of widgets.example.com, on prod/a (1 of 1 object tried): spec.color: Required value",
				Fix:     godwit.Do("fix the object", godwit.Edit{Object: godwit.Object{Resource: "widgets.example.com", Namespace: "prod", Name: "a"}}).Or(leave),
			}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			plan := tc.facts.plan(decision.Policy{})
			if err := fixtest.All(slices.Concat(plan.Blockers, plan.Warnings)); err != nil {
				t.Error(err)
			}
			if diff := cmp.Diff(tc.want, plan.Blockers); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if len(plan.HardBlockers()) != len(tc.want) || len(plan.Warnings) > 0 {
				t.Errorf("%d hard blockers, warnings %+v, want %d and none", len(plan.HardBlockers()), plan.Warnings, len(tc.want))
			}
			accepting := tc.facts.plan(decision.Policy{AcceptDenials: true})
			if accepting.State != decision.Ready || len(accepting.Warnings) != len(tc.want) {
				t.Errorf("with denials accepted: %s, warnings %+v, want Ready and what was a blocker", accepting.State, accepting.Warnings)
			}
			for _, w := range accepting.Warnings {
				if len(w.Fix) == 0 || slices.Contains(w.Fix.Actions(), leave.Actions()[0]) {
					t.Errorf("with denials accepted, the fix is %q, want one that is not in force", w.Fix)
				}
			}
		})
	}
}

func TestPlanForChangesAndWarnings(t *testing.T) {
	painted := attempt{namespace: "prod", name: "a", changed: []string{"metadata.labels", "spec.color"}, more: 1}
	welcome := godwit.Do("if any update may do so, migrate: the run stores these changes", godwit.RunMigration{CRD: "widgets.example.com", AcceptChanges: "."})
	tryEvery := godwit.Do("try every object", godwit.RunMigration{CRD: "widgets.example.com", DryRun: true})
	cases := map[string]struct {
		reason string
		facts  observed
		want   []godwit.Finding
	}{
		"changed by one": {
			reason: "one suspect can be exempted; the paths of several objects are one list",
			facts: with(met(painted, in("test", attempt{name: "b", changed: []string{"spec.color", "spec.size"}})), func(r *result) {
				r.configs = []admissionConfig{painter, {"ValidatingWebhookConfiguration", "checks", "x.example.com"}}
			}),
			want: []godwit.Finding{{
				Reason: decision.ReasonAdmissionMutates,
				Message: "objects of widgets.example.com are changed while they are written as they are: metadata.labels, spec.color, spec.size and 1 more " +
					"on prod/a, test/b (2 of 2 objects tried); by webhook paint.example.com of MutatingWebhookConfiguration painters",
				Fix: godwit.Do("for the time of the run, exempt its user by an entry of matchConditions of webhook paint.example.com, "+
					`{name: godwit, expression: 'request.userInfo.username != "alice"'}`,
					godwit.Edit{Object: godwit.Object{Resource: "mutatingwebhookconfiguration", Name: "painters"}}).Or(welcome),
			}},
		},
		"changed by one of two": {
			reason: "it is unknown which of them, so none is exempted",
			facts: with(met(painted), func(r *result) {
				r.configs = []admissionConfig{painter, {"MutatingAdmissionPolicy", "label", "label"}}
				r.statusAttempts = []attempt{{namespace: "prod", name: "a"}}
			}),
			want: []godwit.Finding{{
				Reason: decision.ReasonAdmissionMutates,
				Message: "objects of widgets.example.com are changed while they are written as they are: metadata.labels, spec.color and 1 more " +
					"on prod/a (1 of 1 object tried); by one or more of webhook paint.example.com of MutatingWebhookConfiguration painters, MutatingAdmissionPolicy label",
				Fix: writeStatus.Or(welcome),
			}},
		},
		"changed without a mutating webhook": {
			reason: "a conversion that is not stable looks like that",
			facts:  met(painted),
			want: []godwit.Finding{{
				Reason: decision.ReasonAdmissionMutates,
				Message: "objects of widgets.example.com are changed while they are written as they are: metadata.labels, spec.color and 1 more " +
					"on prod/a (1 of 1 object tried); no mutating webhook or policy covers the write: does the conversion webhook convert one object differently each time?",
				Fix: welcome,
			}},
		},
		"namespaces left out": {
			reason: "the warning names what was not tried",
			facts:  with(met(attempt{name: "a"}), func(r *result) { r.namespaces = 34 }),
			want: []godwit.Finding{{
				Severity: godwit.Warns,
				Reason:   decision.ReasonPreflightIncomplete,
				Message:  "the preflight of widgets.example.com is not complete: one object was tried in 1 of 34 namespaces",
				Fix:      tryEvery,
			}},
		},
		"namespaces unseen": {
			reason: "a number that is not known is not made up",
			facts:  with(met(attempt{name: "a"}), func(r *result) { r.namespaces, r.allSeen, r.timedOut = 34, false, true }),
			want: []godwit.Finding{{
				Severity: godwit.Warns,
				Reason:   decision.ReasonPreflightIncomplete,
				Message:  "the preflight of widgets.example.com is not complete: one object was tried in 1 of at least 34 namespaces; its 20s were over",
				Fix:      tryEvery,
			}},
		},
		"no answer": {
			reason: "time that was over is no refusal",
			facts:  met(attempt{namespace: "prod", name: "a", inconclusive: "no answer within 12s"}),
			want: []godwit.Finding{{
				Severity: godwit.Warns,
				Reason:   decision.ReasonPreflightIncomplete,
				Message:  "what admission makes of the write Patch of widgets.example.com is not known on prod/a (1 of 1 object tried): no answer within 12s",
				Fix:      godwit.Do("plan again", godwit.PlanMigration{CRD: "widgets.example.com"}).Or(tryEvery),
			}},
		},
		"takes no dry run": {
			reason: "no other dry run would tell more",
			facts:  met(refused(400, `admission webhook "x.example.com" does not support dry run`)),
			want: []godwit.Finding{{
				Severity: godwit.Warns,
				Reason:   decision.ReasonPreflightIncomplete,
				Message: "what admission makes of the write Patch of widgets.example.com is not known on prod/a (1 of 1 object tried): " +
					"webhook x.example.com: it does not support dry runs",
				Fix: godwit.Do("if the webhook has no side effects, set sideEffects: None in its configuration").Or(godwit.Do("migrate: a run shows it")),
			}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			plan := tc.facts.plan(decision.Policy{})
			if err := fixtest.All(slices.Concat(plan.Blockers, plan.Warnings)); err != nil {
				t.Error(err)
			}
			got, state := plan.Warnings, decision.Ready
			if tc.want[0].Reason == decision.ReasonAdmissionMutates {
				got, state = plan.Blockers, decision.Blocked
			}
			if diff := cmp.Diff(tc.want, got); diff != "" || plan.State != state {
				t.Errorf("%s: %s, want %s (-want +got):\n%s", tc.reason, plan.State, state, diff)
			}
		})
	}
}

// TestDenialsDoNotStopARunHalfWay: a denied object is among the first that an
// interrupted run has left, and the same command must resume it.
func TestDenialsDoNotStopARunHalfWay(t *testing.T) {
	f := met(refused(403, webhookSays))
	f.facts.Checkpoint = evidence.Checkpoint{
		CRDUID: "u1", Generation: 7, StorageVersion: "v2", ResourceVersion: "100", Settled: metav1.Duration{Duration: decision.DefaultSettle},
	}
	plan := f.plan(decision.Policy{})
	if plan.State != decision.Ready || !plan.Resumes || len(plan.Warnings) != 1 || plan.Warnings[0].Reason != decision.ReasonAdmissionDenied {
		t.Errorf("%s, resumes %v, warnings %+v, want Ready with the denial as a warning", plan.State, plan.Resumes, plan.Warnings)
	}
	f.facts.Checkpoint.StorageVersion = "v1"
	if plan = f.plan(decision.Policy{}); plan.State != decision.Blocked || len(plan.Warnings) > 0 {
		t.Errorf("%s, warnings %+v with a checkpoint that is void, want Blocked without", plan.State, plan.Warnings)
	}
}

// TestProblemsOfTwoKindsAreTwo also where the API server names no origin of either.
func TestProblemsOfTwoKindsAreTwo(t *testing.T) {
	plan := met(attempt{name: "a", changed: []string{"spec.color"}}, refused(422, "spec.color: Required value")).plan(decision.Policy{})
	want := &decision.PreflightSummary{Write: decision.WritePatch, Tried: 2, Changed: 1, Refused: 1, AllSeen: true}
	if diff := cmp.Diff(want, plan.Preflight); diff != "" || len(plan.Blockers) != 2 || len(plan.Warnings) != 0 {
		t.Errorf("blockers %+v, warnings %+v, want two blockers; preflight (-want +got):\n%s", plan.Blockers, plan.Warnings, diff)
	}
}

// TestAcceptedChangesAreWarnings: the user names the paths that admission may change. Another path blocks.
func TestAcceptedChangesAreWarnings(t *testing.T) {
	changed := met(attempt{name: "a", changed: []string{"metadata.labels", "spec.ports[].name"}})
	many := met(attempt{name: "a", changed: []string{"metadata.labels"}, more: 1})
	for _, c := range []struct {
		facts    observed
		accepted []string
		want     decision.State
	}{
		{changed, []string{"metadata.labels", "spec.ports"}, decision.Ready},
		{changed, []string{"metadata.labels"}, decision.Blocked},
		{changed, []string{"."}, decision.Ready},
		{many, []string{"metadata.labels"}, decision.Blocked},
		{many, []string{"."}, decision.Ready},
	} {
		plan := c.facts.plan(decision.Policy{AcceptChanges: c.accepted})
		if plan.State != c.want || len(plan.Warnings)+len(plan.Blockers) != 1 {
			t.Errorf("accepting %q: %s, blockers %+v, warnings %+v, want %s", c.accepted, plan.State, plan.Blockers, plan.Warnings, c.want)
		}
	}
}

func TestRulesThatCoverAWrite(t *testing.T) {
	resource := schema.GroupVersionResource{Group: "example.com", Version: "v2", Resource: "widgets"}
	rule := func(operation admissionregistrationv1.OperationType, group, version, resource string) admissionregistrationv1.RuleWithOperations {
		return admissionregistrationv1.RuleWithOperations{
			Operations: []admissionregistrationv1.OperationType{operation},
			Rule:       admissionregistrationv1.Rule{APIGroups: []string{group}, APIVersions: []string{version}, Resources: []string{resource}},
		}
	}
	cases := map[string]struct {
		rule   admissionregistrationv1.RuleWithOperations
		write  decision.Write
		exact  bool
		covers bool
	}{
		"updates of the resource":         {rule: rule("UPDATE", "example.com", "v2", "widgets"), covers: true},
		"everything":                      {rule: rule("*", "*", "*", "*/*"), covers: true},
		"all resources":                   {rule: rule("UPDATE", "*", "*", "*"), covers: true},
		"all subresources, the object":    {rule: rule("UPDATE", "example.com", "*", "widgets/*"), covers: true},
		"another version":                 {rule: rule("UPDATE", "example.com", "v1", "widgets"), covers: true},
		"another version, exactly":        {rule: rule("UPDATE", "example.com", "v1", "widgets"), exact: true},
		"creations":                       {rule: rule("CREATE", "example.com", "v2", "widgets")},
		"another group":                   {rule: rule("UPDATE", "example.org", "v2", "widgets")},
		"another resource":                {rule: rule("UPDATE", "example.com", "v2", "gadgets")},
		"the status, not the object":      {rule: rule("UPDATE", "example.com", "v2", "widgets/status")},
		"the status":                      {rule: rule("UPDATE", "example.com", "v2", "widgets/status"), write: decision.WriteStatusPatch, covers: true},
		"the status of all":               {rule: rule("UPDATE", "example.com", "v2", "*/status"), write: decision.WriteStatusApply, covers: true},
		"the object, not the status":      {rule: rule("UPDATE", "example.com", "v2", "widgets"), write: decision.WriteStatusPatch},
		"all resources, not their status": {rule: rule("UPDATE", "*", "*", "*"), write: decision.WriteStatusPatch},
	}
	for name, tc := range cases {
		if got := cover([]admissionregistrationv1.RuleWithOperations{tc.rule}, resource, tc.write, tc.exact); got != tc.covers {
			t.Errorf("%s: %v, want %v", name, got, tc.covers)
		}
	}
}

// TestSamplesAreWhatARunWouldWrite: the first object of a namespace that is not
// done, of as many namespaces as are tried; the others are counted.
func TestSamplesAreWhatARunWouldWrite(t *testing.T) {
	f := decision.Facts{CRD: kubetest.Widgets(), Checkpoint: evidence.Checkpoint{
		CRDUID: "u1", Generation: 7, StorageVersion: "v2", ResourceVersion: "100", Settled: metav1.Duration{Duration: decision.DefaultSettle},
	}}
	s := &samples{seen: map[string]bool{}}
	see := func(namespace, name, resourceVersion string) {
		t.Helper()
		o := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, ResourceVersion: resourceVersion}}
		s.add(f, decision.Policy{}, o)
	}
	see("done", "a", "101")
	see("half", "a", "101")
	see("half", "b", "99")
	see("half", "c", "98")
	see("odd", "a", "not a number")
	for i := range sampledNamespaces + 4 {
		see("n"+strings.Repeat("i", i), "a", "1")
	}
	if len(s.objects) != sampledNamespaces || s.objects[0].Name != "b" || s.namespaces(f.CRD) != sampledNamespaces+6 {
		t.Errorf("%d objects, the first %s, of %d namespaces, want %d, b and %d",
			len(s.objects), s.objects[0].Name, s.namespaces(f.CRD), sampledNamespaces, sampledNamespaces+6)
	}
}
