package reason

import (
	"slices"

	"github.com/godwit-dev/godwit/cmd/internal/remedy"
)

// Explanation says what a reason means and what to do, as `godwit explain` prints it.
type Explanation struct {
	Reason string `json:"reason"`
	// Subject is what the reason is about: a kind, or a word for what a command reads.
	Subject string `json:"subject"`
	// Where names the commands and objects that have the reason.
	Where   string `json:"where"`
	Meaning string `json:"meaning"`
	Remedy  string `json:"remedy"`
	// UserActionRequired means that waiting does not help.
	UserActionRequired bool `json:"userActionRequired"`
	// Conditions are those that may be True with the reason.
	Conditions []string `json:"conditions"`
	// EventTypes are those of events with the reason.
	EventTypes []string `json:"eventTypes"`
}

// Explain returns the documentation of a reason in the form of the contract.
func Explain(subject, where string, d remedy.ReasonDoc) Explanation {
	r := Explanation{
		Reason: d.Reason, Subject: subject, Where: where, Meaning: d.Meaning, Remedy: d.Remedy, UserActionRequired: d.UserAction,
		Conditions: []string{}, EventTypes: []string{},
	}
	for _, s := range d.Occurrences {
		if s.Condition != "" && !slices.Contains(r.Conditions, s.Condition) {
			r.Conditions = append(r.Conditions, s.Condition)
		}
		if s.EventType != "" && !slices.Contains(r.EventTypes, s.EventType) {
			r.EventTypes = append(r.EventTypes, s.EventType)
		}
	}
	return r
}
