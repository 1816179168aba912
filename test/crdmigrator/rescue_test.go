package crdmigrator_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/crdmigrator/rescue"
	"github.com/godwit-dev/godwit/internal/storageversion"
	"github.com/godwit-dev/godwit/internal/storageversion/decision"
	"github.com/godwit-dev/godwit/test/controlplane"
)

type crdVersion = apiextensionsv1.CustomResourceDefinitionVersion

// gitOps is the field manager of a tool that applies the CRD from a repository.
const gitOps = "argocd-controller"

// applyCRD applies the CRD on the server side, as a GitOps tool does.
func (w *widgets) applyCRD(versions ...crdVersion) error {
	crd := w.newCRD()
	crd.TypeMeta = metav1.TypeMeta{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition"}
	crd.Spec.Versions = versions
	body, err := json.Marshal(map[string]any{"apiVersion": crd.APIVersion, "kind": crd.Kind, "metadata": map[string]any{"name": crd.Name}, "spec": crd.Spec})
	if err != nil {
		return err
	}
	_, err = w.crds().Patch(w.t.Context(), w.name, types.ApplyPatchType, body, metav1.PatchOptions{FieldManager: gitOps, Force: new(true)})
	return err
}

// lose has the GitOps tool remove v1 from the CRD, although objects are stored at it.
func (w *widgets) lose(stored ...string) {
	w.t.Helper()
	w.setStoredVersions("v2")
	if err := w.applyCRD(version("v2", true, true)); err != nil {
		w.t.Fatal(err)
	}
	w.awaitUnreadable()
	if len(stored) > 0 {
		w.setStoredVersions(stored...)
	}
}

// awaitUnreadable waits until the API server has adopted the CRD, and can't list its objects.
func (w *widgets) awaitUnreadable() {
	w.t.Helper()
	await(w.t, "the objects to be unreadable", func() bool {
		_, err := w.at("v2").List(w.t.Context(), metav1.ListOptions{Limit: 500})
		return err != nil && strings.Contains(err.Error(), "request to convert CR from an invalid group/version")
	})
}

// unreadable is a CRD with three objects at v1, which its spec does not have.
func unreadable(t *testing.T) *widgets {
	t.Helper()
	w := newWidgets(t, shared)
	w.fill("v1", 3)
	if err := w.applyCRD(version("v1", true, false), version("v2", true, true)); err != nil {
		t.Fatal(err)
	}
	w.lose()
	return w
}

func (w *widgets) rescuer(config *rest.Config, o rescue.Options) *rescue.Rescuer {
	w.t.Helper()
	o.Policy = quickSettle
	r, err := rescue.New(config, o)
	if err != nil {
		w.t.Fatal(err)
	}
	return r
}

// rescue plans and runs.
func (w *widgets) rescue(ctx context.Context, config *rest.Config, o rescue.Options) (rescue.Plan, rescue.Report, error) {
	w.t.Helper()
	r := w.rescuer(config, o)
	p, err := r.Plan(ctx, w.name)
	if err != nil {
		return p, rescue.Report{}, err
	}
	report, err := r.Run(ctx, p)
	return p, report, err
}

// state is what a rescue leaves as it was: metadata, spec, and the owners of both.
func (w *widgets) state() *apiextensionsv1.CustomResourceDefinition {
	w.t.Helper()
	crd := w.crd()
	crd.ResourceVersion, crd.Generation, crd.Status = "", 0, apiextensionsv1.CustomResourceDefinitionStatus{}
	var owners []metav1.ManagedFieldsEntry
	for _, e := range crd.ManagedFields {
		if e.Subresource == "" {
			owners = append(owners, e)
		}
	}
	crd.ManagedFields = owners
	return crd
}

func (w *widgets) mustBeRescued(before *apiextensionsv1.CustomResourceDefinition, objects int) {
	w.t.Helper()
	if diff := cmp.Diff(before, w.state()); diff != "" {
		w.t.Errorf("the CRD after the rescue (-want +got):\n%s", diff)
	}
	w.mustHaveStoredVersions("after the rescue", "v2")
	w.mustBeStored("after the rescue", map[string]int{"v2": objects})
	list, err := w.at("v2").List(w.t.Context(), metav1.ListOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	for _, o := range list.Items {
		if spec, _ := o.Object["spec"].(map[string]any); spec["color"] != "blue" || spec["of"] != o.GetName() {
			w.t.Errorf("%s has spec %v, want what it was created with", o.GetName(), spec)
		}
	}
}

// TestRescue plays how clusters get objects at a version that the spec lacks.
func TestRescue(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		lose   func(w *widgets)
		stored string
	}{
		"status set by hand": {
			reason: "the API server accepts the next release then",
			lose:   func(w *widgets) { w.lose() }, stored: "v2",
		},
		"status set back": {
			reason: "the API server refuses each write of the CRD then, also of an annotation",
			lose: func(w *widgets) {
				w.lose("v1", "v2")
				err := w.applyCRD(version("v2", true, true), version("v3", true, false))
				if !apierrors.IsInvalid(err) {
					w.t.Fatalf("the API server answers %v, want that the CRD is invalid", err)
				}
			}, stored: "v1,v2",
		},
		"CRD deleted and created again": {
			reason: "its deletion hangs because the objects are unreadable, until a user removes the finalizer",
			lose: func(w *widgets) {
				w.lose()
				if err := w.crds().Delete(w.t.Context(), w.name, metav1.DeleteOptions{}); err != nil {
					w.t.Fatal(err)
				}
				await(w.t, "the deletion to hang", func() bool {
					return slices.ContainsFunc(w.crd().Status.Conditions, func(c apiextensionsv1.CustomResourceDefinitionCondition) bool {
						return c.Type == apiextensionsv1.Terminating && c.Reason == "InstanceDeletionFailed"
					})
				})
				if _, err := w.crds().Patch(w.t.Context(), w.name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{}); err != nil {
					w.t.Fatal(err)
				}
				await(w.t, "the CRD to be gone", func() bool {
					_, err := w.crds().Get(w.t.Context(), w.name, metav1.GetOptions{})
					return apierrors.IsNotFound(err)
				})
				if err := w.applyCRD(version("v2", true, true)); err != nil {
					w.t.Fatal(err)
				}
				if err := controlplane.AwaitServed(w.t.Context(), w.config, w.name); err != nil {
					w.t.Fatal(err)
				}
				w.awaitUnreadable()
			}, stored: "v2",
		},
		"restored from a backup of etcd": {
			reason: "objects come back as they were before the migration",
			lose: func(w *widgets) {
				old := w.values()
				w.mustMigrate(newMigrator(w.t, w.withoutLeases(), storageversion.Options{Policy: quickSettle}))
				if err := w.applyCRD(version("v2", true, true)); err != nil {
					w.t.Fatal(err)
				}
				for key, value := range old {
					w.put(key, value)
				}
				w.awaitUnreadable()
			}, stored: "v2",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWidgets(t, shared)
			w.fill("v1", 3)
			if err := w.applyCRD(version("v1", true, false), version("v2", true, true)); err != nil {
				t.Fatal(err)
			}
			c.lose(w)
			w.mustHaveStoredVersions(c.reason, c.stored)
			before := w.state()
			p, report, err := w.rescue(t.Context(), w.withoutLeases(), rescue.Options{})
			if err != nil || p.State != rescue.Ready || strings.Join(report.Added, ",") != "v1" || !report.Rewritten || !report.Verified || !report.Restored {
				t.Fatalf("%s: plan %s of %v, report %+v, %v", c.reason, p.State, p.Missing, report, err)
			}
			w.mustBeRescued(before, 3)
			if p, err = w.rescuer(w.config, rescue.Options{}).Plan(t.Context(), w.name); err != nil || p.State != rescue.Healthy {
				t.Errorf("the plan after the rescue is %s, %v", p.State, err)
			}
		})
	}
}

var errKilled = errors.New("killed")

// killAt makes the n-th write fail, and each request after it, as if the process was gone. It calls kill once.
func killAt(config *rest.Config, n int64, kill func()) (killed *rest.Config, dead *atomic.Bool) {
	dead = &atomic.Bool{}
	var writes atomic.Int64
	killed = rest.CopyConfig(config)
	killed.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(req *http.Request) (*http.Response, error) {
			if req.Method == http.MethodPatch && writes.Add(1) == n {
				dead.Store(true)
				kill()
			}
			if dead.Load() {
				return nil, errKilled
			}
			return next.RoundTrip(req)
		})
	})
	return killed, dead
}

// TestRescueKilled kills a rescue before each of its writes. The next one resumes, or Undo restores the CRD.
func TestRescueKilled(t *testing.T) {
	t.Parallel()
	// The writes are: spec, status, checkpoint, three objects, checkpoint, trim, spec, owners. Before 6 it is as before 5.
	for _, n := range []int64{1, 2, 3, 4, 5, 7, 8, 9, 10} {
		for _, undo := range []bool{false, true} {
			t.Run(fmt.Sprintf("before write %d undo %t", n, undo), func(t *testing.T) {
				t.Parallel()
				w := unreadable(t)
				before, config := w.state(), w.withoutLeases()
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				killed, dead := killAt(config, n, func() { cancel(errKilled) })
				_, report, err := w.rescue(ctx, killed, rescue.Options{})
				if err == nil || !dead.Load() {
					t.Fatalf("the rescue has fewer than %d writes: %+v, %v", n, report, err)
				}
				if undo {
					w.mustBeUndone(config, before, n)
					return
				}
				if _, report, err = w.rescue(t.Context(), config, rescue.Options{}); err != nil || !report.Verified || !report.Restored {
					t.Fatalf("the rescue that resumes: %+v, %v", report, err)
				}
				w.mustBeRescued(before, 3)
			})
		}
	}
	t.Run("no more writes", func(t *testing.T) {
		t.Parallel()
		w := unreadable(t)
		killed, dead := killAt(w.withoutLeases(), 11, func() {})
		if _, _, err := w.rescue(t.Context(), killed, rescue.Options{}); err != nil || dead.Load() {
			t.Errorf("the rescue has more than 10 writes: %v", err)
		}
	})
}

// TestRunDuringARescue: a rescue of objects with a field that the storage version lacks was killed after it has added the
// missing version. Any other run is refused, and the field is still there when the rescue resumes.
func TestRunDuringARescue(t *testing.T) {
	t.Parallel()
	w := unreadable(t)
	if err := w.applyCRD(closed("v2", true, true, "of")); err != nil {
		t.Fatal(err)
	}
	config := w.withoutLeases()
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	killed, dead := killAt(config, 3, func() { cancel(errKilled) })
	if _, _, err := w.rescue(ctx, killed, rescue.Options{}); err == nil || !dead.Load() {
		t.Fatalf("the rescue was not killed: %v", err)
	}
	m := newMigrator(t, config, storageversion.Options{Policy: quickSettle})
	plan, err := m.Plan(t.Context(), w.name)
	if err != nil {
		t.Fatal(err)
	}
	mustBeBlocked(t, plan, decision.ReasonRescueInterrupted, 1)
	if _, err := m.Run(t.Context(), plan, nil); !errors.As(err, new(*decision.BlockedError)) {
		t.Errorf("the run ends with %v, want it refused", err)
	}
	w.mustBeStored("after the run", map[string]int{"v1": 3})
	_, _, err = w.rescue(t.Context(), config, rescue.Options{})
	var refused *rescue.BlockedError
	if !errors.As(err, &refused) || refused.Blocker.Reason != rescue.ReasonFieldsWouldBeLost || !strings.Contains(refused.Blocker.Message, "color") {
		t.Errorf("the rescue that resumes ends with %v, want it to name the field color", err)
	}
}

func (w *widgets) mustBeUndone(config *rest.Config, before *apiextensionsv1.CustomResourceDefinition, n int64) {
	w.t.Helper()
	_, err := w.rescuer(config, rescue.Options{}).Undo(w.t.Context(), w.name)
	if begun := n > 1; begun && err != nil || !begun && !errors.Is(err, rescue.ErrNoRescue) {
		w.t.Fatalf("undo: %v", err)
	}
	if diff := cmp.Diff(before, w.state()); diff != "" {
		w.t.Errorf("the CRD after the undo (-want +got):\n%s", diff)
	}
	w.mustHaveStoredVersions("after the undo", "v2")
}

// closed is a version whose spec has some fields and no other.
func closed(name string, served, storage bool, fields ...string) crdVersion {
	v := version(name, served, storage)
	spec := apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{}}
	for _, field := range fields {
		spec.Properties[field] = apiextensionsv1.JSONSchemaProps{Type: "string"}
	}
	v.Schema.OpenAPIV3Schema = &apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"spec": spec}}
	return v
}

// TestRescueLosesNoField: the storage version lacks a field. The rescue refuses, the CRD is as before, and so are the objects.
// With the field in the schema, which the message asks for, it succeeds.
func TestRescueLosesNoField(t *testing.T) {
	t.Parallel()
	w := unreadable(t)
	if err := w.applyCRD(closed("v2", true, true, "of")); err != nil {
		t.Fatal(err)
	}
	w.setStoredVersions("v1", "v2")
	before, objects, config := w.state(), w.values(), w.withoutLeases()
	_, report, err := w.rescue(t.Context(), config, rescue.Options{})
	var refused *rescue.BlockedError
	if !errors.As(err, &refused) || refused.Blocker.Reason != rescue.ReasonFieldsWouldBeLost || refused.Begun {
		t.Fatalf("rescue: %v, want that it refuses to lose a field", err)
	}
	want := []rescue.Change{{Path: "spec.color", Lost: true, Objects: 3, Example: "default/w-0000"}}
	if diff := cmp.Diff(want, report.Changes); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(before, w.state()); diff != "" {
		t.Errorf("the CRD (-want +got):\n%s", diff)
	}
	w.mustHaveStoredVersions("after a refusal", "v1,v2")
	if diff := cmp.Diff(objects, w.values()); diff != "" {
		t.Errorf("the objects in etcd (-want +got):\n%s", diff)
	}
	w.setStoredVersions("v2")
	if err := w.applyCRD(closed("v2", true, true, "of", "color")); err != nil {
		t.Fatal(err)
	}
	before = w.state()
	manifest := w.newCRD()
	manifest.Spec.Versions = []crdVersion{closed("v1", true, true, "of", "color")}
	if _, _, err = w.rescue(t.Context(), config, rescue.Options{Manifest: manifest}); err != nil {
		t.Fatal(err)
	}
	w.mustBeRescued(before, 3)
}

// TestRescueFindsEveryVersion: the API server names one version at a time, and status.storedVersions none.
func TestRescueFindsEveryVersion(t *testing.T) {
	t.Parallel()
	w := unreadable(t)
	for key, value := range w.values() {
		if strings.HasSuffix(key, "w-0002") {
			w.put(key, strings.Replace(value, w.group+"/v1", w.group+"/v0", 1))
		}
	}
	before := w.state()
	_, report, err := w.rescue(t.Context(), w.withoutLeases(), rescue.Options{})
	if err != nil || strings.Join(report.Added, ",") != "v1,v0" {
		t.Fatalf("rescue: added %v, %v, want v1 and v0", report.Added, err)
	}
	w.mustBeRescued(before, 3)
}

// TestRescueReverted: a GitOps tool applies the CRD of its repository during a rescue. The API server refuses that until
// another client sets status.storedVersions back as well. Then the rescue stops, and names the tool.
func TestRescueReverted(t *testing.T) {
	t.Parallel()
	w := unreadable(t)
	before, config := w.state(), w.withoutLeases()
	tapped, wire := tap(config)
	halt := wire.haltBefore(t, func(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, "/w-0000") })
	done := make(chan error, 1)
	go func() {
		_, _, err := w.rescue(t.Context(), tapped, rescue.Options{Attempts: 2})
		done <- err
	}()
	select {
	case <-halt.reached:
	case err := <-done:
		t.Fatalf("the rescue ended before it was to be paused: %v", err)
	}
	if err := w.applyCRD(version("v2", true, true)); !apierrors.IsInvalid(err) {
		t.Errorf("the API server answers %v to a spec without v1, want that it is invalid", err)
	}
	w.setStoredVersions("v2")
	if err := w.applyCRD(version("v2", true, true)); err != nil {
		t.Fatal(err)
	}
	await(t, "the API server to know v1 no more", func() bool {
		_, err := w.at("v2").Get(t.Context(), "w-0000", metav1.GetOptions{})
		return err != nil
	})
	halt.release()
	var refused *rescue.BlockedError
	if err := <-done; !errors.As(err, &refused) || refused.Blocker.Reason != rescue.ReasonReverted || !strings.Contains(err.Error(), gitOps+" (Apply)") {
		t.Fatalf("rescue: %v, want that it names %s", err, gitOps)
	}
	p, report, err := w.rescue(t.Context(), config, rescue.Options{}) // the tool is paused
	if err != nil || len(p.Reverted) == 0 || !strings.Contains(strings.Join(p.Owners, ","), gitOps) {
		t.Fatalf("the next rescue: plan %+v, report %+v, %v", p, report, err)
	}
	w.mustBeRescued(before, 3)
}

// TestRescueWithoutWebhook: the conversion webhook is gone for good, and v1 with it.
func TestRescueWithoutWebhook(t *testing.T) {
	t.Parallel()
	gone := func(crd *apiextensionsv1.CustomResourceDefinition) {
		url := "https://127.0.0.1:1/convert"
		crd.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.WebhookConverter, Webhook: &apiextensionsv1.WebhookConversion{
			ClientConfig: &apiextensionsv1.WebhookClientConfig{URL: &url}, ConversionReviewVersions: []string{"v1"},
		}}
	}
	for name, versions := range map[string][]crdVersion{
		"v1 is gone as well": {version("v2", true, true), version("v3", true, false)},
		"v1 is still there":  {version("v1", true, false), version("v2", true, true)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := unreadable(t)
			w.edit(w.config, func(crd *apiextensionsv1.CustomResourceDefinition) { gone(crd); crd.Spec.Versions = versions })
			before, config := w.state(), w.withoutLeases()
			var refused *rescue.BlockedError
			if _, _, err := w.rescue(t.Context(), config, rescue.Options{}); !errors.As(err, &refused) || refused.Blocker.Reason != rescue.ReasonConverterGone || refused.Begun {
				t.Fatalf("rescue with the webhook: %v, want that it is gone", err)
			}
			if diff := cmp.Diff(before, w.state()); diff != "" {
				t.Errorf("the CRD after the refusal (-want +got):\n%s", diff)
			}
			p, report, err := w.rescue(t.Context(), config, rescue.Options{WithoutWebhook: true})
			if err != nil || !p.WithoutWebhook || len(p.Unserved) != 1 || !report.Verified || !report.Restored {
				t.Fatalf("rescue without the webhook: plan %+v, report %+v, %v", p, report, err)
			}
			w.mustBeRescued(before, 3)
		})
	}
}

// TestRescueRefuses: what needs no rescue, or what a rescue does not help, is left as it is.
func TestRescueRefuses(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		make    func(w *widgets)
		options func(w *widgets) rescue.Options
		config  func(w *widgets) *rest.Config
		state   rescue.State
		reason  *godwit.Reason
	}{
		"healthy":  {state: rescue.Healthy},
		"migrated": {make: func(w *widgets) { w.flip() }, state: rescue.Healthy},
		"healthy without webhook": {state: rescue.Blocked, reason: rescue.ReasonConverterAnswers,
			options: func(*widgets) rescue.Options { return rescue.Options{WithoutWebhook: true} }},
		"webhook that answers": {state: rescue.Blocked, reason: rescue.ReasonConverterAnswers, make: func(w *widgets) { w.newConverter(); w.flip() },
			options: func(*widgets) rescue.Options { return rescue.Options{WithoutWebhook: true} }},
		"another manifest": {state: rescue.Blocked, reason: rescue.ReasonOtherManifest, make: func(w *widgets) { w.setVersions(version("v1", true, false), version("v2", true, true)); w.lose() },
			options: func(*widgets) rescue.Options {
				return rescue.Options{Manifest: &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "other.example.com"}}}
			}},
		"manifest without the version": {state: rescue.Blocked, reason: rescue.ReasonOtherManifest, make: func(w *widgets) { w.setVersions(version("v1", true, false), version("v2", true, true)); w.lose() },
			options: func(w *widgets) rescue.Options {
				crd := w.newCRD()
				crd.Spec.Versions = []crdVersion{version("v0", true, true)}
				return rescue.Options{Manifest: crd}
			}},
		"no permission": {state: rescue.Blocked, reason: decision.ReasonForbidden, make: func(w *widgets) { w.setVersions(version("v1", true, false), version("v2", true, true)); w.lose() },
			config: func(w *widgets) *rest.Config {
				_, config := w.user(readCRD)
				return config
			}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWidgets(t, shared)
			w.fill("v1", 1)
			if c.make != nil {
				c.make(w)
			}
			before, config, o := w.state(), w.config, rescue.Options{}
			if c.config != nil {
				config = c.config(w)
			}
			if c.options != nil {
				o = c.options(w)
			}
			p, report, err := w.rescue(t.Context(), config, o)
			if p.State != c.state || len(report.Added) > 0 || (err != nil) != (c.reason != nil) || c.reason != nil && p.Blockers[0].Reason != c.reason {
				t.Errorf("plan %+v, report %+v, %v, want %s %s", p, report, err, c.state, c.reason)
			}
			if diff := cmp.Diff(before, w.state()); diff != "" {
				t.Errorf("the CRD (-want +got):\n%s", diff)
			}
		})
	}
}
