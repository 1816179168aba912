package property

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/godwit-dev/godwit/internal/storageversion"
	"github.com/godwit-dev/godwit/internal/storageversion/decision"
	"github.com/godwit-dev/godwit/test/controlplane"
	"github.com/godwit-dev/godwit/test/etcdgate"
)

var (
	playFor  = flag.Duration("property.for", time.Minute, "how long plays begin: the last one may take minutes, see everyDefault")
	fromSeed = flag.Uint64("property.seed", 1, "the seed of the first play")
)

// everyDefault is the distance between two seeds whose play has the default settle time, which is what a user gets without an option.
// Such a play takes five minutes. The minute of make test, from seed 1, ends before the first of them, and `make property FOR=30m`
// plays two or three.
const everyDefault = 60

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
	t.Logf("%d plays from seed %d, %d of them with the default settle time: %s", total.plays.Load(), *fromSeed, total.defaults.Load(), &total)
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

// tally counts what plays did.
type tally struct {
	plays, defaults                  atomic.Int64 // with the default settle time
	runs, kills, outdated, rewritten atomic.Int64 // outdated: runs whose plan is of a CRD that was deleted since; rewritten: writes of runs
	writes, refused                  atomic.Int64 // of users
	trims, edits, recreations, holds atomic.Int64
	dropped                          atomic.Int64 // values, by the API server, since the CRD changed during a write
}

func (t *tally) add(other *tally) {
	t.plays.Add(1)
	from, to := other.counters(), t.counters()
	for i := range from {
		to[i].Add(from[i].Load())
	}
}

func (t *tally) counters() []*atomic.Int64 {
	return []*atomic.Int64{
		&t.defaults, &t.runs, &t.kills, &t.outdated, &t.rewritten, &t.writes, &t.refused, &t.trims, &t.edits, &t.recreations, &t.holds, &t.dropped,
	}
}

func (t *tally) String() string {
	return fmt.Sprintf("%d runs, %d killed, %d with the plan of a deleted CRD, %d writes of runs, %d writes of users, %d refused, %d trims, %d edits, "+
		"%d deletions and creations of the CRD, %d holds of a server, %d values dropped since the CRD changed during a write",
		t.runs.Load(), t.kills.Load(), t.outdated.Load(), t.rewritten.Load(), t.writes.Load(), t.refused.Load(), t.trims.Load(), t.edits.Load(),
		t.recreations.Load(), t.holds.Load(), t.dropped.Load())
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
	// recreates means that the CRD is deleted and created again.
	recreates          bool
	deleted, recreated chan struct{} // closed before and after the first time
	// settle is the settle time of the runs; 0 is the default. Without one, which is noSettle, nothing waits for a server that lags: users
	// write through the first server alone, since a request under way at another one may store the old version, and a field is added
	// only while the second server does not lag, since it would drop the field.
	settle time.Duration
	pace   pace

	log *history
	// through guards the second server: users write through it under the read lock, while it does not lag.
	through sync.RWMutex
	lags    bool
	lagging sync.Mutex // held while the second server lags
	flips   atomic.Int64
}

const (
	objects = 24
	// still objects are written by no user.
	still = 8

	noSettle = -1
	// documented is the default settle time that the documentation promises.
	documented = 75 * time.Second
)

// pace is how quickly the actors of a play act.
type pace struct {
	play  time.Duration // the actors end after it
	run   time.Duration // a run is killed within it
	pause time.Duration // bounds the time between two edits, among others
	quiet time.Duration // is added to the time after every second edit
	lag   time.Duration // bounds the time for which the second server lags
}

var (
	quick = pace{play: 4 * time.Second, run: 2 * time.Second, pause: 1500 * time.Millisecond, lag: 1700 * time.Millisecond}
	// unhurried leaves runs the time to settle. The second server lags for less than the 15 s that are for its watch.
	unhurried = pace{play: 190 * time.Second, run: 150 * time.Second, pause: 13 * time.Second, quiet: 80 * time.Second, lag: 13 * time.Second}
)

func newPlay(t *testing.T, seed uint64) *play {
	t.Helper()
	p := &play{t: t, seed: seed, random: rand.New(rand.NewPCG(seed, 0)), group: fmt.Sprintf("play-%d.example.com", seed)}
	p.crd = "things." + p.group
	p.lossy, p.converts, p.recreates = p.random.IntN(3) == 0, p.random.IntN(3) == 0, p.random.IntN(2) == 0
	p.settle, p.pace = []time.Duration{noSettle, time.Second, 1500 * time.Millisecond}[p.random.IntN(3)], quick
	if p.settle > 0 {
		p.pace.lag = p.settle / 2
	}
	if p.recreates {
		p.pace.play += p.pace.pause
	}
	if seed%everyDefault == 0 {
		p.settle, p.pace = 0, unhurried
		p.defaults.Add(1)
	}
	p.log, p.deleted, p.recreated = newHistory(), make(chan struct{}), make(chan struct{})
	return p
}

// run plays to the end, and checks the contract.
func (p *play) run() {
	p.t.Helper()
	p.create("v1")
	if err := controlplane.AwaitServed(p.t.Context(), second.Config(), p.crd); err != nil {
		p.t.Fatal(err)
	}
	watched := p.watch()
	ctx, cancel := context.WithTimeout(p.t.Context(), p.pace.play)
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
	p.finish()
	watched.stop()
	p.checkHistory(watched)
	p.checkRuns()
	p.checkEtcd()
	p.uninstall()
}

// finish gives v2 its storage, and migrates to the end. A lossy play ends with a refusal while an object is at v1 that would lose a value.
func (p *play) finish() {
	p.t.Helper()
	p.flip("v2")
	p.change(func(crd *apiextensionsv1.CustomResourceDefinition) { serve(crd, "v1", true) })
	w := &witness{play: p}
	m := p.migrator(plane.Config(), w, storageversion.Options{})
	deadline := time.Now().Add(2*time.Minute + documented)
	for {
		plan, err := m.Plan(p.t.Context(), p.crd)
		if err == nil && plan.Trimmed {
			return
		}
		if err == nil {
			w.begin(plan.UID)
			_, err = m.Run(p.t.Context(), plan, nil)
		}
		var blocked *decision.BlockedError
		if errors.As(err, &blocked) && blocked.Blockers[0].Reason == decision.ReasonFieldsWouldBeLost && p.lossy {
			return
		}
		if time.Now().After(deadline) {
			p.t.Fatalf("seed %d: the last run does not end: %v", p.seed, err)
		}
		time.Sleep(p.pace.pause / 8)
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
