package conformance

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/godwit-dev/godwit/externalname/crossplane/conformance/internal/manifest"
)

// need returns an empty state if a check can run, or the state and the cause if it can't.
type need func(e *environment) (State, string)

func missing(isMissing bool, what string) (State, string) {
	if isMissing {
		return NotChecked, what + " is not set"
	}
	return "", ""
}

func needList(e *environment) (State, string) { return missing(e.system.List == nil, "System.List") }
func needAdd(e *environment) (State, string)  { return missing(e.system.Add == nil, "System.Add") }
func needChanges(e *environment) (State, string) {
	return missing(e.system.Change == nil, "System.Change")
}
func needRemove(e *environment) (State, string) {
	return missing(e.system.Remove == nil, "System.Remove")
}
func needCalls(e *environment) (State, string) {
	return missing(e.system.OnCall == nil, "System.OnCall")
}
func needChangePatch(e *environment) (State, string) {
	return missing(e.kind.Change == "", "Kind.Change")
}
func needTwins(e *environment) (State, string) {
	return missing(e.system.AddTwins == nil, "System.AddTwins")
}
func needLookup(e *environment) (State, string) {
	return missing(e.kind.LookupName == nil, "Kind.LookupName")
}
func needUnknown(e *environment) (State, string) {
	return missing(e.kind.Unknown == "", "Kind.Unknown")
}
func needParent(e *environment) (State, string) {
	return missing(e.system.HideParent == nil, "System.HideParent")
}
func needDeleting(e *environment) (State, string) {
	return missing(e.system.SlowDeletion == nil, "System.SlowDeletion")
}

// needNames is for rules about the external name itself.
func needNames(e *environment) (State, string) {
	if e.kind.IgnoresNames != "" {
		return DoesNotApply, "the kind does not use external names: " + e.kind.IgnoresNames
	}
	return "", ""
}

func needMalformed(e *environment) (State, string) {
	return missing(len(e.kind.malformed()) == 0, "Kind.Malformed, or Kind.Shape with Kind.Unknown")
}

func needRename(e *environment) (State, string) {
	if len(e.kind.Shape.Segments) > 0 && !e.kind.Shape.Mutable() {
		return DoesNotApply, "no segment of the name is mutable"
	}
	return missing(e.kind.Rename == "", "Kind.Rename")
}

func needHardKeys(e *environment) (State, string) {
	if !e.kind.escapes() {
		return DoesNotApply, "no segment of the name can have text that needs escaping"
	}
	return missing(len(e.kind.HardKeys) == 0, "Kind.HardKeys")
}

func needUniqueness(e *environment) (State, string) {
	if e.kind.AllowsDuplicates {
		return DoesNotApply, "the external system creates a second resource that is equal to one that exists"
	}
	return "", ""
}

// needCrash is for rules about a process that ends between two steps.
func needCrash(e *environment) (State, string) {
	if e.provider.Client != nil {
		return DoesNotApply, "a bare ExternalClient has no say after a crash: crossplane-runtime stops before it connects"
	}
	return "", ""
}

// identified sets the external name of a managed resource, unless the kind ignores names.
func (e *environment) identified(mg *unstructured.Unstructured, name string) *unstructured.Unstructured {
	if e.kind.IgnoresNames == "" {
		return manifest.Named(mg, name)
	}
	return mg
}

// check is one rule of the contract.
type check struct {
	name CheckName
	// rule is what the check proves, in a sentence.
	rule string
	// needs are evaluated in this order; the first unmet need decides.
	needs []need
	// run returns a note about how the provider passed, or why it did not.
	run func(ctx context.Context, e *environment) (note string, err error)
}

// prove runs a check in a new environment, if its needs are met.
func (c check) prove(ctx context.Context, k Kind, h Harness) (result Result) {
	if reason := k.Exempt[c.name]; reason != "" {
		return Result{State: DoesNotApply, Detail: reason}
	}
	e, err := newEnvironment(ctx, k, h)
	if err != nil {
		return Result{State: NotChecked, Detail: "could not be prepared: " + err.Error(), unprepared: true}
	}
	defer func() {
		if err := e.close(ctx); err != nil && result.State == Passed {
			result = Result{State: NotChecked, Detail: "could not be cleaned up: " + err.Error(), unprepared: true}
		}
	}()
	for _, need := range append([]need{needList}, c.needs...) {
		if state, cause := need(e); state != "" {
			return Result{State: state, Detail: cause}
		}
	}
	note, err := c.run(ctx, e)
	if err != nil && e.output != nil {
		err = fmt.Errorf("%w\nthe provider has printed: %s", err, e.output())
	}
	var unprepared *preparationError
	switch {
	case errors.As(err, &unprepared):
		return Result{State: NotChecked, Detail: "could not be prepared: " + err.Error(), unprepared: true}
	case err != nil:
		return Result{State: Failed, Detail: err.Error()}
	}
	return Result{State: Passed, Detail: note}
}
