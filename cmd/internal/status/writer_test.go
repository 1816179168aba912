package status_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/godwit-dev/godwit/cmd/internal/status"
)

// progress is a change that another Change can follow.
func progress(n int) status.Change[*widget] {
	return func(w *widget) { w.Status.Progress = n }
}

func TestWriteSendsDifferencesOnly(t *testing.T) {
	s := newServer(t, newWidget())
	w := status.NewWriter(s, s, s.read(t))
	for range 3 {
		if err := w.Write(t.Context(), progress(1)); err != nil {
			t.Fatal(err)
		}
	}
	if got := s.read(t).Status.Progress; got != 1 || s.patches.Load() != 1 || w.Known().Status.Progress != 1 {
		t.Errorf("progress %d after %d patches, want 1 after 1", got, s.patches.Load())
	}
}

// TestWriteAfterAConflict: another client wrote the status meanwhile. The change is made again on what that client wrote.
func TestWriteAfterAConflict(t *testing.T) {
	s := newServer(t, newWidget())
	w := status.NewWriter(s, s, s.read(t))
	other := status.NewWriter(s, s, s.read(t))
	w.Note(func(w *widget) { w.Status.Checkpoint += "x" })
	s.beforePatch = func() {
		if err := other.Write(t.Context(), func(w *widget) { w.Status.Checkpoint, w.Status.Progress = "other", 7 }); err != nil {
			t.Error(err)
		}
	}
	if err := w.Write(t.Context(), func(w *widget) {
		status.Summary{State: status.StateReady, Reason: "R", Message: "m"}.Apply(w)
	}); err != nil {
		t.Fatal(err)
	}
	if got := s.read(t).Status; got.Checkpoint != "otherx" || got.Progress != 7 || len(got.Conditions) != 3 {
		t.Errorf("%+v", got)
	}
}

// TestStatusIsAboutTheSpecOfTheBeginning: the spec changes while the work is under way. The status must not say that the new
// spec was observed.
func TestStatusIsAboutTheSpecOfTheBeginning(t *testing.T) {
	s := newServer(t, newWidget())
	w := status.NewWriter(s, s, s.read(t))
	change := func() {
		now := s.read(t)
		now.Generation++
		if err := s.Update(t.Context(), now); err != nil {
			t.Error(err)
		}
	}
	s.beforePatch = change
	for n := range 2 {
		if err := w.Write(t.Context(), func(w *widget) {
			w.Status.Progress = n + 1
			status.Summary{State: status.StateReady, Reason: "R"}.Apply(w)
		}); err != nil {
			t.Fatal(err)
		}
		if got := s.read(t); got.Generation != 2 || got.Status.ObservedGeneration != 1 || got.Status.Progress != n+1 {
			t.Errorf("generation %d, observed %d", got.Generation, got.Status.ObservedGeneration)
		}
	}
}

func TestWriteToADeletedObject(t *testing.T) {
	for name, replace := range map[string]bool{"deleted": false, "another one has its name": true} {
		s := newServer(t, newWidget())
		w := status.NewWriter(s, s, s.read(t))
		if err := s.Delete(t.Context(), newWidget()); err != nil {
			t.Fatal(err)
		}
		if replace {
			second := newWidget()
			second.UID = "second"
			if err := s.Create(t.Context(), second); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Write(t.Context(), progress(1)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if replace && s.read(t).Status.Progress != 0 {
			t.Errorf("%s: it has the status of the first", name)
		}
	}
}

// TestFailedWriteIsRepeated: what a failed write was to say, the next one says.
func TestFailedWriteIsRepeated(t *testing.T) {
	s := newServer(t, newWidget())
	away := true
	flaky := interceptor.NewClient(s, interceptor.Funcs{
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
			if away {
				return errors.New("the API server is away")
			}
			return s.SubResource(sub).Patch(ctx, o, p, opts...)
		},
	})
	w := status.NewWriter(flaky, s, s.read(t))
	err := w.Write(t.Context(), func(w *widget) { w.Status.Checkpoint = "x" })
	if err == nil || !strings.Contains(err.Error(), "write the status of widget shop/a: the API server is away") {
		t.Fatal(err)
	}
	away = false
	if err := w.Write(t.Context(), progress(1)); err != nil {
		t.Fatal(err)
	}
	if got := s.read(t).Status; got.Checkpoint != "x" || got.Progress != 1 {
		t.Errorf("%+v", got)
	}
}

// TestFlush: the context of a manager that stops is done.
func TestFlush(t *testing.T) {
	s := newServer(t, newWidget())
	w := status.NewWriter(s, s, s.read(t))
	w.Note(progress(3))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	w.Flush(ctx)
	if got := s.read(t).Status.Progress; got != 3 {
		t.Errorf("progress %d, want 3", got)
	}
}

// withFollow runs a test on a Writer that follows reports, with a clock of its own.
func withFollow(t *testing.T, test func(t *testing.T, f follower)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		f := follow(t, &status.Pace{})
		defer f.stop()
		test(t, f)
	})
}

func follow(t *testing.T, pace *status.Pace) follower {
	t.Helper()
	s := newServer(t, newWidget())
	f := follower{server: s, writer: status.NewWriter(s, s, s.read(t))}
	f.report, f.stop = f.writer.Follow(t.Context(), pace)
	return f
}

// reportOften reports 1 to 400 of each, a hundred times in a span by the clock of the test.
func reportOften(span time.Duration, of ...follower) {
	for n := range 400 {
		for _, f := range of {
			f.report(progress(n + 1))
		}
		time.Sleep(span / 100)
	}
	synctest.Wait()
}

type follower struct {
	*server
	writer *status.Writer[*widget]
	report func(status.Change[*widget])
	stop   func()
}

// TestProgressIsWrittenOncePerInterval also if it is reported a hundred times as often.
func TestProgressIsWrittenOncePerInterval(t *testing.T) {
	withFollow(t, func(t *testing.T, f follower) {
		reportOften(status.Interval, f)
		if f.patches.Load() < 3 || f.patches.Load() > 4 {
			t.Errorf("%d writes in four intervals", f.patches.Load())
		}
		before := f.patches.Load()
		time.Sleep(3 * status.Interval) // the last report is written, and then there is nothing to write
		synctest.Wait()
		if got := f.read(t).Status.Progress; got != 400 || f.patches.Load() > before+1 {
			t.Errorf("progress %d after %d more writes, want 400 after 1", got, f.patches.Load()-before)
		}
		f.stop()
		f.report(progress(401))
		time.Sleep(2 * status.Interval)
		if got := f.read(t).Status.Progress; got != 400 {
			t.Errorf("progress %d is written after the end", got)
		}
	})
}

// TestProgressOfManyIsOneWritePerSecond: each of 20 objects is written in 20 s, and again in 5 s when the others have ended.
func TestProgressOfManyIsOneWritePerSecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const many = 20
		var pace status.Pace
		all := make([]follower, many)
		for i := range all {
			all[i] = follow(t, &pace)
		}
		reportOften(many*time.Second, all...)
		for i, f := range all {
			if f.patches.Load() < 3 || f.patches.Load() > 5 {
				t.Errorf("object %d: %d writes in 80 s, want one in 20 s", i, f.patches.Load())
			}
			if i > 0 {
				f.stop()
			}
		}
		last := all[0]
		defer last.stop()
		before := last.patches.Load()
		reportOften(many*time.Second, last)
		if n := last.patches.Load() - before; n < 14 || n > 16 {
			t.Errorf("%d writes in 80 s of the only object, want one in %v", n, status.Interval)
		}
	})
}

// TestProgressWaitsAfterAnyWrite: a checkpoint was written a moment ago.
func TestProgressWaitsAfterAnyWrite(t *testing.T) {
	withFollow(t, func(t *testing.T, f follower) {
		f.report(progress(1))
		time.Sleep(status.Interval - time.Second)
		if err := f.writer.Write(t.Context(), func(w *widget) { w.Status.Checkpoint = "x" }); err != nil {
			t.Fatal(err)
		}
		if due := f.writer.Due(); due != status.Interval {
			t.Errorf("the next progress is due in %v, want %v", due, status.Interval)
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if f.patches.Load() != 1 {
			t.Errorf("%d writes, want that of the checkpoint", f.patches.Load())
		}
		time.Sleep(status.Interval)
		synctest.Wait()
		if got := f.read(t).Status; f.patches.Load() != 2 || got.Progress != 1 {
			t.Errorf("%d writes, progress %d", f.patches.Load(), got.Progress)
		}
	})
}
