package hub

import (
	"regexp"
	"strings"

	"github.com/godwit-dev/godwit/internal/quote"
)

// Failure is why a party can't do its task, for one cluster or for all. The zero value means that it can.
type Failure struct {
	// Reason is the name of a documented reason. It is empty if the message is the manager's own.
	Reason  string
	Message string
}

// String returns "reason: message", the form in messages, in conditions and for other programs.
func (f Failure) String() string {
	if f.Reason == "" {
		return f.Message
	}
	return f.Reason + ": " + f.Message
}

// reasonName matches a valid reason. An agent may send anything as one.
var reasonName = regexp.MustCompile(`^[A-Z][A-Za-z0-9]{0,62}$`)

// ReadFailure parses a stored or sent failure: its text, and its reason. Older programs write the text alone, which
// begins with the reason.
func ReadFailure(reason, text string) Failure {
	if reason == "" {
		reason, _, _ = strings.Cut(text, ": ")
	}
	if message, ok := strings.CutPrefix(text, reason+": "); ok && reasonName.MatchString(reason) {
		return Failure{reason, message}
	}
	return Failure{Message: text}
}

// MaxWarnings bounds the warnings in a report and in the state, which is in the status. The others are of the same kinds, mostly.
const MaxWarnings = 20

// MaxWarning bounds the message of a warning, in bytes. It has a command, and an event has 1 KiB for it and for the first clusters.
const MaxWarning = 800

// Warning is what may keep a cluster from the end of the migration. It refuses nothing.
type Warning struct {
	Cluster string `json:"cluster"`
	// Reason is the name of a documented reason.
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// valid returns the warning as one line of bounded length, or false if its reason is none.
func (w Warning) valid() (Warning, bool) {
	w.Message = quote.Clip(quote.Printable(w.Message), MaxWarning)
	return w, reasonName.MatchString(w.Reason) && w.Message != ""
}

// Texts returns failures in the form in which they are stored and sent: texts and reasons by cluster.
func Texts(failures map[string]Failure) (texts, reasons map[string]string) {
	for name, f := range failures {
		if texts == nil {
			texts, reasons = map[string]string{}, map[string]string{}
		}
		texts[name] = f.String()
		if f.Reason != "" {
			reasons[name] = f.Reason
		}
	}
	return texts, reasons
}

// ReadFailures is the inverse of [Texts].
func ReadFailures(texts, reasons map[string]string) map[string]Failure {
	if texts == nil {
		return nil
	}
	failures := make(map[string]Failure, len(texts))
	for name, text := range texts {
		failures[name] = ReadFailure(reasons[name], text)
	}
	return failures
}

// clip returns the failure with a text of one line and bounded length.
func (f Failure) clip() Failure { return ReadFailure(f.Reason, clip(f.String())) }
