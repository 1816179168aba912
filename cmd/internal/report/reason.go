package report

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/godwit-dev/godwit/cmd/internal/remedy"
)

// Reasons are those that the command line finds by itself.
var Reasons = []remedy.ReasonDoc{
	{Reason: ReasonNotFound, UserAction: true,
		Meaning: "The CRD, the revision, the namespace or the cluster that a command line names does not exist.",
		Remedy:  "Correct the name. The message suggests names that are spelt alike."},
	{Reason: ReasonForbidden, UserAction: true,
		Meaning: "A permission of the command is missing.",
		Remedy:  "Have an administrator grant it: the remedy in the message is the command."},
	{Reason: ReasonAPIVersionRemoved, UserAction: true,
		Meaning: "A file has a CRD at apiextensions.k8s.io/v1beta1, which API servers do not serve any more.",
		Remedy:  "Write it at apiextensions.k8s.io/v1: the schema moves into each version."},
	{Reason: ReasonUnreadable, UserAction: true,
		Meaning: "The CRD could not be read: no cluster is chosen, the API server does not answer, or it does not accept the credentials.",
		Remedy:  "See the message for the cause, and check with `kubectl get --raw /readyz`."},
}

// Reason says what a reason means and what to do, as `godwit explain` prints it.
type Reason struct {
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

// NewReason is the documentation of a reason, in the form of the contract.
func NewReason(subject, where string, d remedy.ReasonDoc) Reason {
	r := Reason{
		Reason: d.Reason, Subject: subject, Where: where, Meaning: d.Meaning, Remedy: d.Remedy, UserActionRequired: d.UserAction,
		Conditions: []string{}, EventTypes: []string{},
	}
	for _, s := range d.Signs {
		if s.Condition != "" && !slices.Contains(r.Conditions, s.Condition) {
			r.Conditions = append(r.Conditions, s.Condition)
		}
		if s.EventType != "" && !slices.Contains(r.EventTypes, s.EventType) {
			r.EventTypes = append(r.EventTypes, s.EventType)
		}
	}
	return r
}

// ReasonList makes the list that `godwit explain` prints.
func ReasonList(items []Reason) List[Reason] {
	if items == nil {
		items = []Reason{}
	}
	return List[Reason]{APIVersion, "ReasonList", items}
}

// WriteReasons writes a paragraph for each subject of a reason.
func WriteReasons(w io.Writer, items []Reason) error {
	var text strings.Builder
	for i, r := range items {
		if i > 0 {
			text.WriteString("\n")
		}
		fmt.Fprintf(&text, "%s (%s)\n", r.Reason, r.Where)
		rows := [][2]string{{"Meaning", r.Meaning}, {"What to do", r.Remedy}}
		if len(r.Conditions) > 0 {
			rows = append(rows, [2]string{"Condition", strings.Join(r.Conditions, " or ")})
		}
		if len(r.EventTypes) > 0 {
			rows = append(rows, [2]string{"Event", strings.Join(r.EventTypes, " or ")})
		}
		for _, row := range rows {
			fmt.Fprintf(&text, "  %-12s%s\n", row[0]+":", row[1])
		}
	}
	_, err := io.WriteString(w, text.String())
	return err
}

// WriteReasonTable writes a row for each reason.
func WriteReasonTable(w io.Writer, items []Reason) error {
	var text strings.Builder
	width := 0
	for _, r := range items {
		width = max(width, len(r.Reason))
	}
	for _, r := range items {
		fmt.Fprintf(&text, "%-*s  %s\n", width, r.Reason, r.Meaning)
	}
	_, err := io.WriteString(w, text.String())
	return err
}
