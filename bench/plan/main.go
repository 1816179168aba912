// Command plan measures the seconds and the requests of `godwit plan` and `godwit crd doctor` on one machine. It measures the plan
// for one and for several contexts of a kubeconfig. All contexts have the same API server, which answers all requests.
//
// Each CRD has a schema of 40 KB, as the CRDs of cert-manager have, and two objects. A third of the CRDs has
// objects at an old version.
//
// Read main.go, then cluster.go.
package main

import (
	"context"
	"flag"
	"fmt"
	"strings"

	"github.com/godwit-dev/godwit/bench/internal/account"
	"github.com/godwit-dev/godwit/bench/internal/frame"
	"github.com/godwit-dev/godwit/test/controlplane"
)

// result is the content of bench/out/plan.json.
type result struct {
	CRDs     int `json:"crds"`
	Contexts int `json:"contexts"`
	// One is a plan of one context, and All a plan of all contexts. Bare is a plan of one context without References.
	One  measurement `json:"one"`
	All  measurement `json:"all"`
	Bare measurement `json:"bare"`
	// Doctor finds references to versions that are not served, in one context.
	Doctor measurement `json:"doctor"`

	rounds int
}

// measurement has the median of the rounds, and the requests of the last one.
type measurement struct {
	Seconds  float64       `json:"seconds"`
	Rounds   []float64     `json:"rounds"`
	Requests account.Count `json:"requests"`
}

func main() {
	r := &result{}
	flag.IntVar(&r.CRDs, "crds", 300, "CRDs of the cluster")
	flag.IntVar(&r.Contexts, "contexts", 4, "contexts of the kubeconfig")
	flag.IntVar(&r.rounds, "rounds", 3, "rounds, of which the median counts")
	frame.Main("plan", r)
}

// Measure runs each command in each round. The first run counts, too, although it fills the caches of the API server, because a user
// usually plans once.
func (r *result) Measure(ctx context.Context, b *frame.Bench) error {
	cluster, err := b.StartCluster(ctx, controlplane.Options{})
	if err != nil {
		return err
	}
	frame.Logf("creating %d CRDs", r.CRDs)
	if err := populate(ctx, cluster.Config(), r.CRDs); err != nil {
		return err
	}
	c := command{cluster, frame.Names("cluster", r.Contexts), r.CRDs}
	if err := writeContexts(cluster.Kubeconfig, cluster.User, c.contexts); err != nil {
		return err
	}
	one := c.contexts[:1]
	turns := []frame.Turn{
		r.One.turn("plan of 1 context", func(ctx context.Context) (frame.Cost, error) { return c.plan(ctx, one, true) }),
		r.All.turn(fmt.Sprintf("plan of %d contexts", r.Contexts), func(ctx context.Context) (frame.Cost, error) { return c.plan(ctx, c.contexts, true) }),
		r.Bare.turn("plan without References", func(ctx context.Context) (frame.Cost, error) { return c.plan(ctx, one, false) }),
		r.Doctor.turn("crd doctor", c.doctor),
	}
	for i := range r.rounds {
		if err := frame.TakeTurns(ctx, i, func(context.Context) error { return nil }, turns); err != nil {
			return err
		}
	}
	return nil
}

// turn adds a run to the measurement.
func (m *measurement) turn(name string, run func(context.Context) (frame.Cost, error)) frame.Turn {
	return func(ctx context.Context) (string, error) {
		cost, err := run(ctx)
		m.Rounds = append(m.Rounds, cost.Took.Seconds())
		m.Seconds = frame.Median(m.Rounds, func(f float64) float64 { return f })
		m.Requests = cost.Requests
		return fmt.Sprintf("%s: %.1f s, %d requests", name, cost.Took.Seconds(), cost.Requests.Total()), err
	}
}

// Summary implements [frame.Benchmark].
func (r *result) Summary() string {
	return fmt.Sprintf("doctor: crds=%d seconds=%.1f requests=%d\nplan: contexts=%d crds=%d seconds=%.1f requests=%d",
		r.CRDs, r.Doctor.Seconds, r.Doctor.Requests.Total(), r.Contexts, r.CRDs, r.All.Seconds, r.All.Requests.Total())
}

// command is godwit on the CRDs of a cluster, which has several contexts.
type command struct {
	cluster  *frame.Cluster
	contexts []string
	crds     int
}

// plan plans all domains, and fails unless the plan has every CRD of every context, and no other work.
func (c command) plan(ctx context.Context, contexts []string, references bool) (frame.Cost, error) {
	var list struct {
		Items []struct {
			Domain string
			Counts struct{ Clean, Ready int }
		}
	}
	cost, err := c.cluster.Run(ctx, frame.ExitPending, &list, "plan", "--contexts="+strings.Join(contexts, ","), fmt.Sprintf("--references=%t", references))
	if err != nil {
		return cost, err
	}
	want := map[string]int{"CRDs": (c.crds + 2) / 3, "References": 0} // that are ready
	for _, row := range list.Items {
		if ready, known := want[row.Domain]; !known || row.Counts.Clean+row.Counts.Ready != c.crds || row.Counts.Ready != ready {
			return cost, fmt.Errorf("the row %s has %+v, want %d CRDs, of which %d are ready", row.Domain, row.Counts, c.crds, ready)
		}
	}
	rows := len(contexts)
	if references {
		rows *= 2
	}
	if len(list.Items) != rows {
		return cost, fmt.Errorf("the plan has %d rows, want %d for %d contexts", len(list.Items), rows, len(contexts))
	}
	return cost, nil
}

// doctor finds references to API versions that are not served, and fails unless it has read every CRD and all other resources.
func (c command) doctor(ctx context.Context) (frame.Cost, error) {
	var report struct{ Items, Unread []struct{ State string } }
	cost, err := c.cluster.Run(ctx, frame.ExitDone, &report, "crd", "doctor", "--context="+c.contexts[0])
	if err == nil && (len(report.Items) != c.crds || len(report.Unread) > 0) {
		err = fmt.Errorf("the report has %d CRDs and %d resources that were not read, want %d and none", len(report.Items), len(report.Unread), c.crds)
	}
	return cost, err
}
