package manager

import (
	"errors"

	"github.com/godwit-dev/godwit/cmd/hub"
	api "github.com/godwit-dev/godwit/cmd/hub/api/v1alpha1"
	"github.com/godwit-dev/godwit/cmd/hub/cluster"
	"github.com/godwit-dev/godwit/cmd/hub/kafka"
)

// problem is why an action of the manager failed in a way that repetition does not help.
type problem struct {
	// reason is a documented constant of the API.
	reason  string
	message string
}

// Error implements error.
func (p *problem) Error() string { return p.message }

// errOf makes an error of what kept a caller from its result.
func errOf(p *problem, err error) error {
	if err != nil {
		return err
	}
	return p
}

// problemOf returns the problem that an error is, or nil for an error that may end by itself. Final says that repetition does
// not fix an error of the global hub.
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

// failureOf is an error of an action of the manager as it is reported.
func failureOf(err error) hub.Failure {
	if !errors.As(err, new(*cluster.Error)) {
		return hub.Failure{Message: err.Error()}
	}
	known := cluster.Explain(err)
	return hub.Failure{Reason: known.Reason.Name, Message: known.Message}
}
