package crdmigrator_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	eventsv1 "k8s.io/api/events/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/crdmigrator"
	"github.com/godwit-dev/godwit/internal/storageversion"
	"github.com/godwit-dev/godwit/internal/storageversion/decision"
	"github.com/godwit-dev/godwit/internal/storageversion/evidence"
)

// typed is a version whose spec has only these fields, of type string.
func typed(name string, served, storage bool, fields ...string) apiextensionsv1.CustomResourceDefinitionVersion {
	v := version(name, served, storage)
	spec := apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{}}
	for _, field := range fields {
		spec.Properties[field] = apiextensionsv1.JSONSchemaProps{Type: "string"}
	}
	v.Schema.OpenAPIV3Schema = &apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"spec": spec}}
	return v
}

// newLossy is a CRD with objects at v1, whose storage version v2 lacks the field spec.color of v1. Nothing converts.
func newLossy(t *testing.T, n int) *widgets {
	t.Helper()
	w := newWidgets(t, shared)
	w.setVersions(typed("v1", true, true, "color", "of"))
	w.fill("v1", n)
	w.setVersions(typed("v1", true, false, "color", "of"), typed("v2", true, true, "of"))
	w.awaitStoring("v2")
	return w
}

// mustRefuse runs, and checks that the run is blocked for a reason and writes nothing.
func (w *widgets) mustRefuse(m *storageversion.Migrator, reason *godwit.Reason, parts ...string) {
	w.t.Helper()
	before := w.values()
	report, err := w.migrate(w.t.Context(), m, nil)
	var blocked *decision.BlockedError
	if !errors.As(err, &blocked) || blocked.Blockers[0].Reason != reason {
		w.t.Fatalf("run: %v, want it blocked by %s", err, reason)
	}
	mustSay(w.t, blocked.Blockers[0].Message, parts...)
	if !maps.Equal(before, w.values()) || report.Trimmed {
		w.t.Error("a run that was refused has written")
	}
}

func accepting(paths ...string) storageversion.Options {
	return storageversion.Options{Policy: decision.Policy{Settle: -1, AcceptLosses: paths}}
}

// TestRunIsRefusedThatWouldDropValues: the storage version lacks a field that objects have. The run names the field and the
// objects, and writes nothing, until the user gives that field up.
func TestRunIsRefusedThatWouldDropValues(t *testing.T) {
	t.Parallel()
	w := newLossy(t, 5)
	config := w.withoutLeases()
	w.mustRefuse(newMigrator(t, config, accepting()), decision.ReasonFieldsWouldBeLost, "spec.color (5 objects, such as default/w-0000, default/w-0001, default/w-0002)")
	dry := accepting()
	dry.DryRun = true
	w.mustRefuse(newMigrator(t, config, dry), decision.ReasonFieldsWouldBeLost, "spec.color (5 objects")
	w.mustRefuse(newMigrator(t, config, accepting("spec.colour")), decision.ReasonAcceptedPathUnknown, "spec.colour")
	w.mustRefuse(newMigrator(t, config, accepting("spec.of")), decision.ReasonAcceptedPathUnknown, "spec.of")

	report := w.mustMigrate(newMigrator(t, config, accepting("spec.color")))
	w.mustBeMigrated(report, 5)
	proof := report.Checkpoint.Proof
	if proof == nil || proof.By != evidence.ByRoundTrips || proof.Objects != 5 || len(proof.Accepted) != 1 || proof.Accepted[0].Path != "spec.color" || proof.Accepted[0].Objects != 5 {
		t.Errorf("proof: %+v, want round trips of 5 objects, with spec.color given up", proof)
	}
}

// TestPlanNamesValuesThatARunWouldDrop: a preflight finds the values, and counts them where there are few objects.
func TestPlanNamesValuesThatARunWouldDrop(t *testing.T) {
	t.Parallel()
	w := newLossy(t, 5)
	plan := w.mustPlan(w.withoutLeases(), withPreflight(decision.Policy{}))
	mustBeBlocked(t, plan, decision.ReasonFieldsWouldBeLost, 1)
	mustSay(t, plan.Blockers[0].Message, "spec.color (5 objects")
	plan = w.mustPlan(w.withoutLeases(), storageversion.Options{Policy: quickSettle, Scan: true})
	mustBeBlocked(t, plan, decision.ReasonFieldsWouldBeLost, 1)
	if plan = w.mustPlan(w.withoutLeases(), storageversion.Options{Policy: decision.Policy{AcceptLosses: []string{"spec"}}, Scan: true}); plan.State != decision.Ready {
		t.Errorf("plan: %+v, want it ready: the user gives up what is below spec", plan)
	}
}

// TestSchemasProveThatValuesAreKept: no object is tried if the storage version has each field.
func TestSchemasProveThatValuesAreKept(t *testing.T) {
	t.Parallel()
	w := newWidgets(t, shared)
	w.fill("v1", 5)
	w.flip()
	config, wire := tap(w.withoutLeases())
	report := w.mustMigrate(newMigrator(t, config, accepting()))
	w.mustBeMigrated(report, 5)
	if proof := report.Checkpoint.Proof; proof == nil || proof.By != evidence.BySchemas {
		t.Errorf("proof: %+v, want one by the schemas", proof)
	}
	for _, e := range wire.exchanges {
		if strings.Contains(e.path, "/v1/widgets") {
			t.Errorf("%s %s: the old version was asked", e.method, e.path)
		}
	}
}

// TestValuesOfAVersionThatIsNotServed: no client sees what objects have at an old version that is not served. The run is refused,
// and each remedy works: to serve the version, or to give the values up.
func TestValuesOfAVersionThatIsNotServed(t *testing.T) {
	t.Parallel()
	w := newLossy(t, 3)
	w.setVersions(typed("v1", false, false, "color", "of"), typed("v2", true, true, "of"))
	config := w.withoutLeases()
	w.mustRefuse(newMigrator(t, config, accepting()), decision.ReasonFieldsMayBeLost, "v1: spec.color", "not served")

	w.setVersions(typed("v1", true, false, "color", "of"), typed("v2", true, true, "of"))
	w.mustRefuse(newMigrator(t, config, accepting()), decision.ReasonFieldsWouldBeLost, "spec.color (3 objects")

	w.setVersions(typed("v1", false, false, "color", "of"), typed("v2", true, true, "of"))
	report := w.mustMigrate(newMigrator(t, config, accepting("spec.color")))
	w.mustBeMigrated(report, 3)
	if proof := report.Checkpoint.Proof; proof == nil || proof.By != evidence.ByConsent || !slices.Equal(proof.Unproven, []string{"v1"}) {
		t.Errorf("proof: %+v, want the user's consent for v1", proof)
	}
}

// TestObjectsThatAppearAfterThePlan: the plan saw no object, so that nothing could be lost. The run counts again before it trusts that.
func TestObjectsThatAppearAfterThePlan(t *testing.T) {
	t.Parallel()
	w := newLossy(t, 3)
	w.setVersions(typed("v1", false, false, "color", "of"), typed("v2", true, true, "of"))
	m := newMigrator(t, w.withoutLeases(), accepting())
	plan, err := m.Plan(t.Context(), w.name)
	if err != nil {
		t.Fatal(err)
	}
	plan.Objects, plan.Blockers, plan.State = new(int64(0)), nil, decision.Ready
	var blocked *decision.BlockedError
	for unsettled := new(*decision.NotSettledError); ; time.Sleep(100 * time.Millisecond) {
		if _, err = m.Run(t.Context(), plan, nil); !errors.As(err, unsettled) {
			break
		}
	}
	if !errors.As(err, &blocked) || blocked.Blockers[0].Reason != decision.ReasonFieldsMayBeLost {
		t.Errorf("run: %v, want it blocked by what objects may lose", err)
	}
	w.mustBeStored("after the run", map[string]int{"v1": 3})
}

// TestConsentEndsWithItsRun: a run with consent is interrupted after it wrote objects. The next one resumes without another look,
// but not without the consent, as long as objects have values to lose.
func TestConsentEndsWithItsRun(t *testing.T) {
	t.Parallel()
	w := newLossy(t, 60)
	o := accepting("spec.color")
	o.PageObjects = 20
	config, wire := tap(w.withoutLeases())
	h := wire.haltBefore(t, func(r *http.Request) bool {
		return r.Method == http.MethodPatch && strings.HasSuffix(r.URL.Path, "/w-0030") && !r.URL.Query().Has("dryRun")
	})
	ctx, cancel := contextOf(t)
	run := w.pauseAt(ctx, newMigrator(t, config, o), h, nil)
	cancel()
	if _, err := run.resume(); err == nil {
		t.Fatal("the run was not interrupted")
	}
	w.mustRefuse(newMigrator(t, w.withoutLeases(), accepting()), decision.ReasonFieldsWouldBeLost, "spec.color (")

	config, wire = tap(w.withoutLeases())
	report := w.mustMigrate(newMigrator(t, config, o))
	if !report.Trimmed || report.Checkpoint.Proof.Objects != 60 {
		t.Errorf("trimmed: %t, proof: %+v, want that of the first run", report.Trimmed, report.Checkpoint.Proof)
	}
	for _, e := range wire.exchanges {
		if strings.Contains(e.path, "/v1/widgets") {
			t.Errorf("%s %s: the run that resumes tried objects again", e.method, e.path)
		}
	}
}

// TestSchemaThatChangesDuringARun: the storage version loses another field after the first write. The run stops, and the next one
// proves again that each value is kept, which it is not.
func TestSchemaThatChangesDuringARun(t *testing.T) {
	t.Parallel()
	w := newWidgets(t, shared)
	w.setVersions(typed("v1", true, true, "color", "of"))
	w.fill("v1", 60)
	w.setVersions(typed("v1", true, false, "color", "of"), typed("v2", true, true, "color", "of"))
	w.awaitStoring("v2")
	o := accepting()
	o.PageObjects = 20
	run := w.pauseAfter(t.Context(), newMigrator(t, w.withoutLeases(), o), 10)
	w.setVersions(typed("v1", true, false, "color", "of"), typed("v2", true, true, "of"))
	w.awaitColor(false)
	if _, err := run.resume(); !errors.Is(err, decision.ErrChanged) {
		t.Fatalf("run: %v, want it to end because a schema changed", err)
	}
	w.mustRefuse(newMigrator(t, w.withoutLeases(), o), decision.ReasonFieldsWouldBeLost, "spec.color (")
	w.setVersions(typed("v1", true, false, "color", "of"), typed("v2", true, true, "color", "of"))
	w.awaitColor(true)
	w.mustBeMigrated(w.mustMigrate(newMigrator(t, w.withoutLeases(), o)), 60)
	lost := 0
	for _, value := range w.values() {
		if !strings.Contains(value, `"color":"blue"`) {
			lost++
		}
	}
	if int64(lost) > o.PageObjects {
		t.Errorf("%d objects lost their color, want no more than a page, which was under way", lost)
	}
}

// awaitColor returns when the API server reads v2 with a schema that has spec.color, or that lacks it.
func (w *widgets) awaitColor(known bool) {
	w.t.Helper()
	await(w.t, fmt.Sprintf("spec.color of v2 to be known: %t", known), func() bool {
		dry := metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}}
		o, err := w.at("v2").Patch(w.t.Context(), "w-0059", types.MergePatchType, []byte(`{"spec":{"color":"blue"}}`), dry)
		if err != nil {
			return false
		}
		_, kept, _ := unstructured.NestedString(o.Object, "spec", "color")
		return kept == known
	})
}

// spiller is a conversion webhook that answers as the test wants.
type spiller struct {
	*endpoint
	// spill changes a converted object.
	spill func(o *unstructured.Unstructured) error
}

func (s *spiller) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var review apiextensionsv1.ConversionReview
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil || review.Request == nil {
		http.Error(w, "not a review", http.StatusBadRequest)
		return
	}
	response := &apiextensionsv1.ConversionResponse{UID: review.Request.UID, Result: metav1.Status{Status: metav1.StatusSuccess}}
	for _, raw := range review.Request.Objects {
		o := &unstructured.Unstructured{}
		err := json.Unmarshal(raw.Raw, &o.Object)
		if err == nil {
			o.SetAPIVersion(review.Request.DesiredAPIVersion)
			err = s.spill(o)
		}
		if err != nil {
			response.Result = metav1.Status{Status: metav1.StatusFailure, Message: err.Error()}
		}
		response.ConvertedObjects = append(response.ConvertedObjects, runtime.RawExtension{Object: o})
	}
	review.Request, review.Response = nil, response
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(review) // the API server reports what it could not read
}

// newSpilling is a CRD with objects at v1 and a conversion webhook that answers as spill says.
func newSpilling(t *testing.T, n int, spill func(*unstructured.Unstructured) error) *widgets {
	t.Helper()
	w := newWidgets(t, shared)
	s := &spiller{spill: spill}
	s.endpoint = newEndpoint(t, s)
	w.edit(w.config, func(crd *apiextensionsv1.CustomResourceDefinition) {
		crd.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{
			Strategy: apiextensionsv1.WebhookConverter,
			Webhook: &apiextensionsv1.WebhookConversion{
				ClientConfig:             &apiextensionsv1.WebhookClientConfig{URL: &s.url, CABundle: s.ca},
				ConversionReviewVersions: []string{"v1"},
			},
		}
	})
	w.fill("v1", n)
	w.flip()
	return w
}

// TestConversionWebhookThatLosesValues: schemas keep everything, and the webhook drops a field of one object, or answers
// differently each time.
func TestConversionWebhookThatLosesValues(t *testing.T) {
	t.Parallel()
	t.Run("of one object", func(t *testing.T) {
		t.Parallel()
		w := newSpilling(t, 20, func(o *unstructured.Unstructured) error {
			if strings.HasSuffix(o.GetAPIVersion(), "/v2") && o.GetName() == "w-0007" {
				unstructured.RemoveNestedField(o.Object, "spec", "color")
			}
			return nil
		})
		w.mustRefuse(newMigrator(t, w.withoutLeases(), accepting()), decision.ReasonFieldsWouldBeLost, "spec.color (1 object, such as default/w-0007)")
		report := w.mustMigrate(newMigrator(t, w.withoutLeases(), accepting("spec.color")))
		w.mustBeMigrated(report, 20)
	})
	t.Run("differently each time", func(t *testing.T) {
		t.Parallel()
		var n atomic.Int64
		w := newSpilling(t, 5, func(o *unstructured.Unstructured) error {
			return unstructured.SetNestedField(o.Object, fmt.Sprint(n.Add(1)), "spec", "color")
		})
		w.mustRefuse(newMigrator(t, w.withoutLeases(), accepting()), decision.ReasonFieldsWouldBeLost, "spec.color (5 objects")
	})
	t.Run("of none", func(t *testing.T) {
		t.Parallel()
		w := newSpilling(t, 20, func(*unstructured.Unstructured) error { return nil })
		report := w.mustMigrate(newMigrator(t, w.withoutLeases(), accepting()))
		w.mustBeMigrated(report, 20)
		if proof := report.Checkpoint.Proof; proof == nil || proof.By != evidence.ByRoundTrips || proof.Objects != 20 {
			t.Errorf("proof: %+v, want round trips of 20 objects", proof)
		}
	})
}

// TestObjectThatCannotBeTried: the webhook converts each object for a read, and refuses one object at the storage version. Nothing
// is known about that object, so that nothing is written.
func TestObjectThatCannotBeTried(t *testing.T) {
	t.Parallel()
	var broken atomic.Bool
	w := newSpilling(t, 20, func(o *unstructured.Unstructured) error {
		if broken.Load() && strings.HasSuffix(o.GetAPIVersion(), "/v2") && o.GetName() == "w-0007" {
			return errors.New("no room for w-0007")
		}
		return nil
	})
	m := newMigrator(t, w.withoutLeases(), storageversion.Options{Policy: quickSettle, Attempts: 2})
	plan, err := m.Plan(t.Context(), w.name)
	if err != nil {
		t.Fatal(err)
	}
	broken.Store(true)
	var blocked *decision.BlockedError
	for unsettled := new(*decision.NotSettledError); ; time.Sleep(100 * time.Millisecond) {
		if _, err = m.Run(t.Context(), plan, nil); !errors.As(err, unsettled) {
			break
		}
	}
	if !errors.As(err, &blocked) || blocked.Blockers[0].Reason != decision.ReasonFieldsMayBeLost {
		t.Fatalf("run: %v, want it blocked: nothing is known about one object", err)
	}
	mustSay(t, blocked.Blockers[0].Message, "could not be tried (1)", "default/w-0007", "no room for w-0007")
	w.mustBeStored("after the refusal", map[string]int{"v1": 20})
}

// TestObjectThatChangesWhileItIsTried: another client writes an object between its reading and its dry run.
func TestObjectThatChangesWhileItIsTried(t *testing.T) {
	t.Parallel()
	w := newLossy(t, 5)
	config, wire := tap(w.withoutLeases())
	h := wire.haltBefore(t, func(r *http.Request) bool {
		return r.Method == http.MethodPatch && strings.HasSuffix(r.URL.Path, "/v1/namespaces/default/widgets/w-0002")
	})
	run := w.pauseAt(t.Context(), newMigrator(t, config, accepting()), h, nil)
	if _, err := w.at("v1").Patch(t.Context(), "w-0002", types.MergePatchType, []byte(`{"metadata":{"labels":{"by":"user"}}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	_, err := run.resume()
	var blocked *decision.BlockedError
	if !errors.As(err, &blocked) {
		t.Fatalf("run: %v, want it blocked by the other objects", err)
	}
	mustSay(t, blocked.Blockers[0].Message, "spec.color (4 objects") // the user's own write, at the storage version, has dropped the fifth
}

// TestDeniedObjectLosesNothing: a policy denies every write of one object. A run can't write it, so that its values are safe, and
// the other objects are migrated.
func TestDeniedObjectLosesNothing(t *testing.T) {
	t.Parallel()
	w := newSpilling(t, 5, func(*unstructured.Unstructured) error { return nil })
	w.newPolicy("object.metadata.name != 'w-0002'")
	w.awaitRefused("w-0002", apierrors.IsInvalid)
	report, err := w.migrate(t.Context(), newMigrator(t, w.withoutLeases(), accepting()), nil)
	if err != nil {
		t.Fatal(err)
	}
	if c := report.Storage.Counts; c.Migrated != 4 || c.Failed != 1 || report.Trimmed {
		t.Errorf("run: %+v, trimmed %t, want 4 objects migrated and the denied one left", c, report.Trimmed)
	}
}

func contextOf(t *testing.T) (context.Context, context.CancelFunc) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	return ctx, cancel
}

// TestReconcilerAndValues: a migration that would drop values does not start, and an event names them. With AcceptLosses, it drops
// them, and a warning names them.
func TestReconcilerAndValues(t *testing.T) {
	t.Parallel()
	w := newLossy(t, 3)
	w.optIn()
	accepting := func(accept ...string) *operator {
		return w.selectingAs(w.reporter(), func(o *operator) {
			o.migrator.Recorder = o.manager.GetEventRecorder("crdmigrator")
			o.migrator.AcceptLosses, o.migrator.Settle = accept, -1
		})
	}
	reconciled := func(o *operator) error {
		for {
			result, err := o.reconcile(t.Context())
			if err != nil || result.RequeueAfter == 0 {
				return err
			}
			time.Sleep(200 * time.Millisecond)
		}
	}
	if err := reconciled(accepting()); err == nil {
		t.Fatal("the migration that would drop values ran")
	}
	refused := w.awaitEvent("the refusal", func(e eventsv1.Event) bool { return e.Reason == crdmigrator.EventFailed })
	mustSay(t, refused.Note, "FieldsWouldBeLost", "spec.color (3 objects, such as default/w-0000")
	w.mustBeStored("after the refusal", map[string]int{"v1": 3})

	if err := reconciled(accepting(".")); err != nil {
		t.Fatal(err)
	}
	dropped := w.awaitEvent("the warning", func(e eventsv1.Event) bool { return e.Reason == crdmigrator.EventLosses })
	mustSay(t, dropped.Note, "as AcceptLosses allows", "spec.color (3 objects, such as default/w-0000")
	if dropped.Type != "Warning" {
		t.Errorf("the event is of type %s, want Warning", dropped.Type)
	}
	w.mustBeStored("in the end", map[string]int{"v2": 3})
}

// TestHugeObjectsAreTried: objects near the limit of etcd, in small pages.
func TestHugeObjectsAreTried(t *testing.T) {
	t.Parallel()
	w := newLossy(t, 3)
	const size = 1_200_000
	patch := fmt.Appendf(nil, `{"spec":{"of":%q}}`, strings.Repeat("x", size))
	if _, err := w.at("v2").Patch(t.Context(), "w-0001", types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	w.mustRefuse(newMigrator(t, w.withoutLeases(), accepting()), decision.ReasonFieldsWouldBeLost, "spec.color (2 objects, such as default/w-0000, default/w-0002)")
}

// TestListThatExpiresWhileObjectsAreTried: etcd is compacted between two pages of the objects that are tried.
func TestListThatExpiresWhileObjectsAreTried(t *testing.T) {
	t.Parallel()
	plane := ownPlane(t, "--feature-gates=ListFromCacheSnapshot=false")
	w := newWidgets(t, plane)
	w.setVersions(typed("v1", true, true, "color", "of"))
	w.fill("v1", 300)
	w.setVersions(typed("v1", true, false, "color", "of"), typed("v2", true, true, "of"))
	w.awaitStoring("v2")
	config, wire := tap(w.withoutLeases())
	h := wire.haltBefore(t, func(r *http.Request) bool {
		return strings.HasSuffix(r.URL.Path, "/v1/widgets") && r.URL.Query().Has("continue")
	})
	run := w.pauseAt(t.Context(), newMigrator(t, config, accepting()), h, nil)
	w.label("etcd", "has-another-revision")
	now, err := plane.Etcd().Get(t.Context(), w.keys(), clientv3.WithPrefix(), clientv3.WithCountOnly())
	if err == nil {
		_, err = plane.Etcd().Compact(t.Context(), now.Header.Revision, clientv3.WithCompactPhysical())
	}
	if err != nil {
		t.Fatal(err)
	}
	_, err = run.resume()
	var blocked *decision.BlockedError
	if !errors.As(err, &blocked) {
		t.Fatalf("run: %v, want it blocked", err)
	}
	mustSay(t, blocked.Blockers[0].Message, "spec.color (300 objects")
	if wire.answered(http.StatusGone) == 0 {
		t.Error("the list did not expire")
	}
}

// TestBlockedRunTriesFewObjectsAgain: a program that is blocked tries again from time to time. It does not try all objects each time,
// until an object that it names has lost the value.
func TestBlockedRunTriesFewObjectsAgain(t *testing.T) {
	t.Parallel()
	const objects = 40
	w := newLossy(t, objects)
	config, wire := tap(w.withoutLeases())
	m := newMigrator(t, config, accepting())
	tried := func() int {
		return wire.count(func(e exchange) bool { return e.method == http.MethodPatch && strings.Contains(e.path, "/v1/") })
	}
	w.mustRefuse(m, decision.ReasonFieldsWouldBeLost, "spec.color (40 objects, such as default/w-0000, ")
	first := tried()
	w.mustRefuse(m, decision.ReasonFieldsWouldBeLost, "spec.color (40 objects, such as default/w-0000, ")
	if again := tried() - first; first < objects || again != 1 {
		t.Errorf("%d and %d objects were tried, want %d and 1", first, again, objects)
	}
	if _, err := w.at("v1").Patch(t.Context(), "w-0000", types.MergePatchType, []byte(`{"spec":{"color":null}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	w.mustRefuse(m, decision.ReasonFieldsWouldBeLost, "spec.color (39 objects, such as default/w-0001, ")
}

// TestReconcilerAndAdmission: a webhook would change each object that a migration writes. The migration does not start, and an event
// names the webhook. With AcceptChanges, it goes on.
func TestReconcilerAndAdmission(t *testing.T) {
	t.Parallel()
	w := newWidgets(t, shared)
	w.fill("v1", 3)
	w.flip()
	w.optIn()
	w.mutator(`[{"op":"add","path":"/metadata/annotations","value":{"example.com/by":"painter"}}]`)
	await(t, "the webhook to be asked", func() bool {
		o, err := w.tryUpdate(metav1.NamespaceDefault, "w-0000")
		return err == nil && o["metadata"].(map[string]any)["annotations"] != nil
	})
	accepting := func(paths ...string) *operator {
		return w.selectingAs(w.reporter(), func(o *operator) {
			o.migrator.Recorder = o.manager.GetEventRecorder("crdmigrator")
			o.migrator.AcceptChanges, o.migrator.Settle = paths, -1
		})
	}
	if _, err := accepting().reconcile(t.Context()); err == nil {
		t.Fatal("the migration whose objects admission changes ran")
	}
	refused := w.awaitEvent("the refusal", func(e eventsv1.Event) bool { return e.Reason == crdmigrator.EventFailed })
	mustSay(t, refused.Note, "AdmissionMutates", "metadata.annotations on default/w-0000")
	w.mustBeStored("after the refusal", map[string]int{"v1": 3})

	accepting("metadata.annotations").mustReconcile("with consent", reconcile.Result{})
	w.mustBeStored("in the end", map[string]int{"v2": 3})
}
