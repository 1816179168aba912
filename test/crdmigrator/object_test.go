package crdmigrator_test

import (
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/internal/storageversion"
	"github.com/godwit-dev/godwit/internal/storageversion/decision"
)

// writer is a migrator with one write and the permissions for it.
func (w *widgets) writer(write decision.Write) (*storageversion.Migrator, *wire) {
	w.t.Helper()
	_, config := w.user(w.permissionsOf(write)...)
	config, wire := tap(config)
	return newMigrator(w.t, config, storageversion.Options{PageObjects: 20, Policy: decision.Policy{Settle: -1, Write: write}}), wire
}

func sendsTo(name string) func(*http.Request) bool {
	return func(r *http.Request) bool {
		return r.Method != http.MethodGet && strings.Contains(r.URL.Path+"/", "/"+name+"/")
	}
}

// TestObjectCreatedAgainMidRun: between the list and the write, another client deletes
// an object, or deletes it and creates it again. With every write, the run neither
// changes the new object nor creates one.
func TestObjectCreatedAgainMidRun(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		again bool
		want  map[decision.Write]godwit.Counts
	}{
		"deleted": {
			want: map[decision.Write]godwit.Counts{
				decision.WritePatch:       {Migrated: 9, Gone: 1},
				decision.WriteStatusPatch: {Migrated: 9, Gone: 1},
				decision.WriteUpdate:      {Migrated: 9, Gone: 1},
				decision.WriteApply:       {Migrated: 9, Gone: 1},
				decision.WriteStatusApply: {Migrated: 9, Gone: 1},
			},
		},
		"created again": {
			again: true,
			want: map[decision.Write]godwit.Counts{
				decision.WritePatch:       {Migrated: 9, Skipped: 1},
				decision.WriteStatusPatch: {Migrated: 9, Skipped: 1},
				decision.WriteUpdate:      {Migrated: 9, Deferred: 1},
				decision.WriteApply:       {Migrated: 9, Skipped: 1},
				decision.WriteStatusApply: {Migrated: 9, Skipped: 1},
			},
		},
	}
	for name, tc := range cases {
		for write, want := range tc.want {
			t.Run(name+" "+string(write), func(t *testing.T) {
				t.Parallel()
				w := newWidgets(t, shared)
				w.fill("v1", 10)
				w.flip()
				m, wire := w.writer(write)
				run := w.pauseAt(t.Context(), m, wire.haltBefore(t, sendsTo("w-0003")), nil)
				made := w.replace("w-0003", tc.again)
				report, err := run.resume()
				if err != nil || report.Storage.Counts != want || report.Trimmed != want.Settled() {
					t.Errorf("run: %+v, trimmed %v, %v, want %+v", report.Storage, report.Trimmed, err, want)
				}
				o, err := w.at("v2").Get(t.Context(), "w-0003", metav1.GetOptions{})
				switch {
				case !tc.again && !apierrors.IsNotFound(err):
					t.Errorf("the deleted object is back: %v, %v", o, err)
				case tc.again && (err != nil || o.GetUID() != made || w.writes()[w.key("w-0003")] != 1):
					t.Errorf("the run wrote the object of another client: %v, %v", o, err)
				}
			})
		}
	}
}

// replace deletes an object, and may create another one with its name.
func (w *widgets) replace(name string, again bool) (made types.UID) {
	w.t.Helper()
	if err := w.at("v1").Delete(w.t.Context(), name, metav1.DeleteOptions{}); err != nil {
		w.t.Fatal(err)
	}
	if !again {
		return ""
	}
	o, err := w.at("v1").Create(w.t.Context(), w.object("v1", name), metav1.CreateOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	return o.GetUID()
}

// TestEveryWritePassesImmutabilityRules: a write that changes nothing is allowed where
// a change is not.
func TestEveryWritePassesImmutabilityRules(t *testing.T) {
	t.Parallel()
	for _, write := range decision.Writes {
		t.Run(string(write), func(t *testing.T) {
			t.Parallel()
			w := newWidgets(t, shared)
			w.setVersions(immutable("v1", true))
			w.fill("v1", 10)
			w.createTerminating("held")
			namespace := w.createInTerminatingNamespace("left")
			w.setVersions(immutable("v1", false), immutable("v2", true))
			w.awaitStoring("v2")
			red := []byte(`{"spec":{"color":"red"}}`)
			if _, err := w.at("v2").Patch(t.Context(), "w-0000", types.MergePatchType, red, metav1.PatchOptions{}); !apierrors.IsInvalid(err) {
				t.Fatalf("a change of an immutable spec: %v, want Invalid", err)
			}

			m, _ := w.writer(write)
			report := w.mustMigrate(m)
			if want := (godwit.Counts{Migrated: 12}); report.Storage.Counts != want {
				t.Errorf("run: %+v, want %+v", report.Storage, want)
			}
			w.mustBeMigrated(report, 12)
			o, err := w.everywhere(w.config, "v2").Namespace(namespace).Get(t.Context(), "left", metav1.GetOptions{})
			if err != nil || o.GetDeletionTimestamp() != nil {
				t.Errorf("the object in the terminating namespace: %v, %v, want it as it was", o, err)
			}
		})
	}
}

// immutable is a version whose objects' spec can't be changed.
func immutable(name string, storage bool) apiextensionsv1.CustomResourceDefinitionVersion {
	v := version(name, true, storage)
	v.Schema.OpenAPIV3Schema.Properties = map[string]apiextensionsv1.JSONSchemaProps{"spec": {
		Type:         "object",
		Properties:   map[string]apiextensionsv1.JSONSchemaProps{"color": {Type: "string"}, "of": {Type: "string"}},
		XValidations: apiextensionsv1.ValidationRules{{Rule: "self == oldSelf", Message: "spec is immutable"}},
	}}
	return v
}

// createTerminating makes an object that is deleted but has a finalizer.
func (w *widgets) createTerminating(name string) {
	w.t.Helper()
	o := w.object("v1", name)
	o.SetFinalizers([]string{"test.godwit.dev/hold"})
	if _, err := w.at("v1").Create(w.t.Context(), o, metav1.CreateOptions{}); err != nil {
		w.t.Fatal(err)
	}
	if err := w.at("v1").Delete(w.t.Context(), name, metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)}); err != nil {
		w.t.Fatal(err)
	}
}

// createInTerminatingNamespace makes an object in a namespace that is being deleted.
// The object stays, because no controller manager runs.
func (w *widgets) createInTerminatingNamespace(name string) (namespace string) {
	w.t.Helper()
	clients := w.admission()
	ns, err := clients.CoreV1().Namespaces().Create(w.t.Context(), &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "terminating-"},
	}, metav1.CreateOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	objects := w.everywhere(w.config, "v1").Namespace(ns.Name)
	if _, err := objects.Create(w.t.Context(), w.object("v1", name), metav1.CreateOptions{}); err != nil {
		w.t.Fatal(err)
	}
	if err := clients.CoreV1().Namespaces().Delete(w.t.Context(), ns.Name, metav1.DeleteOptions{}); err != nil {
		w.t.Fatal(err)
	}
	await(w.t, "the namespace to take no more objects", func() bool {
		_, err := objects.Create(w.t.Context(), w.object("v1", "new"), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return apierrors.IsForbidden(err)
	})
	return ns.Name
}
