package conformance

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/godwit-dev/godwit/externalname/crossplane/conformance/internal/wait"
)

// createBound starts the provider, creates an object, and waits until the provider has created its external resource.
func (e *environment) createBound(ctx context.Context) (*unstructured.Unstructured, string, error) {
	o := e.manifest()
	if err := errors.Join(e.start(ctx), e.create(ctx, o)); err != nil {
		return nil, "", err
	}
	live, name, err := e.awaitBound(ctx, o)
	return live, name, asPreparationError(err)
}

// createSetsName: an object without a name, and no external resource that fits.
func createSetsName(ctx context.Context, e *environment) (string, error) {
	o := e.manifest()
	if err := e.start(ctx); err != nil {
		return "", err
	}
	seen, err := e.record(ctx, o)
	if err != nil {
		return "", err
	}
	if err := e.create(ctx, o); err != nil {
		seen.end()
		return "", err
	}
	_, name, err := e.awaitBound(ctx, o)
	states := seen.end()
	if err != nil {
		return "", err
	}
	for _, state := range states {
		if got := meta.GetExternalName(state); e.kind.IgnoresNames == "" && got != "" && got != name {
			return "", fmt.Errorf("the external name was %q before it was %q", got, name)
		}
	}
	if n := e.calls.count(Create); n > 1 {
		return "", fmt.Errorf("the provider has called Create %d times", n)
	}
	return "", e.checkCreated(ctx, 1)
}

// attemptsAtMost is far above the attempts with a backoff within attemptsWindow, and far below those of a loop without
// backoff.
const (
	attemptsAtMost = 40
	attemptsWindow = 2 * time.Second
)

// createRefused: the external system refuses the creation for a while.
func createRefused(ctx context.Context, e *environment) (string, error) {
	e.calls.always(Fault{Answer: Refused}, Create)
	o := e.manifest()
	if err := errors.Join(e.start(ctx), e.create(ctx, o)); err != nil {
		return "", err
	}
	if _, err := e.awaitRefused(ctx, o, "the external system refuses the creation"); err != nil {
		return "", err
	}
	before, end := e.calls.count(Create), time.Now().Add(attemptsWindow)
	for time.Now().Before(end) {
		live, err := e.get(ctx, o)
		if err != nil {
			return "", err
		}
		if name := meta.GetExternalName(live); name != "" && e.kind.IgnoresNames == "" {
			return "", fmt.Errorf("the external name is %q after a creation that failed", name)
		}
		select {
		case <-ctx.Done():
			return "", ctx.Err()
		case <-time.After(wait.Pause):
		}
	}
	if n := e.calls.count(Create) - before; n > attemptsAtMost {
		return "", fmt.Errorf("%d attempts in %s: the provider does not back off", n, attemptsWindow)
	}
	e.calls.intercept(nil)
	if _, _, err := e.awaitBound(ctx, o); err != nil {
		return "", fmt.Errorf("after the external system accepts the creation: %w", err)
	}
	return "", e.checkCreated(ctx, 1)
}

// alreadyExists: the external system refuses a second resource; then the user sets the name.
func alreadyExists(ctx context.Context, e *environment) (string, error) {
	o := e.manifest()
	existing, err := e.system.Add(ctx, o)
	if err != nil {
		return "", asPreparationError(err)
	}
	if err := errors.Join(e.start(ctx), e.create(ctx, o)); err != nil {
		return "", err
	}
	if _, err := e.awaitRefused(ctx, o, "an external resource that is not named exists"); err != nil {
		return "", err
	}
	err = e.checkWhileQuiet(ctx, func() error {
		live, err := e.get(ctx, o)
		if err == nil && meta.GetExternalName(live) != "" {
			err = fmt.Errorf("the creation failed, and the external name was set: %s", describe(live))
		}
		return err
	})
	if err != nil {
		return "", err
	}
	if err := e.rename(ctx, o, existing); err != nil {
		return "", err
	}
	if _, _, err := e.awaitBound(ctx, o); err != nil {
		return "", fmt.Errorf("after the user has set the name: %w", err)
	}
	return "", e.checkCreated(ctx, 1)
}

// Results of a call whose outcome the provider could not know.
const (
	recovered = "recovered"
	held      = "held until the user decides"
)

// outcome waits for the end of a creation whose outcome the provider could not know: the object is bound, or it is
// refused until the user decides.
func (e *environment) outcome(ctx context.Context, o *unstructured.Unstructured) (string, error) {
	if _, _, err := e.awaitBoundWithin(ctx, e.harness.Recovery, o); err == nil {
		return recovered, nil
	}
	note := ""
	err := wait.Until(ctx, e.harness.Timeout, func() (bool, error) {
		live, err := e.get(ctx, o)
		if err != nil {
			return false, err
		}
		bound, err := e.bound(ctx, live)
		switch {
		case err != nil:
			return false, err
		case bound:
			note = recovered
		case refused(live):
			note = held
		default:
			return false, fmt.Errorf("neither recovered nor refused: %s", describe(live))
		}
		return true, nil
	})
	return note, err
}

// lostAnswer: the external resource was created, and the answer is lost.
func lostAnswer(ctx context.Context, e *environment) (string, error) {
	e.calls.once(Create, Fault{Answer: Lost})
	o := e.manifest()
	if err := errors.Join(e.start(ctx), e.create(ctx, o)); err != nil {
		return "", err
	}
	if err := e.awaitCalls(ctx, Create, 1); err != nil {
		return "", err
	}
	note, err := e.outcome(ctx, o)
	if err != nil {
		return "", err
	}
	return note, e.checkCreated(ctx, 1)
}

// foreignResource: while the request is lost, another client creates what fits the spec.
func foreignResource(ctx context.Context, e *environment) (string, error) {
	o := e.manifest()
	same := o.DeepCopy() // the answer of the API server is written into o
	foreign := make(chan string, 1)
	failed := make(chan error, 1)
	e.calls.once(Create, Fault{Answer: Dropped, Before: func() {
		name, err := e.system.Add(context.WithoutCancel(ctx), same)
		if err != nil {
			failed <- err
			return
		}
		foreign <- name
	}})
	if err := errors.Join(e.start(ctx), e.create(ctx, o)); err != nil {
		return "", err
	}
	var name string
	select {
	case name = <-foreign:
	case err := <-failed:
		return "", asPreparationError(err)
	case <-time.After(e.harness.Timeout):
		return "", errors.New("the provider has not called Create")
	}
	end := time.Now().Add(e.harness.Recovery)
	for time.Now().Before(end) {
		live, err := e.get(ctx, o)
		if err != nil {
			return "", err
		}
		if meta.GetExternalName(live) == name {
			return "", fmt.Errorf("external resource %q, which another client created at the same time, was adopted: %s", name, describe(live))
		}
		select {
		case <-ctx.Done():
			return "", ctx.Err()
		case <-time.After(wait.Pause):
		}
	}
	kept, err := e.exists(ctx, name)
	if err == nil && !kept {
		err = fmt.Errorf("external resource %q, which another client created at the same time, was deleted", name)
	}
	return "", errors.Join(err, e.calls.checkNone(Update, Delete))
}

// stalePending: a backup was made during a creation, and an external resource fits the spec.
func stalePending(ctx context.Context, e *environment) (string, error) {
	o := e.manifest()
	foreign, err := e.system.Add(ctx, o)
	if err != nil {
		return "", asPreparationError(err)
	}
	meta.AddAnnotations(o, map[string]string{meta.AnnotationKeyExternalCreatePending: "2026-01-02T03:04:05Z"})
	if err := errors.Join(e.start(ctx), e.create(ctx, o)); err != nil {
		return "", err
	}
	if _, err := e.awaitRefused(ctx, o, "the outcome of its creation is unknown"); err != nil {
		return "", err
	}
	return "", e.checkWhileQuiet(ctx, func() error {
		live, err := e.get(ctx, o)
		if err == nil && meta.GetExternalName(live) == foreign {
			err = fmt.Errorf("external resource %q was adopted without a proof: %s", foreign, describe(live))
		}
		return errors.Join(err, e.calls.checkNone(Update, Delete))
	})
}
