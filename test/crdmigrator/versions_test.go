package crdmigrator_test

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/internal/storageversion"
	"github.com/godwit-dev/godwit/internal/storageversion/decision"
	"github.com/godwit-dev/godwit/test/controlplane"
)

// The tests of this file are about what differs between versions of Kubernetes. make matrix runs them on each, and
// writes the attributes that they report into docs/reference/versions.md. Flags make the pinned API server behave
// as others do.

// leaseless are flags for an API server without identity leases. UnknownVersionInteroperabilityProxy needs them.
const leaseless = "--feature-gates=APIServerIdentity=false,UnknownVersionInteroperabilityProxy=false"

// inTreeManagerFlags have the controller manager of each version since 1.31 migrate.
const inTreeManagerFlags = "--feature-gates=StorageVersionMigrator=true,InformerResourceVersion=true"

// inTreeFlags have the API server of each version since 1.31 serve StorageVersionMigrations. A server does not start
// with a version of an API that it does not know.
func inTreeFlags(t *testing.T) []string {
	t.Helper()
	api := "v1beta1"
	if minorVersion(t) < "35" {
		api = "v1alpha1"
	}
	return []string{"--feature-gates=StorageVersionMigrator=true", "--runtime-config=" + inTreeGroup + "/" + api + "=true"}
}

// minorVersion of the API servers, as 37.
func minorVersion(t *testing.T) string {
	t.Helper()
	clients, err := kubernetes.NewForConfig(shared.Config())
	if err != nil {
		t.Fatal(err)
	}
	v, err := clients.Discovery().ServerVersion()
	if err != nil {
		t.Fatal(err)
	}
	return v.Minor
}

// hasFeatureGate reports whether a server knows a feature gate. It does not start with a flag for one that it does not
// know. Each server counts its gates in a metric.
func hasFeatureGate(t *testing.T, plane *controlplane.ControlPlane, gate string) bool {
	t.Helper()
	clients, err := kubernetes.NewForConfig(plane.Config())
	if err != nil {
		t.Fatal(err)
	}
	text, err := clients.Discovery().RESTClient().Get().AbsPath("/metrics").DoRaw(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	const metric = "\nkubernetes_feature_enabled{name=\""
	if !strings.Contains(string(text), metric) {
		t.Fatal("the API server has no metric of its feature gates")
	}
	return strings.Contains(string(text), metric+gate+"\"")
}

// inMatrix skips a test that takes long, and whose decisions other tests have without a server.
func inMatrix(t *testing.T) {
	t.Helper()
	if os.Getenv("GODWIT_MATRIX") == "" {
		t.Skip("make matrix runs it")
	}
}

// TestIdentityLeases: what an API server without flags does.
func TestIdentityLeases(t *testing.T) {
	t.Parallel()
	w := newWidgets(t, shared)
	w.fill("v1", 1)
	w.flip()
	if _, err := shared.Identity(t.Context()); err != nil {
		t.Attr("identity-leases", "none")
		t.Fatal(err)
	}
	t.Attr("identity-leases", "on by default")
	plan, err := newMigrator(t, w.config, storageversion.Options{}).Plan(t.Context(), w.name)
	if err != nil {
		t.Fatal(err)
	}
	if hasWarning(plan, decision.ReasonNoIdentityLeases) {
		t.Errorf("plan warns %+v, though there is a lease", plan.Warnings)
	}
}

// TestServerWithoutIdentityLeases: the feature gate is off. The plan says that nothing but time protects objects, and
// the run waits for that time.
func TestServerWithoutIdentityLeases(t *testing.T) {
	t.Parallel()
	const settle = 10 * time.Second // longer than a plan and a run take on a busy machine
	w := newWidgets(t, ownPlane(t, leaseless))
	w.fill("v1", 20)
	w.flip()
	m := newMigrator(t, w.config, storageversion.Options{Policy: decision.Policy{Settle: settle}})
	plan, err := m.Plan(t.Context(), w.name)
	if err != nil {
		t.Fatal(err)
	}
	if plan.State != decision.Ready || !hasWarning(plan, decision.ReasonNoIdentityLeases) {
		t.Errorf("plan is %s with warnings %+v, want Ready with %s", plan.State, plan.Warnings, decision.ReasonNoIdentityLeases)
	}
	var notSettled *decision.NotSettledError
	if _, err := m.Run(t.Context(), plan, nil); !errors.As(err, &notSettled) {
		t.Errorf("run right after the flip: %v, want NotSettledError", err)
	}
	w.mustBeStored("before the settle time is over", map[string]int{"v1": 20})
	w.mustBeMigrated(w.mustMigrate(m), 20)
}

func hasWarning(p decision.Plan, reason *godwit.Reason) bool {
	return slices.ContainsFunc(p.Warnings, func(w godwit.Finding) bool { return w.Reason == reason })
}

// TestInTreeMigratorTrims: Kubernetes' own migrator succeeds, right after the change of the storage version. Since 1.36 it
// also trims, and waits for no API server; before, it leaves storedVersions. The plan says which of them happened.
func TestInTreeMigratorTrims(t *testing.T) {
	inMatrix(t)
	t.Parallel()
	t.Attr("in-tree-default", orNone(storageMigrationVersions(t, shared)))
	plane := ownPlane(t, inTreeFlags(t)...)
	w := newWidgets(t, plane)
	w.fill("v1", 20)
	w.flip()
	if _, err := plane.StartControllerManager(t.Context(), inTreeManagerFlags); err != nil {
		t.Fatal(err)
	}
	// The times of objects are cut to the second, so that the change of the CRD may be a second younger than its own says.
	changed := time.Time{}
	for _, e := range w.crd().ManagedFields {
		if e.Time.After(changed) {
			changed = e.Time.Time
		}
	}
	await(t, "a second in which the CRD has not changed", func() bool { return time.Since(changed) >= 2*time.Second })
	name := w.migrateInTree()
	t.Attr("in-tree", strings.Join(storageMigrationVersions(t, plane), ", "))
	w.writeForInTree(name)
	await(t, "the migrator to end", func() bool { return w.inTreeEnded(name) == "Succeeded" })
	w.mustBeStored("after the in-tree migration", map[string]int{"v2": 20})

	m := newMigrator(t, w.config, storageversion.Options{Policy: decision.Policy{Settle: 10 * time.Minute}})
	plan, err := m.Plan(t.Context(), w.name)
	if err != nil {
		t.Fatal(err)
	}
	want, state := decision.ReasonMigrationDidNotTrim, decision.Ready
	if w.trimmedInTree() {
		want, state = decision.ReasonTrimmedBeforeSettled, decision.Clean
		if plan, err = m.Plan(t.Context(), w.name); err != nil {
			t.Fatal(err)
		}
	}
	t.Attr("in-tree-trims", map[bool]string{true: "yes", false: "no"}[state == decision.Clean])
	if plan.State != state || !hasWarning(plan, want) {
		t.Fatalf("plan is %s with warnings %+v, want %s with %s", plan.State, plan.Warnings, state, want)
	}
	if state == decision.Clean {
		w.setStoredVersions("v1", "v2") // as the warning says where etcd can't be read
	}
	report := w.mustMigrate(newMigrator(t, w.config, storageversion.Options{Policy: quickSettle}))
	if want := (godwit.Counts{Unchanged: 20}); report.Storage.Counts != want || !report.Trimmed {
		t.Errorf("run after the in-tree migrator: %+v, trimmed %v, want %+v and trimmed", report.Storage.Counts, report.Trimmed, want)
	}
}

// writeForInTree writes an object once a migration of v1alpha1 has taken its resourceVersion. That migrator begins when its
// cache has an object or a bookmark as new. Without a write that can take longer than a test waits: it retries ever less often, and
// etcd notifies watches without events every ten minutes.
func (w *widgets) writeForInTree(name string) {
	w.t.Helper()
	if storageMigrationVersions(w.t, w.plane)[0] != "v1alpha1" {
		return
	}
	await(w.t, "the resourceVersion of "+name, func() bool {
		s, err := w.inTree().Get(w.t.Context(), name, metav1.GetOptions{})
		if err != nil {
			w.t.Fatal(err)
		}
		resourceVersion, _, err := unstructured.NestedString(s.Object, "status", "resourceVersion")
		if err != nil {
			w.t.Fatal(err)
		}
		return resourceVersion != ""
	})
	label := []byte(`{"metadata": {"labels": {"written": "during-the-migration"}}}`)
	if _, err := w.at("v2").Patch(w.t.Context(), "w-0000", types.MergePatchType, label, metav1.PatchOptions{}); err != nil {
		w.t.Fatal(err)
	}
}

// trimmedInTree waits until the migrator has cleaned up behind a migration that ended, and reports whether it trimmed. It
// trims some moments after the migration has ended.
func (w *widgets) trimmedInTree() bool {
	w.t.Helper()
	for range 50 {
		if w.storedVersions() == "v2" {
			return true
		}
		time.Sleep(100 * time.Millisecond)
	}
	return false
}

// storageMigrationVersions are the versions at which a server serves StorageVersionMigrations.
func storageMigrationVersions(t *testing.T, plane *controlplane.ControlPlane) []string {
	t.Helper()
	clients, err := kubernetes.NewForConfig(plane.Config())
	if err != nil {
		t.Fatal(err)
	}
	groups, err := clients.Discovery().ServerGroups()
	if err != nil {
		t.Fatal(err)
	}
	var versions []string
	for _, g := range groups.Groups {
		if g.Name != inTreeGroup {
			continue
		}
		for _, v := range g.Versions {
			versions = append(versions, v.Version)
		}
	}
	return versions
}

func orNone(versions []string) string {
	if len(versions) == 0 {
		return "none"
	}
	return strings.Join(versions, ", ")
}

// TestInTreeMigrationThatNoControllerBegins: the API server serves StorageVersionMigrations, and no controller manager runs the
// migrator. The plan is Blocked, and says after a while that deleting the migration is the way out.
func TestInTreeMigrationThatNoControllerBegins(t *testing.T) {
	t.Parallel()
	plane := shared
	if len(storageMigrationVersions(t, shared)) == 0 {
		plane = ownPlane(t, inTreeFlags(t)...)
	}
	w := newWidgets(t, plane)
	w.fill("v1", 20)
	w.flip()
	name := w.migrateInTree()
	m := newMigrator(t, w.config, storageversion.Options{Policy: quickSettle})
	facts, err := m.Observe(t.Context(), w.name)
	if err != nil {
		t.Fatal(err)
	}
	mustBeBlocked(t, decision.PlanFor(facts, quickSettle), decision.ReasonMigrationInProgress, 1)
	facts.Now, facts.Servers = facts.Now.Add(time.Hour), nil // whose leases would be stale
	plan := decision.PlanFor(facts, quickSettle)
	mustBeBlocked(t, plan, decision.ReasonMigrationInProgress, 1)
	mustSay(t, plan.Blockers[0].Message, "no controller has begun storageversionmigrations.storagemigration.k8s.io/"+name)

	if err := w.inTree().Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	w.mustBeMigrated(w.mustMigrate(m), 20)
}

// TestServerThatNamesNoUnreadableObject: without the feature gate AllowUnsafeMalformedObjectDeletion, which is off by
// default before Kubernetes 1.37 and unknown before 1.32, the answer to a list does not say that an object is damaged, nor
// which. The plan is never Clean.
func TestServerThatNamesNoUnreadableObject(t *testing.T) {
	inMatrix(t)
	t.Parallel()
	const gate = "AllowUnsafeMalformedObjectDeletion"
	var flags []string
	if hasFeatureGate(t, shared, gate) {
		flags = append(flags, "--feature-gates="+gate+"=false")
	}
	plane := ownPlane(t, flags...)
	for name, spoil := range map[string]func(*widgets){
		"damaged": func(w *widgets) {
			w.put(w.key("w-0005"), "\x00\x01 this was an object once")
			if err := plane.RestartAPIServer(t.Context()); err != nil { // its cache still has the object of before
				t.Fatal(err)
			}
		},
		"version missing from spec": func(w *widgets) {
			w.setVersions(version("v2", true, true))
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWidgets(t, plane)
			w.fill("v1", 10)
			w.flip()
			w.setStoredVersions("v2")
			spoil(w)
			await(t, "the server to read the objects from etcd", func() bool {
				_, err := w.at("v2").List(t.Context(), metav1.ListOptions{})
				return err != nil
			})
			plan, err := w.quickMigrator(storageversion.Options{}).Plan(t.Context(), w.name)
			if err != nil {
				t.Fatal(err)
			}
			if plan.State == decision.Clean || plan.State == decision.Ready {
				t.Errorf("plan is %s, want Blocked or Unknown", plan.State)
			}
		})
	}
}

// TestUnreadableObjects: objects are stored at a version that their CRD lacks. Each server says so; which object it is,
// only some do, by default. The plan is Blocked in any case, and names the version to bring back.
func TestUnreadableObjects(t *testing.T) {
	t.Parallel()
	w := newWidgets(t, shared)
	w.fill("v1", 10)
	w.flip()
	w.setStoredVersions("v2")
	w.setVersions(version("v2", true, true))
	var unreadable error
	await(t, "the server to read the objects from etcd", func() bool {
		_, unreadable = w.at("v2").List(t.Context(), metav1.ListOptions{})
		return unreadable != nil
	})
	t.Attr("unreadable-objects", map[bool]string{true: "named", false: "only their version is named"}[strings.Contains(unreadable.Error(), w.key("w-0000"))])
	plan, err := w.quickMigrator(storageversion.Options{}).Plan(t.Context(), w.name)
	if err != nil {
		t.Fatal(err)
	}
	mustBeBlocked(t, plan, decision.ReasonUnreadableObjects, 1)
	mustSay(t, plan.Blockers[0].Message, "spec.versions lacks v1")
}
