package hub_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-dev/godwit/cmd/hub/agent"
	api "github.com/godwit-dev/godwit/cmd/hub/api/v1alpha1"
	"github.com/godwit-dev/godwit/cmd/hub/cluster"
	"github.com/godwit-dev/godwit/cmd/hub/direct"
	own "github.com/godwit-dev/godwit/cmd/hub/klusterlet"
	"github.com/godwit-dev/godwit/cmd/hub/message"
	"github.com/godwit-dev/godwit/cmd/hub/source"
	"github.com/godwit-dev/godwit/cmd/hub/target"
	"github.com/godwit-dev/godwit/test/fault"
)

// TestPlainDirectMove: one process moves a cluster between two hubs that have neither the import controller nor the namespace of add-ons. A
// cluster that can't reach the target returns.
//
// Matrix: H125.
func TestPlainDirectMove(t *testing.T) {
	for name, unreachable := range map[string]bool{"Moves": false, "Returns": true} {
		t.Run(name, func(t *testing.T) {
			p := newPlainCluster(t)
			p.unreachable.Store(unreachable)
			namespace := "direct-" + p.name
			for _, h := range []*plainHub{p.source, p.target} {
				if err := direct.Prepare(t.Context(), h.c, namespace); err != nil {
					t.Fatal(err)
				}
			}
			store := direct.NewStore(p.source.c, namespace)
			m := &api.ManagedClusterMigration{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "move"}}
			m.Spec = api.ManagedClusterMigrationSpec{
				From: "from", To: "to", IncludedManagedClusters: []api.ClusterName{api.ClusterName(p.name)},
				SupportedConfigs: &api.MigrationConfig{StageTimeout: &metav1.Duration{Duration: patience}},
			}
			address := clusterv1.ClientConfig{URL: p.target.config.Host, CABundle: p.target.config.CAData}
			if err := errors.Join(direct.KeepAddress(m, address), store.Create(t.Context(), m)); err != nil {
				t.Fatal(err)
			}
			defer p.play()()
			if unreachable {
				go p.requestRollback(store, m)
			}
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			if err := direct.Run(ctx, m, direct.Options{
				Source: direct.Hub{Client: p.source.c, Config: p.source.config}, Target: direct.Hub{Client: p.target.c, Config: p.target.config},
				Process: "one", Recorder: events.NewFakeRecorder(1000), Clock: clock.RealClock{},
				Agent: agent.Options{Poll: 100 * time.Millisecond, Quiet: time.Second},
			}); err != nil {
				t.Fatal(err)
			}
			if err := store.Get(t.Context(), client.ObjectKeyFromObject(m), m); err != nil {
				t.Fatal(err)
			}
			at, other, moved := p.target, p.source, int32(1)
			if unreachable {
				at, other, moved = p.source, p.target, 0
			}
			if m.Status.CompletionTime == nil || m.Status.Counts.Moved != moved {
				t.Fatalf("the migration is in %s with %+v: %+v %+v", m.Status.Phase, m.Status.Counts, m.Status.Failures, m.Status.Conditions)
			}
			p.mustBeAt(at, other)
		})
	}
}

// requestRollback requests the rollback of a migration when the cluster can leave its hub.
func (p *plainCluster) requestRollback(store *direct.Store, m *api.ManagedClusterMigration) {
	for ctx := p.t.Context(); ctx.Err() == nil; pause(ctx, 100*time.Millisecond) {
		now := &api.ManagedClusterMigration{}
		if err := store.Get(ctx, client.ObjectKeyFromObject(m), now); err != nil || now.Status.Phase != api.PhaseRegistering {
			continue
		}
		now.Annotations = map[string]string{api.RequestAnnotation: api.RequestRollback}
		if err := store.Update(ctx, now); err == nil {
			return
		}
	}
}

// plainActions are the actions of a migration between hubs without the import controller. Each process does one write at most.
type plainActions struct {
	*plainCluster
	kubeconfig []byte
	// sent are the writes that reached a hub.
	sent []string
}

const plainAccounts = "default"

// act executes an action by one process after the other, which are killed at their first write, one before it and the next one after it. The last
// process has nothing to write.
func (p *plainActions) act(action string, pass func(context.Context, source.Hub, target.Hub) (cluster.Result, error)) {
	p.t.Helper()
	deadline := time.Now().Add(patience)
	for i, at := 0, 0; ; i++ {
		through := &fault.Transport{At: at, Fault: fault.All()[[]string{"killed before the write", "killed after the write"}[i%2]]}
		done := false
		through.Run(p.t.Context(), func(ctx context.Context) {
			src, dst := p.hubs(through)
			for ctx.Err() == nil && !done && time.Now().Before(deadline) {
				r, err := pass(ctx, src, dst)
				if ctx.Err() == nil && (err != nil || len(r.Failed) > 0) {
					p.t.Fatalf("%s after %d processes: %v %v", action, i, r.Failed, err)
				}
				done = ctx.Err() == nil && len(r.Waiting) == 0
				pause(ctx, 20*time.Millisecond)
			}
		})
		if done {
			return
		}
		if time.Now().After(deadline) {
			p.t.Fatalf("%s is not done after %d processes", action, i)
		}
		killed := through.Writes()[len(through.Writes())-1]
		switch {
		case strings.HasSuffix(killed, "/token"): // a token that was issued is lost with its process: the next one gets to the write after it
			i, at = i-1, len(through.Writes())
		case i%2 == 1:
			p.sent, at = append(p.sent, killed), 0
		}
	}
}

// hubs returns both hubs of a process whose requests pass a transport.
func (p *plainActions) hubs(through *fault.Transport) (source.Hub, target.Hub) {
	at := func(h *plainHub) cluster.Hub {
		config := through.Config(h.config)
		config.QPS = -1
		c, err := client.New(config, client.Options{Scheme: hubScheme(), Mapper: h.c.RESTMapper()})
		if err != nil {
			p.t.Fatal(err)
		}
		return cluster.Hub{Client: c, UID: "uid-of-" + p.name}
	}
	from := at(p.source)
	return source.Hub{Hub: from, Returns: target.Returning(from, plainAccounts, "to"), To: "to", Reconnect: 180 * time.Second},
		target.Hub{Hub: at(p.target), Account: types.NamespacedName{Namespace: plainAccounts, Name: "account-of-" + p.name}, Reconnect: 180 * time.Second}
}

// begin executes the actions until the cluster may leave.
func (p *plainActions) begin() {
	p.t.Helper()
	names := []string{p.name}
	_, dst := p.hubs(&fault.Transport{})
	p.act("ValidateSource", func(ctx context.Context, src source.Hub, _ target.Hub) (cluster.Result, error) {
		return src.ValidateSource(ctx, names)
	})
	p.act("ValidateTarget", func(ctx context.Context, _ source.Hub, dst target.Hub) (cluster.Result, error) {
		return dst.ValidateTarget(ctx, names)
	})
	p.act("GrantRegistration", func(ctx context.Context, _ source.Hub, dst target.Hub) (cluster.Result, error) {
		return site{name: p.name}.whole(dst.GrantRegistration(ctx))
	})
	token, err := dst.IssueToken(p.t.Context(), time.Hour)
	if err != nil {
		p.t.Fatal(err)
	}
	if p.kubeconfig, err = cluster.Kubeconfig(p.target.config.Host, p.target.config.CAData, token); err != nil {
		p.t.Fatal(err)
	}
	p.act("InstallBootstrap", func(ctx context.Context, src source.Hub, _ target.Hub) (cluster.Result, error) {
		return src.InstallBootstrap(ctx, names, p.kubeconfig)
	})
	var arrived []message.Resources
	p.act("SendResources", func(ctx context.Context, src source.Hub, _ target.Hub) (cluster.Result, error) {
		reassembler := message.NewReassembler(names, 1<<20)
		return src.SendResources(ctx, source.Parcel{Clusters: names, Total: 1}, func(_ context.Context, b message.ResourceBundle) (err error) {
			arrived, err = reassembler.Add(b)
			return err
		})
	})
	p.act("ReceiveResources", func(ctx context.Context, _ source.Hub, dst target.Hub) (cluster.Result, error) {
		return dst.ReceiveResources(ctx, arrived)
	})
	p.act("AcceptClusters", func(ctx context.Context, _ source.Hub, dst target.Hub) (cluster.Result, error) {
		return dst.AcceptClusters(ctx, names)
	})
	p.act("ReleaseClusters", func(ctx context.Context, src source.Hub, _ target.Hub) (cluster.Result, error) {
		return src.ReleaseClusters(ctx, names)
	})
}

// finish executes the actions of a migration whose cluster registers at the target.
func (p *plainActions) finish() {
	p.t.Helper()
	names := []string{p.name}
	leases := &cluster.Leases{}
	p.act("AwaitRegistration", func(ctx context.Context, _ source.Hub, dst target.Hub) (cluster.Result, error) {
		return dst.AwaitRegistration(ctx, names, leases)
	})
	p.act("FinishMoved", func(ctx context.Context, _ source.Hub, dst target.Hub) (cluster.Result, error) {
		return dst.FinishMoved(ctx, names)
	})
	p.act("DeleteMoved", func(ctx context.Context, src source.Hub, _ target.Hub) (cluster.Result, error) {
		return src.DeleteMoved(ctx, names)
	})
	p.revoke()
	p.mustBeAt(p.target, p.source)
}

// back executes the actions of a rollback.
func (p *plainActions) back() {
	p.t.Helper()
	names := []string{p.name}
	leases := &cluster.Leases{}
	p.act("RestoreAcceptance", func(ctx context.Context, src source.Hub, _ target.Hub) (cluster.Result, error) {
		return src.RestoreAcceptance(ctx, names)
	})
	p.act("StopAccepting", func(ctx context.Context, _ source.Hub, dst target.Hub) (cluster.Result, error) {
		return dst.StopAccepting(ctx, names)
	})
	p.act("RevertBootstrap", func(ctx context.Context, src source.Hub, _ target.Hub) (cluster.Result, error) {
		return src.RevertBootstrap(ctx, names)
	})
	p.act("AwaitReturn", func(ctx context.Context, src source.Hub, _ target.Hub) (cluster.Result, error) {
		return src.AwaitReturn(ctx, names, leases)
	})
	p.act("DeleteCreated", func(ctx context.Context, _ source.Hub, dst target.Hub) (cluster.Result, error) {
		return dst.DeleteCreated(ctx, names)
	})
	p.revoke()
	p.mustBeAt(p.source, p.target)
}

func (p *plainActions) revoke() {
	p.act("RevokeRegistration", func(ctx context.Context, _ source.Hub, dst target.Hub) (cluster.Result, error) {
		return cluster.Result{}, dst.RevokeRegistration(ctx)
	})
}

// TestPlainIsContinued kills the agents before and after each write of each action between two hubs without the import controller, so also between any
// two stages of ManifestWork godwit-klusterlet. The next ones continue, and the cluster has moved, or is back.
//
// Matrix: H126.
func TestPlainIsContinued(t *testing.T) {
	for name, test := range map[string]struct {
		unreachable bool
		end         func(*plainActions)
		// stages are the requests by which the ManifestWork changes at both hubs.
		stages []string
	}{
		// Reading, with the namespace, TwoHubs, at the target Reading, with the namespace, Handover, OneHub, and the end, and that at the source.
		"Moves": {false, (*plainActions).finish, []string{"POST", "PATCH", "PATCH", "POST", "PATCH", "PATCH", "PATCH", "DELETE", "PATCH", "DELETE"}},
		// Reading, with the namespace, TwoHubs, Restored, and the end.
		"Returns": {true, (*plainActions).back, []string{"POST", "PATCH", "PATCH", "PATCH", "DELETE"}},
	} {
		t.Run(name, func(t *testing.T) {
			p := &plainActions{plainCluster: newPlainCluster(t)}
			p.unreachable.Store(test.unreachable)
			defer p.play()()
			p.begin()
			test.end(p)
			var stages []string
			for _, w := range p.sent {
				method, path, _ := strings.Cut(w, " ")
				if strings.HasSuffix(path, "/manifestworks/"+own.WorkName) || strings.HasSuffix(path, "/manifestworks") {
					stages = append(stages, method)
				}
			}
			if !slices.Equal(stages, test.stages) {
				t.Errorf("ManifestWork %s was changed by %v, want a kill before and after each of %v", own.WorkName, stages, test.stages)
			}
		})
	}
}
