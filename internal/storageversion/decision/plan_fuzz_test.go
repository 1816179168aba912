package decision

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/internal/fixtest"
	"github.com/godwit-dev/godwit/internal/storageversion/evidence"
)

// FuzzPlanFor checks what must hold of every plan, for CRDs that no API
// server would accept as well.
func FuzzPlanFor(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte("a CRD as good as any other"))
	f.Add([]byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24})
	f.Add(slices.Repeat([]byte{255}, 64))
	f.Add(slices.Repeat([]byte{1}, 64))
	f.Add(slices.Repeat([]byte{2, 1}, 64))
	f.Fuzz(func(t *testing.T, data []byte) {
		d := dice(data)
		facts, policy := d.facts(), d.policy()
		before := copyFacts(facts)
		plan := PlanFor(facts, policy)

		if diff := cmp.Diff(before, facts); diff != "" {
			t.Fatalf("the facts changed (-before +after):\n%s", diff)
		}
		again := PlanFor(before, policy)
		if diff := cmp.Diff(plan, again); diff != "" {
			t.Fatalf("equal facts, another plan (-first +second):\n%s", diff)
		}
		for i := range plan.StoredVersions {
			plan.StoredVersions[i] = "scribble"
		}
		if diff := cmp.Diff(before, facts); diff != "" {
			t.Fatalf("the plan shares memory with the facts (-before +after):\n%s", diff)
		}
		checkState(t, facts, again, policy.AcceptDenials)
		checkBlockers(t, facts, again)
		if err := fixtest.All(slices.Concat(again.Blockers, again.Warnings)); err != nil {
			t.Error(err)
		}
	})
}

func checkState(t *testing.T, f Facts, p Plan, accepted bool) {
	t.Helper()
	promised := p.StorageVersion != "" && slices.Equal(f.CRD.Status.StoredVersions, []string{p.StorageVersion})
	switch {
	case (p.State == Clean) != promised:
		t.Errorf("%s with storedVersions %q at storage version %q", p.State, f.CRD.Status.StoredVersions, p.StorageVersion)
	case (p.State == Blocked) != (len(p.Blockers) > 0):
		t.Errorf("%s with blockers %v", p.State, p.Blockers)
	case p.State != Clean && p.State != Ready && p.State != Blocked:
		t.Errorf("state %q", p.State)
	}
	if p.State != Ready {
		return
	}
	switch {
	case p.StorageVersion == "":
		t.Error("Ready without a storage version")
	case !slices.Contains(p.ServedVersions, p.StorageVersion):
		t.Errorf("Ready, but %s is not served", p.StorageVersion)
	case f.CRD.DeletionTimestamp != nil:
		t.Error("Ready, but terminating")
	case len(f.Denied) > 0:
		t.Errorf("Ready, but denied %v", f.Denied)
	case len(f.Migrations) > 0:
		t.Errorf("Ready, but migrated by %v", f.Migrations)
	case f.Preflight != nil && len(f.Preflight.Denials) > 0 && !accepted && !p.Resumes:
		t.Errorf("Ready, but denied in a preflight: %+v", f.Preflight.Denials)
	case p.Resource.Version != p.StorageVersion:
		t.Errorf("Ready to write through %s at storage version %s", p.Resource.Version, p.StorageVersion)
	}
}

func checkBlockers(t *testing.T, f Facts, p Plan) {
	t.Helper()
	subjects := []string{f.CRD.Name}
	for _, s := range f.Servers {
		subjects = append(subjects, s.Name)
	}
	for _, b := range slices.Concat(p.Blockers, p.Warnings) {
		if b.Reason == nil || strings.TrimSpace(b.Message) == "" || strings.TrimSpace(b.Fix.String()) == "" {
			t.Errorf("a blocker without a word: %+v", b)
		}
		if !slices.ContainsFunc(subjects, func(s string) bool { return s != "" && strings.Contains(b.Message, s) }) {
			t.Errorf("%q names none of %q", b.Message, subjects)
		}
	}
}

// dice turn fuzz bytes into choices; used up, they show zeros.
type dice []byte

func (d *dice) roll(sides int) int {
	if len(*d) == 0 {
		return 0
	}
	b := (*d)[0]
	*d = (*d)[1:]
	return int(b) % sides
}

func pick[T any](d *dice, choices ...T) T { return choices[d.roll(len(choices))] }

func several[T any](d *dice, most int, one func(*dice) T) []T {
	var out []T
	for range d.roll(most + 1) {
		out = append(out, one(d))
	}
	return out
}

func (d *dice) version() string { return pick(d, "v2", "v1", "v1beta1", "", "v0") }

func (d *dice) time() time.Time {
	return flip.Add(pick(d, 0, time.Second, -time.Second, 15*time.Second, 16*time.Second, 10*time.Minute, 2*time.Hour, -time.Hour, 100*365*24*time.Hour))
}

func (d *dice) facts() Facts {
	f := Facts{CRD: d.crd(), Now: d.time(), User: pick(d, "", "jane", "system:serviceaccount:a:b", "system:serviceaccount:")}
	if n := int64(d.roll(3)); n > 0 {
		f.Objects = new(n - 1)
	}
	f.Servers = several(d, 3, func(d *dice) Server {
		return Server{Name: pick(d, "apiserver-a", "apiserver-b"), Host: pick(d, "", "cp-1"), Renewed: d.time()}
	})
	f.Denied = several(d, 4, func(d *dice) Grant {
		objects := schema.GroupResource{Group: f.CRD.Spec.Group, Resource: f.CRD.Spec.Names.Plural}
		return pick(d,
			Grant{Verb: "list", Resource: objects}, Grant{Verb: "patch", Resource: objects},
			Grant{Verb: "patch", Resource: crds, Name: f.CRD.Name}, Grant{Verb: "patch", Resource: crdsStatus, Name: f.CRD.Name})
	})
	f.Migrations = several(d, 2, func(d *dice) OtherMigration {
		return OtherMigration{
			Name: pick(d, "storageversionmigrations.g/a", "storageversionmigrations.h/b"), Created: pick(d, time.Time{}, d.time()), Begun: d.roll(2) == 1,
		}
	})
	f.Succeeded = several(d, 2, func(d *dice) OtherMigration {
		return OtherMigration{Name: "storageversionmigrations.g/c", Begun: true, Succeeded: d.time()}
	})
	f.ServersRead = d.roll(2) == 1
	f.Checkpoint = evidence.Checkpoint{
		CRDUID: types.UID(pick(d, "", "u1", "u2")), Generation: int64(d.roll(9)), StorageVersion: d.version(),
		ResourceVersion: pick(d, "", "100", "garbage"), Cursor: pick(d, "", "ns/a"),
		Settled: metav1.Duration{Duration: pick(d, 0, DefaultSettle)}, AcceptedStaleLeases: d.roll(2) == 1,
		Restarts: several(d, 5, func(d *dice) metav1.Time { return metav1.NewTime(d.time()) }),
	}
	f.Preflight = d.preflight(f.CRD.Name)
	return f
}

func (d *dice) preflight(crd string) *PreflightReport {
	if d.roll(2) == 0 {
		return nil
	}
	denial := func(d *dice) godwit.Finding {
		return godwit.Finding{Reason: pick(d, ReasonAdmissionDenied, ReasonWebhookUnavailable, ReasonObjectInvalid), Message: crd + " is denied", Fix: LeaveBehind(crd, "")}
	}
	warning := func(d *dice) godwit.Finding {
		return pick(d,
			godwit.Finding{Severity: godwit.Warns, Reason: ReasonAdmissionMutates, Message: crd + " is changed", Fix: AcceptMutation(crd, "", "spec")},
			godwit.Finding{Severity: godwit.Warns, Reason: ReasonPreflightIncomplete, Message: crd + " is tried in part", Fix: TryEveryObject(crd, "")})
	}
	return &PreflightReport{
		Denials: several(d, 3, denial), Warnings: several(d, 3, warning),
		Summary: &PreflightSummary{Write: pick(d, Writes...), Tried: d.roll(4), AllSeen: d.roll(2) == 1},
	}
}

func (d *dice) crd() *apiextensionsv1.CustomResourceDefinition {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	resource := pick(d, widgets, schema.GroupResource{Resource: "widgets"}, schema.GroupResource{Group: "a%s.example.com", Resource: "indices"})
	crd.Name, crd.Spec.Group, crd.Spec.Names.Plural = resource.String(), resource.Group, resource.Resource
	if d.roll(4) == 3 { // as empty as a CRD can be
		return crd
	}
	crd.UID, crd.Generation = types.UID(pick(d, "u1", "u2", "")), int64(d.roll(9))
	if d.roll(4) == 3 {
		crd.DeletionTimestamp = &metav1.Time{Time: d.time()}
	}
	crd.Spec.Versions = several(d, 4, func(d *dice) apiextensionsv1.CustomResourceDefinitionVersion {
		return apiextensionsv1.CustomResourceDefinitionVersion{Name: d.version(), Served: d.roll(2) == 1, Storage: d.roll(2) == 1}
	})
	crd.Status.StoredVersions = several(d, 3, (*dice).version)
	crd.Status.Conditions = several(d, 3, func(d *dice) apiextensionsv1.CustomResourceDefinitionCondition {
		return apiextensionsv1.CustomResourceDefinitionCondition{
			Type:    pick(d, apiextensionsv1.Established, apiextensionsv1.NamesAccepted, apiextensionsv1.Terminating),
			Status:  pick(d, apiextensionsv1.ConditionTrue, apiextensionsv1.ConditionFalse, apiextensionsv1.ConditionUnknown),
			Message: pick(d, "", "already in use", "%!d(MISSING)"),
		}
	})
	crd.ManagedFields = several(d, 3, func(d *dice) metav1.ManagedFieldsEntry {
		e := entry(pick(d, "kubectl", "", "argocd"), d.time(), pick(d, `{"f:spec":{}}`, `{"f:metadata":{}}`, ``, `not JSON "f:spec"`))
		e.Subresource = pick(d, "", "", "status")
		if d.roll(4) == 3 {
			e.Time = nil
		}
		if d.roll(4) == 3 {
			e.FieldsV1 = nil
		}
		return e
	})
	return crd
}

func (d *dice) policy() Policy {
	return Policy{
		Settle:            pick(d, 0, -time.Second, 1, time.Second, 1000*time.Hour),
		SettleFromSight:   d.roll(2) == 1,
		AcceptStaleLeases: d.roll(2) == 1,
		AcceptDenials:     d.roll(2) == 1,
	}
}

func copyFacts(f Facts) Facts {
	f.CRD = f.CRD.DeepCopy()
	if f.Preflight != nil {
		r := *f.Preflight
		r.Denials, r.Warnings = slices.Clone(r.Denials), slices.Clone(r.Warnings)
		f.Preflight = &r
	}
	f.Servers = slices.Clone(f.Servers)
	f.Denied = slices.Clone(f.Denied)
	f.Migrations, f.Succeeded = slices.Clone(f.Migrations), slices.Clone(f.Succeeded)
	f.Checkpoint.Restarts = slices.Clone(f.Checkpoint.Restarts)
	if f.Objects != nil {
		f.Objects = new(*f.Objects)
	}
	return f
}
