package crossplane

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/godwit-dev/godwit/externalname"
)

// Resource is a kind of managed resources whose external names follow the contract of this
// package. [Resource.Setup] adds its controller to a manager.
type Resource[M resource.Managed, K, X any] struct {
	// Kind is the managed resource.
	Kind schema.GroupVersionKind
	// Names is the form of the external names.
	Names externalname.Scheme[K]
	// Connect returns the functions for the external system of the managed resource.
	Connect func(ctx context.Context, mg M) (External[M, K, X], error)

	// KeyFromSpec returns the key in the spec, for kinds whose spec determines the key. The key is checked before a
	// creation, and recorded before an update that changes it.
	KeyFromSpec func(mg M) K
	// KeyFromStatus returns the key in status.atProvider, for hybrid kinds whose key consists of observed fields. It
	// returns false until all of these fields are known. It needs an exception of [RuleNameFromCreate].
	KeyFromStatus func(mg M) (K, bool)
	// FindUnnamed is for compatibility with a release that did not write external names: an object without a name is
	// looked up with Find, and gets the name of the only match. The reference of the kind lists it as an exception of
	// [RuleUnnamedAdoptsNothing].
	FindUnnamed bool
	// ImportMustExist refuses to create a resource for a name that has never identified one. By default, such a name is
	// drift, like a deleted resource. The reference of the kind lists it as an exception of [RuleMissingIsCreated].
	ImportMustExist bool
	// RecoveryDelay is how long after the death of a process its requests may still take effect and become visible to
	// Find. Zero means 30 s.
	RecoveryDelay time.Duration
	// OperationPoll is how often a pending operation is polled. Zero means 10 s.
	OperationPoll time.Duration
	// Removed is called with an object whose finalizer is removed, to drop what the process remembers of it.
	Removed func(mg metav1.Object)
	// Initializers run before each observation, after [DefaultInitializers].
	Initializers []managed.Initializer
	// Exceptions are the rules of this package that the kind does not follow.
	Exceptions []Exception
}

const (
	// defaultRecoveryDelay is crossplane-runtime's grace period for APIs that are
	// eventually consistent.
	defaultRecoveryDelay = 30 * time.Second
	defaultOperationPoll = 10 * time.Second
	// defaultReconcilesPerSecond is the value in Crossplane's provider template.
	defaultReconcilesPerSecond = 10
)

// ExceptedRule is a rule that a kind may declare an exception of.
type ExceptedRule string

const (
	// RuleNameFromCreate is the rule that Create sets the external name from the response of the external system. Hybrid
	// kinds set it from observed fields.
	RuleNameFromCreate ExceptedRule = "NameFromCreate"
	// RuleUnnamedAdoptsNothing is the rule that an object without an external name adopts nothing. It is excepted by
	// FindUnnamed.
	RuleUnnamedAdoptsNothing ExceptedRule = "UnnamedAdoptsNothing"
	// RuleMissingIsCreated is the rule that an external resource that does not exist is created under the policies that
	// allow it, also for a name that the user has set. It is excepted by ImportMustExist.
	RuleMissingIsCreated ExceptedRule = "MissingIsCreated"
	// RuleUniqueNames is the rule that one object has an external name: several are reported, and none is deleted while
	// another one has the name. It is excepted by kinds whose objects are parts of one external resource, an aggregate:
	// what Connect returns for such an object reads, writes and deletes its part alone.
	RuleUniqueNames ExceptedRule = "UniqueNames"
)

// Exception is a rule that a kind does not follow, and the reason. The reference of the kind prints it.
type Exception struct {
	Rule   ExceptedRule `json:"rule"`
	Reason string       `json:"reason"`
}

func (r Resource[M, K, X]) validate() error {
	switch {
	case r.Names.Codec == nil:
		return errors.New("Names.Codec is missing")
	case r.Connect == nil:
		return errors.New("Connect is missing")
	case r.KeyFromStatus != nil && !r.excepts(RuleNameFromCreate):
		return fmt.Errorf("KeyFromStatus needs an exception of rule %s with a reason", RuleNameFromCreate)
	}
	for _, e := range r.Exceptions {
		if strings.TrimSpace(e.Reason) == "" {
			return fmt.Errorf("exception of rule %s has no reason", e.Rule)
		}
	}
	return nil
}

func (r Resource[M, K, X]) excepts(rule ExceptedRule) bool {
	for _, e := range r.Exceptions {
		if e.Rule == rule {
			return true
		}
	}
	return false
}

// exceptions returns the declared exceptions, and those that fields of the kind imply, unless the author has declared
// them with a reason.
func (r Resource[M, K, X]) exceptions() []Exception {
	list := slices.Clone(r.Exceptions)
	if r.FindUnnamed && !r.excepts(RuleUnnamedAdoptsNothing) {
		list = append(list, Exception{Rule: RuleUnnamedAdoptsNothing, Reason: "An object without an external name gets the name of the only " +
			"external resource that fits its spec, which the object then manages and deletes."})
	}
	if r.ImportMustExist && !r.excepts(RuleMissingIsCreated) {
		list = append(list, Exception{Rule: RuleMissingIsCreated, Reason: "An external name that has never identified an external resource is " +
			"an error: nothing is created."})
	}
	return list
}

// looksUp reports whether the kind may look objects up by their spec.
func (r Resource[M, K, X]) looksUp() bool {
	for _, form := range r.Names.Legacy {
		if form.Content == externalname.ContentHint {
			return true
		}
	}
	return r.FindUnnamed
}

func (r Resource[M, K, X]) withDefaults() Resource[M, K, X] {
	if r.RecoveryDelay == 0 {
		r.RecoveryDelay = defaultRecoveryDelay
	}
	if r.OperationPoll == 0 {
		r.OperationPoll = defaultOperationPoll
	}
	return r
}

func (r Resource[M, K, X]) legacyForms() []string {
	var forms []string
	for _, form := range r.Names.Legacy {
		forms = append(forms, form.Name)
	}
	return forms
}
