package crdmigrator_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/internal/kube/kubetest"
	"github.com/godwit-dev/godwit/internal/storageversion"
	"github.com/godwit-dev/godwit/internal/storageversion/decision"
	"github.com/godwit-dev/godwit/internal/storageversion/preflight"
	"github.com/godwit-dev/godwit/test/fault"
)

// TestAnswersInPlaceOfAList: a trimmed CRD is not Clean while the API server lists no
// object of it, and each answer has a reason of its own. The client is a member of
// system:masters, so that no remedy may offer a permission.
func TestAnswersInPlaceOfAList(t *testing.T) {
	t.Parallel()
	w := newWidgets(t, shared)
	w.fill("v1", 3)
	cases := map[string]struct {
		code            int
		reason, message string
		want            *godwit.Reason
		tries           int64
	}{
		"429":            {429, "TooManyRequests", "storage is (re)initializing", decision.ReasonThrottled, 4},
		"500":            {500, "InternalError", "etcdserver: no leader", decision.ReasonServerError, 4},
		"502 of a proxy": {502, "", "<html>bad gateway</html>", decision.ReasonServerError, 4},
		"504":            {504, "Timeout", "the server was unable to return a response in the time allotted", decision.ReasonTimeout, 1},
		"404":            {404, "NotFound", "the server could not find the requested resource", decision.ReasonNotServed, 1},
		"403 of a proxy": {403, "", "<html>forbidden</html>", decision.ReasonListRefused, 1},
		"400":            {400, "BadRequest", "not today", decision.ReasonListRefused, 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var tries atomic.Int64
			config := fault.Answering(w.config, func(req *http.Request) *http.Response {
				if !fault.Listing(req, w.group, w.plural) {
					return nil
				}
				tries.Add(1)
				return fault.Status(tc.code, tc.reason, tc.message)
			})
			m := newMigrator(t, config, storageversion.Options{Policy: quickSettle, Attempts: 2})
			plan, err := m.Plan(t.Context(), w.name)
			if err != nil {
				t.Fatal(err)
			}
			if plan.State != decision.StateUnknown || plan.Unlisted == nil || plan.Unlisted.Reason != tc.want || plan.Objects != nil {
				t.Fatalf("%s, unlisted %v, want Unknown by %s", plan.State, plan.Unlisted, tc.want)
			}
			if strings.Contains(plan.Unlisted.Error(), "grant ") || strings.Contains(plan.Unlisted.Error(), "may not") {
				t.Errorf("remedy of %v offers a permission, want none", plan.Unlisted)
			}
			if got := tries.Load(); got != tc.tries {
				t.Errorf("%d attempts, want %d", got, tc.tries)
			}
			var unlisted *decision.UnlistedError
			if _, err := m.Run(t.Context(), plan, nil); !errors.As(err, &unlisted) || unlisted.Reason != tc.want {
				t.Errorf("the run ends with %v, want an UnlistedError by %s", err, tc.want)
			}
		})
	}
}

// TestListThatWorksTheSecondTime: a plan retries a transient answer.
func TestListThatWorksTheSecondTime(t *testing.T) {
	t.Parallel()
	w := newWidgets(t, shared)
	w.fill("v1", 3)
	for _, code := range []int{429, 500, 503} {
		var tries atomic.Int64
		config := fault.Answering(w.config, func(req *http.Request) *http.Response {
			if !fault.Listing(req, w.group, w.plural) || tries.Add(1) > 1 {
				return nil
			}
			return fault.Status(code, "", "not now")
		})
		if plan := w.mustPlan(config, storageversion.Options{}); plan.State != decision.Clean || plan.Objects == nil || *plan.Objects != 3 || plan.Unlisted != nil {
			t.Errorf("after one %d: %s with unlisted %v, want Clean with 3 objects", code, plan.State, plan.Unlisted)
		}
	}
}

// TestMigrationsThatAreListedTheSecondTime: while the API server fills its cache of the StorageVersionMigrations of another
// migrator, a plan asks for these again. What it has read before, it does not read again.
func TestMigrationsThatAreListedTheSecondTime(t *testing.T) {
	t.Parallel()
	w := newWidgets(t, shared)
	w.fill("v1", 3)
	w.flip()
	var lists, crds atomic.Int64
	config := fault.Answering(w.config, func(req *http.Request) *http.Response {
		switch {
		case strings.HasSuffix(req.URL.Path, "/customresourcedefinitions/"+w.name):
			crds.Add(1)
		case strings.HasSuffix(req.URL.Path, "/storageversionmigrations") && lists.Add(1) == 1:
			return fault.Status(http.StatusTooManyRequests, "TooManyRequests", "storage is (re)initializing")
		}
		return nil
	})
	if plan := w.mustPlan(config, storageversion.Options{}); plan.State != decision.Ready {
		t.Errorf("the plan is %s, want Ready", plan.State)
	}
	if lists.Load() != 2 || crds.Load() != 1 {
		t.Errorf("%d lists of migrations and %d reads of the CRD, want 2 and 1", lists.Load(), crds.Load())
	}
}

// TestForbiddenListIsUnknownUntilItIsGranted by the command of the remedy.
func TestForbiddenListIsUnknownUntilItIsGranted(t *testing.T) {
	t.Parallel()
	w := newWidgets(t, shared)
	w.fill("v1", 3)
	user, config := w.user(readCRD)
	plan := w.mustPlan(config, storageversion.Options{})
	if plan.State != decision.StateUnknown || plan.Unlisted.Reason != decision.ReasonForbidden || plan.Unlisted.Transient() {
		t.Fatalf("%s, unlisted %v, want Unknown and Forbidden", plan.State, plan.Unlisted)
	}
	if want := user + " may not list widgets." + w.group; plan.Unlisted.Message != want {
		t.Errorf("message = %q, want %q", plan.Unlisted.Message, want)
	}
	w.grant(config, user, permissionOf(t, plan.Unlisted.Finding, user))
	if plan = w.mustPlan(config, storageversion.Options{}); plan.State != decision.Clean {
		t.Errorf("with the permission granted: %s, unlisted %v", plan.State, plan.Unlisted)
	}
}

// TestDeadConverterRefutesTrimmedVersions: an object at the storage version needs no
// conversion, so that an object that can't be converted is at another version. The remedy
// migrates it.
func TestDeadConverterRefutesTrimmedVersions(t *testing.T) {
	t.Parallel()
	w, c := newConverted(t, shared, 10)
	w.setStoredVersions("v2")
	c.down()
	w.chill()
	m := w.quickMigrator(storageversion.Options{Attempts: 2})
	plan, err := m.Plan(t.Context(), w.name)
	if err != nil {
		t.Fatal(err)
	}
	mustBeBlocked(t, plan, decision.ReasonWebhookUnavailable, 1)
	b := plan.Blockers[0]
	mustSay(t, b.Message, c.url, "connection refused", "status.storedVersions lists only v2, but at least one object is stored at v1")
	mustSay(t, kubetest.Words(b.Fix), `"value": ["v1", "v2"]`, "RunMigration{CRD:"+w.name)
	if strings.Contains(b.Message+kubetest.Words(b.Fix), "GrantPermission") {
		t.Errorf("remedy of %+v offers a permission, want none", b)
	}
	if _, err := m.Run(t.Context(), plan, nil); !errors.As(err, new(*decision.BlockedError)) {
		t.Errorf("the run ends with %v, want a BlockedError", err)
	}

	c.up(t)
	w.setStoredVersions("v1", "v2")
	w.mustBeMigrated(w.mustMigrate(m), 10)
}

// TestHangingConverterIsNamed within seconds, and the plan is not Ready.
func TestHangingConverterIsNamed(t *testing.T) {
	t.Parallel()
	for name, storedVersions := range map[string][]string{"trimmed": {"v2"}, "not trimmed": {"v1", "v2"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, c := newConverted(t, shared, appliedObjects+1)
			w.setStoredVersions(storedVersions...)
			m := w.quickMigrator(storageversion.Options{Preflight: preflight.Run, CheckReadable: true})
			c.delay.Store(int64(15 * time.Second)) // longer than a plan waits
			asked := c.asked.Load()
			w.edit(w.config, func(crd *apiextensionsv1.CustomResourceDefinition) {
				crd.Spec.Versions[1].Schema.OpenAPIV3Schema.Description = "a widget" // the server reads the objects again
			})
			await(t, "the server to call the webhook", func() bool {
				ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
				defer cancel()
				_, _ = w.at("v2").List(ctx, metav1.ListOptions{Limit: 1}) // the first request makes it read
				return c.asked.Load() > asked
			})
			began := time.Now()
			plan, err := m.Plan(t.Context(), w.name)
			if err != nil {
				t.Fatal(err)
			}
			if took := time.Since(began); took > 30*time.Second {
				t.Errorf("the plan took %v", took)
			}
			if plan.State != decision.StateUnknown || plan.Unlisted.Reason != decision.ReasonTimeout {
				t.Fatalf("%s, unlisted %v, want Unknown by Timeout", plan.State, plan.Unlisted)
			}
			mustSay(t, plan.Unlisted.Message, "conversion webhook", c.url)
			var unlisted *decision.UnlistedError
			if _, err := m.Run(t.Context(), plan, nil); !errors.As(err, &unlisted) {
				t.Errorf("the run ends with %v, want the plan's reason", err)
			}

			c.delay.Store(0)
			await(t, "a plan", func() bool {
				plan, err := m.Plan(t.Context(), w.name)
				return err == nil && plan.Unlisted == nil
			})
		})
	}
}

// TestObjectsAtAVersionMissingFromSpec: a plan finds them, also after objects that can be
// read, and the remedy makes them readable.
func TestObjectsAtAVersionMissingFromSpec(t *testing.T) {
	t.Parallel()
	for name, readable := range map[string]int{"all of them": 0, "behind one that can be read": 1} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWidgets(t, shared)
			w.fill("v1", 10)
			w.flip()
			if readable > 0 {
				w.create(w.config, "v2", "a-first")
			}
			w.setStoredVersions("v2")
			w.setVersions(version("v2", true, true))
			await(t, "the server to read the objects from etcd", func() bool {
				_, err := w.at("v2").Get(t.Context(), "w-0000", metav1.GetOptions{})
				return err != nil
			})
			m := w.quickMigrator(storageversion.Options{})
			plan, err := m.Plan(t.Context(), w.name)
			if err != nil {
				t.Fatal(err)
			}
			mustBeBlocked(t, plan, decision.ReasonUnreadableObjects, 1)
			b := plan.Blockers[0]
			mustSay(t, b.Message, w.key("w-0000"), "spec.versions lacks v1", "status.storedVersions lists only v2, but at least one object is stored at v1")
			mustSay(t, kubetest.Words(b.Fix), "bring version v1 back with served: false", `"value": ["v1", "v2"]`, "RunMigration{CRD:"+w.name)

			w.setVersions(version("v1", false, false), version("v2", true, true))
			w.setStoredVersions("v1", "v2")
			await(t, "the server to read the objects again", func() bool {
				_, err := w.at("v2").Get(t.Context(), "w-0000", metav1.GetOptions{})
				return err == nil
			})
			w.mustBeMigrated(w.mustMigrate(m), 10+readable)
		})
	}
}
