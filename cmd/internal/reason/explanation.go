package reason

import (
	"slices"
	"strings"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/cmd/internal/remedy"
)

// Explanation is the explanation of a reason that `godwit explain` prints.
type Explanation struct {
	Reason string `json:"reason"`
	// Subject is what the reason is about: a kind, or a word for what a command reads.
	Subject string `json:"subject"`
	// Where names the commands and objects that have the reason.
	Where   string `json:"where"`
	Meaning string `json:"meaning"`
	Remedy  string `json:"remedy"`
	// Ways are the sentences of Remedy. They are alternatives, the best first.
	Ways []string `json:"ways"`
	// UserActionRequired means that waiting does not help.
	UserActionRequired bool `json:"userActionRequired"`
	// Conditions are those that may be True with the reason.
	Conditions []string `json:"conditions"`
	// EventTypes are those of events with the reason.
	EventTypes []string `json:"eventTypes"`
}

// Explain returns a reason of the group in the form of the contract.
func (g Group) Explain(r *godwit.Reason) Explanation {
	e := Explanation{
		Reason: r.Name, Subject: string(g.Subject), Where: g.Where, Meaning: r.Meaning, Remedy: remedy.Manager.Sentence(r.Fix), Ways: []string{},
		UserActionRequired: r.UserAction, Conditions: []string{}, EventTypes: []string{},
	}
	for _, way := range r.Fix {
		text := remedy.Manager.Sentence(godwit.Fix{way})
		if len(way[len(way)-1].Actions) > 0 { // it ends with a command, which is copied
			text = strings.TrimSuffix(text, ".")
		}
		e.Ways = append(e.Ways, text)
	}
	if g.Occurrences == nil {
		return e
	}
	for _, o := range g.Occurrences(r) {
		if o.Condition != "" && !slices.Contains(e.Conditions, o.Condition) {
			e.Conditions = append(e.Conditions, o.Condition)
		}
		if o.EventType != "" && !slices.Contains(e.EventTypes, o.EventType) {
			e.EventTypes = append(e.EventTypes, o.EventType)
		}
	}
	return e
}
