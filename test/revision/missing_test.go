package revision_test

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/godwit-dev/godwit/revision"
	"github.com/godwit-dev/godwit/revision/decision"
)

// maxConfirmed is how many missing revisions a scan reads again.
const maxConfirmed = 1000

// missingRevisions is an API server on which each workload names a revision of its own that does
// not exist. It counts the live reads, and how many of them are under way at once.
type missingRevisions struct {
	t         *testing.T
	namespace string
	workloads int
	deleted   bool   // the workloads are deleted between the scan and the live reads
	shared    string // the revision that all workloads name; empty means one of their own each

	mu       sync.Mutex
	reads    map[string]int // live reads, by what is read
	inFlight int
	most     int
	second   chan struct{} // closed when two reads are under way at once
	release  func()
}

func missingServer(c *testNamespace, workloads int) *missingRevisions {
	second := make(chan struct{})
	return &missingRevisions{t: c.t, namespace: c.namespace, workloads: workloads, reads: map[string]int{},
		second: second, release: sync.OnceFunc(func() { close(second) })}
}

// config has the requests of a user answered.
func (s *missingRevisions) config(user *rest.Config) *rest.Config { return intercept(user, s.answer) }

func (s *missingRevisions) answer(req *http.Request) *http.Response {
	resource, name := req.URL.Path[strings.LastIndex(req.URL.Path, "/")+1:], strings.TrimPrefix(req.URL.Query().Get("fieldSelector"), "metadata.name=")
	switch {
	case strings.HasSuffix(req.URL.Path, "/api/v1/namespaces/"+s.namespace):
		s.count("namespace")
		return nil
	case !strings.Contains(req.URL.Path, "/namespaces/"+s.namespace+"/"):
		return nil
	case name != "":
		s.liveRead(resource)
		if resource == "workloads" && !s.deleted {
			return s.list(s.workload(name))
		}
		return s.list()
	case resource == "workloads":
		var all []any
		for i := range s.workloads {
			all = append(all, s.workload(fmt.Sprintf("app-%05d", i)))
		}
		return s.list(all...)
	}
	return nil
}

func (s *missingRevisions) count(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reads[what]++
}

// liveRead waits until another read is under way, too: this shows that reads do not wait for
// each other, however fast the machine is.
func (s *missingRevisions) liveRead(resource string) {
	s.mu.Lock()
	s.reads[resource]++
	s.inFlight++
	if s.most = max(s.most, s.inFlight); s.most > 1 {
		s.release()
	}
	s.mu.Unlock()
	select {
	case <-s.second:
	case <-time.After(time.Minute):
		s.t.Error("a minute after a live read, no other one was sent")
		s.release()
	}
	s.mu.Lock()
	s.inFlight--
	s.mu.Unlock()
}

func (s *missingRevisions) workload(name string) any {
	missing := name + "-preset"
	if s.shared != "" {
		missing = s.shared
	}
	return map[string]any{
		"apiVersion": testGroup + "/v1", "kind": "Workload",
		"metadata": map[string]any{"namespace": s.namespace, "name": name, "uid": "uid-of-" + name, "resourceVersion": "1"},
		"spec":     map[string]any{"preset": map[string]any{"revision": missing}},
	}
}

func (s *missingRevisions) list(items ...any) *http.Response {
	body, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "List", "metadata": map[string]any{"resourceVersion": "1"}, "items": items})
	if err != nil {
		s.t.Error(err)
	}
	return &http.Response{
		StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(string(body))),
	}
}

// reasons counts the items of a plan by state and reason.
func (c *testNamespace) reasons(s *missingRevisions) map[string]int {
	c.t.Helper()
	return c.reasonsAs(shared.Config(), s)
}

func (c *testNamespace) reasonsAs(user *rest.Config, s *missingRevisions) map[string]int {
	c.t.Helper()
	found := map[string]int{}
	for i, err := range c.upgrader(s.config(user), decision.Policy{}).Plan(c.t.Context(), revision.Scope{Namespace: c.namespace}) {
		c.must(i, err)
		found[string(i.Action)+" "+i.Reason.String()]++
		if i.Message == "" {
			c.t.Errorf("%s is %s, and no message says why", i.Name, i.Action)
		}
	}
	return found
}

// TestMissingRevisionsAreReadSideBySide: a backup may restore ten thousand VirtualMachines
// without their revisions. Each takes one read of the revision and one of its referrer, and the
// namespace is read once.
func TestMissingRevisionsAreReadSideBySide(t *testing.T) {
	c := newNamespace(t)
	const n = 60
	s := missingServer(c, n)
	if found := c.reasons(s); found["Blocked SourceGone"] != n || len(found) != 1 {
		t.Errorf("%v, want %d revisions that are gone", found, n)
	}
	if s.reads["controllerrevisions"] != n || s.reads["workloads"] != n || s.reads["namespace"] != 1 {
		t.Errorf("live reads %v, want one of each revision, one of each referrer, and one of the namespace", s.reads)
	}
	if s.most < 2 {
		t.Errorf("%d live reads at once", s.most)
	}
	s = missingServer(c, n)
	s.deleted = true
	if found := c.reasons(s); len(found) != 0 {
		t.Errorf("%v, want nothing: the referrers are deleted as well", found)
	}
}

// TestBoundOfLiveReadsIsAState: what a scan does not read again is neither missing nor in order.
// The inventory names no version droppable then, and a run is not complete.
func TestBoundOfLiveReadsIsAState(t *testing.T) {
	c := newNamespace(t)
	s := missingServer(c, maxConfirmed+7)
	if found := c.reasons(s); found["Blocked SourceGone"] != maxConfirmed || found["Deferred Unconfirmed"] != 7 || len(found) != 2 {
		t.Errorf("%v, want %d that are gone and 7 that were not read again", found, maxConfirmed)
	}
	if n := s.reads["controllerrevisions"]; n != maxConfirmed {
		t.Errorf("%d revisions were read again, want %d", n, maxConfirmed)
	}
	report, err := c.upgrader(s.config(shared.Config()), decision.Policy{}).Run(t.Context(), revision.Scope{Namespace: c.namespace}, nil)
	if err != nil || report.Complete || report.Counts.Deferred != 7 {
		t.Errorf("complete: %t, error %v, %+v; want an incomplete scan that counts 7 Deferred", report.Complete, err, report.Counts)
	}
}

// TestReferrersThatWereNotReadAreAState: of the referrers of one revision a scan reads a bounded
// number, and one that stays is enough. If all that it read are deleted, it does not know the
// others.
func TestReferrersThatWereNotReadAreAState(t *testing.T) {
	c := newNamespace(t)
	for name, test := range map[string]struct {
		workloads int
		deleted   bool
		want      string
		reads     int
	}{
		"one stays":                 {20, false, "Blocked SourceGone", 1},
		"all are deleted":           {16, true, "", 16},
		"all that it read are gone": {20, true, "Deferred Unconfirmed", 16},
	} {
		s := missingServer(c, test.workloads)
		s.shared, s.deleted = "preset", test.deleted
		s.release() // the referrers of one revision are read one after the other
		want := map[string]int{}
		if test.want != "" {
			want[test.want] = 1
		}
		if found := c.reasons(s); !maps.Equal(found, want) || s.reads["workloads"] != test.reads {
			t.Errorf("%s: %v after %d reads of referrers, want %v after %d", name, found, s.reads["workloads"], want, test.reads)
		}
	}
}

// TestMissingRevisionWithoutThePermissionToReadNamespaces is read again all the same.
func TestMissingRevisionWithoutThePermissionToReadNamespaces(t *testing.T) {
	c := newNamespace(t)
	s := missingServer(c, 3)
	if found := c.reasonsAs(c.as([]string{"get", "list"}), s); found["Blocked SourceGone"] != 3 || len(found) != 1 || s.reads["namespace"] != 1 {
		t.Errorf("%v after reads %v, want 3 revisions that are gone", found, s.reads)
	}
}
