package crossplane

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/godwit-dev/godwit/externalname"
)

// Resource is a kind of managed resources whose external names follow the contract of this
// package. [Resource.Setup] adds its controller to a manager.
type Resource[M resource.Managed, K, X any] struct {
	// Kind is the managed resource.
	Kind schema.GroupVersionKind
	// Names are how the external names are written.
	Names externalname.Scheme[K]
	// Connect returns the external system that the managed resource asks for.
	Connect func(ctx context.Context, mg M) (External[M, K, X], error)

	// KeyFromSpec returns the key that the spec asks for, of kinds whose key the spec
	// determines. It is checked before a creation, and recorded before an update that
	// changes it.
	KeyFromSpec func(mg M) K
	// KeyFromStatus returns the key that status.atProvider determines, and false as long
	// as it does not, of hybrid kinds whose key consists of observed fields. It needs an
	// exception of [RuleNameFromCreate].
	KeyFromStatus func(mg M) (K, bool)
	// FindUnnamed is for compatibility with a release that has not written external
	// names: an object without one is looked up by Find, and gets the name of the one
	// match.
	FindUnnamed bool
	// ImportMustExist refuses to create a resource for a name that has never identified
	// one. By default that is drift, as for a resource that was deleted.
	ImportMustExist bool
	// RecoveryDelay is how long a request may still be carried out after the process that
	// sent it has died, and until Find shows it. Zero means 30 s.
	RecoveryDelay time.Duration
	// OperationPoll is how often a pending operation is polled. Zero means 10 s.
	OperationPoll time.Duration
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
	// defaultReconcilesPerSecond is what Crossplane's template of a provider sets.
	defaultReconcilesPerSecond = 10
)

// ExceptedRule is a rule that a kind may declare not to follow.
type ExceptedRule string

// RuleNameFromCreate says that the external name is set by Create from the response of the
// external system. Hybrid kinds set it from observed fields.
const RuleNameFromCreate ExceptedRule = "NameFromCreate"

// Exception is a rule that a kind does not follow, and why. It is printed in the reference of
// the kind.
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

// looksUp reports whether objects may have to be looked up by their spec.
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
