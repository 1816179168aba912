package crdmigrator_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clientv3 "go.etcd.io/etcd/client/v3"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/internal/storageversion"
	"github.com/godwit-dev/godwit/internal/storageversion/decision"
	"github.com/godwit-dev/godwit/internal/storageversion/managedfields"
	"github.com/godwit-dev/godwit/test/controlplane"
)

// converter is a conversion webhook: what v1 has as spec.color, v2 has as
// spec.paint.color.
type converter struct {
	*endpoint
	asked atomic.Int64
	delay atomic.Int64 // nanoseconds
}

// newConverter registers a webhook for every conversion.
func (w *widgets) newConverter() *converter {
	w.t.Helper()
	c := &converter{}
	c.endpoint = newEndpoint(w.t, c)
	w.edit(w.config, func(crd *apiextensionsv1.CustomResourceDefinition) {
		crd.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{
			Strategy: apiextensionsv1.WebhookConverter,
			Webhook: &apiextensionsv1.WebhookConversion{
				ClientConfig:             &apiextensionsv1.WebhookClientConfig{URL: &c.url, CABundle: c.ca},
				ConversionReviewVersions: []string{"v1"},
			},
		}
	})
	return c
}

func (c *converter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var review apiextensionsv1.ConversionReview
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil || review.Request == nil {
		http.Error(w, "not a review", http.StatusBadRequest)
		return
	}
	c.asked.Add(1)
	select {
	case <-time.After(time.Duration(c.delay.Load())):
	case <-r.Context().Done():
		return
	}
	response := &apiextensionsv1.ConversionResponse{UID: review.Request.UID, Result: metav1.Status{Status: metav1.StatusSuccess}}
	for _, raw := range review.Request.Objects {
		converted, err := convert(raw.Raw, review.Request.DesiredAPIVersion)
		if err != nil {
			response.Result = metav1.Status{Status: metav1.StatusFailure, Message: err.Error()}
		}
		response.ConvertedObjects = append(response.ConvertedObjects, runtime.RawExtension{Object: converted})
	}
	review.Request, review.Response = nil, response
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(review) // the API server reports what it could not read
}

func convert(raw []byte, apiVersion string) (*unstructured.Unstructured, error) {
	o := &unstructured.Unstructured{}
	if err := json.Unmarshal(raw, &o.Object); err != nil {
		return nil, err
	}
	o.SetAPIVersion(apiVersion)
	from, to := []string{"spec", "color"}, []string{"spec", "paint", "color"}
	if strings.HasSuffix(apiVersion, "/v1") {
		from, to = to, from
	}
	if color, ok, err := unstructured.NestedString(o.Object, from...); err != nil || !ok {
		return o, err
	} else if err := unstructured.SetNestedField(o.Object, color, to...); err != nil {
		return nil, err
	}
	unstructured.RemoveNestedField(o.Object, from[:2]...)
	return o, nil
}

// newConverted is a CRD with a conversion webhook and objects at v1, the
// first of which were written by server-side apply.
func newConverted(t *testing.T, plane *controlplane.ControlPlane, n int) (*widgets, *converter) {
	t.Helper()
	w := newWidgets(t, plane)
	c := w.newConverter()
	for i := range appliedObjects {
		if _, err := w.apply("painter", "v1", fmt.Sprintf("applied-%d", i), "blue"); err != nil {
			t.Fatal(err)
		}
	}
	w.fill("v1", n-appliedObjects)
	w.flip()
	return w, c
}

const appliedObjects = 3

// values returns the bytes of the objects in etcd.
func (w *widgets) values() map[string]string {
	w.t.Helper()
	resp, err := w.plane.Etcd().Get(w.t.Context(), w.keys(), clientv3.WithPrefix())
	if err != nil {
		w.t.Fatal(err)
	}
	values := map[string]string{}
	for _, pair := range resp.Kvs {
		values[string(pair.Key)] = string(pair.Value)
	}
	return values
}

// fields returns the managedFields of each object in etcd.
func (w *widgets) fields() map[string][]metav1.ManagedFieldsEntry {
	w.t.Helper()
	fields := map[string][]metav1.ManagedFieldsEntry{}
	for key, value := range w.values() {
		var o metav1.PartialObjectMetadata
		if err := json.Unmarshal([]byte(value), &o); err != nil {
			w.t.Fatal(err)
		}
		fields[key] = o.ManagedFields
	}
	return fields
}

// mustBeConverted checks the objects in etcd after a migration through the webhook.
func (w *widgets) mustBeConverted(before map[string][]metav1.ManagedFieldsEntry) {
	w.t.Helper()
	for key, value := range w.values() {
		if !strings.Contains(value, `"paint":{"color":"blue"}`) || strings.Contains(value, `"spec":{"color"`) {
			w.t.Errorf("%s was not converted: %s", key, value)
		}
	}
	if diff := cmp.Diff(before, w.fields()); diff != "" {
		w.t.Errorf("managedFields (-before +after):\n%s", diff)
	}
}

// TestConversionWebhook: the webhook converts the objects, which have the same
// content at both versions.
func TestConversionWebhook(t *testing.T) {
	t.Parallel()
	w, c := newConverted(t, shared, 60)
	before, fields := w.specs("v1"), w.fields()
	asked := c.asked.Load()
	report := w.mustMigrate(w.quickMigrator(storageversion.Options{PageObjects: 20}))
	if want := (godwit.Counts{Migrated: 60}); report.Storage.Counts != want {
		t.Errorf("run: %+v, want %+v", report.Storage.Counts, want)
	}
	w.mustBeMigrated(report, 60)
	w.mustHaveBeenWritten("after the run", 60, 2)
	w.mustBeConverted(fields)
	if diff := cmp.Diff(before, w.specs("v1")); diff != "" {
		t.Errorf("at v1 (-before +after):\n%s", diff)
	}
	if c.asked.Load() == asked {
		t.Error("the API server did not call the webhook")
	}
}

// TestConversionWebhookThatIsDown: the run ends, names the webhook and changes no
// byte. Another CRD on the same limiter is migrated
// meanwhile. When the webhook is back, the next run completes the migration.
func TestConversionWebhookThatIsDown(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason  string
		cold    bool
		objects int64 // that the run can list
	}{
		"the server has the objects in memory": {
			reason: "lists work, and each write fails by itself", objects: 40,
		},
		"the server reads the objects from etcd": {
			reason: "lists fail as well", cold: true,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, c := newConverted(t, shared, 40)
			other := newWidgets(t, shared)
			other.fill("v1", 40)
			other.flip()
			user, config := w.user(w.migrationPermissions()...)
			w.grant(config, user, other.migrationPermissions()...)
			m := newMigrator(t, config, storageversion.Options{Policy: decision.Policy{Settle: -1, AcceptLosses: []string{"."}}, Attempts: 3, PageObjects: 20})
			values, fields := w.values(), w.fields()
			c.down()
			if tc.cold {
				w.chill()
			}

			var neighbour sync.WaitGroup
			neighbour.Go(func() { other.mustBeMigrated(other.mustMigrate(m), 40) })
			ctx, cancel := context.WithTimeoutCause(t.Context(), 2*time.Minute, errors.New("the run hangs"))
			defer cancel()
			report, err := w.migrate(ctx, m, nil)
			neighbour.Wait()
			w.mustNameTheConverter(c, report, err)
			counts := report.Storage.Counts
			if counts.Failed+counts.Deferred != tc.objects || counts.Total() != tc.objects || report.Trimmed {
				t.Errorf("%s: %+v, trimmed %v, want %d failed and not trimmed", tc.reason, counts, report.Trimmed, tc.objects)
			}
			if diff := cmp.Diff(values, w.values()); diff != "" {
				t.Errorf("written with the webhook down (-before +after):\n%s", diff)
			}
			w.mustHaveStoredVersions("with the webhook down", "v1,v2")

			c.up(t)
			w.mustBeMigrated(w.mustMigrate(m), 40)
			w.mustHaveBeenWritten("after both runs", 40, 2)
			w.mustBeConverted(fields)
		})
	}
}

// chill makes the API server drop the objects from its cache, as a change of the CRD
// does, while their conversion webhook is down.
func (w *widgets) chill() {
	w.t.Helper()
	w.edit(w.config, func(crd *apiextensionsv1.CustomResourceDefinition) {
		crd.Spec.Versions[1].Schema.OpenAPIV3Schema.Description = "a widget"
	})
	await(w.t, "lists to fail", func() bool {
		_, err := w.at("v2").List(w.t.Context(), metav1.ListOptions{})
		return err != nil
	})
}

// mustNameTheConverter checks that the failure names the conversion webhook.
func (w *widgets) mustNameTheConverter(c *converter, report decision.Report, err error) {
	w.t.Helper()
	said := messages(report, err)
	if len(said) == 0 {
		w.t.Error("the run reports no error, want one")
	}
	for _, text := range said {
		for _, part := range []string{"conversion webhook for " + w.group, c.url, "connection refused"} {
			if !strings.Contains(text, part) {
				w.t.Errorf("failure = %q, want it to name %q", text, part)
			}
		}
	}
}

// TestConversionWebhookRestartsMidRun: the webhook comes back while the run retries.
// No object fails.
func TestConversionWebhookRestartsMidRun(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		cold  bool
		fails func(exchange) bool
	}{
		"the server has the objects in memory":   {fails: func(e exchange) bool { return e.method == http.MethodPatch && e.code == 500 }},
		"the server reads the objects from etcd": {cold: true, fails: func(e exchange) bool { return e.method == http.MethodGet && e.code == 500 }},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, c := newConverted(t, shared, 120)
			fields := w.fields()
			config, wire := tap(w.withoutLeases())
			m := newMigrator(t, config, storageversion.Options{Policy: quickSettle, PageObjects: 20})
			run := w.pauseAfter(t.Context(), m, 30)
			c.down()
			if tc.cold {
				w.chill()
			}
			run.release()
			await(t, "a request to fail", func() bool { return wire.count(tc.fails) > 0 })
			c.up(t)
			report, err := run.resume()
			if err != nil {
				t.Fatal(err)
			}
			if want := (godwit.Counts{Migrated: 120}); report.Storage.Counts != want {
				t.Errorf("run: %+v, want %+v", report.Storage.Counts, want)
			}
			w.mustBeMigrated(report, 120)
			w.mustBeConverted(fields)
		})
	}
}

// TestConversionWebhookLostMidRun: the webhook is down for longer than the run
// retries. The rest of the objects fails, and the next run migrates them.
func TestConversionWebhookLostMidRun(t *testing.T) {
	t.Parallel()
	w, c := newConverted(t, shared, 120)
	fields := w.fields()
	m := w.quickMigrator(storageversion.Options{PageObjects: 20, Attempts: 2})
	run := w.pauseAfter(t.Context(), m, 30)
	c.down()
	report, err := run.resume()
	w.mustNameTheConverter(c, report, err)
	done := report.Storage.Counts.Migrated
	if done < 30 || done == 120 || report.Trimmed {
		t.Errorf("run: %+v, trimmed %v, want some migrated and not trimmed", report.Storage.Counts, report.Trimmed)
	}
	w.mustHaveStoredVersions("after the run", "v1,v2")
	if diff := cmp.Diff(fields, w.fields()); diff != "" {
		t.Errorf("managedFields (-before +after):\n%s", diff)
	}

	c.up(t)
	report = w.mustMigrate(m)
	if want := (godwit.Counts{Migrated: 120 - done, Skipped: done}); report.Storage.Counts != want {
		t.Errorf("second run: %+v, want %+v", report.Storage.Counts, want)
	}
	w.mustBeMigrated(report, 120)
	w.mustBeConverted(fields)
}

// TestManagedFieldsOutliveTheConverter: the write of an object that is already at v2
// changes it, by a new default of the schema, while the server can't convert the
// fields that managers own at v1.
func TestManagedFieldsOutliveTheConverter(t *testing.T) {
	t.Parallel()
	for _, write := range decision.Writes {
		t.Run(string(write), func(t *testing.T) {
			t.Parallel()
			w, c := newConverted(t, shared, 10)
			w.mustMigrate(w.quickMigrator(storageversion.Options{}))
			w.setStoredVersions("v1", "v2")
			w.defaultSize()
			fields := w.fields()
			c.down()
			_, config := w.user(w.permissionsOf(write)...)
			m := newMigrator(t, config, storageversion.Options{Attempts: 2, Policy: decision.Policy{Settle: -1, Write: write, AcceptLosses: []string{"."}}})
			report, err := w.migrate(t.Context(), m, nil)
			want := godwit.Counts{Failed: 10}
			switch {
			case write == decision.WriteUpdate && minorVersion(t) >= "37": // which keeps them
				want = godwit.Counts{Migrated: 10}
			case write == decision.WriteUpdate:
				for _, said := range messages(report, err) {
					if !strings.Contains(said, managedfields.ErrUnconverted.Error()) {
						t.Errorf("failure = %q, want %q", said, managedfields.ErrUnconverted)
					}
				}
			default:
				w.mustNameTheConverter(c, report, err)
			}
			if err != nil || report.Storage.Counts != want || report.Trimmed != want.Settled() {
				t.Errorf("run: %+v, trimmed %v, %v, want %+v", report.Storage, report.Trimmed, err, want)
			}
			if diff := cmp.Diff(fields, w.fields()); diff != "" {
				t.Errorf("managedFields (-before +after):\n%s", diff)
			}
		})
	}
}

// defaultSize gives spec.size of v2 a default, and returns when the API server uses
// it.
func (w *widgets) defaultSize() {
	w.t.Helper()
	preserve := true
	w.edit(w.config, func(crd *apiextensionsv1.CustomResourceDefinition) {
		crd.Spec.Versions[1].Schema.OpenAPIV3Schema.Properties = map[string]apiextensionsv1.JSONSchemaProps{"spec": {
			Type: "object", XPreserveUnknownFields: &preserve,
			Properties: map[string]apiextensionsv1.JSONSchemaProps{
				"size": {Type: "integer", Default: &apiextensionsv1.JSON{Raw: []byte("1")}},
			},
		}}
	})
	await(w.t, "the default", func() bool {
		o, err := w.at("v2").Get(w.t.Context(), "w-0000", metav1.GetOptions{})
		if err != nil {
			w.t.Fatal(err)
		}
		_, ok, _ := unstructured.NestedInt64(o.Object, "spec", "size")
		return ok
	})
}

// TestSlowConversionWebhook: no object fails.
func TestSlowConversionWebhook(t *testing.T) {
	t.Parallel()
	w, c := newConverted(t, shared, 6)
	fields := w.fields()
	c.delay.Store(int64(time.Second)) // a write takes several conversions
	report := w.mustMigrate(w.quickMigrator(storageversion.Options{}))
	if want := (godwit.Counts{Migrated: 6}); report.Storage.Counts != want {
		t.Errorf("run: %+v, want %+v", report.Storage.Counts, want)
	}
	c.delay.Store(0)
	w.mustBeMigrated(report, 6)
	w.mustBeConverted(fields)
}
