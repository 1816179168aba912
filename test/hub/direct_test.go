package hub_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/go-logr/logr"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-dev/godwit/cmd/hub/agent"
	api "github.com/godwit-dev/godwit/cmd/hub/api/v1alpha1"
	"github.com/godwit-dev/godwit/cmd/hub/direct"
	"github.com/godwit-dev/godwit/test/fault"
	"github.com/godwit-dev/godwit/test/hub/klusterlet"
)

// directMove is a migration that processes carry out by themselves, between both API servers.
type directMove struct {
	*move
	namespace string
	store     *direct.Store
	migration *api.ManagedClusterMigration
	before    map[string]map[string]string
	clock     clock.Clock
}

// newDirectMove makes clusters and a migration of them, which nothing carries out yet.
func newDirectMove(t *testing.T, clusters int, change func(*klusterlet.Klusterlet)) *directMove {
	t.Helper()
	return newDirectMoveTo(t, second.Config(), types.NamespacedName{Namespace: "direct-" + newName(), Name: "move"}, clusters, change)
}

func newDirectMoveTo(t *testing.T, target *rest.Config, key types.NamespacedName, clusters int, change func(*klusterlet.Klusterlet)) *directMove {
	t.Helper()
	m, namespace := &move{t: t, logs: newLines(t)}, key.Namespace
	for _, role := range []struct {
		side   **hubSide
		config *rest.Config
	}{{&m.source, shared.Config()}, {&m.target, target}} {
		id, err := direct.IDOf(t.Context(), hubClient(t, role.config), namespace)
		if err != nil {
			t.Fatal(err)
		}
		*role.side = &hubSide{name: id.Name("a context"), config: role.config, c: hubClient(t, role.config)}
		(*role.side).install(t, namespace)
	}
	m.begin(clusters, m.source.config)
	d := &directMove{move: m, namespace: namespace, store: direct.NewStore(m.source.c, namespace), before: m.objects(), clock: clock.RealClock{}}
	for _, k := range m.klusterlets {
		if change != nil {
			change(k)
		}
	}
	play(t, m.klusterlets...)
	d.migration = &api.ManagedClusterMigration{ObjectMeta: metav1.ObjectMeta{Namespace: d.namespace, Name: key.Name}}
	d.migration.Spec = api.ManagedClusterMigrationSpec{
		From: api.HubName(m.source.name), To: api.HubName(m.target.name), OnUserObjects: api.UserObjectsAccept, SupportedConfigs: &api.MigrationConfig{StageTimeout: &metav1.Duration{Duration: patience}},
	}
	for _, s := range m.sites {
		d.migration.Spec.IncludedManagedClusters = append(d.migration.Spec.IncludedManagedClusters, api.ClusterName(s.name))
	}
	address := clusterv1.ClientConfig{URL: m.target.config.Host, CABundle: m.target.config.CAData}
	if err := errors.Join(direct.KeepAddress(d.migration, address), d.store.Create(t.Context(), d.migration)); err != nil {
		t.Fatal(err)
	}
	return d
}

// run carries the migration out in a process whose requests pass a transport.
func (d *directMove) run(ctx context.Context, process string, through *fault.Transport) error {
	return d.carryOut(ctx, d.options(process, through))
}

func (d *directMove) carryOut(ctx context.Context, o direct.Options) error {
	return direct.Run(logr.NewContext(ctx, d.log(d.source)), d.migration, o)
}

func (d *directMove) options(process string, through *fault.Transport) direct.Options {
	hubOf := func(s *hubSide) direct.Hub {
		config := through.Config(s.config)
		return direct.Hub{Client: hubClient(d.t, config), Config: config}
	}
	return direct.Options{
		Source: hubOf(d.source), Target: hubOf(d.target), Process: process, Recorder: events.NewFakeRecorder(1000), Clock: d.clock,
		Agent: agent.Options{BootstrapNamespace: bootstrapNamespace, Poll: 200 * time.Millisecond, Quiet: time.Second},
	}
}

func (d *directMove) read() *api.ManagedClusterMigration {
	d.t.Helper()
	m := &api.ManagedClusterMigration{}
	if err := d.store.Get(d.t.Context(), client.ObjectKeyFromObject(d.migration), m); err != nil {
		d.t.Fatal(err)
	}
	return m
}

// isRegistering reports whether the target hub waits for the clusters. It fails the test if the migration has ended before.
func (d *directMove) isRegistering() bool {
	d.t.Helper()
	m := d.read()
	if m.Status.CompletionTime != nil {
		d.t.Fatalf("the migration has ended in %s: %+v", m.Status.Phase, m.Status.Conditions)
	}
	return m.Status.Phase == api.PhaseRegistering
}

// mustBeMoved fails the test unless every cluster has moved, and nothing but the result of the migration is left.
func (d *directMove) mustBeMoved() {
	d.t.Helper()
	m := d.read()
	if m.Status.Phase != api.PhaseCompleted || int(m.Status.Counts.Moved) != len(d.sites) {
		d.t.Fatalf("the migration has ended in %s with %+v: %+v %+v", m.Status.Phase, m.Status.Counts, m.Status.Failures, m.Status.Conditions)
	}
	for _, s := range d.sites {
		d.moved(s, d.before[s.name])
	}
	for _, s := range []*hubSide{d.source, d.target} {
		secrets := &corev1.SecretList{}
		if err := s.c.List(d.t.Context(), secrets, client.InNamespace(d.namespace), client.MatchingLabels{"godwit.dev/hub-migration": string(m.UID)}); err != nil {
			d.t.Fatal(err)
		}
		if len(secrets.Items) > 0 {
			d.t.Errorf("hub %s still has the command of the migration", s.name)
		}
	}
	keys := &corev1.ConfigMap{}
	if err := d.source.c.Get(d.t.Context(), client.ObjectKey{Namespace: d.namespace, Name: "move-keys"}, keys); client.IgnoreNotFound(err) != nil || err == nil {
		d.t.Errorf("the keys of the migration are left: %v", err)
	}
}

// TestDirectMove: one process moves clusters between two hubs on which nothing is installed.
//
// Matrix: H92.
func TestDirectMove(t *testing.T) {
	t.Parallel()
	d := newDirectMove(t, 3, nil)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := d.run(ctx, "one", &fault.Transport{}); err != nil {
		t.Fatal(err)
	}
	d.mustBeMoved()
}

// TestDirectIsContinued kills process after process, each at another write to one of both hubs. The next one continues, and the
// clusters have moved in the end. The writes that a process may do grow, since on a busy machine the first ones renew its Lease.
//
// Matrix: H93.
func TestDirectIsContinued(t *testing.T) {
	t.Parallel()
	for _, kill := range []string{"killed before the write", "killed after the write"} {
		t.Run(kill, func(t *testing.T) {
			t.Parallel()
			d := newDirectMove(t, 2, nil)
			random := rand.New(rand.NewPCG(1, uint64(len(kill))))
			kills := 0
			for ; d.read().Status.CompletionTime == nil; kills++ {
				through := &fault.Transport{Fault: fault.All()[kill], At: 4 + kills/10 + random.IntN(8)}
				through.Run(t.Context(), func(ctx context.Context) {
					if err := d.run(ctx, fmt.Sprint(kills), through); err != nil && ctx.Err() == nil {
						t.Errorf("process %d: %v", kills, err)
					}
				})
				d.removeLease()
				if kills > 100 {
					t.Fatalf("100 processes were not enough: %+v", d.read().Status)
				}
			}
			if kills < 5 {
				t.Errorf("%d processes were killed", kills)
			}
			if err := d.run(t.Context(), "last", &fault.Transport{}); err != nil {
				t.Fatal(err)
			}
			d.mustBeMoved()
		})
	}
}

func (d *directMove) leaseKey() client.ObjectKey {
	return client.ObjectKey{Namespace: d.namespace, Name: "godwit-move"}
}

// removeLease spares the test the time until the Lease of a killed process ends.
func (d *directMove) removeLease() {
	d.t.Helper()
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: d.leaseKey().Namespace, Name: d.leaseKey().Name}}
	if err := client.IgnoreNotFound(d.source.c.Delete(d.t.Context(), lease)); err != nil {
		d.t.Fatal(err)
	}
}

// TestDirectRunsOnce: while one process carries the migration out, another one does nothing and names the first.
//
// Matrix: H94.
func TestDirectRunsOnce(t *testing.T) {
	t.Parallel()
	d := newDirectMove(t, 1, func(k *klusterlet.Klusterlet) { k.Unreachable = true })
	ctx, stop := context.WithCancel(t.Context())
	first := make(chan error, 1)
	go func() { first <- d.run(ctx, "the first", &fault.Transport{}) }()
	d.await("phase Registering", d.isRegistering)
	through := &fault.Transport{}
	err := d.run(t.Context(), "the second", through)
	var held *direct.HeldError
	if !errors.As(err, &held) || held.Holder != "the first" {
		t.Errorf("the second process returns %v", err)
	}
	if writes := through.Writes(); len(writes) > 0 {
		t.Errorf("the second process wrote %v", writes)
	}
	stop()
	if err := <-first; !errors.Is(err, context.Canceled) {
		t.Errorf("the first process returns %v", err)
	}
	holder, err := direct.HolderOf(t.Context(), d.source.c, d.migration, time.Now())
	if err != nil || holder.Name != "" {
		t.Errorf("the first process has left the Lease to %+v, %v", holder, err)
	}
}

// TestDirectTakesOver: a process is killed in Registering and leaves its Lease. The next one waits until the Lease has ended, and moves the clusters.
// The migration has the pause between both, in which no timeout runs.
//
// Matrix: H93, H132.
func TestDirectTakesOver(t *testing.T) {
	t.Parallel()
	d := newDirectMove(t, 1, func(k *klusterlet.Klusterlet) { k.Unreachable = true })
	through := &fault.Transport{Fault: fault.All()["killed before the write"], At: -1}
	through.Before = func(n int) {
		if d.isRegistering() {
			through.At = n
		}
	}
	through.Run(t.Context(), func(ctx context.Context) {
		if err := d.run(ctx, "the killed", through); err == nil {
			t.Error("the killed process has ended the migration")
		}
	})
	before := &coordinationv1.Lease{}
	if err := d.source.c.Get(t.Context(), d.leaseKey(), before); err != nil || before.Spec.HolderIdentity == nil || *before.Spec.HolderIdentity != "the killed" {
		t.Fatalf("the killed process has not left its Lease: %+v, %v", before.Spec, err)
	}
	since := d.read().Status.Progress.Since.Time
	d.klusterlets[0].Reach()
	seen := make(chan time.Duration, 1)
	watching, stop := context.WithCancel(t.Context())
	go func() {
		defer close(seen)
		for watching.Err() == nil {
			m := &api.ManagedClusterMigration{}
			if err := d.store.Get(watching, client.ObjectKeyFromObject(d.migration), m); err == nil && m.Status.Phase == api.PhaseRegistering && m.Status.Progress.Since.After(since) {
				seen <- m.Status.Progress.Since.Sub(since)
				return
			}
			pause(watching, 20*time.Millisecond)
		}
	}()
	if err := d.run(t.Context(), "the next", &fault.Transport{}); err != nil {
		t.Fatal(err)
	}
	stop()
	if paused, ok := <-seen; !ok || paused <= 0 {
		t.Error("the phase does not begin later by the pause")
	}
	d.mustBeMoved()
}

// TestDirectPauseDoesNotCount: a process continues hours after the one before it was stopped, beyond every timeout. The clusters move
// nevertheless.
//
// Matrix: H95.
func TestDirectPauseDoesNotCount(t *testing.T) {
	t.Parallel()
	d := newDirectMove(t, 1, func(k *klusterlet.Klusterlet) { k.Unreachable = true })
	ctx, stop := context.WithCancel(t.Context())
	first := make(chan error, 1)
	go func() { first <- d.run(ctx, "the first", &fault.Transport{}) }()
	d.await("phase Registering", d.isRegistering)
	stop()
	<-first
	d.clock = laterClock{by: 12 * time.Hour}
	d.klusterlets[0].Reach()
	if err := d.run(t.Context(), "the second", &fault.Transport{}); err != nil {
		t.Fatal(err)
	}
	d.mustBeMoved()
}

// laterClock is ahead of the clock of the machine.
type laterClock struct {
	clock.RealClock
	by time.Duration
}

func (c laterClock) Now() time.Time { return time.Now().Add(c.by) }

func (c laterClock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }
