package crdmigrator_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/internal/storageversion"
	"github.com/godwit-dev/godwit/internal/storageversion/decision"
	"github.com/godwit-dev/godwit/internal/storageversion/evidence"
	"github.com/godwit-dev/godwit/walk"
)

const (
	kib = 1 << 10
	mib = 1 << 20
)

// fillSized creates n objects with payloads of the given sizes.
func (w *widgets) fillSized(version string, n int, size func(i int) int) {
	w.t.Helper()
	client := w.at(version)
	errs := make([]error, n)
	var workers sync.WaitGroup
	for worker := range 8 {
		workers.Go(func() {
			for i := worker; i < n; i += 8 {
				o := w.object(version, fmt.Sprintf("w-%04d", i))
				errs[i] = errors.Join(
					unstructured.SetNestedField(o.Object, strings.Repeat("x", size(i)), "spec", "payload"),
					second(client.Create(w.t.Context(), o, metav1.CreateOptions{})))
			}
		})
	}
	workers.Wait()
	if err := errors.Join(errs...); err != nil {
		w.t.Fatal(err)
	}
}

func second[T any](_ T, err error) error { return err }

// revision is etcd's newest revision.
func (w *widgets) revision() int64 {
	w.t.Helper()
	resp, err := w.plane.Etcd().Get(w.t.Context(), w.keys(), clientv3.WithCountOnly())
	if err != nil {
		w.t.Fatal(err)
	}
	return resp.Header.Revision
}

// bytesSince adds up the objects that were written to etcd after a revision, each at
// most once.
func (w *widgets) bytesSince(revision int64) (objects int, bytes int64) {
	w.t.Helper()
	resp, err := w.plane.Etcd().Get(w.t.Context(), w.keys(), clientv3.WithPrefix(), clientv3.WithMinModRev(revision+1))
	if err != nil {
		w.t.Fatal(err)
	}
	for _, pair := range resp.Kvs {
		bytes += int64(len(pair.Value))
	}
	return len(resp.Kvs), bytes
}

// runUntilItWaits stops a run once it waits for the byte budget, and returns the
// bytes that it wrote to etcd.
func (w *widgets) runUntilItWaits(limits walk.Limits) (decision.Report, int64) {
	w.t.Helper()
	limiter := walk.NewLimiter(limits)
	m := w.quickMigrator(storageversion.Options{Limiter: limiter, PageObjects: 20})
	before := w.revision()
	ctx, cancel := context.WithCancel(w.t.Context())
	defer cancel()
	type end struct {
		report decision.Report
		err    error
	}
	ended := make(chan end, 1)
	go func() {
		report, err := w.migrate(ctx, m, nil)
		ended <- end{report, err}
	}()
	for limiter.WaitsForBytes() == 0 {
		select {
		case e := <-ended:
			w.t.Fatalf("the run ended before it waited for its byte budget: %+v, %v", e.report, e.err)
		case <-time.After(20 * time.Millisecond):
		}
	}
	time.Sleep(time.Second) // nothing may be written now
	cancel()
	e := <-ended
	if !errors.Is(e.err, context.Canceled) {
		w.t.Fatalf("the run ended with %v, want %v", e.err, context.Canceled)
	}
	objects, bytes := w.bytesSince(before)
	if done := e.report.Storage.Counts.Migrated + e.report.ManagedFields.Counts.Migrated; done != int64(objects) {
		w.t.Errorf("the run reports %d objects written, want %d as in etcd", done, objects)
	}
	return e.report, bytes
}

// mustFill checks that a run kept to its byte budget and used it: less is left than
// the largest object may need.
func (w *widgets) mustFill(reason string, bytes int64, limits walk.Limits) {
	w.t.Helper()
	budget := limits.MaxBytesPerFiveMinutes
	w.t.Logf("%s: %d bytes were written, of a budget of %d", reason, bytes, budget)
	if bytes > budget || bytes < budget*9/10 {
		w.t.Errorf("%s: %d bytes were written to etcd, want at most %d, and nearly that", reason, bytes, budget)
	}
}

// mustHaveSaved checks that the last checkpoint of a run did not wait for the byte
// budget.
func (w *widgets) mustHaveSaved(last evidence.Checkpoint) {
	w.t.Helper()
	var saved evidence.Checkpoint
	if err := json.Unmarshal([]byte(w.crd().Annotations[evidence.CheckpointAnnotation]), &saved); err != nil {
		w.t.Fatal(err)
	}
	if saved.Cursor == "" || saved.Cursor != last.Cursor {
		w.t.Errorf("the checkpoint has cursor %q, want %q", saved.Cursor, last.Cursor)
	}
}

// TestByteBudgetHoldsInEtcd: with objects of several sizes, a run writes no more than
// its budget to etcd, and then waits. It stops when it is told to, and another run
// resumes it.
func TestByteBudgetHoldsInEtcd(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		size   func(i int) int
	}{
		"alike":            {"large objects, all of one size", func(int) int { return 50 * kib }},
		"mixed":            {"a mean of one size would be wrong by fifty times for the other", func(i int) int { return []int{kib, 100 * kib}[i%2] }},
		"small then large": {"former sizes do not predict later ones", func(i int) int { return map[bool]int{true: kib, false: 100 * kib}[i < 100] }},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWidgets(t, shared)
			w.fillSized("v1", 200, tc.size)
			w.flip()
			limits := walk.Limits{MaxBytesPerFiveMinutes: 4 * mib}
			report, bytes := w.runUntilItWaits(limits)
			w.mustFill(tc.reason, bytes, limits)
			w.mustHaveSaved(report.Checkpoint)
			rest := w.mustMigrate(w.quickMigrator(storageversion.Options{Limiter: walk.NewLimiter(walk.Limits{MaxBytesPerFiveMinutes: -1})}))
			want := godwit.Counts{Skipped: report.Storage.Counts.Migrated, Migrated: 200 - report.Storage.Counts.Migrated}
			if rest.Storage.Counts != want || !rest.Trimmed {
				t.Errorf("without a budget: %+v, want %+v, resumed and trimmed", rest.Storage.Counts, want)
			}
			w.mustHaveBeenWritten("after both runs", 200, 2)
		})
	}
}

// TestByteBudgetCountsCleanups of managedFields.
func TestByteBudgetCountsCleanups(t *testing.T) {
	t.Parallel()
	w := newWidgets(t, shared)
	w.fillSized("v1", 60, func(int) int { return 50 * kib })
	w.flip()
	w.mustMigrate(w.quickMigrator(storageversion.Options{}))
	w.setVersions(version("v1", false, false), version("v2", true, true))
	limits := walk.Limits{MaxBytesPerFiveMinutes: 2 * mib}
	report, bytes := w.runUntilItWaits(limits)
	w.mustFill("cleanups alone", bytes, limits)
	if report.Storage.Counts.Migrated != 0 || report.ManagedFields.Counts.Migrated == 0 {
		t.Errorf("report = %+v, want cleanups only", report)
	}
}

// TestByteBudgetIgnoresWritesThatStoreNothing: they do not wait, even with the
// smallest budget.
func TestByteBudgetIgnoresWritesThatStoreNothing(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason  string
		version string // that the objects are stored at when the run begins
		dryRun  bool
		want    godwit.Counts
	}{
		"dry run": {"nothing is stored", "v1", true, godwit.Counts{Skipped: 60}},
		"elided":  {"every object is at the storage version already", "v2", false, godwit.Counts{Unchanged: 60}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWidgets(t, shared)
			fill := func() { w.fillSized("v1", 60, func(int) int { return 20 * kib }) }
			if tc.version == "v1" {
				fill()
			}
			w.flip()
			if tc.version == "v2" {
				fill()
			}
			ctx, cancel := context.WithTimeout(t.Context(), awaitLimit)
			defer cancel()
			m := w.quickMigrator(storageversion.Options{
				DryRun:  tc.dryRun,
				Limiter: walk.NewLimiter(walk.Limits{MaxBytesPerFiveMinutes: 256 * kib}),
			})
			report, err := w.migrate(ctx, m, nil)
			if err != nil || report.Storage.Counts != tc.want {
				t.Errorf("%s: %+v, %v; want %+v", tc.reason, report.Storage.Counts, err, tc.want)
			}
		})
	}
}
