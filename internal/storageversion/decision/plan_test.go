package decision

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/internal/fixtest"
	"github.com/godwit-dev/godwit/internal/kube/kubetest"
	"github.com/godwit-dev/godwit/internal/storageversion/evidence"
)

// flip is when the storage version of the CRDs below was set, as their
// managedFields have it: cut to the second.
var flip = kubetest.Flip

var (
	widgets    = schema.GroupResource{Group: "example.com", Resource: "widgets"}
	crds       = schema.GroupResource{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"}
	crdsStatus = schema.GroupResource{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions/status"}
)

func widgetCRD(edits ...edit) *apiextensionsv1.CustomResourceDefinition {
	return kubetest.Widgets(edits...)
}

type edit = kubetest.Edit

func versions(v ...apiextensionsv1.CustomResourceDefinitionVersion) edit {
	return kubetest.Versions(v...)
}

func stored(v ...string) edit { return kubetest.Stored(v...) }

func conditions(c ...apiextensionsv1.CustomResourceDefinitionCondition) edit {
	return kubetest.Conditions(c...)
}

// migrating adds what Kubernetes' own migrator says.
func migrating(reason string) edit {
	return func(crd *apiextensionsv1.CustomResourceDefinition) {
		crd.Status.Conditions = append(crd.Status.Conditions, apiextensionsv1.CustomResourceDefinitionCondition{
			Type: apiextensionsv1.StorageMigrating, Status: apiextensionsv1.ConditionFalse, Reason: reason,
		})
	}
}

// rescue adds the journal of a rescue.
func rescue(journal string) edit {
	return func(crd *apiextensionsv1.CustomResourceDefinition) {
		metav1.SetMetaDataAnnotation(&crd.ObjectMeta, RescueAnnotation, journal)
	}
}

func terminating(crd *apiextensionsv1.CustomResourceDefinition) {
	crd.DeletionTimestamp = &metav1.Time{Time: flip}
}

func entry(manager string, t time.Time, fields string) metav1.ManagedFieldsEntry {
	return metav1.ManagedFieldsEntry{
		Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, Time: &metav1.Time{Time: t},
		FieldsV1: &metav1.FieldsV1{Raw: []byte(fields)},
	}
}

// later is a moment by which everything about flip has settled.
var later = flip.Add(time.Hour)

// fresh is an API server that renews its lease.
var fresh = Server{Name: "z", Renewed: flip.Add(10*time.Minute - time.Second)}

func alive(name string) Server { return Server{Name: name, Renewed: later.Add(-4 * time.Second)} }

func reasons(findings []godwit.Finding) []*godwit.Reason {
	var all []*godwit.Reason
	for _, f := range findings {
		all = append(all, f.Reason)
	}
	return all
}

func TestPlanForState(t *testing.T) {
	// now is early enough after the flip that a server can have missed it while
	// its lease is valid.
	now := flip.Add(10 * time.Minute)
	missed := Server{Name: "apiserver-b", Host: "cp-2", Renewed: flip.Add(-time.Minute)}

	cases := map[string]struct {
		reason  string
		facts   Facts
		policy  Policy
		state   State
		reasons []*godwit.Reason
	}{
		"old objects": {
			reason: "two stored versions and nothing in the way",
			facts:  Facts{CRD: widgetCRD(), Now: later, Servers: []Server{alive("a")}},
			state:  Ready,
		},
		"clean": {
			reason: "storedVersions is the server's promise, whatever else is wrong",
			facts: Facts{
				CRD: widgetCRD(stored("v2"), terminating, conditions()), Now: now,
				Denied: []Grant{{Verb: "list", Resource: widgets}}, Servers: []Server{missed},
			},
			state: Clean,
		},
		"only the old version": {
			reason: "one stored version is not enough: it must be the storage version",
			facts:  Facts{CRD: widgetCRD(stored("v1")), Now: later},
			state:  Ready,
		},
		"trimmed by a migration that failed": {
			reason: "Kubernetes 1.37 does so, with objects left at the old version",
			facts:  Facts{CRD: widgetCRD(stored("v2"), migrating("MigrationFailed")), Now: later},
			state:  Ready,
		},
		"trimmed by a migration that succeeded": {
			reason: "the condition is what remains of it",
			facts:  Facts{CRD: widgetCRD(stored("v2"), migrating("MigrationSucceeded")), Now: later},
			state:  Clean,
		},
		"the storage version twice": {
			reason: "an odd list is rewritten, not explained away",
			facts:  Facts{CRD: widgetCRD(stored("v2", "v2")), Now: later},
			state:  Ready,
		},
		"no stored versions": {
			reason: "a list that another client emptied promises nothing",
			facts:  Facts{CRD: widgetCRD(stored()), Now: later},
			state:  Ready,
		},
		"terminating": {
			reason:  "one cause, one blocker: that it is not established any more goes without saying",
			facts:   Facts{CRD: widgetCRD(terminating, conditions()), Now: later},
			state:   Blocked,
			reasons: []*godwit.Reason{ReasonTerminating},
		},
		"no conditions": {
			reason:  "a CRD that is not established is not served",
			facts:   Facts{CRD: widgetCRD(conditions()), Now: later},
			state:   Blocked,
			reasons: []*godwit.Reason{ReasonNotEstablished},
		},
		"condition Established unknown": {
			reason: "only True is true",
			facts: Facts{CRD: widgetCRD(conditions(apiextensionsv1.CustomResourceDefinitionCondition{
				Type: apiextensionsv1.Established, Status: apiextensionsv1.ConditionUnknown,
			})), Now: later},
			state:   Blocked,
			reasons: []*godwit.Reason{ReasonNotEstablished},
		},
		"no storage version": {
			reason:  "an empty name must not pass for a version that storedVersions equals",
			facts:   Facts{CRD: widgetCRD(versions(apiextensionsv1.CustomResourceDefinitionVersion{Name: "v1", Served: true}), stored("")), Now: later},
			state:   Blocked,
			reasons: []*godwit.Reason{ReasonNoStorageVersion},
		},
		"storage version not served": {
			reason: "writing through the other version could lose fields",
			facts: Facts{CRD: widgetCRD(versions(
				apiextensionsv1.CustomResourceDefinitionVersion{Name: "v1", Served: true},
				apiextensionsv1.CustomResourceDefinitionVersion{Name: "v2", Storage: true},
			)), Now: later},
			state:   Blocked,
			reasons: []*godwit.Reason{ReasonStorageVersionNotServed},
		},
		"old version not served": {
			reason: "an unserved version can still be read from etcd",
			facts: Facts{CRD: widgetCRD(versions(
				apiextensionsv1.CustomResourceDefinitionVersion{Name: "v1"},
				apiextensionsv1.CustomResourceDefinitionVersion{Name: "v2", Served: true, Storage: true},
			)), Now: later},
			state: Ready,
		},
		"stored versions that spec lost": {
			reason:  "each is named: each has to come back",
			facts:   Facts{CRD: widgetCRD(stored("v0", "v1", "v2", "v1beta1")), Now: later},
			state:   Blocked,
			reasons: []*godwit.Reason{ReasonStoredVersionNotInSpec, ReasonStoredVersionNotInSpec},
		},
		"forbidden": {
			reason: "one blocker for each right, with the grant to give",
			facts: Facts{CRD: widgetCRD(), Now: later, User: "jane", Denied: []Grant{
				{Verb: "patch", Resource: widgets}, {Verb: "patch", Resource: crdsStatus, Name: "widgets.example.com"},
			}},
			state:   Blocked,
			reasons: []*godwit.Reason{ReasonForbidden, ReasonForbidden},
		},
		"another migrator": {
			reason:  "two at once race for nothing",
			facts:   Facts{CRD: widgetCRD(), Now: later, Migrations: []OtherMigration{{Name: "storageversionmigrations.storagemigration.k8s.io/w"}}},
			state:   Blocked,
			reasons: []*godwit.Reason{ReasonMigrationInProgress},
		},
		"fought over": {
			reason:  "the third restart within the hour stops us",
			facts:   Facts{CRD: widgetCRD(), Now: later, Checkpoint: restartedAt(later, 50*time.Minute, 20*time.Minute, time.Minute)},
			state:   Blocked,
			reasons: []*godwit.Reason{ReasonCRDKeepsChanging},
		},
		"fought over yesterday": {
			reason: "a restart is forgotten after an hour, to the second",
			facts:  Facts{CRD: widgetCRD(), Now: later, Checkpoint: restartedAt(later, time.Hour, 20*time.Minute, time.Minute)},
			state:  Ready,
		},
		"stale lease": {
			reason:  "it has not renewed since the flip: it may still write v1",
			facts:   Facts{CRD: widgetCRD(), Now: now, Servers: []Server{missed, fresh}},
			state:   Blocked,
			reasons: []*godwit.Reason{ReasonServerLeaseStale},
		},
		"no lease is renewed": {
			reason:  "one API server answers, so that they are not gone: etcd stores nothing",
			facts:   Facts{CRD: widgetCRD(), Now: now, Servers: []Server{missed}},
			state:   Blocked,
			reasons: []*godwit.Reason{ReasonNoLeaseRenewed},
		},
		"stale lease, accepted": {
			reason: "the user knows better",
			facts:  Facts{CRD: widgetCRD(), Now: now, Servers: []Server{missed, fresh}},
			policy: Policy{AcceptStaleLeases: true},
			state:  Ready,
		},
		"stale since it adopted": {
			reason: "a server that died long after the flip wrote v2 until then",
			facts:  Facts{CRD: widgetCRD(), Now: now, Servers: []Server{{Name: "b", Renewed: flip.Add(5 * time.Minute)}}},
			state:  Ready,
		},
		"not adopted, not stale": {
			reason: "between two renewals: Run waits for it, the user has nothing to fix",
			facts:  Facts{CRD: widgetCRD(), Now: flip.Add(5 * time.Second), Servers: []Server{{Name: "b", Renewed: flip.Add(-5 * time.Second)}}},
			state:  Ready,
		},
		"stale lease, evidence at hand": {
			reason: "the checkpoint was made after all servers had adopted",
			facts: Facts{CRD: widgetCRD(), Now: now, Servers: []Server{missed, fresh}, Checkpoint: evidence.Checkpoint{
				CRDUID: "u1", Generation: 7, StorageVersion: "v2", ResourceVersion: "100", Settled: metav1.Duration{Duration: DefaultSettle},
			}},
			state: Ready,
		},
		"stale lease, weaker evidence": {
			reason: "the checkpoint was made after a shorter settle time than this run asks for",
			facts: Facts{CRD: widgetCRD(), Now: now, Servers: []Server{missed, fresh}, Checkpoint: evidence.Checkpoint{
				CRDUID: "u1", Generation: 7, StorageVersion: "v2", ResourceVersion: "100", Settled: metav1.Duration{Duration: time.Second},
			}},
			state:   Blocked,
			reasons: []*godwit.Reason{ReasonServerLeaseStale},
		},
		"stale lease, evidence void": {
			reason: "the checkpoint is another CRD's",
			facts: Facts{CRD: widgetCRD(), Now: now, Servers: []Server{missed, fresh}, Checkpoint: evidence.Checkpoint{
				CRDUID: "u0", Generation: 7, StorageVersion: "v2", ResourceVersion: "100",
			}},
			state:   Blocked,
			reasons: []*godwit.Reason{ReasonServerLeaseStale},
		},
		"no time of the flip": {
			reason: "without managedFields the change may be as new as our first reading, and a server overdue by then has a stale lease",
			facts: Facts{CRD: widgetCRD(func(crd *apiextensionsv1.CustomResourceDefinition) { crd.ManagedFields = nil }),
				Now: now, Servers: []Server{missed, fresh}},
			state:   Blocked,
			reasons: []*godwit.Reason{ReasonServerLeaseStale},
		},
		"fought over, as another CRD": {
			reason: "restarts that a CRD of this name had before it was created again are not its own",
			facts: Facts{CRD: widgetCRD(func(crd *apiextensionsv1.CustomResourceDefinition) { crd.UID = "u9" }), Now: later,
				Checkpoint: restartedAt(later, 50*time.Minute, 20*time.Minute, time.Minute)},
			state: Ready,
		},
		"a rescue under way": {
			reason:  "a run would drop fields of objects that no client could read before",
			facts:   Facts{CRD: widgetCRD(rescue(`{"format": 1, "crdUID": "u1"}`)), Now: later},
			state:   Blocked,
			reasons: []*godwit.Reason{ReasonRescueInterrupted},
		},
		"a rescue that has rewritten all": {
			reason:  "the spec has other owners until the rescue ends",
			facts:   Facts{CRD: widgetCRD(stored("v2"), rescue(`{"format": 1, "crdUID": "u1", "restored": true}`)), Now: later},
			state:   Blocked,
			reasons: []*godwit.Reason{ReasonRescueInterrupted},
		},
		"the run of the rescue itself": {
			reason: "its own journal is not in its way",
			facts:  Facts{CRD: widgetCRD(rescue(`{"format": 1, "crdUID": "u1"}`)), Now: later},
			policy: Policy{InRescue: true},
			state:  Ready,
		},
		"a rescue of a newer release": {
			reason:  "what it has changed is not known",
			facts:   Facts{CRD: widgetCRD(rescue(`{"format": 2}`)), Now: later},
			state:   Blocked,
			reasons: []*godwit.Reason{ReasonRescueInterrupted},
		},
		"a rescue with a damaged journal": {
			reason:  "the rescue says what is wrong with it",
			facts:   Facts{CRD: widgetCRD(rescue(`{`)), Now: later},
			state:   Blocked,
			reasons: []*godwit.Reason{ReasonRescueInterrupted},
		},
		"a rescue of another CRD": {
			reason: "a restored manifest has the annotation of a CRD that is gone",
			facts:  Facts{CRD: widgetCRD(rescue(`{"format": 1, "crdUID": "u0"}`)), Now: later},
			state:  Ready,
		},
		"everything at once": {
			reason: "in the order in which a user fixes it",
			facts: Facts{
				CRD: widgetCRD(conditions(), stored("v0", "v2"), versions(
					apiextensionsv1.CustomResourceDefinitionVersion{Name: "v2", Storage: true},
				)),
				Now: now, Servers: []Server{missed, fresh}, Denied: []Grant{{Verb: "list", Resource: widgets}},
				Migrations: []OtherMigration{{Name: "storageversionmigrations.storagemigration.k8s.io/w"}},
				Checkpoint: restartedAt(now, 3*time.Minute, 2*time.Minute, time.Minute),
			},
			state: Blocked,
			reasons: []*godwit.Reason{
				ReasonNotEstablished, ReasonStorageVersionNotServed, ReasonStoredVersionNotInSpec,
				ReasonForbidden, ReasonMigrationInProgress, ReasonCRDKeepsChanging, ReasonServerLeaseStale,
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			plan := PlanFor(tc.facts, tc.policy)
			if err := fixtest.All(slices.Concat(plan.Blockers, plan.Warnings)); err != nil {
				t.Error(err)
			}
			if plan.State != tc.state {
				t.Errorf("%s\nstate = %s, want %s", tc.reason, plan.State, tc.state)
			}
			if diff := cmp.Diff(tc.reasons, reasons(plan.Blockers), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s\nreasons (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func restartedAt(now time.Time, ago ...time.Duration) evidence.Checkpoint {
	c := evidence.Checkpoint{CRDUID: "u1", Generation: 7, StorageVersion: "v2"}
	for _, d := range ago {
		c.Restarts = append(c.Restarts, metav1.NewTime(now.Add(-d)))
	}
	return c
}

func TestPlanForDescribesTheCRD(t *testing.T) {
	none, some := int64(0), int64(3)
	base := Plan{
		Name: "widgets.example.com", UID: "u1", Generation: 7,
		Resource:       schema.GroupVersionResource{Group: "example.com", Version: "v2", Resource: "widgets"},
		State:          Ready,
		StorageVersion: "v2", ServedVersions: []string{"v1", "v2"}, StoredVersions: []string{"v1", "v2"},
		ManagedFields: ManagedFieldsUnknown,
	}
	with := func(edit func(*Plan)) Plan { p := base; edit(&p); return p }
	cases := map[string]struct {
		reason string
		facts  Facts
		want   Plan
	}{
		"uncounted": {
			reason: "no count is not a count of zero",
			facts:  Facts{CRD: widgetCRD(), Now: later},
			want:   base,
		},
		"objects": {
			reason: "what their managedFields name is known only after reading them",
			facts:  Facts{CRD: widgetCRD(), Now: later, Objects: &some},
			want:   with(func(p *Plan) { p.Objects = &some }),
		},
		"no objects": {
			reason: "no object names a version, but storedVersions still has to be trimmed",
			facts:  Facts{CRD: widgetCRD(), Now: later, Objects: &none},
			want:   with(func(p *Plan) { p.Objects, p.ManagedFields = &none, ManagedFieldsClean }),
		},
		"resumes": {
			reason: "a checkpoint that holds is announced",
			facts: Facts{CRD: widgetCRD(), Now: later, Checkpoint: evidence.Checkpoint{
				CRDUID: "u1", Generation: 6, StorageVersion: "v2", ResourceVersion: "100", Settled: metav1.Duration{Duration: DefaultSettle},
			}},
			want: with(func(p *Plan) { p.Resumes = true }),
		},
		"irregular plural": {
			reason: "the resource is spec.names.plural, never guessed from the kind",
			facts: Facts{CRD: widgetCRD(func(crd *apiextensionsv1.CustomResourceDefinition) {
				crd.Name, crd.Spec.Names.Plural = "indices.example.com", "indices"
			}), Now: later},
			want: with(func(p *Plan) { p.Name, p.Resource.Resource = "indices.example.com", "indices" }),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, PlanFor(tc.facts, Policy{})); diff != "" {
				t.Errorf("%s\nplan (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// A user who reads a blocker must learn what it is about and what to do.
func TestBlockersNameTheMissingPermissions(t *testing.T) {
	now := flip.Add(10 * time.Minute)
	cases := map[string]struct {
		reason  string
		facts   Facts
		message []string
		remedy  []string
	}{
		"names not accepted": {
			reason: "the server's own words tell why",
			facts: Facts{CRD: widgetCRD(conditions(apiextensionsv1.CustomResourceDefinitionCondition{
				Type: apiextensionsv1.NamesAccepted, Status: apiextensionsv1.ConditionFalse, Message: `"widgets" is already in use`,
			})), Now: later},
			message: []string{"widgets.example.com", `"widgets" is already in use`},
			remedy:  []string{"widgets.example.com"},
		},
		"names accepted": {
			reason: "a message of a condition that is fine is no reason",
			facts: Facts{CRD: widgetCRD(conditions(apiextensionsv1.CustomResourceDefinitionCondition{
				Type: apiextensionsv1.NamesAccepted, Status: apiextensionsv1.ConditionTrue, Message: "no conflicts found",
			})), Now: later},
			message: []string{"widgets.example.com", "Established"},
		},
		"lost version": {
			reason:  "the version is named in both",
			facts:   Facts{CRD: widgetCRD(stored("v0", "v2")), Now: later},
			message: []string{"widgets.example.com", "v0"},
			remedy:  []string{"v0", "VerifyMigration{CRD:widgets.example.com}"},
		},
		"unknown user": {
			reason:  "an old server does not say who we are",
			facts:   Facts{CRD: widgetCRD(), Now: later, Denied: []Grant{{Verb: "list", Resource: widgets}}},
			message: []string{"the current user", "list", "widgets.example.com"},
			remedy:  []string{"grant the user the permission to list widgets.example.com"},
		},
		"migrations": {
			reason:  "every one is named, the first can be pasted",
			facts:   Facts{CRD: widgetCRD(), Now: later, Migrations: []OtherMigration{{Name: "storageversionmigrations.g/one"}, {Name: "storageversionmigrations.g/two"}}},
			message: []string{"widgets.example.com", "one", "two"},
			remedy:  []string{"Show{Object:{Resource:storageversionmigrations.g/one "},
		},
		"a migration that no controller begins": {
			reason: "the API server may serve the kind, and the controller manager run no migrator",
			facts: Facts{CRD: widgetCRD(), Now: later, Migrations: []OtherMigration{
				{Name: "storageversionmigrations.g/one", Begun: true, Created: flip}, {Name: "storageversionmigrations.g/two", Created: later.Add(-time.Hour)},
			}},
			message: []string{"one, ", "no controller has begun storageversionmigrations.g/two in 1h0m0s", "StorageVersionMigrator"},
			remedy:  []string{"Delete{Object:{Resource:storageversionmigrations.g/two ", "Show{Object:{Resource:storageversionmigrations.g/one "},
		},
		"fought over, journal elsewhere": {
			reason:  "where no annotation has the checkpoint, removing one does not help",
			facts:   Facts{CRD: widgetCRD(), Now: later, Checkpoint: restartedAt(later, 3*time.Minute, 2*time.Minute, time.Minute)},
			message: []string{"widgets.example.com"},
			remedy:  []string{"agree on one spec; then wait: the migration resumes within an hour"},
		},
		"fought over": {
			reason:  "the managers that fight are named",
			facts:   Facts{CRD: annotated(widgetCRD(), evidence.CheckpointAnnotation), Now: later, Checkpoint: restartedAt(later, 3*time.Minute, 2*time.Minute, time.Minute)},
			message: []string{"widgets.example.com", "kubectl (Update)"},
			remedy:  []string{"Patch{Object:{Resource:crd Namespace: Name:widgets.example.com}", `"godwit.dev/migration-checkpoint":null`},
		},
		"stale lease": {
			reason:  "the lease and the host behind its hash",
			facts:   Facts{CRD: widgetCRD(), Now: now, Servers: []Server{{Name: "apiserver-x", Host: "cp-2", Renewed: flip}, fresh}},
			message: []string{"apiserver-x", "cp-2", "10m0s"},
			remedy:  []string{"Delete{Object:{Resource:lease Namespace:kube-system Name:apiserver-x}}"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			plan := PlanFor(tc.facts, Policy{})
			if err := fixtest.All(slices.Concat(plan.Blockers, plan.Warnings)); err != nil {
				t.Error(err)
			}
			if len(plan.Blockers) != 1 {
				t.Fatalf("%s\nblockers = %v, want one", tc.reason, plan.Blockers)
			}
			for _, part := range tc.message {
				if !strings.Contains(plan.Blockers[0].Message, part) {
					t.Errorf("%s\nmessage %q does not name %q", tc.reason, plan.Blockers[0].Message, part)
				}
			}
			for _, part := range tc.remedy {
				if !strings.Contains(kubetest.Words(plan.Blockers[0].Fix), part) {
					t.Errorf("%s\nremedy %q does not name %q", tc.reason, kubetest.Words(plan.Blockers[0].Fix), part)
				}
			}
		})
	}
}

func TestHardBlockers(t *testing.T) {
	plan := Plan{Blockers: []godwit.Finding{
		{Reason: ReasonForbidden}, {Reason: ReasonServerLeaseStale}, {Reason: ReasonTerminating}, {Reason: ReasonServerLeaseStale},
	}}
	if diff := cmp.Diff([]*godwit.Reason{ReasonForbidden, ReasonTerminating}, reasons(plan.HardBlockers())); diff != "" {
		t.Errorf("a stale lease is waited for, all else is a hard blocker (-want +got):\n%s", diff)
	}
	all := []*godwit.Reason{ReasonForbidden, ReasonServerLeaseStale, ReasonTerminating, ReasonServerLeaseStale}
	if diff := cmp.Diff(all, reasons(plan.Blockers)); diff != "" {
		t.Errorf("the plan itself changed (-want +got):\n%s", diff)
	}
}

func TestBlockedErrorNamesEveryCause(t *testing.T) {
	err := &BlockedError{CRD: "widgets.example.com", Blockers: []godwit.Finding{
		{Reason: ReasonForbidden, Message: "jane may not list"}, {Reason: ReasonTerminating, Message: "is being deleted"},
	}}
	for _, part := range []string{"widgets.example.com", ReasonForbidden.Name, "jane may not list", ReasonTerminating.Name, "is being deleted"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q does not name %q", err.Error(), part)
		}
	}
}

func TestCleanupWithoutItsPermissionIsAWarning(t *testing.T) {
	g := Grant{Verb: "patch", Resource: widgets}
	plan := PlanFor(Facts{CRD: widgetCRD(stored("v1", "v2")), Now: later, CleanupDenied: &g, User: "bob"}, Policy{Write: WriteUpdate})
	if plan.State != Ready || len(plan.Blockers) != 0 {
		t.Errorf("plan is %s, blocked by %v: the rewrite needs no such right", plan.State, plan.Blockers)
	}
	if len(plan.Warnings) != 1 || plan.Warnings[0].Reason != ReasonCleanupForbidden || !cmp.Equal(plan.Warnings[0].Fix, g.Fix("bob")) {
		t.Errorf("warnings %+v, want one with the command that grants %s", plan.Warnings, g)
	}
}

// TestFullAnnotationsAreAWarning: a run needs no checkpoint, unless it is interrupted.
func TestFullAnnotationsAreAWarning(t *testing.T) {
	crd := widgetCRD(stored("v1", "v2"))
	for bytes, want := range map[int]int{100_000: 0, 161_000: 1} {
		crd.Annotations = map[string]string{"small": strings.Repeat("a", 101_000), "large": strings.Repeat("a", bytes), evidence.CheckpointAnnotation: strings.Repeat("a", 1000)}
		if bytes < 101_000 {
			crd.Annotations["small"] = "a"
		}
		plan := PlanFor(Facts{CRD: crd, Now: later}, Policy{})
		if plan.State != Ready || len(plan.Warnings) != want {
			t.Fatalf("%d bytes: plan is %s with warnings %+v", bytes, plan.State, plan.Warnings)
		}
		if want > 0 && (plan.Warnings[0].Reason != ReasonAnnotationsFull || !strings.Contains(plan.Warnings[0].Message, "large with 161005 bytes")) {
			t.Errorf("warnings %+v", plan.Warnings)
		}
	}
}

func TestPlanSaysWhyTrimmedVersionsAreNotTrusted(t *testing.T) {
	plan := PlanFor(Facts{CRD: widgetCRD(stored("v2"), migrating("MigrationFailed")), Now: later}, Policy{})
	if plan.State != Ready || len(plan.Warnings) != 1 || plan.Warnings[0].Reason != ReasonStoredVersionsDoubtful {
		t.Errorf("plan is %s with warnings %+v; it is Ready although storedVersions is %v, and nothing says why", plan.State, plan.Warnings, plan.StoredVersions)
	}
}

// TestPlanSaysWhatDiffersOnThisServer: what a plan finds in the data of a cluster, whatever its version.
func TestPlanSaysWhatDiffersOnThisServer(t *testing.T) {
	const other = "storageversionmigrations.storagemigration.k8s.io/w"
	ended := func(generation int64, after time.Duration) edit {
		return func(crd *apiextensionsv1.CustomResourceDefinition) {
			crd.Status.Conditions = append(crd.Status.Conditions, apiextensionsv1.CustomResourceDefinitionCondition{
				Type: apiextensionsv1.StorageMigrating, Status: apiextensionsv1.ConditionFalse, Reason: "MigrationSucceeded",
				ObservedGeneration: generation, LastTransitionTime: metav1.NewTime(flip.Add(after)),
			})
		}
	}
	succeeded := func(created time.Duration) []OtherMigration {
		return []OtherMigration{{Name: other, Begun: true, Created: flip.Add(created), Succeeded: flip.Add(created + time.Minute)}}
	}
	cases := map[string]struct {
		reason string
		facts  Facts
		policy Policy
		want   []*godwit.Reason // of warnings
		words  []string         // of the warning
	}{
		"no leases": {
			reason: "the feature gate APIServerIdentity is off: time alone decides, and the plan says so",
			facts:  Facts{CRD: widgetCRD(), ServersRead: true},
			want:   []*godwit.Reason{ReasonNoIdentityLeases}, words: []string{"1m15s", "v2", "APIServerIdentity"},
		},
		"leases": {reason: "each server is known", facts: Facts{CRD: widgetCRD(), ServersRead: true, Servers: []Server{alive("a")}}},
		"leases that were not read": {
			reason: "a missing permission is named elsewhere", facts: Facts{CRD: widgetCRD(), ServersUnread: "forbidden"},
		},
		"no leases and nothing to do": {
			reason: "no run writes", facts: Facts{CRD: widgetCRD(stored("v2")), ServersRead: true},
		},
		"no leases and no rewrite": {
			reason: "a cleanup writes at any time", facts: Facts{CRD: widgetCRD(), ServersRead: true},
			policy: Policy{SkipPhases: []Phase{StorageVersionMigrationPhase}},
		},
		"migrated in-tree, not trimmed": {
			reason: "as before Kubernetes 1.36, and by kube-storage-version-migrator",
			facts:  Facts{CRD: widgetCRD(), Succeeded: succeeded(10 * time.Second)},
			want:   []*godwit.Reason{ReasonMigrationDidNotTrim}, words: []string{other, "v1, v2", "RunMigration{CRD:widgets.example.com"},
		},
		"migrated in-tree before the change": {
			reason: "that says nothing about this storage version",
			facts:  Facts{CRD: widgetCRD(), Succeeded: succeeded(-time.Hour)},
		},
		"migrated in-tree and trimmed": {
			reason: "nothing is left", facts: Facts{CRD: widgetCRD(stored("v2")), Succeeded: succeeded(10 * time.Second)},
		},
		"trimmed in-tree at once": {
			reason: "the in-tree migrator waits for no API server",
			facts:  Facts{CRD: widgetCRD(stored("v2"), ended(7, 20*time.Second))},
			want:   []*godwit.Reason{ReasonTrimmedBeforeSettled}, words: []string{"1m15s", "VerifyMigration{CRD:widgets.example.com}", `"v1", "v2"`},
		},
		"trimmed in-tree after the settle time": {
			reason: "each server has had its time", facts: Facts{CRD: widgetCRD(stored("v2"), ended(7, 2*time.Minute))},
		},
		"trimmed in-tree, CRD changed since": {
			reason: "the time of the change that it migrated is not known any more", facts: Facts{CRD: widgetCRD(stored("v2"), ended(6, 20*time.Second))},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.facts.Now = later
			plan := PlanFor(tc.facts, tc.policy)
			if err := fixtest.All(slices.Concat(plan.Blockers, plan.Warnings)); err != nil {
				t.Error(err)
			}
			if !slices.Equal(reasons(plan.Warnings), tc.want) {
				t.Fatalf("warnings %v, want %v: %s", plan.Warnings, tc.want, tc.reason)
			}
			for _, word := range tc.words {
				if text := plan.Warnings[0].Message + " " + kubetest.Words(plan.Warnings[0].Fix); !strings.Contains(text, word) {
					t.Errorf("%q does not contain %q", text, word)
				}
			}
		})
	}
}

func TestWithoutTheRewriteNothingBlocks(t *testing.T) {
	f := Facts{
		CRD: widgetCRD(stored("v1", "v2")), Now: later, Migrations: []OtherMigration{{Name: "storageversionmigrations.storagemigration.k8s.io/a"}},
		Denied: []Grant{{Verb: "patch", Resource: widgets}},
	}
	plan := PlanFor(f, Policy{Write: WriteStatusPatch, SkipPhases: []Phase{StorageVersionMigrationPhase}})
	if plan.State != Ready || len(plan.Blockers) != 0 {
		t.Errorf("plan is %s, blocked by %+v, though only managedFields are to be cleaned", plan.State, plan.Blockers)
	}
}

func annotated(crd *apiextensionsv1.CustomResourceDefinition, key string) *apiextensionsv1.CustomResourceDefinition {
	crd.Annotations = map[string]string{key: "{}"}
	return crd
}

// Three runs that end because the CRD changed block the fourth plan, and
// an hour of peace lifts the block.
func TestRestartsBlockAfterThree(t *testing.T) {
	var c evidence.Checkpoint
	crd := widgetCRD()
	now := later
	for restart := range 4 {
		c = c.Begin(crd, now)
		plan := PlanFor(Facts{CRD: crd, Now: now, Checkpoint: c}, Policy{})
		want := Ready
		if restart == evidence.MaxRestarts {
			want = Blocked
		}
		if plan.State != want {
			t.Fatalf("after %d restarts the plan is %s, want %s", restart, plan.State, want)
		}
		crd.Generation += 2
		now = now.Add(5 * time.Minute)
	}
	now = now.Add(time.Hour)
	if plan := PlanFor(Facts{CRD: crd, Now: now, Checkpoint: c}, Policy{}); plan.State != Ready {
		t.Errorf("an hour later the plan is %s: %v", plan.State, plan.Blockers)
	}
}
