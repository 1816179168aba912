package render

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/godwit-dev/godwit"
)

// MaxFailures bounds the failures of one run that a command keeps in memory and prints as JSON: at about 400 bytes each, 40 MB.
const MaxFailures = 100_000

// maxCauses bounds the failures that text has in full, and maxSame the names of further objects with the same failure.
const (
	maxCauses = 20
	maxSame   = 3
)

// FailureLine is a failure below the name of the CRD or the resource. A failure of the whole run has the same name, and does not
// repeat it.
func FailureLine(s Style, of string, f godwit.Failure) string {
	if f.Name == of && f.Namespace == "" {
		message, remedy := CutRemedy(f.Message, f.Fix.String())
		return s.Marked(MarkBad, f.Reason.String(), message) + s.RemedyLines(remedyIndent, remedy)
	}
	message, remedy := CutRemedy(f.String(), f.Fix.String())
	return s.Marked(MarkBad, ObjectName(f.Namespace, f.Name), message) + s.RemedyLines(remedyIndent, remedy)
}

// sameFailure are the objects that failed for the same cause.
type sameFailure struct {
	first godwit.Failure
	more  int64
	names []string // of some of the others
}

// FailureLines returns the failures of a run over the objects of a CRD or a resource. It says a cause once, with the objects that
// have it. JSON has all objects, and text says so if it leaves one out.
func FailureLines(s Style, of string, failures []godwit.Failure, counts godwit.Counts) string {
	var text strings.Builder
	named, shown := int64(0), int64(0) // objects; a failure of the whole run has the name of the CRD
	causes := byCause(failures)
	for _, c := range causes[:min(len(causes), maxCauses)] {
		text.WriteString(FailureLine(s, of, c.first))
		if c.more > 0 {
			names := strings.Join(c.names, ", ")
			if c.more > int64(len(c.names)) {
				names += ", …"
			}
			text.WriteString(s.Wrap(Cell{Text: "    the same for "}, remedyIndent, Count(c.more, "more object", "more objects")+": "+names))
		}
		if c.first.Name != of {
			shown += 1 + c.more
			named += 1 + int64(len(c.names))
		}
	}
	switch more := counts.Failed + counts.Deferred - shown; {
	case named > 0 && more > 0:
		fmt.Fprintf(&text, "  … and %s: -o json names all\n", Count(more, "more object", "more objects"))
	case shown > named:
		text.WriteString("  -o json names all\n")
	}
	return Below(of, text.String())
}

// byCause groups failures by reason and message, in their order.
func byCause(failures []godwit.Failure) []*sameFailure {
	var all []*sameFailure
	known := map[string]*sameFailure{}
	for _, f := range failures {
		cause := f.Reason.String() + ": " + withoutName(f)
		same := known[cause]
		if same == nil {
			known[cause] = &sameFailure{first: f}
			all = append(all, known[cause])
			continue
		}
		same.more++
		if len(same.names) < maxSame {
			same.names = append(same.names, ObjectName(f.Namespace, f.Name))
		}
	}
	return all
}

// word is what may be a name in a message.
var word = regexp.MustCompile("[a-z0-9.-]+")

// withoutName is the message of a failure without the name and the namespace of its object.
func withoutName(f godwit.Failure) string {
	return word.ReplaceAllStringFunc(f.Message, func(found string) string {
		bare := strings.TrimRight(found, ".-") // at the end of a sentence
		switch bare {
		case f.Name:
			return "NAME" + found[len(bare):]
		case f.Namespace:
			return "NAMESPACE" + found[len(bare):]
		}
		return found
	})
}
