package crdmigrator_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/internal/storageversion"
	"github.com/godwit-dev/godwit/internal/storageversion/decision"
	"github.com/godwit-dev/godwit/test/policy"
	"github.com/godwit-dev/godwit/walk"
)

// webhookSeconds is the longest timeout of a webhook, so that only the test ends a
// request that a webhook delays.
const webhookSeconds = 30

// webhook is a validating webhook on the updates of one resource.
type webhook struct {
	*endpoint
	name string

	mu     sync.Mutex
	decide func(*admissionv1.AdmissionRequest) (refusal string) // may take its time
}

// answers500 makes the webhook answer 500, as if it were broken.
const answers500 = "answers 500"

// newWebhook starts a webhook and registers it. A refusal is the reason of a denial;
// an empty one allows the request.
func (w *widgets) newWebhook(decide func(name string) (refusal string)) *webhook {
	w.t.Helper()
	return w.newReviewer(byName(decide))
}

// newReviewer is newWebhook for a function of the whole request.
func (w *widgets) newReviewer(decide func(*admissionv1.AdmissionRequest) (refusal string)) *webhook {
	w.t.Helper()
	h := &webhook{name: "check." + w.group, decide: decide}
	h.endpoint = newEndpoint(w.t, h)
	w.register(h)
	return h
}

func byName(decide func(name string) string) func(*admissionv1.AdmissionRequest) string {
	return func(r *admissionv1.AdmissionRequest) string { return decide(r.Name) }
}

func (h *webhook) setDecide(decide func(name string) string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.decide = byName(decide)
}

func (h *webhook) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var review admissionv1.AdmissionReview
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil || review.Request == nil {
		http.Error(w, "not a review", http.StatusBadRequest)
		return
	}
	h.mu.Lock()
	decide := h.decide
	h.mu.Unlock()
	refusal := decide(review.Request)
	if refusal == answers500 {
		http.Error(w, "broken", http.StatusInternalServerError)
		return
	}
	review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: refusal == ""}
	if refusal != "" {
		review.Response.Result = &metav1.Status{Message: refusal}
	}
	review.Request = nil
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(review) // the API server reports what it could not read
}

func (w *widgets) admission() kubernetes.Interface {
	w.t.Helper()
	clients, err := kubernetes.NewForConfig(w.config)
	if err != nil {
		w.t.Fatal(err)
	}
	return clients
}

func (w *widgets) updates() []admissionregistrationv1.RuleWithOperations {
	return []admissionregistrationv1.RuleWithOperations{{
		Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Update},
		Rule: admissionregistrationv1.Rule{
			APIGroups: []string{w.group}, APIVersions: []string{"*"}, Resources: []string{w.plural},
		},
	}}
}

func (w *widgets) register(h *webhook) {
	w.t.Helper()
	_, err := w.admission().AdmissionregistrationV1().ValidatingWebhookConfigurations().Create(w.t.Context(),
		&admissionregistrationv1.ValidatingWebhookConfiguration{
			ObjectMeta: metav1.ObjectMeta{Name: h.name},
			Webhooks: []admissionregistrationv1.ValidatingWebhook{{
				Name:                    h.name,
				ClientConfig:            admissionregistrationv1.WebhookClientConfig{URL: &h.url, CABundle: h.ca},
				Rules:                   w.updates(),
				FailurePolicy:           ptr.To(admissionregistrationv1.Fail),
				SideEffects:             ptr.To(admissionregistrationv1.SideEffectClassNone),
				AdmissionReviewVersions: []string{"v1"},
				TimeoutSeconds:          ptr.To[int32](webhookSeconds),
			}},
		}, metav1.CreateOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
}

// awaitRefused waits until the API server refuses an update of an object.
func (w *widgets) awaitRefused(name string, refused func(error) bool) {
	w.t.Helper()
	await(w.t, "updates of "+name+" to be refused", func() bool {
		_, err := w.at("v1").Patch(w.t.Context(), name, types.MergePatchType, []byte("{}"),
			metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
		return refused(err)
	})
}

func denied(err error) bool { return err != nil && strings.Contains(err.Error(), "denied the request") }

func deny(object string) func(string) string {
	return func(name string) string {
		if name == object {
			return "not on a Friday"
		}
		return ""
	}
}

func allow(string) string { return "" }

// mustFailOne checks a run in which one object failed.
func (w *widgets) mustFailOne(report decision.Report, counts godwit.Counts, name string, why ...string) {
	w.t.Helper()
	if report.Storage.Counts != counts || report.Trimmed {
		w.t.Errorf("run: %+v, trimmed %v, want %+v and not trimmed", report.Storage.Counts, report.Trimmed, counts)
	}
	if len(report.Storage.Failures) != 1 {
		w.t.Fatalf("failures = %+v, want that of %s", report.Storage.Failures, name)
	}
	f := report.Storage.Failures[0]
	if f.Name != name || f.Namespace != metav1.NamespaceDefault {
		w.t.Errorf("failed: %+v, want %s", f, name)
	}
	for _, part := range why {
		if !strings.Contains(f.Message, part) {
			w.t.Errorf("failure = %q, want it to name %q", f.Message, part)
		}
	}
	w.mustHaveStoredVersions("with an object left behind", "v1,v2")
}

// TestRunReportsADeniedObject: a webhook denies one object. The run migrates all
// others, and does not trim. Once the webhook allows the object, a second run writes
// only that object, and trims.
func TestRunReportsADeniedObject(t *testing.T) {
	t.Parallel()
	w := newWidgets(t, shared)
	config, wire := tap(w.withoutLeases())
	m := newMigrator(t, config, storageversion.Options{Policy: quickSettle, PageObjects: 20})
	w.fill("v1", 60)
	w.flip()
	h := w.newWebhook(deny("w-0017"))
	w.awaitRefused("w-0017", denied)

	report := w.mustMigrate(m)
	w.mustFailOne(report, godwit.Counts{Migrated: 59, Failed: 1}, "w-0017", h.name, "not on a Friday")
	if n := wire.writesTo(w.group); n != 60 {
		t.Errorf("%d writes for 60 objects, want 60: a denial is not retried", n)
	}
	w.mustBeStored("after the first run", map[string]int{"v1": 1, "v2": 59})

	h.setDecide(allow)
	report = w.mustMigrate(m)
	if want := (godwit.Counts{Migrated: 1, Skipped: 59}); report.Storage.Counts != want || !report.Trimmed {
		t.Errorf("second run: %+v, trimmed %v, want %+v and trimmed", report.Storage.Counts, report.Trimmed, want)
	}
	w.mustHaveBeenWritten("after both runs", 60, 2)
	w.mustBeStored("after the second run", map[string]int{"v2": 60})
	w.mustHaveStoredVersions("after the second run", "v2")
}

// newPolicy creates a policy that denies updates of objects for which an expression
// is false.
func (w *widgets) newPolicy(expression string) (name, binding string) {
	w.t.Helper()
	w.deny(policy.Policy{Name: "policy-of-" + w.group, Binding: "binding-of-" + w.group},
		admissionregistrationv1.Validation{Expression: expression, Message: "not on a Friday"})
	return "policy-of-" + w.group, "binding-of-" + w.group
}

// deny creates a policy for the widgets.
func (w *widgets) deny(p policy.Policy, validation admissionregistrationv1.Validation) {
	w.t.Helper()
	p.Group, p.Resource, p.Validations = w.group, w.plural, []admissionregistrationv1.Validation{validation}
	if err := p.Create(w.t.Context(), w.admission()); err != nil {
		w.t.Fatal(err)
	}
}

// TestRunNamesThePolicyThatDenies, with its binding.
func TestRunNamesThePolicyThatDenies(t *testing.T) {
	t.Parallel()
	w := newWidgets(t, shared)
	m := w.quickMigrator(storageversion.Options{})
	w.fill("v1", 30)
	w.flip()
	policy, binding := w.newPolicy("object.metadata.name != 'w-0003'")
	w.awaitRefused("w-0003", apierrors.IsInvalid)

	report := w.mustMigrate(m)
	w.mustFailOne(report, godwit.Counts{Migrated: 29, Failed: 1}, "w-0003", policy, binding, "not on a Friday")
}

// busy counts concurrent calls.
type busy struct {
	now, most atomic.Int64
}

func (b *busy) work(d time.Duration) {
	n := b.now.Add(1)
	defer b.now.Add(-1)
	for most := b.most.Load(); n > most && !b.most.CompareAndSwap(most, n); most = b.most.Load() {
	}
	time.Sleep(d)
}

// TestSlowWebhookDelaysOnlyItsObjects: a webhook answers for some objects only after
// it has answered for many others. The others are written meanwhile, and all objects
// are migrated.
func TestSlowWebhookDelaysOnlyItsObjects(t *testing.T) {
	t.Parallel()
	w := newWidgets(t, shared)
	m := w.quickMigrator(storageversion.Options{})
	w.fill("v1", 200)
	w.flip()
	const enough = walk.DefaultMaxInFlight + 4
	var slow, gaveUp, meanwhile atomic.Int64
	passed := make(chan struct{})
	w.newWebhook(func(name string) string {
		switch {
		case name == "w-0100":
			return "the probe"
		case strings.HasSuffix(name, "7") && name < "w-0080":
			slow.Add(1)
			select {
			case <-passed:
			case <-time.After((webhookSeconds - 5) * time.Second):
				gaveUp.Add(1)
			}
		case slow.Load() > 0:
			if meanwhile.Add(1) == enough {
				close(passed)
			}
		}
		return ""
	})
	w.awaitRefused("w-0100", denied)

	report, err := w.migrate(t.Context(), m, nil)
	if err != nil {
		t.Fatal(err)
	}
	w.mustFailOne(report, godwit.Counts{Migrated: 199, Failed: 1}, "w-0100", "the probe")
	if n := gaveUp.Load(); n > 0 {
		t.Errorf("%d of %d slow answers came before %d quick objects, want 0: the quick objects waited", n, slow.Load(), enough)
	}
}

// TestSlowWebhookForAll: the API server calls a webhook that is slow for every object
// for many objects at once.
func TestSlowWebhookForAll(t *testing.T) {
	t.Parallel()
	const objects = 40
	w := newWidgets(t, shared)
	m := w.quickMigrator(storageversion.Options{})
	w.fill("v1", objects)
	w.flip()
	h := w.newWebhook(deny("w-0000"))
	w.awaitRefused("w-0000", denied)
	var all busy
	h.setDecide(func(string) string { all.work(time.Second); return "" })

	w.mustBeMigrated(w.mustMigrate(m), objects)
	if most := all.most.Load(); most < 4 {
		t.Errorf("the webhook was called for at most %d objects at once, want at least 4", most)
	}
}

// TestWebhookThatIsDown: the run retries its objects, and the failures name the
// webhook. When the webhook is back, a second run completes the migration.
func TestWebhookThatIsDown(t *testing.T) {
	t.Parallel()
	const attempts = 3
	w := newWidgets(t, shared)
	config, wire := tap(w.withoutLeases())
	m := newMigrator(t, config, storageversion.Options{Policy: quickSettle, Attempts: attempts})
	w.fill("v1", 20)
	w.flip()
	h := w.newWebhook(allow)
	h.down()
	w.awaitRefused("w-0000", apierrors.IsInternalError)

	report := w.mustMigrate(m)
	if want := (godwit.Counts{Failed: 20}); report.Storage.Counts != want || report.Trimmed {
		t.Errorf("run: %+v, trimmed %v, want %+v and not trimmed", report.Storage.Counts, report.Trimmed, want)
	}
	for _, f := range report.Storage.Failures {
		if !strings.Contains(f.Message, h.name) || !strings.Contains(f.Message, "connection refused") {
			t.Errorf("failure = %q, want it to name webhook %s and the refused connection", f.Message, h.name)
		}
	}
	if n := wire.answered(http.StatusInternalServerError); n != 20*attempts {
		t.Errorf("%d writes failed, want %d attempts for each of 20 objects", n, attempts)
	}
	w.mustBeStored("with the webhook down", map[string]int{"v1": 20})
	w.mustHaveStoredVersions("with the webhook down", "v1,v2")

	h.up(t)
	w.mustBeMigrated(w.mustMigrate(m), 20)
}
