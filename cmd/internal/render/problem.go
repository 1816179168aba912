package render

import (
	"strings"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/cmd/internal/remedy"
)

// Cause is a reason and a message, which includes the fix if one is needed.
type Cause struct {
	// Reason is the name of a reason; empty where there is nothing to say.
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// NewCause returns the cause of a finding, without its fix.
func NewCause(f godwit.Finding) Cause { return Cause{f.Reason.String(), f.Message} }

// Line is the cause in one line.
func (c Cause) Line() string { return c.Reason + ": " + c.Message }

// Problem is a [godwit.Finding] with its fix in words. Types of the contract embed it.
type Problem struct {
	// Reason is the name of a reason; empty where there is nothing to say.
	Reason  string `json:"reason"`
	Message string `json:"message"`
	// Remedy is the fix in words, with a command if possible; empty if no action is needed.
	Remedy string `json:"remedy"`
}

// NewProblem returns the problem of a finding.
func NewProblem(f godwit.Finding, w remedy.Writer) Problem {
	return Problem{Reason: f.Reason.String(), Message: f.Message, Remedy: w.Text(f.Fix)}
}

// NewProblems returns the problems of findings.
func NewProblems(list []godwit.Finding, w remedy.Writer) []Problem {
	var all []Problem
	for _, f := range list {
		all = append(all, NewProblem(f, w))
	}
	return all
}

// Line is the problem in one line.
func (p Problem) Line() string { return p.Reason + ": " + WithRemedy(p.Message, p.Remedy) }

// Failure returns a finding as the failure of a whole CRD or resource. Its message ends with its fix, in words.
func Failure(name string, f godwit.Finding, w remedy.Writer) godwit.Failure {
	remedy := w.Text(f.Fix)
	return godwit.Failure{Name: name, Finding: godwit.Finding{Reason: f.Reason, Message: WithRemedy(f.Message, remedy), Fix: godwit.Do(remedy)}}
}

// WithRemedy is a message in one line, with its remedy if there is one.
func WithRemedy(message, remedy string) string {
	if remedy == "" {
		return message
	}
	return message + remedySeparator + remedy
}

const remedySeparator = "; "

// CutRemedy takes a remedy from the end of a message; empty is the one that the message does not end with.
func CutRemedy(message, remedy string) (alone, cut string) {
	if before, found := strings.CutSuffix(message, remedySeparator+remedy); found && remedy != "" {
		return before, remedy
	}
	return message, ""
}

// ObjectProblem is a problem of an object. Object is empty for a problem of all objects.
type ObjectProblem struct {
	Object string `json:"object"`
	Problem
}

// Of returns the problems as those of an object.
func Of(object string, problems ...Problem) []ObjectProblem {
	all := make([]ObjectProblem, len(problems))
	for i, p := range problems {
		all[i] = ObjectProblem{object, p}
	}
	return all
}

// Unnamed returns the object if the message does not name it, or else empty.
func (p ObjectProblem) Unnamed() string {
	if strings.Contains(p.Message, p.Object) {
		return ""
	}
	return p.Object
}

// Sentence returns the message, with the object before it if the message does not name the object.
func (p ObjectProblem) Sentence() string {
	if object := p.Unnamed(); object != "" {
		return object + ": " + p.Message
	}
	return p.Message
}
