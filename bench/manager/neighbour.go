package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/godwit-dev/godwit/bench/internal/account"
	"github.com/godwit-dev/godwit/bench/internal/measure"
	"github.com/godwit-dev/godwit/bench/internal/proc"
	"github.com/godwit-dev/godwit/bench/internal/widget"
)

const (
	// perSecond is a busy controller's rate, and far below what the server can take.
	perSecond = 50
	// belongings is how many objects the second client has.
	belongings = 20
)

// neighbourResult is what a second client notices of the manager.
type neighbourResult struct {
	PerSecond int    `json:"requestsPerSecond"`
	Mix       string `json:"mix"`
	// Each number is the median of the rounds; the ratio is that of ratios within
	// a round.
	IdleP50  float64 `json:"idleP50Milliseconds"`
	IdleP99  float64 `json:"idleP99Milliseconds"`
	LoadP50  float64 `json:"loadP50Milliseconds"`
	LoadP99  float64 `json:"loadP99Milliseconds"`
	Ratio    float64 `json:"p99Ratio"`
	RatioP50 float64 `json:"p50Ratio"`
	// Pooled is the ratio of the p99 of all samples together.
	Pooled float64 `json:"p99RatioPooled"`
	// ManagerWritesPerSecond is what the manager got done meanwhile.
	ManagerWritesPerSecond float64 `json:"managerWritesPerSecond"`
	Rounds                 []turn  `json:"rounds"`
}

// turn is one round: with the manager stopped and at work, by turns.
type turn struct {
	Idle     window  `json:"idle"`
	Load     window  `json:"load"`
	Ratio    float64 `json:"p99Ratio"`
	RatioP50 float64 `json:"p50Ratio"`
	// WritesPerSecond are the manager's patches while it was at work.
	WritesPerSecond float64 `json:"managerWritesPerSecond"`
	// LoadAverage is the machine's over the minute before: what is above our own
	// few processes belongs to other processes, and is noise.
	LoadAverage float64 `json:"loadAverage"`
}

// window is what the second client saw of its requests in some seconds, in
// milliseconds.
type window struct {
	Samples int     `json:"samples"`
	P50     float64 `json:"p50Milliseconds"`
	P99     float64 `json:"p99Milliseconds"`
	Max     float64 `json:"maxMilliseconds"`

	took []time.Duration
}

func windowOf(took []time.Duration) window {
	ms := func(share float64) float64 { return measure.Percentile(took, share).Seconds() * 1000 }
	return window{Samples: len(took), P50: ms(0.5), P99: ms(0.99), Max: ms(1), took: took}
}

func (b *bench) measureNeighbour(ctx context.Context) (r neighbourResult, err error) {
	r.PerSecond, r.Mix = perSecond, "of ten requests: 6 GET, 1 LIST of 20, 3 PATCH, of ConfigMaps of its own"
	n, err := b.newNeighbour(ctx)
	if err != nil {
		return r, err
	}
	share := int(2*b.rate*b.window.Seconds()/float64(b.objects)) + 1 // enough for two windows
	for i := range b.rounds {
		average := proc.LoadAverage()
		t, err := b.turn(ctx, n, b.resources[:min(share, b.crds)])
		if err != nil {
			return r, err
		}
		t.LoadAverage = average
		measure.Say("round %d: p99 %.1f ms idle, %.1f ms (%.2f times) while the manager writes %.0f objects/s",
			i+1, t.Idle.P99, t.Load.P99, t.Ratio, t.WritesPerSecond)
		r.Rounds = append(r.Rounds, t)
	}
	r.rate()
	return r, nil
}

// rate sums up the rounds.
func (r *neighbourResult) rate() {
	if len(r.Rounds) == 0 {
		return
	}
	of := func(value func(turn) float64) float64 { return measure.Median(r.Rounds, value) }
	r.IdleP50, r.IdleP99 = of(func(t turn) float64 { return t.Idle.P50 }), of(func(t turn) float64 { return t.Idle.P99 })
	r.LoadP50, r.LoadP99 = of(func(t turn) float64 { return t.Load.P50 }), of(func(t turn) float64 { return t.Load.P99 })
	r.Ratio, r.RatioP50 = of(func(t turn) float64 { return t.Ratio }), of(func(t turn) float64 { return t.RatioP50 })
	r.ManagerWritesPerSecond = of(func(t turn) float64 { return t.WritesPerSecond })
	var idle, load []time.Duration
	for _, t := range r.Rounds {
		idle, load = append(idle, t.Idle.took...), append(load, t.Load.took...)
	}
	r.Pooled = measure.Ratio(windowOf(load).P99, windowOf(idle).P99)
}

// turn measures one round.
func (b *bench) turn(ctx context.Context, n *neighbour, resources []*widget.Resource) (t turn, err error) {
	ctx, p, err := b.start(ctx, configured, "--leader-elect=false") // one that is stopped can't renew its lease
	if err != nil {
		return t, err
	}
	defer func() { err = errors.Join(err, p.stop()) }()
	if err := flip(ctx, resources); err != nil {
		return t, err
	}
	if err := b.awaitWriting(ctx, resources); err != nil {
		return t, err
	}
	before, err := b.requests.Read(ctx)
	if err != nil {
		return t, err
	}
	loaded, err := b.alternate(ctx, n, p, resources, &t)
	if err != nil {
		return t, err
	}
	after, err := b.requests.Read(ctx)
	if err != nil {
		return t, err
	}
	t.rate()
	t.WritesPerSecond = measure.Ratio(float64(after.Since(before)["patch"]), loaded.Seconds())
	if err := b.awaitSuccess(ctx, resources); err != nil {
		return t, err
	}
	return t, mustBeMigrated(ctx, resources)
}

const (
	// half is short against what others do on a shared machine, so that both
	// sides of a comparison have their share of it, and long against what a stop
	// and a start cost.
	half = 5 * time.Second
	// swing is what is not measured after a switch: requests under way end, and
	// the manager finds its pace again, which takes an answer that was late by the
	// stop for strain.
	swing = time.Second
)

// alternate stops and continues the manager by a signal, and measures in between.
// It returns how long the manager was at work.
func (b *bench) alternate(ctx context.Context, n *neighbour, p *process, resources []*widget.Resource, t *turn) (loaded time.Duration, err error) {
	for range int(b.window / half) {
		if err := p.Process.Signal(syscall.SIGSTOP); err != nil {
			return 0, err
		}
		idle, err := n.swingAndMeasure(ctx)
		if err := errors.Join(err, p.Process.Signal(syscall.SIGCONT)); err != nil {
			return 0, err
		}
		begun := time.Now()
		load, err := n.swingAndMeasure(ctx)
		if err != nil {
			return 0, err
		}
		loaded += time.Since(begun)
		if b.migrations.all(resources, succeeded) {
			return loaded, nil // the manager was at rest for a part of it
		}
		t.Idle.took, t.Load.took = append(t.Idle.took, idle...), append(t.Load.took, load...)
	}
	return loaded, nil
}

func (t *turn) rate() {
	t.Idle, t.Load = windowOf(t.Idle.took), windowOf(t.Load.took)
	t.Ratio, t.RatioP50 = measure.Ratio(t.Load.P99, t.Idle.P99), measure.Ratio(t.Load.P50, t.Idle.P50)
}

// neighbour is the second client.
type neighbour struct {
	objects typedcorev1.ConfigMapInterface
}

func (b *bench) newNeighbour(ctx context.Context) (*neighbour, error) {
	user, err := account.AddUser(ctx, b.plane, "neighbour")
	if err != nil {
		return nil, err
	}
	clients, err := kubernetes.NewForConfig(user)
	if err != nil {
		return nil, err
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "neighbour"}}
	if _, err := clients.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{}); err != nil {
		return nil, err
	}
	n := &neighbour{objects: clients.CoreV1().ConfigMaps(namespace.Name)}
	for i := range belongings {
		o := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: belonging(i)}, Data: map[string]string{"turn": "none"}}
		if _, err := n.objects.Create(ctx, o, metav1.CreateOptions{}); err != nil {
			return nil, err
		}
	}
	return n, nil
}

func belonging(i int) string { return fmt.Sprintf("belonging-%d", i%belongings) }

func (n *neighbour) swingAndMeasure(ctx context.Context) ([]time.Duration, error) {
	if err := wait(ctx, swing); err != nil {
		return nil, err
	}
	return n.measure(ctx, half)
}

// measure sends requests at a steady rate, however long the ones before take. A
// request's time runs from when it was due: one that the client itself was late to
// send counts as late.
func (n *neighbour) measure(ctx context.Context, d time.Duration) ([]time.Duration, error) {
	const every = time.Second / perSecond
	took := make([]time.Duration, int(d/every))
	failed := make([]error, len(took))
	var underWay sync.WaitGroup
	defer underWay.Wait()
	begun := time.Now()
	for i := range took {
		due := begun.Add(time.Duration(i) * every)
		if err := wait(ctx, time.Until(due)); err != nil {
			return nil, err
		}
		underWay.Go(func() {
			failed[i] = n.request(ctx, i)
			took[i] = time.Since(due)
		})
	}
	underWay.Wait()
	if err := errors.Join(failed...); err != nil {
		return nil, fmt.Errorf("the second client: %w", err)
	}
	return took, nil
}

// request is what a controller does: mostly reads of single objects, and writes of
// what it found to be different.
func (n *neighbour) request(ctx context.Context, i int) error {
	var err error
	switch i % 10 {
	case 0:
		_, err = n.objects.List(ctx, metav1.ListOptions{})
	case 1, 4, 7:
		patch := fmt.Appendf(nil, `{"data":{"turn":"%d"}}`, time.Now().UnixNano())
		_, err = n.objects.Patch(ctx, belonging(i/3), types.MergePatchType, patch, metav1.PatchOptions{})
	default:
		_, err = n.objects.Get(ctx, belonging(i), metav1.GetOptions{})
	}
	return err
}
