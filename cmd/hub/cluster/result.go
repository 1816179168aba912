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

// workers is how many clusters a pass works on at the same time. The client limits requests.
const workers = 16

// Result is what a pass came to. Each cluster is in one of the three.
type Result struct {
	// Done are the clusters for which the action is done, sorted.
	Done []string
	// Waiting says what a cluster waits for. The pass is to be repeated for it.
	Waiting map[string]string
	// Failed says why the action can't be done for a cluster, and what to do.
	Failed map[string]*Error
}

// Add adds the result of other clusters.
func (r *Result) Add(other Result) {
	r.Done = append(r.Done, other.Done...)
	slices.Sort(r.Done)
	maps.Copy(r.Waiting, other.Waiting)
	maps.Copy(r.Failed, other.Failed)
}

// Fail says that the action failed for a cluster, which was done until now.
func (r *Result) Fail(name string, err error) {
	r.Done = slices.DeleteFunc(r.Done, func(done string) bool { return done == name })
	r.Failed[name] = Explain(err)
}

// Each runs one pass of an action over clusters. The action returns what the cluster waits
// for, which is nothing when it is done. A request that may succeed later makes the cluster
// wait; see [Confirmations.Final].
func (h Hub) Each(ctx context.Context, names []string, act func(ctx context.Context, name string) (waits string, err error)) (Result, error) {
	var (
		mutex sync.Mutex
		group sync.WaitGroup
		r     = Result{Waiting: map[string]string{}, Failed: map[string]*Error{}}
		slots = make(chan struct{}, workers)
	)
	for _, name := range names {
		slots <- struct{}{}
		group.Go(func() {
			defer func() { <-slots }()
			waits, err := act(ctx, name)
			final := err != nil && h.Final(ctx, err)
			mutex.Lock()
			defer mutex.Unlock()
			switch {
			case final:
				r.Failed[name] = Explain(err)
			case err != nil:
				r.Waiting[name] = err.Error()
			case waits != "":
				r.Waiting[name] = waits
			default:
				r.Done = append(r.Done, name)
			}
		})
	}
	group.Wait()
	slices.Sort(r.Done)
	return r, ctx.Err()
}

// RefuseNewer is the failure of what a newer release of Godwit has stored.
func RefuseNewer(err error) error { return Fail(ReasonNewerFormat, "%v; %s", err, format.Do) }

// Explain gives an error that repetition does not fix its reason. The message of an [Error] has what its callers put before it.
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
