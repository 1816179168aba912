package crossplane

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/event"
	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"

	"github.com/godwit-dev/godwit/externalname"
)

// maxQuestions is an upper bound for the questions of any path through decide.
const maxQuestions = 12

// Observe implements the contract: see the table in the package's documentation.
func (r *reconciliation[M, K, X]) Observe(ctx context.Context, mg M) (managed.ExternalObservation, error) {
	if err := checkFormat(mg); err != nil {
		return managed.ExternalObservation{}, err
	}
	f := r.facts(mg)
	for range maxQuestions {
		switch d := decide(f); d.action {
		case reportPresent:
			return r.present(ctx, mg, d.name)
		case reportAbsent:
			return r.absent(mg, f), nil
		case reportInProgress:
			setCondition(mg, Lifecycle{State: Creating}.condition())
			return managed.ExternalObservation{ResourceExists: true, ResourceUpToDate: true}, nil
		case refuse:
			return managed.ExternalObservation{}, r.explain(mg, d.err)
		default:
			if err := r.answer(ctx, mg, d, &f); err != nil {
				return managed.ExternalObservation{}, err
			}
		}
	}
	return managed.ExternalObservation{}, errors.New("observe: no decision; this is an error of Godwit")
}

// facts reads the facts in the object, without a request.
func (r *reconciliation[M, K, X]) facts(mg M) facts {
	annotations := mg.GetAnnotations()
	f := facts{
		bound:     r.canonical(annotations[AnnotationBoundName]),
		renaming:  r.canonical(annotations[AnnotationPendingName]),
		operation: annotations[AnnotationOperation],
		creating:  creationUnknown(mg),
		fresh:     time.Since(meta.GetExternalCreatePending(mg)) < r.RecoveryDelay,
		deleting:  meta.WasDeleted(mg),
		mustExist: mustExist(mg.GetManagementPolicies()),
		gets:      map[string]presence{},
		rules: rules{
			canFind:          r.external.Find != nil || r.KeyFromSpec != nil,
			canProve:         r.external.Ours != nil,
			canFindOperation: r.external.Operation.Find != nil,
			findUnnamed:      r.FindUnnamed,
			importMustExist:  r.ImportMustExist,
		},
	}
	if r.KeyFromSpec != nil {
		_, f.specInvalid = r.Names.Codec.Format(r.KeyFromSpec(copyOf(mg)))
	}
	reading, err := r.Names.Read(meta.GetExternalName(mg), mg.GetName())
	if reading.Class == externalname.Legacy {
		r.meter.legacy(reading.Form)
	}
	switch {
	case err != nil:
		f.invalid = err
	case reading.Content == externalname.ContentOperation:
		f.operation = reading.Text
	case reading.HasKey():
		f.name = reading.Name
	default:
		f.hint = reading.Content == externalname.ContentHint
		f.name = r.nameFromStatus(mg)
	}
	return f
}

// canonical returns the canonical form of a name, or empty if the text is not a name of the kind: a user may have
// written it.
func (r *reconciliation[M, K, X]) canonical(name string) string {
	if _, err := r.Names.Codec.Parse(name); err != nil {
		return ""
	}
	return name
}

// nameFromStatus returns the name that a hybrid kind derives from its last observation.
func (r *reconciliation[M, K, X]) nameFromStatus(mg M) string {
	if r.KeyFromStatus == nil {
		return ""
	}
	key, known := r.KeyFromStatus(copyOf(mg))
	if !known {
		return ""
	}
	name, err := r.Names.Codec.Format(key)
	if err != nil {
		return "" // Not all fields are known yet.
	}
	return name
}

// answer sends the question of a decision to the external system, and adds the answer to the facts.
func (r *reconciliation[M, K, X]) answer(ctx context.Context, mg M, d decision, f *facts) (err error) {
	switch d.action {
	case askGet:
		f.gets[d.name], err = r.get(ctx, d.name)
	case askFind:
		f.found, err = r.find(ctx, mg, f.creating || f.job == jobForgotten)
	case askOperation:
		f.job, f.jobName, err = r.await(ctx, mg, f.operation)
	case searchOperation:
		f.jobSearched = true
		var operation string
		operation, err = r.external.Operation.Find(ctx, withToken(mg))
		if errors.Is(err, ErrOperationNotFound) {
			return nil
		}
		f.operation, f.job = operation, 0
	case bindJob:
		// The resource that an operation has created may not be readable at once.
		c := r.binding(d.name)
		c.set(meta.AnnotationKeyExternalCreateSucceeded, time.Now().Format(time.RFC3339))
		err = r.journal.write(ctx, mg, c)
		f.name, f.bound, f.operation, f.creating = d.name, d.name, "", false
		return err
	default:
		return fmt.Errorf("observe: nothing answers %s; this is an error of Godwit", d.action)
	}
	if err != nil {
		return r.explain(mg, external(err))
	}
	return nil
}

func (r *reconciliation[M, K, X]) get(ctx context.Context, name string) (presence, error) {
	key, err := r.Names.Codec.Parse(name)
	if err != nil {
		return 0, err
	}
	observed, err := r.external.Get(ctx, key)
	switch {
	case errors.Is(err, ErrParentNotFound):
		return 0, err
	case errors.Is(err, ErrNotFound):
		return absent, nil
	case err != nil:
		return 0, err
	}
	if r.gotten == nil {
		r.gotten = map[string]gotten[K, X]{}
	}
	r.gotten[name] = gotten[K, X]{key: key, resource: observed}
	return present, nil
}

// find looks resources up by the spec. After an interrupted creation, it also checks which of them come from it.
func (r *reconciliation[M, K, X]) find(ctx context.Context, mg M, prove bool) (*[]match, error) {
	keys, err := r.findKeys(ctx, mg)
	if err != nil {
		return nil, err
	}
	matches := []match{}
	for _, key := range keys {
		name, err := r.Names.Codec.Format(key)
		if err != nil {
			return nil, err
		}
		m := match{name: name}
		if prove && r.external.Ours != nil {
			if m.ours, err = r.ours(ctx, mg, name); err != nil {
				return nil, err
			}
		}
		matches = append(matches, m)
	}
	return &matches, nil
}

func (r *reconciliation[M, K, X]) findKeys(ctx context.Context, mg M) ([]K, error) {
	if r.external.Find != nil {
		return r.external.Find(ctx, copyOf(mg))
	}
	key := r.KeyFromSpec(copyOf(mg))
	name, err := r.Names.Codec.Format(key)
	if err != nil {
		return nil, err
	}
	found, err := r.get(ctx, name)
	if err != nil || found == absent {
		return nil, err
	}
	return []K{key}, nil
}

func (r *reconciliation[M, K, X]) ours(ctx context.Context, mg M, name string) (bool, error) {
	found, err := r.get(ctx, name)
	if err != nil || found == absent {
		return false, err
	}
	return r.external.Ours(ctx, withToken(mg), r.gotten[name].resource)
}

// withToken returns a copy of an object that has a token. Without one, as after a creation by a release without Godwit,
// the copy gets a token that no creation has: an empty token would equal the empty mark of a resource of another
// client, and be part of any text.
func withToken[M resource.Managed](mg M) M {
	copied := copyOf(mg)
	if Token(copied) == "" {
		changes := changes{}
		changes.set(AnnotationToken, rand.Text())
		changes.apply(copied)
	}
	return copied
}

func (r *reconciliation[M, K, X]) await(ctx context.Context, mg M, operation string) (job, string, error) {
	if r.external.Operation.Await == nil {
		return 0, "", errors.New("an operation is pending, and External.Operation.Await is missing")
	}
	key, err := r.external.Operation.Await(ctx, operation)
	switch {
	case errors.Is(err, ErrOperationRunning):
		return jobRunning, "", nil
	case errors.Is(err, ErrOperationNotFound):
		return jobForgotten, "", nil
	case errors.Is(err, ErrOperationFailed):
		r.recorder.Event(mg, event.Warning(reasonOperationFailed, fmt.Errorf("operation %q: %w", operation, err)))
		return jobFailed, "", nil
	case err != nil:
		return 0, "", err
	}
	name, err := r.Names.Codec.Format(key)
	return jobEnded, name, err
}

// absent prepares a creation: the token is written together with create-pending, before the
// creation begins.
func (r *reconciliation[M, K, X]) absent(mg M, f facts) managed.ExternalObservation {
	r.meter.drift(mg, false)
	if f.name != "" && f.bound == "" && !f.deleting {
		r.recorder.Event(mg, event.Warning(reasonNameNeverFound, fmt.Errorf(
			"no external resource %q was found, now or before: check the external name if you meant to import one", f.name)))
	}
	if Token(mg) == "" && !f.deleting {
		changes := changes{}
		changes.set(AnnotationToken, rand.Text())
		changes.apply(mg)
	}
	return managed.ExternalObservation{}
}

// present records the name and reports the external resource.
func (r *reconciliation[M, K, X]) present(ctx context.Context, mg M, name string) (managed.ExternalObservation, error) {
	found := r.gotten[name]
	r.exists, r.key, r.name, r.observed = true, found.key, name, found.resource
	if err := r.mirror(mg); err != nil {
		return managed.ExternalObservation{}, err
	}
	if hybrid := r.nameFromStatus(mg); hybrid != "" && hybrid != name {
		key, err := r.Names.Codec.Parse(hybrid)
		if err != nil {
			return managed.ExternalObservation{}, err
		}
		r.key, r.name = key, hybrid
	}
	if err := r.bind(ctx, mg); err != nil {
		return managed.ExternalObservation{}, err
	}
	r.lifecycle = Lifecycle{State: Ready}
	if r.external.Lifecycle != nil {
		r.lifecycle = r.external.Lifecycle(r.observed)
	}
	setCondition(mg, r.lifecycle.condition())
	if !meta.WasDeleted(mg) && !r.excepts(RuleUniqueNames) { // Delete says whether it is refused
		r.claims.report(ctx, mg, r.name)
	}

	text := diffText(r.external.Diff(copyOf(mg), r.observed))
	reportDrift(mg, r.drift, text)
	r.meter.drift(mg, text != "")
	observation := managed.ExternalObservation{
		ResourceExists:   true,
		ResourceUpToDate: text == "" || r.lifecycle.State == Creating || r.lifecycle.State == Deleting,
		Diff:             text,
	}
	if r.external.Connection != nil {
		observation.ConnectionDetails = r.external.Connection(r.observed)
	}
	return observation, nil
}

// bind records the name under which the resource was found, and clears the annotations of an interrupted creation or
// update. It does not rewrite a lenient form of the name: its author would restore it.
func (r *reconciliation[M, K, X]) bind(ctx context.Context, mg M) error {
	before := mg.GetAnnotations()[AnnotationBoundName]
	c := r.binding(r.name)
	reading, err := r.Names.Read(meta.GetExternalName(mg), mg.GetName())
	if err == nil && reading.Class == externalname.Lenient && reading.Name == r.name {
		delete(c, meta.AnnotationKeyExternalName)
	}
	if !creationUnknown(mg) {
		delete(c, meta.AnnotationKeyExternalCreatePending)
	}
	if r.external.Annotations != nil {
		c.addFurther(r.external.Annotations(r.observed))
	}
	if err := r.journal.write(ctx, mg, c); err != nil {
		return err
	}
	if before != "" && before != r.name {
		r.recorder.Event(mg, event.Normal(reasonNameBound, fmt.Sprintf("External name is now %q. It was %q.", r.name, before)))
	}
	return nil
}

// binding returns the annotations of an object whose external resource is known.
func (r *reconciliation[M, K, X]) binding(name string) changes {
	c := changes{}
	c.set(meta.AnnotationKeyExternalName, name)
	c.set(AnnotationBoundName, name)
	for _, key := range []string{AnnotationToken, AnnotationOperation, AnnotationPendingName, meta.AnnotationKeyExternalCreatePending} {
		c.remove(key)
	}
	return c
}

// mirror calls the author's Mirror and MirrorKey with a copy, and copies only the status back.
func (r *reconciliation[M, K, X]) mirror(mg M) error {
	written := copyOf(mg)
	r.external.Mirror(written, r.observed)
	if r.external.MirrorKey != nil {
		r.external.MirrorKey(written, r.key)
	}
	return copyStatus(mg, written)
}

// copyStatus copies the status of another object of the same kind.
func copyStatus(to, from resource.Managed) error {
	source, target := reflect.ValueOf(from).Elem(), reflect.ValueOf(to).Elem()
	if source.Kind() != reflect.Struct || !source.FieldByName("Status").IsValid() {
		return fmt.Errorf("copy the status: %T has no field Status", from)
	}
	target.FieldByName("Status").Set(source.FieldByName("Status"))
	return nil
}
