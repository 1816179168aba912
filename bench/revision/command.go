package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	"k8s.io/client-go/rest"

	"github.com/godwit-dev/godwit/bench/internal/account"
	"github.com/godwit-dev/godwit/bench/internal/proc"
	"github.com/godwit-dev/godwit/test/controlplane"
)

// fewest VirtualMachines have a report that is larger than what a pipe buffers: see pass.PeakRSS.
const fewest = 200

// Exit codes of the command.
const (
	nothingLeft = 0
	pending     = 1 // here: old revisions are retained
)

// command is `godwit revision`, as a user starts it.
type command struct {
	binary     string
	kubeconfig string
	requests   *account.Requests
}

func newCommand(ctx context.Context, binary, kubeconfig string, user, admin *rest.Config) (*command, error) {
	c := &command{kubeconfig: kubeconfig}
	var err error
	if c.binary, err = filepath.Abs(binary); err != nil {
		return nil, err
	}
	if c.requests, err = account.CountRequests(ctx, admin); err != nil {
		return nil, err
	}
	return c, controlplane.WriteKubeconfig(kubeconfig, user)
}

// pass is one call of the command over all VirtualMachines, with its start, its plan, its lists
// and the inventory at its end.
type pass struct {
	speed
	Seconds       float64       `json:"seconds"`
	Requests      account.Count `json:"requests"`
	RequestsPerVM float64       `json:"requestsPerVM"`
	// ClientCPU is the part of CPUPerVM that the command itself uses.
	ClientCPU float64 `json:"clientCPUMillisecondsPerVM"`
	// PeakRSS is read when the first byte of the report arrives. Nothing comes after the report,
	// which is larger than what a pipe buffers, so that the process can't have ended.
	PeakRSS int64 `json:"peakRSSBytes,omitempty"`
}

// PeakRSSMiB is PeakRSS in MiB.
func (p pass) PeakRSSMiB() float64 { return float64(p.PeakRSS) / (1 << 20) }

// report is the part of the command's JSON that tells whether it did all.
type report struct {
	Counts struct {
		UpToDate  int `json:"upToDate"`
		Retained  int `json:"retained"`
		Succeeded int `json:"succeeded"`
	} `json:"counts"`
	DroppableVersions []string `json:"droppableVersions"`
}

// upgrade is a run that finds every revision old.
func (c *command) upgrade(ctx context.Context, f *fleet) (pass, error) {
	p, r, err := c.run(ctx, pending, len(f.vms))
	if err != nil {
		return p, err
	}
	if r.Counts.Retained != 2*len(f.vms) {
		return p, fmt.Errorf("godwit reports %+v, want 2 revisions of each of %d VirtualMachines retained", r.Counts, len(f.vms))
	}
	return p, errors.Join(f.mustBeRetained(ctx), p.mustHaveMemory())
}

// remove is a run that finds every retention over.
func (c *command) remove(ctx context.Context, f *fleet) (pass, error) {
	p, r, err := c.run(ctx, nothingLeft, len(f.vms))
	if err != nil {
		return p, err
	}
	if r.Counts.Succeeded != 2*len(f.vms) || !slices.Equal(r.DroppableVersions, []string{"v1alpha1", "v1alpha2"}) {
		return p, fmt.Errorf("godwit reports %+v, want 2 revisions of each of %d VirtualMachines finished and both old versions droppable", r, len(f.vms))
	}
	return p, errors.Join(f.mustBeRemoved(ctx), p.mustHaveMemory())
}

// idle is a run that finds nothing to do.
func (c *command) idle(ctx context.Context, f *fleet) (pass, error) {
	p, r, err := c.run(ctx, nothingLeft, len(f.vms))
	p.PeakRSS = 0 // the report is empty: the process may have ended before its memory is read
	if err == nil && r.Counts.UpToDate != 2*len(f.vms) {
		err = fmt.Errorf("godwit reports %+v, want 2 revisions of each of %d VirtualMachines up to date", r.Counts, len(f.vms))
	}
	return p, err
}

// plan finds every revision old, and writes nothing.
func (c *command) plan(ctx context.Context, vms int) (pass, error) {
	var r struct {
		Items []struct {
			Action string `json:"action"`
		} `json:"items"`
	}
	p, err := c.start(ctx, pending, vms, &r, "plan")
	if err != nil {
		return p, err
	}
	var upgrades int
	for _, i := range r.Items {
		if i.Action == "Upgrade" {
			upgrades++
		}
	}
	if upgrades != 2*vms {
		err = fmt.Errorf("godwit plans %d upgrades, want 2 of each of %d VirtualMachines", upgrades, vms)
	}
	return p, errors.Join(err, p.mustHaveMemory())
}

func (p pass) mustHaveMemory() error {
	if p.PeakRSS == 0 {
		return errors.New("the process had ended before its memory could be read")
	}
	return nil
}

func (c *command) run(ctx context.Context, code, vms int) (p pass, r report, err error) {
	p, err = c.start(ctx, code, vms, &r, "run", "--all-namespaces", "--yes")
	return p, r, err
}

// start starts `godwit revision`, and measures it from outside.
func (c *command) start(ctx context.Context, code, vms int, into any, args ...string) (p pass, err error) {
	before, err := c.requests.Read(ctx)
	if err != nil {
		return p, err
	}
	cmd := exec.CommandContext(ctx, c.binary, append([]string{"revision"}, append(args, "--output=json")...)...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+c.kubeconfig)
	timer, err := startTimer()
	if err != nil {
		return p, err
	}
	ended, err := proc.Run(cmd)
	if err != nil {
		return p, err
	}
	if p.speed, err = timer.stop(vms, ended.CPU); err != nil {
		return p, err
	}
	p.Seconds, p.ClientCPU = ended.Took.Seconds(), 1000*ended.CPU/float64(vms)
	if ended.Code != code {
		return p, fmt.Errorf("%s ended with %d, want %d\n%s", cmd, ended.Code, code, ended.Stderr)
	}
	if err := json.Unmarshal(ended.Stdout, into); err != nil {
		return p, fmt.Errorf("read the report: %w", err)
	}
	after, err := c.requests.Read(ctx)
	if err != nil {
		return p, err
	}
	p.Requests, p.PeakRSS = after.Since(before), ended.PeakRSS
	p.RequestsPerVM = float64(p.Requests.Total()) / float64(vms)
	return p, nil
}
