// Command scale migrates very many objects with `godwit crd run`, kills it halfway and resumes it.
//
// The command copies the objects inside etcd, where a million of them takes a minute. If the objects exceed the default byte budget
// of five minutes, the run has no budget, because the control plane's etcd has a quota of 8 GiB.
package main

import (
	"context"
	"flag"
	"fmt"
	"strconv"
	"time"

	"github.com/godwit-dev/godwit/bench/internal/frame"
	"github.com/godwit-dev/godwit/bench/internal/proc"
	"github.com/godwit-dev/godwit/bench/internal/result"
	"github.com/godwit-dev/godwit/bench/internal/widget"
	"github.com/godwit-dev/godwit/test/controlplane"
)

// Up to manyObjects, objects have the usual payload. More objects have a smaller payload, so that etcd's quota holds both
// revisions of each. Their API server has no watch cache, which would hold each object decoded, once for each served version, and
// take 12 GiB for 100,000 objects.
const (
	manyObjects    = 200_000
	usualPayload   = 2000
	smallPayload   = 400
	objectOverhead = 600 // bytes of metadata in etcd
	defaultBudget  = 512 << 20
)

type bench struct {
	result.Scale

	cluster  *frame.Cluster
	resource *widget.Resource
}

func main() {
	b := &bench{}
	flag.IntVar(&b.Objects, "n", 100_000, "objects")
	flag.IntVar(&b.PayloadBytes, "payload", 0, fmt.Sprintf("bytes of an object's payload; 0: %d, or %d for more than %d objects", usualPayload, smallPayload, manyObjects))
	frame.Main("scale", b)
}

// Measure implements [frame.Benchmark].
func (b *bench) Measure(ctx context.Context, f *frame.Bench) (err error) {
	f.Name = fmt.Sprintf("scale-%d", b.Objects)
	b.Date = time.Now().UTC().Format(time.DateOnly)
	if b.PayloadBytes == 0 && b.Objects > manyObjects {
		b.PayloadBytes = smallPayload
	} else if b.PayloadBytes == 0 {
		b.PayloadBytes = usualPayload
	}
	b.ByteBudget = b.Objects*(b.PayloadBytes+objectOverhead) < defaultBudget
	b.WatchCache = b.Objects <= manyObjects
	flags := []string{"--watch-cache=" + strconv.FormatBool(b.WatchCache)}
	if b.cluster, err = f.StartCluster(ctx, controlplane.Options{APIServerArgs: flags}); err != nil {
		return err
	}
	if err := b.copy(ctx); err != nil {
		return err
	}
	if err := b.plan(ctx); err != nil {
		return err
	}
	if err := b.killHalfway(ctx, f); err != nil {
		return err
	}
	return b.resume(ctx)
}

// Summary implements [frame.Benchmark].
func (b *bench) Summary() string {
	return fmt.Sprintf("scale: n=%d plan_seconds=%.1f objects_per_second=%.0f rss_mib=%.0f killed_old=%d resume_seconds=%.0f resume_requests=%d",
		b.Objects, b.PlanSeconds, b.ObjectsPerSecond, frame.MiB(max(b.KilledRSS, b.ResumeRSS)), b.KilledOld, b.ResumeSeconds, b.Resumed.Requests)
}

// copy creates the objects, and changes the storage version.
func (b *bench) copy(ctx context.Context) error {
	resources, err := widget.Define(ctx, b.cluster, "scale")
	if err != nil {
		return err
	}
	b.resource = resources[0]
	b.resource.SetPayload(b.PayloadBytes)
	frame.Logf("copying %d objects with a payload of %d bytes in etcd", b.Objects, b.PayloadBytes)
	began := time.Now()
	if err := b.resource.Copy(ctx, b.Objects); err != nil {
		return err
	}
	b.CopySeconds = time.Since(began).Seconds()
	frame.Logf("copied in %.0f s", b.CopySeconds)
	return b.resource.FlipAndAge(ctx)
}

func (b *bench) plan(ctx context.Context) error {
	var plan struct{}
	cost, err := b.cluster.Run(ctx, frame.ExitPending, &plan, "crd", "plan", b.resource.CRD())
	b.PlanSeconds, b.PlanRSS = cost.Took.Seconds(), cost.PeakRSS
	frame.Logf("planned in %.1f s", b.PlanSeconds)
	return err
}

// runFlags returns the flags of both runs.
func (b *bench) runFlags() []string {
	if b.ByteBudget {
		return nil
	}
	return []string{"--max-bytes-per-5m=none"}
}

// killHalfway kills the run once etcd has stored half of the objects again.
func (b *bench) killHalfway(ctx context.Context, f *frame.Bench) error {
	before, err := b.resource.Revision(ctx)
	if err != nil {
		return err
	}
	began := time.Now()
	p, err := f.Start("crd-run", b.cluster.Command(b.resource.RunArgs(b.runFlags()...)...))
	if err != nil {
		return err
	}
	f.Cleanup(p.Crash)
	if err := p.During(ctx, func(ctx context.Context) error { return b.resource.AwaitHalf(ctx, before) }); err != nil {
		return err
	}
	usage, err := p.Usage()
	if err != nil {
		return err
	}
	if err := p.Crash(); err != nil {
		return err
	}
	b.KilledAfter, b.KilledRSS = time.Since(began).Seconds(), usage.PeakRSS
	b.KilledOld, err = b.resource.Old(ctx)
	frame.Logf("killed after %.0f s, with %d objects at the old version, peak RSS %.0f MiB", b.KilledAfter, b.KilledOld, frame.MiB(b.KilledRSS))
	return err
}

// resume runs the same command again.
func (b *bench) resume(ctx context.Context) error {
	report, err := b.resource.Run(ctx, b.runFlags()...)
	if err != nil {
		return err
	}
	b.Resumed = result.Resumed{Migrated: report.Objects.Migrated, Skipped: report.Objects.Skipped, Requests: report.Requests}
	b.ResumeSeconds, b.ResumeRSS = report.Cost.Took.Seconds(), report.Cost.PeakRSS
	b.ObjectsPerSecond = float64(b.Objects) / (b.KilledAfter + b.ResumeSeconds)
	frame.Logf("resumed in %.0f s: %+v", b.ResumeSeconds, b.Resumed)
	pid, err := proc.Child("kube-apiserver")
	if err != nil {
		return err
	}
	usage, err := proc.UsageOf(pid)
	if err != nil {
		return err
	}
	b.APIServerRSS = usage.PeakRSS
	return b.resource.MustBeTrimmed(ctx)
}
