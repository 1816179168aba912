package database

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/godwit-dev/godwit/externalname"
	"github.com/godwit-dev/godwit/externalname/crossplane"
	"github.com/godwit-dev/godwit/externalname/crossplane/export"
	"github.com/godwit-dev/godwit/test/jobservice"
)

// Names are the GUIDs that operations of the job service make.
var Names = externalname.Scheme[string]{Codec: externalname.GUID()}

// Resource is the kind on package crossplane. It is created and deleted asynchronously.
func Resource(c jobservice.Client) crossplane.Resource[*Database, string, jobservice.Database] {
	s := system{c}
	return crossplane.Resource[*Database, string, jobservice.Database]{
		Kind:  Kind,
		Names: Names,
		Connect: func(context.Context, *Database) (crossplane.External[*Database, string, jobservice.Database], error) {
			return crossplane.External[*Database, string, jobservice.Database]{
				Get:    s.get,
				Create: s.create,
				Update: func(ctx context.Context, d *Database, id string, _ jobservice.Database) (string, error) {
					return id, c.Update(ctx, id, wanted(d))
				},
				Delete: func(ctx context.Context, id string) error { return missing(c.Delete(ctx, id), crossplane.ErrNotFound) },
				Mirror: func(d *Database, o jobservice.Database) { d.Status.AtProvider = observation(o) },
				Diff:   differences,
				Lifecycle: func(o jobservice.Database) crossplane.Lifecycle {
					return crossplane.Lifecycle{State: crossplane.State(o.State)}
				},
				Find: s.find,
				Ours: func(_ context.Context, d *Database, o jobservice.Database) (bool, error) {
					return o.Token == crossplane.Token(d), nil
				},
				List:      s.list,
				Operation: crossplane.Operation[*Database, string]{Await: s.await, Find: s.findOperation},
			}, nil
		},
	}
}

// Export exports manifests for the databases of the service, in a namespace.
func Export(c jobservice.Client, namespace string) export.Kind {
	return export.Of(Resource(c), export.Options[*Database, jobservice.Database]{
		New: func() *Database {
			d := &Database{}
			d.Namespace = namespace
			d.Spec.ProviderConfigReference = &xpv2.ProviderConfigReference{Kind: "ProviderConfig", Name: "default"}
			return d
		},
		Fill: func(d *Database, o jobservice.Database) { d.Spec.ForProvider = observation(o).Parameters },
		Name: func(o jobservice.Database) string { return o.Name },
	})
}

func wanted(d *Database) jobservice.Database {
	f := d.Spec.ForProvider
	return jobservice.Database{Name: f.Name, Size: f.Size, Token: crossplane.Token(d)}
}

func observation(o jobservice.Database) Observation {
	return Observation{Parameters: Parameters{Name: o.Name, Size: o.Size}, ID: o.ID}
}

// differences compares all fields that the user chooses.
func differences(d *Database, o jobservice.Database) []crossplane.Difference {
	want, have := d.Spec.ForProvider, observation(o).Parameters
	var all []crossplane.Difference
	if want.Name != have.Name {
		all = append(all, crossplane.Difference{Field: "name", Desired: want.Name, Observed: have.Name})
	}
	if want.Size != have.Size {
		all = append(all, crossplane.Difference{Field: "size", Desired: fmt.Sprint(want.Size), Observed: fmt.Sprint(have.Size)})
	}
	return all
}

// system says what an answer of the service means to package crossplane.
type system struct{ jobservice.Client }

// missing says that an answer 404 means an error.
func missing(err, meaning error) error {
	if jobservice.Answered(err, http.StatusNotFound) {
		return fmt.Errorf("%w: %w", meaning, err)
	}
	return err
}

func (s system) get(ctx context.Context, id string) (jobservice.Database, error) {
	d, err := s.Read(ctx, id)
	return d, missing(err, crossplane.ErrNotFound)
}

// create returns ErrOutcomeUnknown after a 5xx, an answer that is not JSON, or no answer: the database may exist.
func (s system) create(ctx context.Context, d *Database) (crossplane.Created[string], error) {
	operation, err := s.Create(ctx, wanted(d))
	var answer *jobservice.AnswerError
	switch {
	case err == nil:
		return crossplane.Pending[string](operation), nil
	case jobservice.Answered(err, http.StatusConflict):
		return crossplane.Created[string]{}, fmt.Errorf("%w: %w", crossplane.ErrAlreadyExists, err)
	case !errors.As(err, &answer), answer.Code >= http.StatusInternalServerError:
		return crossplane.Created[string]{}, fmt.Errorf("%w: %w", crossplane.ErrOutcomeUnknown, err)
	}
	return crossplane.Created[string]{}, err
}

func (s system) find(ctx context.Context, d *Database) (ids []string, err error) {
	for o, err := range s.All(ctx) {
		if err != nil {
			return nil, err
		}
		if o.Name == d.Spec.ForProvider.Name {
			ids = append(ids, o.ID)
		}
	}
	return ids, nil
}

func (s system) list(ctx context.Context) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for o, err := range s.All(ctx) {
			if !yield(o.ID, err) {
				return
			}
		}
	}
}

func (s system) await(ctx context.Context, operation string) (string, error) {
	o, err := s.Operation(ctx, operation)
	if err != nil {
		return "", missing(err, crossplane.ErrOperationNotFound)
	}
	switch o.State {
	case jobservice.Running:
		return "", crossplane.ErrOperationRunning
	case jobservice.Succeeded:
		return o.Database, nil
	}
	return "", fmt.Errorf("%w: %s", crossplane.ErrOperationFailed, o.Message)
}

func (s system) findOperation(ctx context.Context, d *Database) (string, error) {
	o, err := s.OperationOf(ctx, crossplane.Token(d))
	return o.ID, missing(err, crossplane.ErrOperationNotFound)
}
