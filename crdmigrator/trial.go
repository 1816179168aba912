package crdmigrator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/internal/kube"
	"github.com/godwit-dev/godwit/walk"
)

const (
	// rehearsalLimit keeps a plan an answer and not a job. Trials that have not
	// ended by then are left out.
	rehearsalLimit = 20 * time.Second

	// trialLimit is above the 10 s that the API server gives a webhook by default,
	// so that it is the server who says which one did not answer.
	trialLimit = 12 * time.Second

	// trialsAtOnce is few enough for a webhook that runs once.
	trialsAtOnce = 4

	// trialTries bounds the readings of an object that is written all the time.
	trialTries = 3

	// sampledNamespaces is how many are tried; the rest is counted.
	sampledNamespaces = 20

	// keptPaths bounds what is remembered of one changed object.
	keptPaths = 10
)

var (
	errRehearsalOver = fmt.Errorf("the rehearsal ended after %v", rehearsalLimit)
	errTrialOver     = fmt.Errorf("no answer within %v", trialLimit)
)

// rehearseWrite sends the policy's write as a dry run, for one object of each
// namespace. Where what it needs is not there or not allowed, other blockers say
// so, and nothing is tried. A dry run takes the rights of the write itself.
func (m *Migrator) rehearseWrite(ctx context.Context, f Facts) (*Admission, error) {
	a := &Admission{Write: m.options.Write.orDefault()}
	resource := kube.ResourceOf(f.CRD)
	switch {
	case f.CRD.DeletionTimestamp != nil, !kube.Established(f.CRD), !kube.Serves(f.CRD, resource.Version):
		return nil, nil
	case a.Write.subresource() != "" && !kube.HasStatus(f.CRD), f.lacks(resource.GroupResource()):
		return nil, nil
	}
	limited, cancel := within(ctx, rehearsalLimit, errRehearsalOver)
	defer cancel()
	samples, err := m.sample(limited, f)
	if err == nil {
		a.Namespaces, a.AllSeen = samples.namespaces(f.CRD), samples.allSeen
		r := rehearsal{Migrator: m, crd: f.CRD, resource: resource}
		a.Trials = r.tryAll(limited, a.Write, samples.objects)
		a.StatusTrials = r.tryStatus(limited, a)
		if a.troubled() {
			a.Hooks, a.HooksUnread = m.hooks(limited, resource, a.Write)
		}
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	a.TimedOut = limited.Err() != nil
	var answered apierrors.APIStatus
	switch {
	case errors.As(err, &answered), a.TimedOut && err != nil:
		a.Unlisted = err.Error()
	case err != nil:
		return nil, err
	}
	return a, nil
}

// lacks: a right on the objects themselves is missing.
func (f Facts) lacks(objects schema.GroupResource) bool {
	for _, g := range f.Denied {
		resource, _, _ := strings.Cut(g.Resource.Resource, "/")
		if g.Resource.Group == objects.Group && resource == objects.Resource {
			return true
		}
	}
	return false
}

// within is a timeout that does not look to the limiter like a server that does
// not answer, as a deadline of the context does.
func within(ctx context.Context, limit time.Duration, cause error) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	timer := time.AfterFunc(limit, func() { cancel(cause) })
	return ctx, func() { timer.Stop(); cancel(nil) }
}

// rehearsal is the trials of one definition.
type rehearsal struct {
	*Migrator
	crd      *apiextensionsv1.CustomResourceDefinition
	resource schema.GroupVersionResource
}

// tryAll tries a write on objects, a few at once. A webhook that is down is the
// same for all of them, and takes its time with each: the first to meet it is the
// last. What was not begun in time is not among the trials.
func (r rehearsal) tryAll(ctx context.Context, w Write, objects []*metav1.PartialObjectMetadata) []Trial {
	trials := make([]*Trial, len(objects))
	next := make(chan int, len(objects))
	for i := range objects {
		next <- i
	}
	close(next)
	var stop atomic.Bool
	var workers sync.WaitGroup
	for range min(len(objects), trialsAtOnce) {
		workers.Go(func() {
			for i := range next {
				if stop.Load() || ctx.Err() != nil {
					return
				}
				t := r.try(ctx, w, objects[i])
				trials[i] = &t
				if t.judge().effect == unreachable {
					stop.Store(true)
				}
			}
		})
	}
	workers.Wait()
	var tried []Trial
	for _, t := range trials {
		if t != nil {
			tried = append(tried, *t)
		}
	}
	return tried
}

// StatusPasses reports whether a dry run of [WriteStatusPatch] goes through for
// every object that a run of p failed on. It is false where that is no other way:
// the policy writes to /status already, or the storage version has none. An object
// that was deleted since, or that the caller may not write, does not pass.
func (m *Migrator) StatusPasses(ctx context.Context, p Plan, failed []godwit.Failure) (bool, error) {
	if len(failed) == 0 || m.options.Write.orDefault().subresource() != "" {
		return false, nil
	}
	crd, err := m.client.CRD(ctx, p.Name)
	if err != nil {
		return false, notFound(p.Name, err)
	}
	if crd.UID != p.UID || !kube.HasStatus(crd) {
		return false, nil
	}
	objects := make([]*metav1.PartialObjectMetadata, len(failed))
	for i, f := range failed {
		objects[i] = &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: f.Namespace, Name: f.Name}}
	}
	limited, cancel := within(ctx, rehearsalLimit, errRehearsalOver)
	defer cancel()
	trials := rehearsal{Migrator: m, crd: crd, resource: kube.ResourceOf(crd)}.tryAll(limited, WriteStatusPatch, objects)
	passed := !slices.ContainsFunc(trials, func(t Trial) bool { return t.judge().effect != passes })
	return passed && len(trials) == len(objects), context.Cause(ctx)
}

// tryStatus tries the write that webhooks of the object itself are usually not
// asked about, where one of them is in the way.
func (r rehearsal) tryStatus(ctx context.Context, a *Admission) []Trial {
	if !a.offersStatus(r.crd) {
		return nil
	}
	var objects []*metav1.PartialObjectMetadata
	for _, t := range a.troubles() {
		if t.effect == denies || t.effect == unreachable || t.effect == changes {
			first := t.trials[0]
			objects = append(objects, &metav1.PartialObjectMetadata{
				ObjectMeta: metav1.ObjectMeta{Namespace: first.Namespace, Name: first.Name},
			})
		}
	}
	return r.tryAll(ctx, WriteStatusPatch, objects)
}

// try compares an object with what the API server would make of it. The dry run
// answers with the resourceVersion that it found: if that is not the one which
// was read, somebody else made the difference.
func (r rehearsal) try(ctx context.Context, w Write, o walk.Object) Trial {
	ctx, cancel := within(ctx, trialLimit, errTrialOver)
	defer cancel()
	t := Trial{Namespace: o.GetNamespace(), Name: o.GetName()}
	for range trialTries {
		before, err := r.client.FindWhole(ctx, r.resource, o)
		switch {
		case err != nil:
			return t.failed(ctx, err)
		case before == nil:
			t.Untold = "it is gone"
			return t
		}
		after, err := r.dryRun(ctx, w, before)
		switch {
		case apierrors.IsConflict(err):
			continue
		case err != nil:
			return t.failed(ctx, err)
		case after.GetResourceVersion() == before.GetResourceVersion():
			fillDefaults(r.crd, before.Object)
			t.Changed = changedPaths(before.Object, after.Object)
			t.More = max(0, len(t.Changed)-keptPaths)
			t.Changed = t.Changed[:len(t.Changed)-t.More]
			return t
		}
	}
	t.Untold = "somebody else wrote it each time"
	return t
}

// failed takes down what the server said, or that it said nothing.
func (t Trial) failed(ctx context.Context, err error) Trial {
	var answered apierrors.APIStatus
	switch {
	case errors.As(err, &answered):
		t.Code, t.Refusal = answered.Status().Code, orElse(err.Error(), "no reason given")
	case ctx.Err() != nil:
		t.Untold = context.Cause(ctx).Error()
	default:
		t.Untold = err.Error()
	}
	return t
}

func (r rehearsal) dryRun(ctx context.Context, w Write, o *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if w == WriteUpdate {
		body, err := o.MarshalJSON()
		if err != nil {
			return nil, err
		}
		return dryRun(ctx, r.client.putRequest(r.resource, o, body))
	}
	p, err := w.patch(r.resource.GroupVersion().WithKind(r.crd.Spec.Names.Kind), o)
	if err != nil {
		return nil, err
	}
	return dryRun(ctx, r.client.patchRequest(r.resource, o, p))
}
