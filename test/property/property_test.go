package property

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/godwit-dev/godwit/internal/storageversion"
	"github.com/godwit-dev/godwit/internal/storageversion/decision"
	"github.com/godwit-dev/godwit/test/controlplane"
	"github.com/godwit-dev/godwit/test/etcdgate"
)

var (
	playFor  = flag.Duration("property.for", time.Minute, "how long plays begin")
	fromSeed = flag.Uint64("property.seed", 1, "the seed of the first play")
)

var (
	plane  *controlplane.ControlPlane
	second *controlplane.APIServer
	gate   *etcdgate.Gate
)

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(controlplane.Main(m, &plane))
}

// TestContractHoldsInEachInterleaving plays seeds one after the other.
func TestContractHoldsInEachInterleaving(t *testing.T) {
	startSecond(t)
	began, total := time.Now(), tally{}
	for seed := *fromSeed; seed == *fromSeed || time.Since(began) < *playFor; seed++ {
		p := newPlay(t, seed)
		p.run()
		total.add(&p.tally)
		if t.Failed() {
			t.Fatalf("seed %d broke the contract; again with: go test ./property -property.seed=%d -property.for=0s", seed, seed)
		}
	}
	t.Logf("%d plays from seed %d, %d runs, %d killed, %d writes of users, %d trims, %d edits, %d holds of a server", total.plays.Load(), *fromSeed,
		total.runs.Load(), total.kills.Load(), total.writes.Load(), total.trims.Load(), total.edits.Load(), total.holds.Load())
}

func startSecond(t *testing.T) {
	t.Helper()
	var err error
	if gate, err = etcdgate.New(t.Context(), plane.EtcdEndpoint(), "/registry/apiextensions.k8s.io/customresourcedefinitions"); err != nil {
		t.Fatal(err)
	}
	if second, err = plane.StartSecondOn(t.Context(), "second", gate.URL()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		gate.Release()
		if err := second.Stop(); err != nil {
			t.Error(err)
		}
		_ = gate.Stop()
	})
}

// tally counts what a play did.
type tally struct{ plays, runs, kills, writes, trims, edits, holds, flips atomic.Int64 }

func (t *tally) add(other *tally) {
	t.plays.Add(1)
	t.runs.Add(other.runs.Load())
	t.kills.Add(other.kills.Load())
	t.writes.Add(other.writes.Load())
	t.trims.Add(other.trims.Load())
	t.edits.Add(other.edits.Load())
	t.holds.Add(other.holds.Load())
}

// play is one interleaving.
type play struct {
	tally

	t      *testing.T
	seed   uint64
	random *rand.Rand // of the director alone; each actor has its own
	group  string
	crd    string
	// lossy means that v2 lacks the field secret, which some objects have, or that the webhook drops it.
	lossy bool
	// converts means that a webhook converts.
	converts bool
	// settle is the settle time of the runs. Without one, users write through the first server alone: a request under way at another
	// server may store the old version.
	settle time.Duration

	log *history
	// through guards the second server: users write through it under the read lock, while it does not lag.
	through sync.RWMutex
	lags    bool
}

const (
	playTime = 4 * time.Second
	objects  = 24
	// still objects are written by no user.
	still = 8
)

func newPlay(t *testing.T, seed uint64) *play {
	t.Helper()
	p := &play{t: t, seed: seed, random: rand.New(rand.NewPCG(seed, 0)), group: fmt.Sprintf("play-%d.example.com", seed)}
	p.crd = "things." + p.group
	p.lossy, p.converts = p.random.IntN(3) == 0, p.random.IntN(3) == 0
	p.settle = []time.Duration{-1, time.Second, 1500 * time.Millisecond}[p.random.IntN(3)]
	p.log = newHistory()
	return p
}

// run plays to the end, and checks the contract.
func (p *play) run() {
	p.t.Helper()
	if err := controlplane.InstallCRDs(p.t.Context(), plane.Config(), p.newCRD()); err != nil {
		p.t.Fatal(err)
	}
	if err := controlplane.AwaitServed(p.t.Context(), second.Config(), p.crd); err != nil {
		p.t.Fatal(err)
	}
	p.fill()
	watched := p.watch()
	ctx, cancel := context.WithTimeout(p.t.Context(), playTime)
	var actors sync.WaitGroup
	for i := range 4 {
		actors.Go(func() { p.user(ctx, i, 4) })
	}
	for i := range 1 + p.random.IntN(2) {
		actors.Go(func() { p.migrate(ctx, i) })
	}
	actors.Go(func() { p.edit(ctx) })
	actors.Go(func() { p.lag(ctx) })
	actors.Go(func() { p.deny(ctx.Done()) })
	actors.Wait()
	cancel()
	p.release()
	p.finish()
	watched.stop()
	p.checkHistory(watched)
	p.checkEtcd()
	p.uninstall()
}

// migrate plans and runs until the play ends. Each run is killed at a random time.
func (p *play) migrate(ctx context.Context, i int) {
	random := p.actor(100 + i)
	for ctx.Err() == nil {
		config := plane.Config()
		if random.IntN(2) == 0 {
			config = second.Config()
		}
		m := p.migrator(config, storageversion.Options{PageObjects: int64(3 + random.IntN(10))})
		run, cancel := context.WithTimeout(ctx, time.Duration(50+random.IntN(2000))*time.Millisecond)
		p.runOnce(run, m)
		if run.Err() != nil {
			p.kills.Add(1)
		}
		cancel()
	}
}

// runOnce makes passes until the run ends.
func (p *play) runOnce(ctx context.Context, m *storageversion.Migrator) {
	p.runs.Add(1)
	for ctx.Err() == nil {
		plan, err := m.Plan(ctx, p.crd)
		if err != nil {
			return
		}
		_, err = m.Run(ctx, plan, nil)
		var notSettled *decision.NotSettledError
		if !errors.As(err, &notSettled) && !errors.Is(err, decision.ErrChanged) {
			if err == nil {
				time.Sleep(20 * time.Millisecond)
			}
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// migrator knows no leases: the settle time and the server that answers decide when it writes.
func (p *play) migrator(config *rest.Config, o storageversion.Options) *storageversion.Migrator {
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return withoutLeases{next} })
	o.Settle = p.settle
	m, err := storageversion.New(config, o)
	if err != nil {
		p.t.Error(err)
	}
	return m
}

// finish gives v2 its storage, and migrates to the end. A lossy play ends with a refusal while an object is at v1 that would lose a value.
func (p *play) finish() {
	p.t.Helper()
	p.flips.Add(1)
	p.change(func(crd *apiextensionsv1.CustomResourceDefinition) { setStorage(crd, "v2"); serve(crd, "v1", true) })
	m := p.migrator(plane.Config(), storageversion.Options{})
	deadline := time.Now().Add(2 * time.Minute)
	for {
		plan, err := m.Plan(p.t.Context(), p.crd)
		if err == nil && plan.Trimmed {
			return
		}
		if err == nil {
			_, err = m.Run(p.t.Context(), plan, nil)
		}
		var blocked *decision.BlockedError
		if errors.As(err, &blocked) && blocked.Blockers[0].Reason == decision.ReasonFieldsWouldBeLost && p.lossy {
			return
		}
		if time.Now().After(deadline) {
			p.t.Fatalf("seed %d: the last run does not end: %v", p.seed, err)
		}
		time.Sleep(200 * time.Millisecond)
	}
}

func (p *play) uninstall() {
	if _, err := plane.Etcd().Delete(p.t.Context(), p.keys(), prefix); err != nil {
		p.t.Error(err)
	}
	if err := p.crds().Delete(p.t.Context(), p.crd, metav1.DeleteOptions{}); err != nil {
		p.t.Error(err)
	}
}
