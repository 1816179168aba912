package render

import (
	"strings"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/cmd/internal/remedy"
)

// Cause is why something is as it is. What to do, if anything, is part of the message.
type Cause struct {
	// Reason is the name of a reason; empty where there is nothing to say.
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// NewCause leaves the fix of a finding out.
func NewCause(f godwit.Finding) Cause { return Cause{f.Reason.String(), f.Message} }

// Line is the cause in one line.
func (c Cause) Line() string { return c.Reason + ": " + c.Message }

// Problem is a [godwit.Finding] with its fix in words. Types of the contract embed it, beside what else they say.
type Problem struct {
	// Reason is the name of a reason; empty where there is nothing to say.
	Reason  string `json:"reason"`
	Message string `json:"message"`
	// Remedy is what to do, with a command where there is one; empty where nothing is to be done.
	Remedy string `json:"remedy"`
}

// NewProblem words a finding.
func NewProblem(f godwit.Finding, w remedy.Writer) Problem {
	return Problem{Reason: f.Reason.String(), Message: f.Message, Remedy: w.Text(f.Fix)}
}

// NewProblems words findings.
func NewProblems(list []godwit.Finding, w remedy.Writer) []Problem {
	var all []Problem
	for _, f := range list {
		all = append(all, NewProblem(f, w))
	}
	return all
}

// Line is the problem in one line.
func (p Problem) Line() string { return p.Reason + ": " + p.Message + "; " + p.Remedy }

// Failure words a finding as the failure of a CRD or a resource as a whole.
func Failure(name string, f godwit.Finding, w remedy.Writer) godwit.Failure {
	return godwit.Failure{Name: name, Finding: godwit.Finding{Reason: f.Reason, Message: f.Message + "; " + w.Text(f.Fix)}}
}

// ObjectProblem is a problem of an object. Object is empty for one of all objects.
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

// Unnamed is the object where the message does not name it.
func (p ObjectProblem) Unnamed() string {
	if strings.Contains(p.Message, p.Object) {
		return ""
	}
	return p.Object
}

// Sentence is the message, after the object where the message does not name it.
func (p ObjectProblem) Sentence() string {
	if object := p.Unnamed(); object != "" {
		return object + ": " + p.Message
	}
	return p.Message
}
