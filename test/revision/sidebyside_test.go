package revision_test

import (
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/godwit-dev/godwit/revision"
	"github.com/godwit-dev/godwit/revision/decision"
)

// TestScanOfANamespaceDelaysNoOther: a namespace is scanned again before its old
// revisions count as unreferenced. Meanwhile all stages of another namespace end.
func TestScanOfANamespaceDelaysNoOther(t *testing.T) {
	scanned, other := newNamespace(t), newNamespace(t)
	for _, c := range []*testNamespace{scanned, other} {
		c.app()
		c.change("app", "", func(o map[string]any) {
			o["metadata"].(map[string]any)["labels"] = map[string]any{"test": "side-by-side"}
		})
	}
	noted := make(chan struct{})
	note := sync.OnceFunc(func() { close(noted) })
	cfg := intercept(shared.Config(), func(req *http.Request) *http.Response {
		switch {
		case req.Method == http.MethodPut && strings.Contains(req.URL.Path, "/namespaces/"+other.namespace+"/controllerrevisions/"):
			note()
		case req.Method == http.MethodGet && strings.HasSuffix(req.URL.Path, "/namespaces/"+scanned.namespace+"/workloads"):
			select {
			case <-noted:
			case <-time.After(5 * time.Minute):
				t.Error("for five minutes, the scan of one namespace has held up another one")
				note()
			}
		}
		return nil
	})
	found := map[string]revision.Phase{}
	scope := revision.Scope{Selector: labels.SelectorFromSet(labels.Set{"test": "side-by-side"})}
	report, err := scanned.upgrader(cfg, decision.Policy{}).Run(t.Context(), scope, func(r revision.Result) { found[r.Namespace+"/"+r.Name] = r.Phase })
	if err != nil || !report.Complete || len(found) != 4 {
		t.Errorf("error %v, complete: %t, %v; want 4 revisions in a complete run", err, report.Complete, found)
	}
	for name, phase := range found {
		if phase != revision.Retained {
			t.Errorf("%s is %s, want Retained", name, phase)
		}
	}
}
