package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/godwit-dev/godwit/bench/internal/account"
	"github.com/godwit-dev/godwit/bench/internal/frame"
)

// pass is one run of `godwit revision` over all VirtualMachines, with its start, its plan, its lists and the inventory at its end.
type pass struct {
	speed
	Seconds       float64       `json:"seconds"`
	Requests      account.Count `json:"requests"`
	RequestsPerVM float64       `json:"requestsPerVM"`
	// ClientCPU is the part of CPUPerVM that the command itself uses.
	ClientCPU float64 `json:"clientCPUMillisecondsPerVM"`
	PeakRSS   int64   `json:"peakRSSBytes"`
}

// PeakRSSMiB is PeakRSS in MiB.
func (p pass) PeakRSSMiB() float64 { return frame.MiB(p.PeakRSS) }

// report is the part of the command's JSON that shows whether it has upgraded the revisions.
type report struct {
	Counts struct {
		UpToDate  int `json:"upToDate"`
		Retained  int `json:"retained"`
		Succeeded int `json:"succeeded"`
	} `json:"counts"`
	DroppableVersions []string `json:"droppableVersions"`
}

// runUpgrade runs the command while every revision is old. The run upgrades all, and keeps the old revisions.
func (f *fleet) runUpgrade(ctx context.Context) (pass, error) {
	p, r, err := f.runAll(ctx, frame.ExitPending)
	if err != nil {
		return p, err
	}
	if r.Counts.Retained != 2*len(f.vms) {
		return p, fmt.Errorf("godwit reports %+v, want 2 revisions of each of %d VirtualMachines retained", r.Counts, len(f.vms))
	}
	return p, f.mustBeRetained(ctx)
}

// runRemoval runs the command after the end of every retention. The run deletes the old revisions.
func (f *fleet) runRemoval(ctx context.Context) (pass, error) {
	p, r, err := f.runAll(ctx, frame.ExitDone)
	if err != nil {
		return p, err
	}
	if r.Counts.Succeeded != 2*len(f.vms) || !slices.Equal(r.DroppableVersions, []string{"v1alpha1", "v1alpha2"}) {
		return p, fmt.Errorf("godwit reports %+v, want 2 revisions of each of %d VirtualMachines finished and both old versions droppable", r, len(f.vms))
	}
	return p, f.mustBeRemoved(ctx)
}

// runIdle runs the command when there is nothing to do.
func (f *fleet) runIdle(ctx context.Context) (pass, error) {
	p, r, err := f.runAll(ctx, frame.ExitDone)
	if err == nil && r.Counts.UpToDate != 2*len(f.vms) {
		err = fmt.Errorf("godwit reports %+v, want 2 revisions of each of %d VirtualMachines up to date", r.Counts, len(f.vms))
	}
	return p, err
}

func (f *fleet) runAll(ctx context.Context, code int) (p pass, r report, err error) {
	p, err = f.godwit(ctx, code, len(f.vms), &r, "run", "--all-namespaces", "--yes")
	return p, r, err
}

// runPlan plans while every revision of the VirtualMachines is old. It writes nothing.
func (f *fleet) runPlan(ctx context.Context, vms int) (pass, error) {
	var r struct {
		Items []struct {
			Action string `json:"action"`
		} `json:"items"`
	}
	p, err := f.godwit(ctx, frame.ExitPending, vms, &r, "plan")
	if err != nil {
		return p, err
	}
	upgrades := 0
	for _, i := range r.Items {
		if i.Action == "Upgrade" {
			upgrades++
		}
	}
	if upgrades != 2*vms {
		err = fmt.Errorf("godwit plans %d upgrades, want 2 of each of %d VirtualMachines", upgrades, vms)
	}
	return p, err
}

// godwit runs `godwit revision`.
func (f *fleet) godwit(ctx context.Context, code, vms int, report any, args ...string) (pass, error) {
	cost, err := f.Run(ctx, code, report, append([]string{"revision"}, args...)...)
	per := func(of float64) float64 { return of / float64(vms) }
	return pass{
		speed: speedOf(vms, cost), Seconds: cost.Took.Seconds(), ClientCPU: 1000 * per(cost.CPU),
		Requests: cost.Requests, RequestsPerVM: per(float64(cost.Requests.Total())), PeakRSS: cost.PeakRSS,
	}, err
}
