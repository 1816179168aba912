package manager

import (
	"errors"

	"github.com/godwit-dev/godwit/cmd/hub"
	api "github.com/godwit-dev/godwit/cmd/hub/api/v1alpha1"
	"github.com/godwit-dev/godwit/cmd/hub/cluster"
	"github.com/godwit-dev/godwit/cmd/hub/kafka"
)

// problem is a failure of a manager's action that a retry does not fix.
type problem struct {
	// reason is a documented constant of the API.
	reason  string
	message string
}

// Error implements error.
func (p *problem) Error() string { return p.message }

// problemOrError returns the error if it is not nil, and otherwise the problem.
func problemOrError(p *problem, err error) error {
	if err != nil {
		return err
	}
	return p
}

// problemOf returns the problem that an error is, or nil if a retry may succeed. final means that a retry does not fix
// an error of the global hub.
func problemOf(err error, final bool) *problem {
	var known *problem
	var forbidden *kafka.ForbiddenError
	switch {
	case errors.As(err, &known):
		return known
	case errors.As(err, &forbidden):
		return &problem{api.ReasonBrokerRefused.Name, err.Error()}
	case final:
		return &problem{api.ReasonFailed.Name, err.Error()}
	}
	return nil
}

// failureOf returns the form of an error of a manager's action in its report.
func failureOf(err error) hub.Failure {
	if !errors.As(err, new(*cluster.Error)) {
		return hub.Failure{Message: err.Error()}
	}
	known := cluster.Explain(err)
	return hub.Failure{Reason: known.Reason.Name, Message: known.Message}
}
