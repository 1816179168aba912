package crossplane

import (
	"errors"
	"fmt"
	"strings"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
)

// explain adds a remedy to an error. It does not change errors of the external system that are not about external
// names.
func (r *reconciliation[M, K, X]) explain(mg M, err error) error {
	object := r.object(mg)
	pattern := r.Names.Codec.Describe().String()
	setName := fmt.Sprintf("kubectl annotate --overwrite %s '%s=%s'", object, meta.AnnotationKeyExternalName, pattern)
	var multiple *MultipleMatchesError
	var refused *AdoptionRefusedError
	var changed *NameChangedError
	var never *NeverFoundError
	var shared *SharedNameError
	switch {
	case meta.WasDeleted(mg) && (isInvalid(err) || errors.As(err, &changed) || errors.Is(err, ErrOutcomeUnknown) || errors.As(err, &refused)):
		return &remedyError{err: err, remedy: fmt.Sprintf("Correct the external name: %s. Or leave the external resource as it is: "+
			`kubectl patch %s --type=merge -p '{"spec":{"managementPolicies":["Observe"]}}'`, setName, object)}
	case isInvalid(err):
		return &remedyError{err: err, remedy: "Correct the external name: " + setName}
	case errors.Is(err, ErrAlreadyExists):
		return &remedyError{err: err, remedy: "To adopt the external resource, set its name: " + setName}
	case errors.As(err, &multiple):
		return &remedyError{err: err, remedy: "Choose one: " + setName}
	case errors.As(err, &changed):
		return &remedyError{err: err, remedy: fmt.Sprintf("Restore the name: kubectl annotate --overwrite %s '%s=%s'. Or give the external resource up: kubectl annotate %s %s-",
			object, meta.AnnotationKeyExternalName, changed.Bound, object, AnnotationBoundName)}
	case errors.As(err, &never):
		return &remedyError{err: err, remedy: fmt.Sprintf("Correct the external name: %s. Or have the resource created: kubectl annotate %s %s-", setName, object, meta.AnnotationKeyExternalName)}
	case errors.As(err, &shared):
		return &remedyError{err: err, remedy: fmt.Sprintf("Leave the external resource to them: "+
			`kubectl patch %s --type=merge -p '{"spec":{"managementPolicies":["Observe"]}}'`+". Or give the others their own name, or let them only observe", object)}
	case errors.As(err, &refused), errors.Is(err, ErrOutcomeUnknown):
		return &remedyError{err: err, remedy: fmt.Sprintf("If the external resource exists, set its name: %s. If it does not, have it created: kubectl annotate %s %s-",
			setName, object, meta.AnnotationKeyExternalCreatePending)}
	}
	return err
}

// object returns the kubectl arguments for the managed resource.
func (r *reconciliation[M, K, X]) object(mg M) string {
	words := []string{strings.ToLower(r.Kind.Kind) + "." + r.Kind.Group, mg.GetName()}
	if namespace := mg.GetNamespace(); namespace != "" {
		words = append(words, "-n", namespace)
	}
	return strings.Join(words, " ")
}
