package crdmigrator_test

import (
	"net/http"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/internal/storageversion"
	"github.com/godwit-dev/godwit/internal/storageversion/decision"
	"github.com/godwit-dev/godwit/walk"
)

// mustBeMigrated checks that a run migrated all objects, and that none failed.
func (w *widgets) mustBeMigrated(report decision.Report, n int) {
	w.t.Helper()
	counts := report.Storage.Counts
	if counts.Total() != int64(n) || counts.Migrated+counts.Unchanged+counts.Skipped != int64(n) || !report.Trimmed {
		w.t.Errorf("run: %+v, trimmed %v, failures %+v, want %d objects migrated and trimmed",
			counts, report.Trimmed, report.Storage.Failures, n)
	}
	w.mustBeStored("in the end", map[string]int{"v2": n})
	w.mustHaveStoredVersions("in the end", "v2")
}

// TestAPIServerRestartMidRun: the run waits for the API server, and continues.
func TestAPIServerRestartMidRun(t *testing.T) {
	t.Parallel()
	plane := ownPlane(t)
	w := newWidgets(t, plane)
	w.fill("v1", 200)
	w.flip()
	config, wire := tap(w.withoutLeases())
	// The rate keeps the run from ending before the server has.
	limiter := walk.NewLimiter(walk.Limits{MaxWritesPerSecond: 40})
	m := newMigrator(t, config, storageversion.Options{Policy: quickSettle, Limiter: limiter, PageObjects: 40})

	run := w.pauseAfter(t.Context(), m, 50)
	run.release()
	if err := plane.RestartAPIServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	report, err := run.resume()
	if err != nil {
		t.Fatal(err)
	}
	if wire.answered(0) == 0 {
		t.Error("no request met the restart")
	}
	w.mustBeMigrated(report, 200)
}

// TestExpiredContinueTokenMidRun: etcd is compacted between two pages. The run
// continues at the same key.
func TestExpiredContinueTokenMidRun(t *testing.T) {
	t.Parallel()
	// A server with snapshots of lists in its cache (since 1.34) serves a
	// compacted list for a while.
	plane := ownPlane(t, "--feature-gates=ListFromCacheSnapshot=false")
	w := newWidgets(t, plane)
	w.fill("v1", 200)
	w.flip()
	config, wire := tap(w.withoutLeases())
	m := newMigrator(t, config, storageversion.Options{Policy: quickSettle, PageObjects: 20})

	run := w.pauseAfter(t.Context(), m, 50)
	now, err := plane.Etcd().Get(t.Context(), w.keys(), clientv3.WithPrefix(), clientv3.WithCountOnly())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := plane.Etcd().Compact(t.Context(), now.Header.Revision, clientv3.WithCompactPhysical()); err != nil {
		t.Fatal(err)
	}
	report, err := run.resume()
	if err != nil {
		t.Fatal(err)
	}
	if wire.answered(http.StatusGone) == 0 {
		t.Error("the server never answered 410")
	}
	w.mustBeMigrated(report, 200)
}

// TestThrottledRunFailsNothing: the server rejects more than very few requests at once.
// The run slows down, and no object fails.
func TestThrottledRunFailsNothing(t *testing.T) {
	t.Parallel()
	w := newWidgets(t, shared)
	w.fill("v1", 100)
	w.flip()
	user, config := w.user(w.migrationPermissions()...)
	config, wire := tap(config)
	w.throttle(user)
	m := newMigrator(t, config, storageversion.Options{Policy: quickSettle, PageObjects: 40})

	report := w.mustMigrate(m)
	if n := wire.answered(http.StatusTooManyRequests); n == 0 {
		t.Error("the server never answered 429")
	}
	w.mustBeMigrated(report, 100)
	if want := (godwit.Counts{Migrated: 100}); report.Storage.Counts != want {
		t.Errorf("run: %+v, want %+v", report.Storage.Counts, want)
	}
}

// throttle gives a user the smallest possible share of the server, and no queue.
func (w *widgets) throttle(user string) {
	w.t.Helper()
	admin, err := kubernetes.NewForConfig(w.config)
	if err != nil {
		w.t.Fatal(err)
	}
	_, err = admin.FlowcontrolV1().PriorityLevelConfigurations().Create(w.t.Context(), &flowcontrolv1.PriorityLevelConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: w.group},
		Spec: flowcontrolv1.PriorityLevelConfigurationSpec{
			Type: flowcontrolv1.PriorityLevelEnablementLimited,
			Limited: &flowcontrolv1.LimitedPriorityLevelConfiguration{
				NominalConcurrencyShares: ptr.To[int32](1),
				BorrowingLimitPercent:    ptr.To[int32](0),
				LimitResponse:            flowcontrolv1.LimitResponse{Type: flowcontrolv1.LimitResponseTypeReject},
			},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	schema := &flowcontrolv1.FlowSchema{
		ObjectMeta: metav1.ObjectMeta{Name: w.group},
		Spec: flowcontrolv1.FlowSchemaSpec{
			PriorityLevelConfiguration: flowcontrolv1.PriorityLevelConfigurationReference{Name: w.group},
			MatchingPrecedence:         10,
			Rules: []flowcontrolv1.PolicyRulesWithSubjects{{
				Subjects: []flowcontrolv1.Subject{{
					Kind: flowcontrolv1.SubjectKindUser, User: &flowcontrolv1.UserSubject{Name: user},
				}},
				ResourceRules: []flowcontrolv1.ResourcePolicyRule{{
					Verbs: []string{"*"}, APIGroups: []string{w.group}, Resources: []string{"*"}, Namespaces: []string{"*"}, ClusterScope: true,
				}},
			}},
		},
	}
	if schema, err = admin.FlowcontrolV1().FlowSchemas().Create(w.t.Context(), schema, metav1.CreateOptions{}); err != nil {
		w.t.Fatal(err)
	}
	await(w.t, "the flow schema to be in force", func() bool {
		schema, err = admin.FlowcontrolV1().FlowSchemas().Get(w.t.Context(), w.group, metav1.GetOptions{})
		if err != nil {
			w.t.Fatal(err)
		}
		for _, c := range schema.Status.Conditions {
			if c.Type == flowcontrolv1.FlowSchemaConditionDangling {
				return c.Status == flowcontrolv1.ConditionFalse
			}
		}
		return false
	})
}
