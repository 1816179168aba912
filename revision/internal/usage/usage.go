// Package usage reads from the references to a revision which objects use it, and as what.
package usage

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/godwit-dev/godwit/revision/reference"
)

// ExpectedType is the type that all references expect of a revision, and the contradiction if
// they don't agree.
func ExpectedType(references []reference.Reference) (reference.ExpectedType, string) {
	var expected reference.ExpectedType
	var by *reference.Referrer
	for _, r := range references {
		switch {
		case r.Expected.Kind == "", r.ImpliedBy != "" && expected.Kind != "":
		case expected.Kind == "":
			expected, by = r.Expected, r.Referrer
		case expected.Kind != r.Expected.Kind:
			return expected, fmt.Sprintf("%s %s takes it for a %s, %s %s for a %s",
				by.Kind, by.Name, expected.Kind, r.Referrer.Kind, r.Referrer.Name, r.Expected.Kind)
		}
	}
	return expected, ""
}

// InUse returns which referrer is running and uses the revision, which messages name by word, and
// which referrer is not ready. A controller's template is written to all objects that it controls,
// whichever revisions they name.
func InUse(references []reference.Reference, word string) (running, unready string) {
	for _, r := range reference.Explicit(references) {
		referrer, controlled := r.Referrer, r.Referrer.Controlled
		name := referrer.Kind + " " + referrer.Name
		if referrer.Running {
			running = cmp.Or(running, name+" is running and uses "+word)
		}
		if referrer.NotReady != "" {
			unready = cmp.Or(unready, name+": "+referrer.NotReady)
		}
		if controlled == nil {
			continue
		}
		name = fmt.Sprintf("%s %s, to which all of the template of %s is written,", controlled.Kind, controlled.Name, name)
		if controlled.Running {
			running = cmp.Or(running, name+" is running")
		}
		if controlled.NotReady != "" {
			unready = cmp.Or(unready, name+" is not ready: "+controlled.NotReady)
		}
	}
	return running, unready
}

// Strongest are the references that name a revision, or those that imply it where none does.
func Strongest(references []reference.Reference) []reference.Reference {
	if named := reference.Explicit(references); len(named) > 0 {
		return named
	}
	return references
}

// Describe names the object that refers to a revision, and the field.
func Describe(references []reference.Reference) string {
	first := references[0]
	if first.ImpliedBy != "" {
		return fmt.Sprintf("%s %s names %s, so that a restore needs %s", first.Referrer.Kind, first.Referrer.Name, first.ImpliedBy, first.Revision)
	}
	message := fmt.Sprintf("%s %s refers to %s at %s", first.Referrer.Kind, first.Referrer.Name, first.Revision, first.Path)
	if len(references) > 1 {
		message += fmt.Sprintf(", and %d more", len(references)-1)
	}
	return message
}

// maxNamed bounds how many referrers a message names.
const maxNamed = 5

// Referrers names the objects that refer to a revision.
func Referrers(references []reference.Reference) string {
	var all []string
	for _, r := range references {
		if one := r.Referrer.Kind + " " + r.Referrer.Name; !slices.Contains(all, one) {
			all = append(all, one)
		}
	}
	if len(all) == 0 {
		return "no reference to it was found"
	}
	more := ""
	if n := len(all) - maxNamed; n > 0 {
		all, more = all[:maxNamed], fmt.Sprintf(" and %d more", n)
	}
	return "referred to by " + strings.Join(all, ", ") + more
}
