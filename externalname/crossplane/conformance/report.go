package conformance

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// CheckName identifies a check. The names are CamelCase.
type CheckName string

// State is the result of a check.
type State string

const (
	// Passed means that the provider follows the rule of the check.
	Passed State = "Passed"
	// Failed means that the provider breaks the contract. The detail is the evidence.
	Failed State = "Failed"
	// DoesNotApply means that the check has no meaning for the kind or for the form of the
	// provider. The detail is the cause.
	DoesNotApply State = "DoesNotApply"
	// NotChecked means that the check did not run. The detail says what is missing.
	NotChecked State = "NotChecked"
)

// Result is the result of one check.
type Result struct {
	Check CheckName `json:"check"`
	State State     `json:"state"`
	// Detail is the evidence, the cause, or what is missing. It may be empty if State is
	// Passed.
	Detail string `json:"detail,omitempty"`
	// Rule is what the check proves.
	Rule string `json:"rule"`

	// unprepared means that the check could not be prepared, although nothing is missing.
	unprepared bool
}

// Report has the results of all checks, in the order of the documentation.
type Report struct {
	Results []Result `json:"results"`
}

// With returns the results that have a state.
func (r Report) With(state State) []Result {
	var list []Result
	for _, result := range r.Results {
		if result.State == state {
			list = append(list, result)
		}
	}
	return list
}

// Of returns the result of one check.
func (r Report) Of(check CheckName) Result {
	for _, result := range r.Results {
		if result.Check == check {
			return result
		}
	}
	return Result{Check: check, State: NotChecked, Detail: "no check has this name"}
}

// Write prints the table of the checks and a line with the counts.
func (r Report) Write(w io.Writer) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "CHECK\tRESULT\tDETAIL")
	for _, result := range r.Results {
		fmt.Fprintf(table, "%s\t%s\t%s\n", result.Check, result.State, oneLine(result.Detail))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintln(w, r)
	return err
}

// String returns the counts.
func (r Report) String() string {
	return fmt.Sprintf("conformance: %d passed, %d failed, %d do not apply, %d not checked",
		len(r.With(Passed)), len(r.With(Failed)), len(r.With(DoesNotApply)), len(r.With(NotChecked)))
}

// detailBytes keeps a line of the table readable; Result has the whole text.
const detailBytes = 200

func oneLine(text string) string {
	text = strings.Join(strings.Fields(strings.ToValidUTF8(text, "?")), " ")
	if len(text) > detailBytes {
		return strings.ToValidUTF8(text[:detailBytes], "") + "…"
	}
	return text
}
