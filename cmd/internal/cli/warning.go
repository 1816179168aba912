package cli

import (
	"context"
	"sync"

	"k8s.io/client-go/rest"
)

// warnings prints those of the API server, each once, with the CRD that the request was
// about: a deprecation does not name it.
type warnings struct {
	console *Console
	mu      sync.Mutex
	said    map[string]bool
}

var _ rest.WarningHandlerWithContext = &warnings{}

// warnCode is the code of all warnings of API servers: "miscellaneous persistent" in RFC 7234.
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
	if w.said[text] {
		return
	}
	if w.said == nil {
		w.said = map[string]bool{}
	}
	w.said[text] = true
	w.console.Printf("Warning: %s\n", text)
}

// aboutKey is where a context has the name of the CRD that requests are about.
type aboutKey struct{}

// About says that requests of the context are about a CRD.
func About(ctx context.Context, crd string) context.Context {
	return context.WithValue(ctx, aboutKey{}, crd)
}
