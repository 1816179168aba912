// Command plan measures `godwit plan` and `godwit crd doctor` on one machine: seconds and requests, the plan for
// several contexts of a kubeconfig. All contexts lead to the same API server, which answers the requests of all of them.
//
// Each CRD has a schema of 40 KB, as those of cert-manager have, and two objects. A third of the CRDs has
// objects at an old version.
//
// Read main.go, then cluster.go.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/godwit-dev/godwit/bench/internal/account"
	"github.com/godwit-dev/godwit/bench/internal/measure"
	"github.com/godwit-dev/godwit/test/controlplane"
)

// result is what is written to bench/out/plan.json.
type result struct {
	CRDs     int `json:"crds"`
	Contexts int `json:"contexts"`
	// One is a plan of one context, and All a plan of all of them. Bare is a plan of one without References.
	One  measurement `json:"one"`
	All  measurement `json:"all"`
	Bare measurement `json:"bare"`
	// Doctor finds what names versions that are not served, in one context.
	Doctor measurement `json:"doctor"`
}

// measurement has the median of the rounds, and the requests of one round.
type measurement struct {
	Seconds  float64       `json:"seconds"`
	Rounds   []float64     `json:"rounds"`
	Requests account.Count `json:"requests"`
}

func main() {
	var o options
	flag.IntVar(&o.crds, "crds", 300, "CRDs of the cluster")
	flag.IntVar(&o.contexts, "contexts", 4, "contexts of the kubeconfig")
	flag.IntVar(&o.rounds, "rounds", 3, "plans of each kind, of which the median counts")
	flag.StringVar(&o.binary, "godwit", "../bin/godwit", "the command to measure")
	out := flag.String("out", "out/plan.json", "where the result goes")
	flag.Parse()
	os.Exit(measure.Main(context.Background(), func(ctx context.Context) error { return run(ctx, o, *out) }))
}

type options struct {
	crds, contexts, rounds int
	binary                 string
}

func run(ctx context.Context, o options, out string) (err error) {
	plane, err := controlplane.Start(ctx, controlplane.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, plane.Stop()) }()
	measure.Say("creating %d CRDs", o.crds)
	if err := populate(ctx, plane.Config(), o.crds); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "godwit-bench-plan-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	c, err := newCommand(ctx, o, plane, dir)
	if err != nil {
		return err
	}
	r := result{CRDs: o.crds, Contexts: o.contexts}
	first := c.names[:1]
	for _, m := range []struct {
		into *measurement
		name string
		run  func() error
	}{
		{&r.One, "plan of 1 context", func() error { return c.plan(ctx, first, o.crds, true) }},
		{&r.All, fmt.Sprintf("plan of %d contexts", o.contexts), func() error { return c.plan(ctx, c.names, o.crds, true) }},
		{&r.Bare, "plan without References", func() error { return c.plan(ctx, first, o.crds, false) }},
		{&r.Doctor, "crd doctor", func() error { return c.doctor(ctx, o.crds) }},
	} {
		if *m.into, err = c.measure(ctx, o.rounds, m.name, m.run); err != nil {
			return err
		}
	}
	if err := measure.Write(os.Stderr, out, r); err != nil {
		return err
	}
	_, err = fmt.Fprintf(os.Stdout, "doctor: crds=%d seconds=%.1f requests=%d\n"+
		"plan: contexts=%d crds=%d seconds=%.1f requests=%d\n", r.CRDs, r.Doctor.Seconds, r.Doctor.Requests.Total(),
		r.Contexts, r.CRDs, r.All.Seconds, r.All.Requests.Total())
	return err
}

// command is `godwit plan`, as a user starts it.
type command struct {
	binary, kubeconfig string
	names              []string
	requests           *account.Requests
}

func newCommand(ctx context.Context, o options, plane *controlplane.ControlPlane, dir string) (*command, error) {
	c := &command{kubeconfig: filepath.Join(dir, "kubeconfig")}
	var err error
	if c.binary, err = filepath.Abs(o.binary); err != nil {
		return nil, err
	}
	user, err := account.AddUser(ctx, plane, account.Godwit)
	if err != nil {
		return nil, err
	}
	for i := range o.contexts {
		c.names = append(c.names, fmt.Sprintf("cluster%d", i))
	}
	if err := writeContexts(c.kubeconfig, user, c.names); err != nil {
		return nil, err
	}
	c.requests, err = account.CountRequests(ctx, plane.Config())
	return c, err
}

// measure runs a command several times. The first one, which opens connections and fills the caches of the API
// server, counts as the others do: a user plans once.
func (c *command) measure(ctx context.Context, rounds int, name string, run func() error) (measurement, error) {
	var m measurement
	for i := range rounds {
		before, err := c.requests.Read(ctx)
		if err != nil {
			return m, err
		}
		began := time.Now()
		if err := run(); err != nil {
			return m, err
		}
		took := time.Since(began).Seconds()
		m.Rounds = append(m.Rounds, took)
		after, err := c.requests.Read(ctx)
		if err != nil {
			return m, err
		}
		m.Requests = after.Since(before)
		measure.Say("%s, round %d: %.1f s, %d requests", name, i+1, took, m.Requests.Total())
	}
	m.Seconds = measure.Median(m.Rounds, func(f float64) float64 { return f })
	return m, nil
}

// run runs the command, and fails unless it ends with the exit code.
func (c *command) run(ctx context.Context, code int, into any, args ...string) error {
	command := exec.CommandContext(ctx, c.binary, append(args, "--kubeconfig="+c.kubeconfig, "-o", "json")...)
	command.Stderr = os.Stderr
	text, err := command.Output()
	if command.ProcessState == nil || command.ProcessState.ExitCode() != code {
		return fmt.Errorf("godwit %s: %w, want exit code %d:\n%s", args[0], err, code, text[:min(len(text), 2000)])
	}
	return json.Unmarshal(text, into)
}

// plan plans all domains, and fails unless the plan has every CRD of every context and nothing else than work.
func (c *command) plan(ctx context.Context, names []string, crds int, references bool) error {
	var list struct {
		Items []struct {
			Domain string
			Counts struct{ Clean, Ready int }
		}
	}
	if err := c.run(ctx, 1, &list, "plan", "--contexts="+strings.Join(names, ","), fmt.Sprintf("--references=%t", references)); err != nil {
		return err
	}
	want := map[string]int{"CRDs": (crds + 2) / 3, "References": 0} // those that are ready
	for _, row := range list.Items {
		if ready, known := want[row.Domain]; !known || row.Counts.Clean+row.Counts.Ready != crds || row.Counts.Ready != ready {
			return fmt.Errorf("the row %s has %+v, want %d CRDs, of which %d are ready", row.Domain, row.Counts, crds, ready)
		}
	}
	rows := len(names)
	if references {
		rows *= 2
	}
	if len(list.Items) != rows {
		return fmt.Errorf("the plan has %d rows, want %d for %d contexts", len(list.Items), rows, len(names))
	}
	return nil
}

// doctor finds what names versions that are not served, and fails unless it has looked at every CRD and read everything.
func (c *command) doctor(ctx context.Context, crds int) error {
	var report struct{ Items, Unread []struct{ State string } }
	if err := c.run(ctx, 0, &report, "crd", "doctor", "--context="+c.names[0]); err != nil {
		return err
	}
	if len(report.Items) != crds || len(report.Unread) > 0 {
		return fmt.Errorf("the report has %d CRDs and %d resources that were not read, want %d and none", len(report.Items), len(report.Unread), crds)
	}
	return nil
}
