package hub_test

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/godwit-dev/godwit/cmd/hub/agent"
	api "github.com/godwit-dev/godwit/cmd/hub/api/v1alpha1"
	"github.com/godwit-dev/godwit/cmd/hub/message"
	"github.com/godwit-dev/godwit/internal/kube"
	"github.com/godwit-dev/godwit/test/controlplane"
	"github.com/godwit-dev/godwit/test/fault"
)

// startTime is how long an API server denies everything after its start. Genuine restarts took up to 1.5 s, but not each time.
const startTime = 1500 * time.Millisecond

// starting is what a client sees of an API server that has just started: each request is denied, as by an authorizer
// that has not read its roles.
type starting struct {
	// passes are the requests that are let through.
	passes func(*http.Request) bool

	mutex  sync.Mutex
	armed  bool
	until  time.Time
	denied int
}

// arm makes the time of the start begin with the next request.
func (s *starting) arm() {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.armed = true
}

func (s *starting) answer(req *http.Request) *http.Response {
	if s.passes(req) {
		return nil
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	now := time.Now()
	if s.armed {
		s.armed, s.until = false, now.Add(startTime)
	}
	if now.After(s.until) {
		return nil
	}
	s.denied++
	return fault.Status(http.StatusForbidden, "Forbidden", `widgets.example.com is forbidden: User "agent" cannot list resource "widgets" in API group "example.com" at the cluster scope`)
}

// count is how many requests were denied.
func (s *starting) count() int {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.denied
}

// restarts restarts the API servers of both hubs once in each phase.
type restarts struct {
	t      *testing.T
	planes []*controlplane.ControlPlane

	mutex  sync.Mutex
	phases []api.Phase
}

// in restarts the servers, unless they were in this phase.
func (r *restarts) in(phase api.Phase) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if slices.Contains(r.phases, phase) {
		return
	}
	r.phases = append(r.phases, phase)
	var group sync.WaitGroup
	for _, plane := range r.planes {
		restarted := make(chan struct{})
		group.Go(func() {
			defer close(restarted)
			if err := plane.RestartAPIServer(r.t.Context()); err != nil && r.t.Context().Err() == nil {
				r.t.Error(err)
			}
		})
		group.Go(func() { r.findKinds(plane, restarted) })
	}
	group.Wait()
}

// findKinds looks for a kind of a CRD, each time by a mapper that knows none, until the server was restarted. Discovery does not list
// the kind for a second or two, which must not pass for a hub that does not serve it: its objects would stay behind.
func (r *restarts) findKinds(plane *controlplane.ControlPlane, restarted <-chan struct{}) {
	config := plane.Config()
	clients, err := rest.HTTPClientFor(config)
	if err != nil {
		r.t.Error(err)
		return
	}
	for ; ; pause(r.t.Context(), 20*time.Millisecond) {
		mapper, err := kube.NewMapper(config, clients)
		if err == nil {
			_, err = mapper.RESTMapping(schema.GroupKind{Group: clusterv1.GroupName, Kind: "ManagedCluster"})
		}
		found := err == nil
		if meta.IsNoMatchError(err) {
			r.t.Errorf("%v", err)
		}
		select {
		case <-restarted:
			if found || r.t.Context().Err() != nil {
				return
			}
		default:
		}
	}
}

// interrupted is the transport of an agent whose API server restarts when the first command of a phase arrives.
type interrupted struct {
	agent.Transport
	restarts *restarts
	server   *starting
	phases   map[api.Phase]bool
}

func (i *interrupted) Receive(ctx context.Context, group string, topics []string, handle func(context.Context, string, message.Envelope) error) error {
	return i.Transport.Receive(ctx, group, topics, func(ctx context.Context, topic string, e message.Envelope) error {
		if h, err := message.Peek(e); err == nil && h.From == message.ManagerName && !i.phases[h.Stage] {
			i.phases[h.Stage] = true
			i.restarts.in(h.Stage)
			i.server.arm()
		}
		return handle(ctx, topic, e)
	})
}

// newPlanes starts control planes of hubs at the same time.
func newPlanes(t *testing.T, n int) []*controlplane.ControlPlane {
	t.Helper()
	planes := make([]*controlplane.ControlPlane, n)
	var group sync.WaitGroup
	for i := range planes {
		group.Go(func() {
			cp, err := controlplane.Start(t.Context(), controlplane.Options{})
			if err != nil {
				t.Error(err)
				return
			}
			t.Cleanup(func() {
				if err := cp.Stop(); err != nil {
					t.Error(err)
				}
			})
			if err := install(t.Context(), cp); err != nil {
				t.Error(err)
			}
			planes[i] = cp
		})
	}
	group.Wait()
	if t.Failed() {
		t.FailNow()
	}
	return planes
}

// TestServersRestart moves clusters while the API servers of both hubs restart in each phase. The agents wait until the servers
// have read their roles, and all clusters move.
//
// Matrix: H83.
func TestServersRestart(t *testing.T) {
	t.Parallel()
	planes := newPlanes(t, 2)
	m := newManagedBetween(t, 2, planes[0].Config(), planes[1].Config())
	all := &restarts{t: t, planes: planes}
	var servers []*starting
	for _, s := range []*hubSide{m.source, m.target} {
		// The agent stores its commands, so that it is denied what it executes.
		own := "/api/v1/namespaces/" + s.namespace + "/secrets"
		server := &starting{passes: func(req *http.Request) bool { return strings.HasPrefix(req.URL.Path, own) }}
		s.config = fault.Answering(s.config, server.answer)
		s.transport = &interrupted{Transport: m.connect(s.name), restarts: all, server: server, phases: map[api.Phase]bool{}}
		servers = append(servers, server)
		m.run(s)
	}
	m.before = m.objects()
	play(t, m.klusterlets...)
	m.key = m.g.migrate("move", names(m.klusterlets)...)
	m.uid = string(m.g.read(m.key).UID)
	m.runManager(m.key)
	o := &api.ManagedClusterMigration{}
	m.await("the end of the migration", func() bool { return m.g.c.Get(t.Context(), m.key, o) == nil && settled(o) })
	if o.Status.Phase != api.PhaseCompleted || o.Status.Counts.Moved != 2 {
		t.Fatalf("phase %s, counts %+v, conditions:\n%s", o.Status.Phase, o.Status.Counts, describe(o))
	}
	for _, s := range m.sites {
		m.moved(s, m.before[s.name])
	}
	want := []api.Phase{api.PhaseValidating, api.PhaseInitializing, api.PhaseDeploying, api.PhaseRegistering, api.PhaseCleaning}
	if !slices.Equal(all.phases, want) {
		t.Errorf("the servers restarted in %v, want %v", all.phases, want)
	}
	for i, s := range servers {
		if s.count() < len(want) {
			t.Errorf("server %d has denied %d requests, want one in each phase", i, s.count())
		}
	}
}
