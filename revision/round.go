package revision

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/walk"
)

// Phase is how far one upgrade is.
type Phase string

const (
	// Pending: nothing is written; nobody has begun with it, or labels are all that is
	// to be written, or a rollback has to wait.
	Pending Phase = "Pending"
	// Analyzing: it was begun with, and the API server did not say what there is.
	Analyzing Phase = "Analyzing"
	// Converted: what it holds can be carried to the target, and nothing is written. It
	// waits for a holder, or the API server did not take the successor.
	Converted Phase = "Converted"
	// Created: the successor is there, and somebody was still to be led to it when the
	// pass ended.
	Created Phase = "Created"
	// Repointed: everybody refers to the successor, and since when could not be noted
	// on the source. In a rollback everybody refers to the source again, and since when
	// could not be noted on the successor.
	Repointed Phase = "Repointed"
	// Held: there is a successor, and somebody still refers to the source.
	Held Phase = "Held"
	// Retained: nobody refers to the source, which is kept for a while.
	Retained Phase = "Retained"
	// Succeeded: the source is gone, or was at the target already.
	Succeeded Phase = "Succeeded"
	// Skipped: there is nothing to upgrade.
	Skipped Phase = "Skipped"
	// Failed: somebody has to do something.
	Failed Phase = "Failed"
	// RolledBack: everybody refers to the source again.
	RolledBack Phase = "RolledBack"
)

// Ended tells phases at which nothing is left to do, of itself or by somebody.
func (p Phase) Ended() bool { return p == Succeeded || p == Skipped || p == RolledBack }

// Request is one upgrade that is asked for.
type Request struct {
	Name string
	// UID of the revision; empty means whichever has the name.
	UID types.UID
	// Policy; nil means the upgrader's.
	Policy *Policy
	// Rollback has everybody refer to the source again.
	Rollback bool
	// AfterRollback upgrades a source that was rolled back. Otherwise it is left alone.
	AfterRollback bool
}

// Result is how far one upgrade is, and why not further.
type Result struct {
	Item
	Phase Phase `json:"phase"`
	// ResourceVersion and Hash are the source's, as it was found before this pass wrote
	// anything; empty where it was not found.
	ResourceVersion string `json:"resourceVersion,omitempty"`
	// Hash of what the source holds, as [Hash] makes it.
	Hash            string    `json:"hash,omitempty"`
	ReplacementUID  types.UID `json:"replacementUID,omitempty"`
	ReplacementHash string    `json:"replacementHash,omitempty"`
}

// upgrade is one wish under way.
type upgrade struct {
	request     Request
	policy      Policy
	result      Result
	source      *appsv1.ControllerRevision
	replacement *appsv1.ControllerRevision

	due  bool                       // the old revision is to be removed
	gone bool                       // it is removed
	copy *appsv1.ControllerRevision // of the old revision, from just before its removal

	mu         sync.Mutex
	repointErr error // why a reference could not be written
}

// GetNamespace and GetName make a task what a walk can visit.
func (t *upgrade) GetNamespace() string { return t.result.Namespace }

// GetName is the source's name.
func (t *upgrade) GetName() string { return t.request.Name }

// setStatus notes an end, or where it stands.
func (t *upgrade) setStatus(p Phase, reason, message string) {
	t.result.Phase, t.result.Reason, t.result.Message = p, reason, message
}

// repointing reports whether references are to be led from one revision to the
// other, or the source to be given up.
func (t *upgrade) repointing() bool { return t.result.Phase == Created }

// setError notes the error that ended a step. A refusal stays one until a user acts.
func (t *upgrade) setError(err error) {
	var reading *readError
	switch {
	case !refusal(err):
		t.setStatus(t.result.Phase, ReasonUnanswered, err.Error())
	case errors.As(err, &reading):
		t.setStatus(t.result.Phase, ReasonForbidden, err.Error())
	default:
		t.setStatus(Failed, ReasonRefused, err.Error())
	}
}

// refusal reports whether the API server answered that a request is not acceptable, so
// that it answers the same next time.
func refusal(err error) bool {
	var status apierrors.APIStatus
	if _, transient := walk.Transient(err); transient || conflict(err) || !errors.As(err, &status) {
		return false
	}
	code := status.Status().Code
	return code >= http.StatusBadRequest && code < http.StatusInternalServerError
}

// recordError notes why a reference could not be written; what the API server refuses tells
// more than a conflict. A revision that is shared is one task to several holders at once.
func (t *upgrade) recordError(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.repointErr == nil || refusal(err) {
		t.repointErr = err
	}
}

// mayTouch: a holder that began to run meanwhile is left alone, as the policy says.
func (t *upgrade) mayTouch(h *Referrer) bool {
	for _, one := range []*Referrer{h, h.owned} {
		if one != nil && (one.NotReady != "" || one.Running && t.policy.OnRunning != Hold) {
			return false
		}
	}
	return true
}

// from is the name of the old revision, that references lead away from.
func (t *upgrade) from() string {
	if t.request.Rollback {
		return t.replacement.Name
	}
	return t.request.Name
}

// to is the name of the revision that references lead to.
func (t *upgrade) to() string {
	if t.request.Rollback {
		return t.source.Name
	}
	return t.replacement.Name
}

// old is the revision that is removed in the end; nil if it is gone.
func (t *upgrade) old() *appsv1.ControllerRevision {
	if t.request.Rollback {
		return t.replacement
	}
	return t.source
}

func (t *upgrade) setOld(r *appsv1.ControllerRevision) {
	if t.request.Rollback {
		t.replacement = r
		return
	}
	t.source = r
}

// oldWord is what a message about the task calls the old revision.
func (t *upgrade) oldWord() string {
	if t.request.Rollback {
		return t.from()
	}
	return "it"
}

// keepOld ends a pass with the old revision kept.
func (t *upgrade) keepOld(reason, message string) {
	if t.request.Rollback {
		t.setStatus(RolledBack, reason, message)
		return
	}
	t.setStatus(Retained, reason, message)
}

// removedOld ends an upgrade or a rollback: the old revision is gone.
func (t *upgrade) removedOld() {
	t.gone = true
	t.result.Until = time.Time{}
	if t.request.Rollback {
		t.setStatus(RolledBack, "", "")
		return
	}
	t.setStatus(Succeeded, "", "")
}

// Advance takes the upgrades of one namespace as far as they can go now. Every
// step begins with what the cluster says, so that it may be called again at any
// time, by anybody, after any end.
func (u *Upgrader) Advance(ctx context.Context, name string, wishes []Request) ([]Result, error) {
	n := &namespace{ReferenceIndex: newReferenceIndex(name)}
	for found, err := range u.namespaces(ctx, Scope{Namespace: name}) {
		if err != nil {
			return nil, err
		}
		n = found
	}
	return u.newPass(ctx, n, wishes)
}

// newPass is what both Run and Advance do with one namespace: make successors, lead
// references to them, and give up the sources that nobody refers to.
func (u *Upgrader) newPass(ctx context.Context, n *namespace, wishes []Request) ([]Result, error) {
	r := &pass{Upgrader: u, namespace: n}
	for _, w := range wishes {
		t := &upgrade{request: w, policy: u.options.Policy, result: Result{Item: n.item(w), Phase: Pending}}
		if w.Policy != nil {
			t.policy = *w.Policy
		}
		r.tasks = append(r.tasks, t)
	}
	all := r.tasks
	var err error
	for batch := range slices.Chunk(all, batchSize) {
		r.tasks = batch
		if err = r.advance(ctx); err != nil {
			break
		}
	}
	results := make([]Result, len(all))
	for i, t := range all {
		results[i] = t.result
	}
	return results, err
}

// batchSize bounds how many revisions are in memory with their data, and how many are
// removed before the scan that repairs what came meanwhile.
const batchSize = 200

// advance takes a batch as far as it can go now.
func (r *pass) advance(ctx context.Context) error {
	defer r.dropData()
	for _, stage := range []func(context.Context) error{r.prepare, r.repoint, r.settle} {
		if err := stage(ctx); err != nil {
			return err
		}
	}
	return nil
}

// dropData frees what only the steps of a batch need: with the data of both revisions of
// every task, a namespace of ten thousand machines would take a hundred megabytes.
func (r *pass) dropData() {
	for _, t := range r.tasks {
		t.source, t.replacement, t.copy = nameOnly(t.source, t.gone), nameOnly(t.replacement, t.gone), nil
	}
}

// nameOnly is what is left of a revision when its batch is over: later batches look for
// references to those that are gone.
func nameOnly(r *appsv1.ControllerRevision, gone bool) *appsv1.ControllerRevision {
	if r == nil || !gone {
		return nil
	}
	return &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Namespace: r.Namespace, Name: r.Name}}
}

// item is what the scan found of what is wished for. Why it is so is for whoever looks
// again to say.
func (n *namespace) item(w Request) Item {
	if found := n.itemOf(w.Name); found != nil && (w.UID == "" || w.UID == found.UID) {
		i := *found
		i.Reason, i.Message = "", ""
		return i
	}
	return Item{Namespace: n.Namespace, Name: w.Name, UID: w.UID}
}

// itemOf finds an item by name, when all are known; nil if there is none.
func (n *namespace) itemOf(name string) *Item {
	at, found := slices.BinarySearchFunc(n.items, name, func(i Item, name string) int { return strings.Compare(i.Name, name) })
	if !found {
		return nil
	}
	return &n.items[at]
}

type pass struct {
	*Upgrader
	*namespace
	tasks   []*upgrade
	removed []*upgrade // whose old revisions this pass has removed, in all batches
}

// each visits objects, several at once.
func each[T walk.Object](ctx context.Context, u *Upgrader, objects []T, act func(context.Context, T) error) error {
	if len(objects) == 0 {
		return nil
	}
	page := func(yield func(walk.Page[T], error) bool) { yield(walk.Page[T]{Items: objects}, nil) }
	_, err := walk.Run(ctx, page, func(ctx context.Context, o T) (godwit.Outcome, error) {
		if err := act(ctx, o); err != nil {
			return godwit.Failed, err
		}
		return godwit.Migrated, nil
	}, walk.Options{Limiter: u.options.Limiter})
	return err
}

// each takes tasks a step further. One that fails stays where it is, and says why; one
// that is told to stop has nothing to say.
func (r *pass) each(ctx context.Context, tasks []*upgrade, step func(context.Context, *upgrade) error) error {
	return each(ctx, r.Upgrader, tasks, func(ctx context.Context, t *upgrade) error {
		err := step(ctx, t)
		switch {
		case errors.Is(err, walk.ErrStopped):
			return err
		case terminatingNamespace(err):
			t.result.Action = Deferred
			t.setStatus(t.result.Phase, ReasonTerminating, "namespace "+t.GetNamespace()+" is being deleted: nothing can be made in it")
			err = nil
		case conflict(err), errors.Is(err, errGoneAgain):
			t.setStatus(t.result.Phase, ReasonChanged, err.Error())
			err = nil
		case err != nil:
			t.setError(err)
		}
		if r.options.Progress != nil {
			r.options.Progress(t.result)
		}
		return err
	})
}

// prepareAttempts bounds how often a task is prepared within a pass. A revision that two
// tasks write, as a rollback of a machine and of its snapshot do, costs one of them an
// attempt.
const prepareAttempts = 4

// prepare makes every successor that is to be, and what a restore looks up beside it. It
// begins again with what another writer left.
func (r *pass) prepare(ctx context.Context) error {
	return r.each(ctx, r.tasks, func(ctx context.Context, t *upgrade) error {
		for attempt := 1; ; attempt++ {
			err := r.prepareOne(ctx, t)
			changed := conflict(err) || err == nil && t.result.Reason == ReasonChanged
			if !changed || attempt == prepareAttempts {
				return err
			}
		}
	})
}

func (r *pass) prepareOne(ctx context.Context, t *upgrade) error {
	err := r.begin(ctx, t)
	switch {
	case !t.repointing():
		return err
	case err != nil: // nothing is repointed ahead of what a restore looks up
		t.result.Phase = Held
		return err
	}
	return r.ensureCounterparts(ctx, t)
}

// begin looks at the source again, live, and makes its successor.
func (r *pass) begin(ctx context.Context, t *upgrade) (err error) {
	t.result.Phase = Analyzing
	if t.source, err = r.client.revision(ctx, t.GetNamespace(), t.GetName()); err != nil {
		return err
	}
	if t.source != nil && t.request.UID != "" && t.source.UID != t.request.UID {
		t.setStatus(Skipped, ReasonReplaced, "the revision of this name is another one now: it takes another upgrade")
		return nil
	}
	if t.source != nil {
		t.result.UID, t.result.ResourceVersion, t.result.Hash = t.source.UID, t.source.ResourceVersion, Hash(t.source)
	}
	switch {
	case t.request.Rollback:
		return r.beginRollback(ctx, t)
	case t.source == nil:
		return r.beginWithoutSource(ctx, t)
	}
	if goOn, err := r.heed(ctx, t); err != nil || !goOn {
		return err
	}
	j := decide(facts{family: r.family, policy: t.policy, crds: r.crds, revision: t.source,
		references: r.Of(t.GetName()), ownerGone: r.ownerGone(t.source), replacement: r.replacementOf(t.source)})
	t.result.Item = j.Item
	switch j.Action {
	case Upgrade:
		return r.ensure(ctx, t, j)
	case Relabel:
		t.result.Phase = Pending
		return r.relabel(ctx, t, j)
	case UpToDate:
		t.setStatus(Succeeded, j.Reason, j.Message)
	case Unreferenced:
		t.setStatus(Skipped, j.Reason, j.Message)
	case Deferred:
		t.setStatus(waiting(j), j.Reason, j.Message)
	default:
		t.setStatus(Failed, j.Reason, j.Message)
	}
	return nil
}

// waiting is where an upgrade stands that can't go on: its data converts, and there
// may be a successor from before.
func waiting(j decision) Phase {
	if j.Replacement != "" {
		return Held
	}
	return Converted
}

// beginWithoutSource: somebody deleted it, or this is a second look at an upgrade
// that came to its end.
func (r *pass) beginWithoutSource(ctx context.Context, t *upgrade) error {
	heirs, all := r.replacements[t.GetName()], r.Of(t.GetName())
	references := explicit(all)
	switch {
	case len(references) == 0 && len(all) > 0 && len(heirs) == 0:
		return r.makeLookedUp(ctx, t, all)
	case len(heirs) == 1:
		successor, err := r.client.revision(ctx, t.GetNamespace(), heirs[0].name)
		if err != nil {
			return err
		}
		switch {
		case successor != nil && len(references) > 0 && r.ownerGone(successor):
			t.setStatus(Failed, ReasonOwnerGone, "it is gone, and "+successor.Name+", which has taken its place, goes with a controller that is gone, too")
			return nil
		case successor != nil:
			t.setReplacement(successor)
			t.setStatus(Created, "", "")
			return nil
		}
	case len(references) == 0 && t.request.UID == "": // nobody has ever seen it
		t.setStatus(Failed, ReasonSourceGone, fmt.Sprintf("there is no controllerrevision %s/%s, and nobody refers to one: see kubectl get controllerrevisions -n %s",
			t.GetNamespace(), t.GetName(), t.GetNamespace()))
		return nil
	case len(references) == 0:
		t.setStatus(Skipped, ReasonSourceGone, "it is gone, and nobody refers to it")
		return nil
	}
	return r.beginAbsent(ctx, t, references)
}
