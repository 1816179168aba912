package apierror_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/godwit-dev/godwit/internal/apierror"
)

var (
	secrets = schema.GroupResource{Resource: "secrets"}
	codecs  = serializer.NewCodecFactory(clientgoscheme.Scheme)
)

// terminating is the answer to a creation in a namespace that is being deleted.
func terminating() error {
	err := apierrors.NewForbidden(secrets, "a", errors.New("unable to create new content in namespace shop because it is being terminated"))
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	return err
}

// get sends a request of client-go to a server.
func get(t *testing.T, handler http.HandlerFunc) error {
	t.Helper()
	server := httptest.NewServer(handler)
	defer server.Close()
	return getFrom(t, &rest.Config{Host: server.URL})
}

func getFrom(t *testing.T, cfg *rest.Config) error {
	t.Helper()
	cfg.Timeout = 10 * time.Second
	clients, err := rest.HTTPClientFor(cfg)
	if err != nil {
		t.Fatal(err)
	}
	c, err := apiutil.RESTClientForGVK(corev1.SchemeGroupVersion.WithKind("Secret"), false, false, cfg, codecs, clients)
	if err != nil {
		t.Fatal(err)
	}
	return c.Get().Resource("secrets").Namespace("shop").Name("a").MaxRetries(0).Do(t.Context()).Into(&corev1.Secret{})
}

// TestTreatmentOfCodes has each status code that an API server or a proxy before it answers, without a reason.
func TestTreatmentOfCodes(t *testing.T) {
	want := map[apierror.Treatment][]int32{
		apierror.Retry:         {429},
		apierror.EndsRun:       {401},
		apierror.CallerDecides: {404, 409, 410},
		apierror.Final:         {400, 403, 405, 406, 413, 415, 422},
	}
	named := map[int32]apierror.Treatment{}
	for treatment, codes := range want {
		for _, code := range codes {
			named[code] = treatment
		}
	}
	for code := int32(http.StatusMultipleChoices); code < 600; code++ {
		treatment, ok := named[code]
		switch {
		case code >= http.StatusInternalServerError:
			treatment = apierror.Retry
		case !ok:
			treatment = apierror.CallerDecides // 3xx, and 4xx that only proxies answer
		}
		for name, err := range map[string]error{
			"no reason": status(code, "", "no"),
			"no Status": apierrors.NewGenericServerResponse(int(code), http.MethodGet, secrets, "a", "<html>no</html>", 0, true),
		} {
			if got := apierror.TreatmentOf(err); got != treatment {
				t.Errorf("%d, %s: %s, want %s", code, name, got, treatment)
			}
		}
	}
}

// TestTreatment has each row of the table.
func TestTreatment(t *testing.T) {
	reason := func(code int32, r metav1.StatusReason) error { return status(code, r, "no") }
	cases := map[string]struct {
		err  error
		want apierror.Treatment
	}{
		"no error": {nil, ""},

		"StatusReasonUnauthorized":          {reason(401, metav1.StatusReasonUnauthorized), apierror.EndsRun},
		"StatusReasonForbidden":             {reason(403, metav1.StatusReasonForbidden), apierror.Final},
		"StatusReasonNotFound":              {reason(404, metav1.StatusReasonNotFound), apierror.CallerDecides},
		"StatusReasonAlreadyExists":         {reason(409, metav1.StatusReasonAlreadyExists), apierror.CallerDecides},
		"StatusReasonConflict":              {reason(409, metav1.StatusReasonConflict), apierror.CallerDecides},
		"StatusReasonGone":                  {reason(410, metav1.StatusReasonGone), apierror.CallerDecides},
		"StatusReasonExpired":               {reason(410, metav1.StatusReasonExpired), apierror.CallerDecides},
		"StatusReasonInvalid":               {reason(422, metav1.StatusReasonInvalid), apierror.Final},
		"StatusReasonServerTimeout":         {reason(500, metav1.StatusReasonServerTimeout), apierror.Retry},
		"StatusReasonStoreReadError":        {reason(500, metav1.StatusReasonStoreReadError), apierror.CallerDecides},
		"StatusReasonTimeout":               {reason(504, metav1.StatusReasonTimeout), apierror.Retry},
		"StatusReasonTooManyRequests":       {reason(429, metav1.StatusReasonTooManyRequests), apierror.Retry},
		"StatusReasonBadRequest":            {reason(400, metav1.StatusReasonBadRequest), apierror.Final},
		"StatusReasonMethodNotAllowed":      {reason(405, metav1.StatusReasonMethodNotAllowed), apierror.Final},
		"StatusReasonNotAcceptable":         {reason(406, metav1.StatusReasonNotAcceptable), apierror.Final},
		"StatusReasonRequestEntityTooLarge": {reason(413, metav1.StatusReasonRequestEntityTooLarge), apierror.Final},
		"StatusReasonUnsupportedMediaType":  {reason(415, metav1.StatusReasonUnsupportedMediaType), apierror.Final},
		"StatusReasonInternalError":         {reason(500, metav1.StatusReasonInternalError), apierror.Retry},
		"StatusReasonServiceUnavailable":    {reason(503, metav1.StatusReasonServiceUnavailable), apierror.Retry},

		"the authorizer denies":                   {status(403, metav1.StatusReasonForbidden, notAuthorized), apierror.Confirm},
		"the authorizer denies, wrapped":          {fmt.Errorf("get: %w", status(403, metav1.StatusReasonForbidden, notAuthorized)), apierror.Confirm},
		"the authorizer denies discovery":         {status(403, metav1.StatusReasonForbidden, `forbidden: User "alice" cannot get path "/apis"`), apierror.Confirm},
		"a webhook denies":                        {status(403, metav1.StatusReasonForbidden, `admission webhook "x.example.com" denied the request: no`), apierror.Final},
		"a webhook denies by 401":                 {status(401, metav1.StatusReasonUnauthorized, `admission webhook "x.example.com" denied the request: no`), apierror.Final},
		"a webhook denies by 429":                 {status(429, "Busy", `admission webhook "x.example.com" denied the request: no`), apierror.Retry},
		"a policy denies":                         {status(422, metav1.StatusReasonInvalid, "ValidatingAdmissionPolicy 'freeze' with binding 'prod' denied request: frozen"), apierror.Final},
		"a role would escalate":                   {status(403, metav1.StatusReasonForbidden, `clusterroles.rbac.authorization.k8s.io "a" is forbidden: user "alice" is attempting to grant RBAC permissions not currently held`), apierror.Final},
		"admission is not ready":                  {apierrors.NewForbidden(secrets, "a", errors.New("not yet ready to handle request")), apierror.Retry},
		"a quota has no count":                    {apierrors.NewForbidden(secrets, "a", errors.New("status unknown for quota: objects, resources: count/secrets")), apierror.Retry},
		"a quota is used up":                      {apierrors.NewForbidden(secrets, "a", errors.New("exceeded quota: objects")), apierror.Final},
		"the namespace is being deleted":          {terminating(), apierror.CallerDecides},
		"a webhook does not answer":               {status(500, metav1.StatusReasonInternalError, `Internal error occurred: failed calling webhook "x.example.com": Post "https://x": refused`), apierror.Retry},
		"a conversion webhook does not answer":    {status(500, metav1.StatusReasonStoreReadError, "conversion webhook for example.com/v1, Kind=Widget failed: Post"), apierror.CallerDecides},
		"the API server lacks a key":              {status(500, metav1.StatusReasonInternalError, "Internal error occurred: no matching key was found for the provided AES transformer"), apierror.CallerDecides},
		"etcd is full":                            {status(500, "", "etcdserver: mvcc: database space exceeded"), apierror.EndsRun},
		"etcd refuses the object":                 {status(500, "", "etcdserver: request is too large"), apierror.Final},
		"a refusal says when to come again":       {retryAfter(status(400, metav1.StatusReasonBadRequest, "no")), apierror.Retry},
		"no known reason, and a code":             {status(409, "OddReason", "no"), apierror.CallerDecides},
		"a load balancer has no backend":          {get(t, html(502)), apierror.Retry},
		"a load balancer times out":               {get(t, html(504)), apierror.Retry},
		"a proxy wants other credentials":         {get(t, html(401)), apierror.EndsRun},
		"a proxy forbids":                         {get(t, html(403)), apierror.Final},
		"a proxy redirects nowhere":               {get(t, html(304)), apierror.CallerDecides},
		"a proxy redirects in a circle":           {get(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, r.URL.Path, http.StatusFound) }), apierror.Retry},
		"a proxy answers with a page":             {get(t, html(200)), apierror.CallerDecides},
		"an empty answer":                         {get(t, func(http.ResponseWriter, *http.Request) {}), apierror.CallerDecides},
		"half of an answer":                       {get(t, hangUp("{")), apierror.Retry},
		"no answer":                               {get(t, hangUp("")), apierror.Retry},
		"the port is closed":                      {getFrom(t, &rest.Config{Host: closedPort(t)}), apierror.Retry},
		"another authority has signed the server": {getFrom(t, &rest.Config{Host: tlsServer(t)}), apierror.Retry},
		"no such host":                            {&url.Error{Op: "Get", URL: "https://x", Err: &net.OpError{Op: "dial", Err: &net.DNSError{Err: "no such host", Name: "x", IsNotFound: true}}}, apierror.Retry},
		"the connection is reset":                 {&net.OpError{Op: "read", Err: syscall.ECONNRESET}, apierror.Retry},
		"the stream is reset":                     {errors.New("stream error: stream ID 7; INTERNAL_ERROR"), apierror.Retry},
		"the client's own timeout":                {context.DeadlineExceeded, apierror.Retry},
		"the caller cancels":                      {&url.Error{Op: "Get", Err: context.Canceled}, apierror.CallerDecides},
		"retries have ended":                      {fmt.Errorf("list: %w", endError{}), apierror.CallerDecides},
		"discovery has no such kind":              {&meta.NoKindMatchError{GroupKind: schema.GroupKind{Kind: "Widget"}}, apierror.Confirm},
		"discovery has no such kind, wrapped":     {new(apiutil.ErrResourceDiscoveryFailed{{Version: "v1"}: &meta.NoResourceMatchError{}}), apierror.Confirm},
		"any other error":                         {errors.New("no"), apierror.CallerDecides},
	}
	rows := map[string]bool{}
	for name, tc := range cases {
		if tc.err == nil && tc.want != "" {
			t.Errorf("%s: the request succeeds", name)
			continue
		}
		row := apierror.RowOf(tc.err)
		if row.Treatment != tc.want {
			t.Errorf("%s: %s by row %q, want %s: %T %v", name, row.Treatment, row.Failure, tc.want, tc.err, tc.err)
		}
		rows[row.Failure] = true
	}
	for _, row := range apierror.Table {
		if row.Failure == "" || row.Why == "" {
			t.Errorf("row %+v lacks words", row)
		}
		if !rows[row.Failure] {
			t.Errorf("no case is of row %q", row.Failure)
		}
	}
}

// endError is what ends the retries of a walk.
type endError struct{}

func (endError) Error() string { return "10 attempts" }
func (endError) RetriesEnded() {}
func (endError) Unwrap() error { return io.EOF }

func retryAfter(err error) error {
	var status *apierrors.StatusError
	errors.As(err, &status)
	status.ErrStatus.Details = &metav1.StatusDetails{RetryAfterSeconds: 1}
	return status
}

func html(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		w.WriteHeader(code)
		_, _ = io.WriteString(w, "<html>no</html>")
	}
}

// hangUp begins an answer and does not end it.
func hangUp(begin string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		if begin != "" {
			w.Header().Set("Content-Length", "100")
			_, _ = io.WriteString(w, begin)
			_ = http.NewResponseController(w).Flush()
		}
		panic(http.ErrAbortHandler)
	}
}

func closedPort(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	return server.URL
}

func tlsServer(t *testing.T) string {
	t.Helper()
	server := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(server.Close)
	return server.URL
}
