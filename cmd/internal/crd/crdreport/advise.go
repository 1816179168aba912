package crdreport

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/godwit-dev/godwit/cmd/internal/render"
	"github.com/godwit-dev/godwit/crdmigrator/advise"
)

// Advice is an item of `crd check --previous`.
type Advice struct{ advise.Advice }

// ResourceName names the CRD.
func (a Advice) ResourceName() string {
	return "customresourcedefinition.apiextensions.k8s.io/" + a.CRD
}

// AdviceList makes the list of `crd check --previous`.
func AdviceList(all []advise.Advice) render.List[Advice] {
	items := make([]Advice, len(all))
	for i, one := range all {
		items[i] = Advice{one}
	}
	return render.NewList("CRDAdviceList", items)
}

var approaches = map[advise.Approach]render.Cell{advise.None: {Text: "✓ None", Tone: render.Good}, advise.Undecided: {Text: "? Undecided", Tone: render.Attention}}

func approachCell(a advise.Approach) render.Cell {
	if cell, known := approaches[a]; known {
		return cell
	}
	return render.Cell{Text: "● " + string(a), Tone: render.Attention}
}

var adviceTable = render.Table[Advice]{
	{Name: "CRD", Cell: func(a Advice) render.Cell { return render.TextCell(a.CRD) }},
	{Name: "Version", Cell: func(a Advice) render.Cell { return render.TextCell(a.Version) }},
	{Name: "Path", Cell: func(a Advice) render.Cell { return render.TextCell(a.Path) }},
	{Name: "Change", Cell: func(a Advice) render.Cell { return render.TextCell(a.Change) }},
	{Name: "Approach", Cell: func(a Advice) render.Cell { return approachCell(a.Approach) }},
}

// WriteAdvice writes a table, the rationales below it, and a sum. Additive changes are only counted, unless the
// table is wide.
func WriteAdvice(w io.Writer, s render.Style, items []Advice) error {
	shown := slices.DeleteFunc(slices.Clone(items), func(a Advice) bool { return !a.Needed() && !s.Wide })
	var text strings.Builder
	text.WriteString(adviceTable.Text(s, shown))
	for _, a := range shown {
		lines := s.Wrap(render.Cell{Text: "  "}, 2, a.Rationale)
		if a.Approach == advise.Undecided {
			lines += s.RemedyLines(4, "choose "+orWords(a.Options)+": "+answerFlags(a))
		}
		text.WriteString(render.Below(a.CRD+" "+a.Version+" "+a.Path, lines))
	}
	if len(shown) > 0 {
		text.WriteString("\n")
	}
	fmt.Fprintf(&text, "%s\n", adviceSum(items))
	_, err := io.WriteString(w, text.String())
	return err
}

func adviceSum(items []Advice) string {
	needed, undecided := int64(0), int64(0)
	for _, a := range items {
		switch a.Approach {
		case advise.None:
		case advise.Undecided:
			undecided++
		default:
			needed++
		}
	}
	return fmt.Sprintf("%s: %s to migrate, %s undecided, %s additive", render.Count(int64(len(items)), "change", "changes"),
		render.Number(needed), render.Number(undecided), render.Number(int64(len(items))-needed-undecided))
}

func orWords(options []advise.Approach) string {
	words := make([]string, len(options))
	for i, o := range options {
		words[i] = string(o)
	}
	return strings.Join(words, " or ")
}

// answerFlags returns the flags that decide an undecided change.
func answerFlags(a Advice) string {
	answers := []advise.Answer{advise.FromObject, advise.ExternalState, advise.Unused}
	if a.Change == advise.StatusOnlyBackfill {
		answers = []advise.Answer{advise.Backfill, advise.NoBackfill}
	}
	flags := make([]string, len(answers))
	for i, one := range answers {
		flags[i] = fmt.Sprintf("--answer=%s=%s", a.Path, one)
	}
	return strings.Join(flags, " or ")
}

// userText says what a user has to do for an approach. developerText says what the author of the provider has to do.
var (
	userText = map[advise.Approach]string{
		advise.WebhookAndLateInitialize: "Nothing for objects that exist: they are filled. Add the field to your manifests before the next apply.",
		advise.Validation:               "The API server refuses a change of this field. To change it, delete the object and create another one.",
		advise.Webhook:                  "Nothing for objects that exist: they are transformed when they are written. Write the new form in your manifests.",
		advise.LateInitializeStatus:     "Nothing: the provider fills the field when it observes the object.",
		advise.ControllerLogic:          "Upgrade the provider, and wait until each object is Synced before you use the new form.",
		advise.Undecided:                "Read the release notes: the authors have not said how this field migrates.",
	}
	developerText = map[advise.Approach]string{
		advise.WebhookAndLateInitialize: "Fill the field at admission, idempotently. Send existing objects an empty patch, so that they pass the same admission. Test a new and an existing object, twice.",
		advise.Validation:               "Keep the rule on the object above an optional field too, so that its removal is refused. Test that identical updates pass.",
		advise.Webhook:                  "Transform the old form at admission, idempotently, or convert between two versions. Test a new and an existing object, twice.",
		advise.LateInitializeStatus:     "Fill status.atProvider in Observe. Do not write spec.forProvider there.",
		advise.ControllerLogic:          "Read the value from the external system in the controller, and record that it is done. Test a restart in between.",
		advise.Undecided:                "Decide, and say so by --answer or by the annotation " + advise.Annotation + " of the CRD.",
	}
)

// WriteAdvicePages writes the page for users and the page for developers in Markdown.
func WriteAdvicePages(w io.Writer, items []Advice) error {
	var text strings.Builder
	needed := slices.DeleteFunc(slices.Clone(items), func(a Advice) bool { return !a.Needed() })
	text.WriteString("# Upgrade notes for users\n\n")
	pages(&text, needed, userText, "Nothing is to be done: all changes are additive.")
	text.WriteString("\n# Migration notes for developers\n\n")
	pages(&text, needed, developerText, "Nothing is to be done: all changes are additive.")
	_, err := io.WriteString(w, text.String())
	return err
}

// pageTable returns the columns of a page, which has a table for each version. what has the column for the reader's action.
func pageTable(what map[advise.Approach]string) render.Table[Advice] {
	return render.Table[Advice]{
		{Name: "field", Cell: func(a Advice) render.Cell { return render.CodeCell(a.Path) }},
		{Name: "change", Cell: func(a Advice) render.Cell { return render.TextCell(a.Change) }},
		{Name: "approach", Cell: approachWithOptions},
		{Name: "why", Cell: func(a Advice) render.Cell { return render.TextCell(a.Rationale) }},
		{Name: "what to do", Cell: func(a Advice) render.Cell { return render.TextCell(what[a.Approach]) }},
	}
}

func approachWithOptions(a Advice) render.Cell {
	if len(a.Options) > 0 {
		return render.TextCell(string(a.Approach) + ": " + orWords(a.Options))
	}
	return render.TextCell(a.Approach)
}

func pages(text *strings.Builder, items []Advice, what map[advise.Approach]string, nothing string) {
	if len(items) == 0 {
		text.WriteString(nothing + "\n")
		return
	}
	heading := func(a Advice) string { return a.CRD + " " + a.Version }
	for first := 0; first < len(items); {
		next := first + 1
		for next < len(items) && heading(items[next]) == heading(items[first]) {
			next++
		}
		if first > 0 {
			text.WriteString("\n")
		}
		fmt.Fprintf(text, "## %s\n\n%s", heading(items[first]), pageTable(what).Markdown(items[first:next]))
		first = next
	}
}
