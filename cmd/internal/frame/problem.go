package frame

import (
	"strings"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/cmd/internal/render"
)

// ActionableError is an error for the user: one line with the object, the cause and the
// next step. If there are several commands, each has its own line.
type ActionableError struct {
	Reason  *godwit.Reason
	Message string
	Remedy  string
	Cause   error
}

func (p *ActionableError) Error() string {
	return render.WithRemedy(p.Message, p.Remedy)
}

func (p *ActionableError) Unwrap() error { return p.Cause }

// Finding returns the error as a finding of a report.
func (p *ActionableError) Finding() godwit.Finding {
	return godwit.Finding{Reason: p.Reason, Message: p.Message, Fix: p.Fix()}
}

// Fix returns the remedy as a fix without actions.
func (p *ActionableError) Fix() godwit.Fix {
	if p.Remedy == "" {
		return nil
	}
	return godwit.Do(p.Remedy)
}

// OneLine returns the text of an error without line breaks.
func OneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }
