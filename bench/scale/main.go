// Command scale migrates very many objects with `godwit crd run`, kills it halfway and resumes it.
//
// The objects are copied inside etcd, where a million of them takes a minute. Beyond those that the default byte budget of
// five minutes covers, the run has no budget: the control plane's etcd has a quota of 8 GiB.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"github.com/godwit-dev/godwit/bench/internal/account"
	"github.com/godwit-dev/godwit/bench/internal/measure"
	"github.com/godwit-dev/godwit/bench/internal/proc"
	"github.com/godwit-dev/godwit/bench/internal/widget"
	"github.com/godwit-dev/godwit/test/controlplane"
)

// result is what is written to bench/out/scale-N.json.
type result struct {
	Date             string  `json:"date"`
	Objects          int     `json:"objects"`
	PayloadBytes     int     `json:"payloadBytes"`
	ByteBudget       bool    `json:"byteBudget"`
	WatchCache       bool    `json:"watchCache"`
	CopySeconds      float64 `json:"copySeconds"`
	PlanSeconds      float64 `json:"planSeconds"`
	PlanRSS          int64   `json:"planPeakRSSBytes"`
	KilledAfter      float64 `json:"killedAfterSeconds"`
	KilledOld        int     `json:"oldObjectsWhenKilled"`
	KilledRSS        int64   `json:"killedPeakRSSBytes"`
	ResumeSeconds    float64 `json:"resumeSeconds"`
	ResumeRSS        int64   `json:"resumePeakRSSBytes"`
	Resumed          counts  `json:"resumed"`
	ObjectsPerSecond float64 `json:"objectsPerSecond"`
	APIServerRSS     int64   `json:"apiServerPeakRSSBytes"`
}

// counts are what the run that resumes reports.
type counts struct {
	Migrated int64 `json:"migrated"`
	Skipped  int64 `json:"skipped"`
	Requests int64 `json:"requests"`
}

type bench struct {
	binary, kubeconfig string
	plane              *controlplane.ControlPlane
	resource           *widget.Resource
	result             result
}

// Objects with the usual payload up to manyObjects; more of them have a smaller one, so that etcd's quota holds both
// revisions of each, and their API server has no watch cache: it would hold each object decoded, once for each served
// version, and take 12 GiB for 100,000.
const (
	manyObjects    = 200_000
	usualPayload   = 2000
	smallPayload   = 400
	objectOverhead = 600 // bytes of metadata in etcd
	defaultBudget  = 512 << 20
)

func main() {
	var b bench
	flag.IntVar(&b.result.Objects, "n", 100_000, "objects")
	flag.IntVar(&b.result.PayloadBytes, "payload", 0, fmt.Sprintf("bytes of an object's payload; 0: %d, or %d for more than %d objects", usualPayload, smallPayload, manyObjects))
	flag.StringVar(&b.binary, "godwit", "../bin/godwit", "the command to measure")
	out := flag.String("out", "", "where the result goes; empty: out/scale-N.json")
	flag.Parse()
	if b.result.PayloadBytes == 0 {
		b.result.PayloadBytes = usualPayload
		if b.result.Objects > manyObjects {
			b.result.PayloadBytes = smallPayload
		}
	}
	if *out == "" {
		*out = fmt.Sprintf("out/scale-%d.json", b.result.Objects)
	}
	os.Exit(measure.Main(context.Background(), func(ctx context.Context) error { return b.main(ctx, *out) }))
}

func (b *bench) main(ctx context.Context, out string) (err error) {
	if b.binary, err = filepath.Abs(b.binary); err != nil {
		return err
	}
	b.result.WatchCache = b.result.Objects <= manyObjects
	flags := []string{"--watch-cache=" + strconv.FormatBool(b.result.WatchCache)}
	if b.plane, err = controlplane.Start(ctx, controlplane.Options{APIServerArgs: flags}); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.plane.Stop()) }()
	user, err := account.AddUser(ctx, b.plane, account.Godwit)
	if err != nil {
		return err
	}
	b.kubeconfig = filepath.Join(b.plane.Dir(), "bench.kubeconfig")
	if err := controlplane.WriteKubeconfig(b.kubeconfig, user); err != nil {
		return err
	}
	for _, step := range []func(context.Context) error{b.copy, b.plan, b.killHalfway, b.resume} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	if err := measure.Write(os.Stdout, out, b.result); err != nil {
		return err
	}
	r := b.result
	fmt.Printf("scale: n=%d plan_seconds=%.1f objects_per_second=%.0f rss_mib=%.0f killed_old=%d resume_seconds=%.0f resume_requests=%d\n",
		r.Objects, r.PlanSeconds, r.ObjectsPerSecond, mib(max(r.KilledRSS, r.ResumeRSS)), r.KilledOld, r.ResumeSeconds, r.Resumed.Requests)
	return nil
}

func mib(bytes int64) float64 { return float64(bytes) / (1 << 20) }

// copy makes the objects, and changes the storage version.
func (b *bench) copy(ctx context.Context) error {
	r := &b.result
	r.Date = time.Now().UTC().Format(time.DateOnly)
	r.ByteBudget = r.Objects*(r.PayloadBytes+objectOverhead) < defaultBudget
	resources, err := widget.Define(ctx, b.plane, "scale")
	if err != nil {
		return err
	}
	b.resource = resources[0]
	b.resource.SetPayload(r.PayloadBytes)
	measure.Say("copying %d objects with a payload of %d bytes in etcd", r.Objects, r.PayloadBytes)
	began := time.Now()
	if err := b.resource.Copy(ctx, r.Objects); err != nil {
		return err
	}
	r.CopySeconds = time.Since(began).Seconds()
	measure.Say("copied in %.0f s", r.CopySeconds)
	return b.resource.FlipAndAge(ctx)
}

func (b *bench) command(args ...string) *exec.Cmd {
	command := exec.Command(b.binary, args...)
	command.Env = append(os.Environ(), "KUBECONFIG="+b.kubeconfig)
	return command
}

func (b *bench) run() *exec.Cmd {
	args := []string{"crd", "run", b.resource.CRD(), "--yes", "--settle=0s", "-o", "json"}
	if !b.result.ByteBudget {
		args = append(args, "--max-bytes-per-5m=none")
	}
	return b.command(args...)
}

// exitPending is the exit code of a plan that has found work.
const exitPending = 1

func (b *bench) plan(context.Context) error {
	ended, err := proc.Run(b.command("crd", "plan", b.resource.CRD(), "-o", "json"))
	if err != nil {
		return err
	}
	if ended.Code != exitPending {
		return fmt.Errorf("crd plan: exit code %d, want %d:\n%s", ended.Code, exitPending, ended.Stderr)
	}
	b.result.PlanSeconds, b.result.PlanRSS = ended.Took.Seconds(), ended.PeakRSS
	measure.Say("planned in %.1f s", b.result.PlanSeconds)
	return nil
}

// poll is how often etcd's revision and the process are read.
const poll = 50 * time.Millisecond

// killHalfway kills the run once etcd has stored half of the objects again: every write makes a revision.
func (b *bench) killHalfway(ctx context.Context) error {
	before, err := b.revision(ctx)
	if err != nil {
		return err
	}
	command := b.run()
	var stderr bytes.Buffer
	command.Stderr = &stderr
	began := time.Now()
	if err := command.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- command.Wait() }()
	for half := before + int64(b.result.Objects/2); ; {
		select {
		case err := <-ended:
			return fmt.Errorf("crd run ended before it was to be killed: %w\n%s", err, stderr.Bytes())
		case <-ctx.Done():
			return errors.Join(context.Cause(ctx), command.Process.Kill())
		case <-time.After(poll):
		}
		now, err := b.revision(ctx)
		if err != nil {
			return errors.Join(err, command.Process.Kill())
		}
		if now >= half {
			break
		}
	}
	usage, err := proc.UsageOf(command.Process.Pid)
	if err := errors.Join(err, command.Process.Kill()); err != nil {
		return err
	}
	b.result.KilledAfter, b.result.KilledRSS = time.Since(began).Seconds(), usage.PeakRSS
	<-ended
	b.result.KilledOld, err = b.resource.Old(ctx)
	measure.Say("killed after %.0f s, with %d objects at the old version, peak RSS %.0f MiB", b.result.KilledAfter, b.result.KilledOld, mib(usage.PeakRSS))
	return err
}

func (b *bench) revision(ctx context.Context) (int64, error) {
	response, err := b.plane.Etcd().Get(ctx, "revision")
	if err != nil {
		return 0, err
	}
	return response.Header.Revision, nil
}

// resume runs the same command again.
func (b *bench) resume(ctx context.Context) error {
	r := &b.result
	ended, err := proc.Run(b.run())
	if err != nil {
		return err
	}
	var list struct {
		Items []struct {
			Objects  counts `json:"objects"`
			Requests int64  `json:"requests"`
			Trimmed  bool   `json:"trimmed"`
		} `json:"items"`
	}
	if err := json.Unmarshal(ended.Stdout, &list); err != nil || len(list.Items) != 1 || !list.Items[0].Trimmed || ended.Code != 0 {
		return fmt.Errorf("the run that resumes: exit code %d, want one result that is trimmed:\n%s\n%s", ended.Code, ended.Stdout, ended.Stderr)
	}
	r.Resumed = list.Items[0].Objects
	r.Resumed.Requests = list.Items[0].Requests
	r.ResumeSeconds, r.ResumeRSS = ended.Took.Seconds(), ended.PeakRSS
	r.ObjectsPerSecond = float64(r.Objects) / (r.KilledAfter + r.ResumeSeconds)
	measure.Say("resumed in %.0f s: %+v", r.ResumeSeconds, r.Resumed)
	pids, err := proc.Children("kube-apiserver")
	if err != nil || len(pids) != 1 {
		return errors.Join(fmt.Errorf("find kube-apiserver: there are %d", len(pids)), err)
	}
	usage, err := proc.UsageOf(pids[0])
	if err != nil {
		return err
	}
	r.APIServerRSS = usage.PeakRSS
	return errors.Join(b.resource.MustBeMigrated(ctx), b.resource.MustBeTrimmed(ctx))
}
