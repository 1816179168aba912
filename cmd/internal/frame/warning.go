package frame

import (
	"context"
	"sync"

	"k8s.io/client-go/rest"
)

// warnings prints each warning of the API server once. It adds the CRD of the request,
// which a deprecation warning does not name.
type warnings struct {
	console *Console
	mu      sync.Mutex
	printed map[string]bool
}

var _ rest.WarningHandlerWithContext = &warnings{}

// warnCode is the code of every warning of an API server: "miscellaneous persistent" in RFC 7234.
const warnCode = 299

// HandleWarningHeaderWithContext prints a warning that was not printed before.
func (w *warnings) HandleWarningHeaderWithContext(ctx context.Context, code int, _, text string) {
	if code != warnCode || text == "" {
		return
	}
	if crd, ok := ctx.Value(aboutKey{}).(string); ok {
		text = crd + ": " + text
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.printed[text] {
		return
	}
	if w.printed == nil {
		w.printed = map[string]bool{}
	}
	w.printed[text] = true
	w.console.Printf("Warning: %s\n", text)
}

// aboutKey is the key of a context's CRD.
type aboutKey struct{}

// About returns a context whose requests are for a CRD.
func About(ctx context.Context, crd string) context.Context {
	return context.WithValue(ctx, aboutKey{}, crd)
}
