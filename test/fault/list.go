package fault

import (
	"encoding/json"
	"net/http"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// Answer answers a request in place of the API server, or returns nil to send it.
type Answer func(*http.Request) *http.Response

// Answering returns a configuration that calls answer for each request before it sends the request.
func Answering(cfg *rest.Config, answer Answer) *rest.Config {
	cfg = rest.CopyConfig(cfg)
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTrip(func(req *http.Request) (*http.Response, error) {
			if resp := answer(req); resp != nil {
				resp.Request = req
				return resp, nil
			}
			return next.RoundTrip(req)
		})
	})
	return cfg
}

// Listing reports whether a request lists the objects of a resource, in all namespaces.
func Listing(req *http.Request, group, plural string) bool {
	return req.Method == http.MethodGet && strings.HasPrefix(req.URL.Path, "/apis/"+group+"/") &&
		strings.HasSuffix(req.URL.Path, "/"+plural)
}

// Status returns an answer of an API server, a metav1.Status with a reason, or an answer
// of a proxy, without one.
func Status(code int, reason, message string) *http.Response {
	if reason == "" {
		resp := answer(code, message)
		resp.Header.Set("Content-Type", "text/html")
		return resp
	}
	body, _ := json.Marshal(metav1.Status{ // strings and a number: this can't fail
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusFailure, Reason: metav1.StatusReason(reason), Message: message, Code: int32(code), //nolint:gosec // an HTTP status
	})
	return answer(code, string(body))
}
