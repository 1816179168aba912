package operator

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/godwit-dev/godwit/internal/storageversion/decision"
	"github.com/godwit-dev/godwit/test/controlplane"
)

// webhook is a validating webhook that admits every write, while it is there.
type webhook struct {
	t      *testing.T
	url    string
	ca     []byte
	server *httptest.Server
	hangs  atomic.Bool
	asked  atomic.Int64
	ended  chan struct{} // closed with the test, for what hangs
}

// newWebhook starts a webhook and has the API server ask it about updates of all
// objects of these plurals. Without it they are refused.
func (c *cluster) newWebhook(plurals ...string) *webhook {
	c.t.Helper()
	h := &webhook{t: c.t, ended: make(chan struct{})}
	c.t.Cleanup(func() { close(h.ended); h.server.Close() })
	address, err := controlplane.FreeAddress()
	if err != nil {
		c.t.Fatal(err)
	}
	h.listen(address)
	h.url, h.ca = h.server.URL, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: h.server.Certificate().Raw})
	err = c.Create(c.t.Context(), &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: objectMeta("check." + c.group),
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name:         "check." + c.group,
			ClientConfig: admissionregistrationv1.WebhookClientConfig{URL: &h.url, CABundle: h.ca},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Update},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{c.group}, APIVersions: []string{"*"}, Resources: plurals},
			}},
			FailurePolicy:           new(admissionregistrationv1.Fail),
			SideEffects:             new(admissionregistrationv1.SideEffectClassNone),
			AdmissionReviewVersions: []string{"v1"},
		}},
	})
	if err != nil {
		c.t.Fatal(err)
	}
	return h
}

func (h *webhook) listen(address string) {
	h.t.Helper()
	listener, err := net.Listen("tcp", address)
	if err != nil {
		h.t.Fatal(err)
	}
	h.server = &httptest.Server{Listener: listener, Config: &http.Server{Handler: h}}
	h.server.StartTLS()
}

// down ends the server, so that connections are refused.
func (h *webhook) down() { h.server.Close() }

// up brings it back at its address.
func (h *webhook) up() {
	h.t.Helper()
	h.listen(strings.TrimPrefix(h.url, "https://"))
}

func (h *webhook) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.asked.Add(1)
	var review admissionv1.AdmissionReview
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil || review.Request == nil {
		http.Error(w, "not a review", http.StatusBadRequest)
		return
	}
	if h.hangs.Load() {
		select {
		case <-r.Context().Done():
		case <-h.ended:
		}
		return
	}
	review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true}
	review.Request = nil
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(review) // the API server reports what it could not read
}

// TestWebhookOutageMidRun: the failures are named, nothing is trimmed, another
// CRD does not wait for it, and the migration continues by itself.
func TestWebhookOutageMidRun(t *testing.T) {
	t.Parallel()
	c := newClusterOn(t, ownPlane(t))
	const n = 300
	geese, ducks := c.define("geese", n, optedIn), c.define("ducks", 100, optedIn)
	webhook := c.newWebhook("geese")
	c.manage(c.slowly(40))
	c.flip(geese)
	c.awaitMiddle(geese, n)
	if webhook.asked.Load() == 0 {
		t.Fatal("the webhook was never asked")
	}
	webhook.down()
	c.flip(ducks)
	c.awaitReason(ducks, decision.ReasonSucceeded.Name)
	c.mustBeMigratedOnce(ducks, 100)
	c.await("the failures to be named", func() bool {
		m := c.migration(geese)
		return len(m.Status.Failures) > 0 && strings.Contains(m.Status.Failures[0].Message, "failed calling webhook")
	})
	c.mustNotBeDone(geese)
	written := c.stored(geese, "v2")
	webhook.up()
	c.awaitReason(geese, decision.ReasonSucceeded.Name)
	c.mustBeMigratedOnce(geese, n)
	t.Logf("webhook away with %d of %d objects written, 100 objects of another CRD meanwhile; %d revisions in the end", written, n, c.revisions(geese))
}

// TestHangingWebhookStopsNoOther: each write of many CRDs takes the 10 s
// after which an API server gives a webhook up, and none succeeds. Another
// CRD is migrated meanwhile.
func TestHangingWebhookStopsNoOther(t *testing.T) {
	t.Parallel()
	c := newClusterOn(t, ownPlane(t))
	const hanging = 10 // more than are migrated at once
	var plurals, crds []string
	for i := range hanging {
		plurals = append(plurals, fmt.Sprintf("geese%ds", i))
		crds = append(crds, c.define(plurals[i], 20, optedIn))
	}
	ducks := c.define("ducks", 100, optedIn)
	webhook := c.newWebhook(plurals...)
	webhook.hangs.Store(true)
	c.manage("storageVersionMigrator: {scopes: [{group: " + c.group + "}], defaults: {settle: 0s}}")
	for _, crd := range crds {
		c.flip(crd)
	}
	c.await("writes that hang", func() bool { return webhook.asked.Load() >= 8 })
	c.flip(ducks)
	c.awaitReason(ducks, decision.ReasonSucceeded.Name)
	c.mustBeMigratedOnce(ducks, 100)
	for _, crd := range crds {
		c.mustBeStored(crd, map[string]int{"v1": 20})
	}
	asked := webhook.asked.Load()
	webhook.hangs.Store(false)
	for _, crd := range crds {
		c.awaitReason(crd, decision.ReasonSucceeded.Name)
		c.mustBeMigratedOnce(crd, 20)
	}
	t.Logf("100 objects of another CRD migrated while %d CRDs hung in %d writes", hanging, asked)
}
