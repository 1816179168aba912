package crossplane

import (
	"fmt"
	"io"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/godwit-dev/godwit/externalname"
)

// Description is what the reference of a provider says about the external names of a kind.
type Description struct {
	Kind schema.GroupVersionKind `json:"kind"`
	// Pattern is the pattern of a name, such as <group>/<member>.
	Pattern string             `json:"pattern"`
	Shape   externalname.Shape `json:"shape"`
	// Legacy are the former forms that the kind still reads.
	Legacy []string `json:"legacy,omitempty"`
	// Exceptions are the declared ones, and those of [Resource.FindUnnamed] and [Resource.ImportMustExist].
	Exceptions []Exception `json:"exceptions,omitempty"`
}

// Describe returns what users and developers of the kind should know about its external names.
func (r Resource[M, K, X]) Describe() Description {
	shape := r.Names.Codec.Describe()
	d := Description{Kind: r.Kind, Pattern: shape.String(), Shape: shape, Exceptions: r.exceptions()}
	d.Legacy = r.legacyForms()
	return d
}

// WriteMarkdown writes the section of a provider's reference about the external names of its
// kinds: a table of the kinds, and for each one the segments of its name.
func WriteMarkdown(w io.Writer, kinds ...Description) error {
	var b strings.Builder
	b.WriteString("| kind | external name | former names that are read | exceptions |\n|---|---|---|---|\n")
	for _, d := range kinds {
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", cell(d.Kind.GroupKind().String()), code(d.Pattern), cell(orNone(strings.Join(d.Legacy, ", "))), cell(d.exceptions()))
	}
	for _, d := range kinds {
		fmt.Fprintf(&b, "\nThe external name of %s is %s, at most %d bytes:\n\n", cell(d.Kind.GroupKind().String()), code(d.Pattern), d.Shape.MaxBytes)
		b.WriteString("| segment | text | may be empty | may change | letter case |\n|---|---|---|---|---|\n")
		for _, s := range d.Shape.Segments {
			letters := "has a meaning"
			if s.FoldsCase {
				letters = "has no meaning: names have lower case"
			}
			fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", cell(s.Name), cell(s.Expected), yesNo(s.Optional), yesNo(s.Mutable), letters)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (d Description) exceptions() string {
	list := make([]string, len(d.Exceptions))
	for i, e := range d.Exceptions {
		list[i] = fmt.Sprintf("%s: %s", e.Rule, e.Reason)
	}
	return orNone(strings.Join(list, " "))
}

func orNone(text string) string {
	if text == "" {
		return "none"
	}
	return text
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

// cell keeps a text within one cell of a table.
func cell(text string) string {
	return strings.NewReplacer("|", "\\|", "<", "&lt;", "\n", " ").Replace(text)
}

func code(text string) string {
	return "`" + strings.NewReplacer("`", "'", "|", "\\|", "\n", " ").Replace(text) + "`"
}
