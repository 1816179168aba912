package cluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/godwit-dev/godwit/internal/format"
)

// progressClusters is the number of clusters that are done between two calls of [Hub.Progress].
const progressClusters = 32

// workers is how many clusters a pass works on at the same time. The client limits requests.
const workers = 16

// GoneError is the error of an action that would restore or delete an object which does not exist any more. The action is done.
type GoneError struct{ Message string }

func (e *GoneError) Error() string { return e.Message }

// Result is the result of a pass. Each cluster is in exactly one of Done, Waiting and Failed.
type Result struct {
	// Done are the clusters for which the action is done, sorted.
	Done []string
	// Gone has, for some of the clusters in Done, what the action did not find any more.
	Gone map[string]string
	// Waiting has what each waiting cluster waits for. The caller repeats the pass for it.
	Waiting map[string]string
	// Failed has why the action can't be done for a cluster, and what to do.
	Failed map[string]*Error
}

// Add adds the result of other clusters.
func (r *Result) Add(other Result) {
	r.Done = append(r.Done, other.Done...)
	slices.Sort(r.Done)
	maps.Copy(r.Gone, other.Gone)
	maps.Copy(r.Waiting, other.Waiting)
	maps.Copy(r.Failed, other.Failed)
}

// Fail changes a cluster from done to failed.
func (r *Result) Fail(name string, err error) {
	r.Done = slices.DeleteFunc(r.Done, func(done string) bool { return done == name })
	r.Failed[name] = Explain(err)
}

// Each runs one pass of an action over clusters. The action returns what the cluster waits for, or empty when the
// action is done. A cluster also waits if its request may succeed later; see [Confirmations.Final].
func (h Hub) Each(ctx context.Context, names []string, act func(ctx context.Context, name string) (waits string, err error)) (Result, error) {
	var (
		mutex sync.Mutex
		group sync.WaitGroup
		r     = Result{Gone: map[string]string{}, Waiting: map[string]string{}, Failed: map[string]*Error{}}
		slots = make(chan struct{}, workers)
		since = Result{Gone: map[string]string{}}
	)
	// isDone runs with the mutex.
	isDone := func(name string) {
		r.Done, since.Done = append(r.Done, name), append(since.Done, name)
		if h.Progress != nil && len(since.Done) == progressClusters {
			h.Progress(since.Done, since.Gone)
			since = Result{Gone: map[string]string{}}
		}
	}
	for _, name := range names {
		slots <- struct{}{}
		group.Go(func() {
			defer func() { <-slots }()
			waits, err := act(ctx, name)
			var gone *GoneError
			isGone := errors.As(err, &gone)
			final := err != nil && !isGone && h.Final(ctx, err)
			mutex.Lock()
			defer mutex.Unlock()
			switch {
			case isGone:
				r.Gone[name], since.Gone[name] = gone.Message, gone.Message
				isDone(name)
			case final:
				r.Failed[name] = Explain(err)
			case err != nil:
				r.Waiting[name] = err.Error()
			case waits != "":
				r.Waiting[name] = waits
			default:
				isDone(name)
			}
		})
	}
	group.Wait()
	slices.Sort(r.Done)
	return r, ctx.Err()
}

// RefuseNewer returns the failure for data that a newer release of Godwit has stored.
func RefuseNewer(err error) error { return Fail(ReasonNewerFormat, "%v; %s", err, format.Do) }

// Explain converts an error that a retry does not fix to an [Error] with a reason. It keeps the text that callers added
// to a wrapped [Error].
func Explain(err error) *Error {
	var failure *Error
	switch {
	case errors.As(err, &failure):
		return &Error{failure.Reason, strings.Replace(err.Error(), failure.Error(), failure.Message, 1)}
	case meta.IsNoMatchError(err):
		return &Error{ReasonKindNotServed, fmt.Sprintf("%v: install its CRD on this hub", err)}
	}
	return &Error{ReasonAPI, err.Error()}
}
