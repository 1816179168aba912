package crdmigrator_test

import (
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/godwit-dev/godwit/crdmigrator"
	"github.com/godwit-dev/godwit/internal/storageversion/decision"
)

// TestUseStatus_PassesWebhooksOfTheObject: with every write, the API server does not
// call a webhook of the object for /status.
func TestUseStatus_PassesWebhooksOfTheObject(t *testing.T) {
	t.Parallel()
	for name, write := range map[string]crdmigrator.Write{"patch": crdmigrator.WritePatch, "apply": crdmigrator.WriteApply} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWidgets(t, shared)
			w.fill("v1", 5)
			w.flip()
			w.newWebhook(func(string) string { return "frozen" })
			w.awaitRefused("w-0000", denied)
			c := w.embed(embedding{by: byStatus, policy: decision.Policy{Settle: -1, Write: write}})
			writes := w.writesIn(c.mustReconcile())
			if len(writes) != 5 || slices.ContainsFunc(writes, func(r string) bool { return !strings.Contains(r, "/status?") }) {
				t.Errorf("wrote %q, want the /status of each of 5 objects", writes)
			}
			w.mustLeave("with every update of the object denied", cleaned(5))
		})
	}
}

// TestUseStatus_IsRefusedWithoutTheSubresource: its 404 would look like a deleted
// object.
func TestUseStatus_IsRefusedWithoutTheSubresource(t *testing.T) {
	t.Parallel()
	w := newWidgets(t, shared)
	w.fill("v1", 3)
	bare := version("v2", true, true)
	bare.Subresources = nil
	w.setVersions(version("v1", true, false), bare)
	w.awaitStoring("v2")
	c := w.embed(embedding{by: byStatus})
	sent, err := c.mustFail()
	var blocked *decision.BlockedError
	if !errors.As(err, &blocked) || blocked.Blockers[0].Reason != decision.ReasonStatusSubresourceMissing {
		t.Errorf("the error is %v, want it to be blocked for %s", err, decision.ReasonStatusSubresourceMissing)
	}
	if writes := w.writesIn(sent); len(writes) > 0 {
		t.Errorf("wrote %q, though it was refused", writes)
	}
	w.mustLeave("a refused pass", outcome{Stored: map[string]int{"v1": 3}, StoredVersions: "v1,v2"})
}

// TestSkip_OnePhase: the other phase runs, and the generation is marked.
func TestSkip_OnePhase(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		skip    crdmigrator.Phase
		reason  string
		want    outcome
		entries []string
		writes  int
	}{
		"migration": {
			skip:   crdmigrator.StorageVersionMigrationPhase,
			reason: "the object with entries of v1 is written to clean them, the other is not written",
			want:   outcome{Stored: map[string]int{"v1": 1, "v2": 1}, StoredVersions: "v1,v2", Observed: true},
			// The cleanup's own entry is not needed: it changes no field.
			entries: []string{"painter Apply v2"}, writes: 1,
		},
		"cleanup": {
			skip:    crdmigrator.CleanupManagedFieldsPhase,
			reason:  "both are written, and their entries stay",
			want:    outcome{Stored: map[string]int{"v2": 2}, StoredVersions: "v2", Observed: true},
			entries: []string{"painter Apply v1"}, writes: 2,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWidgets(t, shared)
			w.mustApply("painter", "v1", "stale")
			w.setVersions(version("v1", true, true), version("v2", true, false))
			w.mustApply("painter", "v2", "fresh")
			w.flip()
			w.unserve()
			c := w.embed(embedding{skip: []crdmigrator.Phase{tc.skip}})
			if writes := w.writesIn(c.mustReconcile()); len(writes) != tc.writes {
				t.Errorf("%s: wrote %q, want %d", tc.reason, writes, tc.writes)
			}
			w.mustLeave(tc.reason, tc.want)
			w.mustHaveEntries(tc.reason, "stale", tc.entries...)
			w.mustHaveEntries(tc.reason, "fresh", "painter Apply v2")
			if sent := c.mustReconcile(); len(sent) != 1 {
				t.Errorf("%s: the second pass sent %q, want a read of the CRD", tc.reason, sent)
			}
		})
	}
}

// registrations counts what is added to a manager.
type registrations struct {
	manager.Manager
	n int
}

func (r *registrations) Add(runnable manager.Runnable) error {
	r.n++
	return r.Manager.Add(runnable)
}

// TestSkip_BothPhasesRegistersNothing: no controller, and so no watch.
func TestSkip_BothPhasesRegistersNothing(t *testing.T) {
	t.Parallel()
	w := newWidgets(t, shared)
	w.fill("v1", 3)
	w.flip()
	added := &registrations{}
	c := w.embed(embedding{
		skip: []crdmigrator.Phase{crdmigrator.CleanupManagedFieldsPhase, crdmigrator.StorageVersionMigrationPhase},
		operator: func(o *operator) {
			added.Manager = o.manager
			o.manager = added
		},
	})
	if added.n > 0 {
		t.Errorf("%d runnables are registered, want none", added.n)
	}
	stop := c.start()
	<-c.manager.Elected()
	stop()
	if sent := c.sent(); slices.ContainsFunc(sent, with("/customresourcedefinitions")) {
		t.Errorf("sent %q, want neither a watch nor a list of CRDs", sent)
	}
	w.mustLeave("with both phases skipped", outcome{Stored: map[string]int{"v1": 3}, StoredVersions: "v1,v2"})
}

// TestAnnotation_DoesNotHideRestoredStoredVersions: a restore from a backup brings back
// an object and storedVersions from before the migration. The generation and the
// annotation stay.
func TestAnnotation_DoesNotHideRestoredStoredVersions(t *testing.T) {
	t.Parallel()
	w := newWidgets(t, shared)
	w.fill("v1", 5)
	w.flip()
	backup, err := w.plane.Etcd().Get(t.Context(), w.key("w-0003"))
	if err != nil {
		t.Fatal(err)
	}
	c := w.embed(embedding{})
	c.start()
	c.awaitObserved()
	w.mustLeave("before the restore", cleaned(5))

	if _, err := w.plane.Etcd().Put(t.Context(), w.key("w-0003"), string(backup.Kvs[0].Value)); err != nil {
		t.Fatal(err)
	}
	dirty := []byte(`{"status":{"storedVersions":["v1","v2"]}}`)
	restored, err := w.crds().Patch(t.Context(), w.name, types.MergePatchType, dirty, metav1.PatchOptions{}, "status")
	if err != nil {
		t.Fatal(err)
	}
	if mark := restored.Annotations[crdmigrator.ClusterAPIObservedGenerationAnnotation]; mark == "" {
		t.Fatal("the restored CRD has no annotation, want the one of the migration")
	}
	await(c.t, "a second migration", func() bool { return w.storedVersions() == "v2" })
	w.mustLeave("after the second migration", cleaned(5))
}

// TestAnnotation_IsNotSetForANewerGeneration: the generation changes during the pass.
// The annotation does not name the new one.
func TestAnnotation_IsNotSetForANewerGeneration(t *testing.T) {
	t.Parallel()
	w := newWidgets(t, shared)
	w.fill("v1", 3)
	w.flip()
	c := w.embed(embedding{wire: before(func(r *http.Request) {
		if patches(r, w.name) && contains(t, r, crdmigrator.ClusterAPIObservedGenerationAnnotation) {
			if err := w.trySetVersions(version("v1", false, false), version("v2", true, true)); err != nil {
				t.Error(err)
			}
		}
	})})
	c.mustReconcile()
	w.mustLeave("v1 went out of service meanwhile", outcome{Stored: map[string]int{"v2": 3}, StoredVersions: "v2"})
	w.mustHaveEntries("v1 went out of service meanwhile", "w-0000", "crdmigrator.test Update v1")
}

// TestAnnotation_OfOthersIsHonoured: the operator may have embedded another migrator
// before, whose annotation counts.
func TestAnnotation_OfOthersIsHonoured(t *testing.T) {
	t.Parallel()
	const own = "example.com/observed-generation"
	for name, annotation := range map[string]string{
		"Cluster API": "crd-migration.cluster.x-k8s.io/observed-generation",
		"proposal":    "cluster.x-k8s.io/crd-migration-observed-generation",
		"own":         own,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWidgets(t, shared)
			w.fill("v1", 3)
			w.edit(w.config, func(crd *apiextensionsv1.CustomResourceDefinition) {
				metav1.SetMetaDataAnnotation(&crd.ObjectMeta, annotation, strconv.FormatInt(crd.Generation, 10))
			})
			c := w.embed(embedding{operator: func(o *operator) { o.migrator.ObservedGenerationAnnotation = own }})
			if sent := c.mustReconcile(); len(sent) != 1 {
				t.Errorf("%s: sent %q, want one read of the CRD", annotation, sent)
			}
		})
	}
}

// TestAnnotation_HasTheConfiguredName, and no other annotation is written.
func TestAnnotation_HasTheConfiguredName(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ asked, want string }{
		"none": {"", "crd-migration.cluster.x-k8s.io/observed-generation"},
		"own":  {"example.com/observed-generation", "example.com/observed-generation"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWidgets(t, shared)
			w.fill("v1", 3)
			w.flip()
			c := w.embed(embedding{operator: func(o *operator) { o.migrator.ObservedGenerationAnnotation = test.asked }})
			c.mustReconcile()
			crd := w.crd()
			if diff := cmp.Diff(map[string]string{test.want: strconv.FormatInt(crd.Generation, 10)}, crd.Annotations); diff != "" {
				t.Errorf("annotations (-want +got):\n%s", diff)
			}
		})
	}
}
