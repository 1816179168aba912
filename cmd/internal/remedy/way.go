package remedy

import (
	"regexp"
	"strings"
)

// What [godwit.Fix.Text] puts between steps and ways.
const (
	nextStep = "; then "
	nextWay  = "; or "
)

// Step is a step of a remedy as a user reads it.
type Step struct {
	// Text is the step in words. It ends with a colon before a command, and is empty if the command says it all.
	Text string
	// Command carries out the step; empty if only the user knows how.
	Command string
}

// Ways returns what [Writer.Text] has joined: the ways of a remedy, the best first, each with its steps.
func Ways(text string) [][]Step {
	var ways [][]Step
	way := []Step{}
	for text != "" {
		step, separator, rest := cutStep(text)
		way = append(way, step)
		if separator != nextStep {
			ways = append(ways, way)
			way = nil
		}
		text = rest
	}
	return ways
}

// cutStep returns the first step of a remedy, what follows it, and the separator between them; empty after the last step.
func cutStep(text string) (first Step, separator, rest string) {
	words, command := text, ""
	if found := commandStart.FindStringSubmatchIndex(backquoted.ReplaceAllStringFunc(text, blank)); found != nil {
		words, command = text[:found[2]], text[found[2]:]
	}
	if at, found := separatorIn(backquoted.ReplaceAllStringFunc(words, blank)); found != "" {
		return Step{Text: words[:at]}, found, text[at+len(found):]
	}
	step := Step{Text: strings.TrimSpace(words)}
	at, found := separatorIn(quotedText.ReplaceAllStringFunc(command, blank))
	step.Command = command[:at]
	return step, found, command[at+len(found):]
}

// separatorIn returns the first separator of a text and where it begins; the end of the text without one.
func separatorIn(text string) (at int, separator string) {
	at = len(text)
	for _, one := range []string{nextStep, nextWay} {
		if i := strings.Index(text, one); i >= 0 && i < at {
			at, separator = i, one
		}
	}
	return at, separator
}

// commandStart finds the beginning of a command: the name of its program at the start of a remedy, or after a colon.
var commandStart = regexp.MustCompile(`(?:^|: )((?:kubectl|godwit|helm|sh) )`)

// quotedText finds what a shell takes as it is.
var quotedText = regexp.MustCompile(`\\.|'[^']*'|"(?:\\.|[^"])*"`)

// backquoted finds a name or a command within words.
var backquoted = regexp.MustCompile("`[^`]*`")

// blank returns a text of the same length that has no separator.
func blank(text string) string { return strings.Repeat("x", len(text)) }
