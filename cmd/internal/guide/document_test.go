package guide_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
)

// step is a file to be written, a command to be run, or a piece of the repository's Go.
type step struct {
	line   int    // in the guide, from 1
	file   string // its name; empty for a command
	source string // where in the repository the text stands; empty for the others
	text   string
	want   string // what the command prints
}

func (s step) isCommand() bool { return s.file == "" && s.source == "" }

var (
	fence    = regexp.MustCompile("^( *)```(.*)$") // a step of a numbered list indents it
	goFile   = regexp.MustCompile(`^// ([a-z0-9_/-]+\.go)\n`)
	fileName = regexp.MustCompile(`^# ([a-z0-9-]+\.(?:yaml|properties))\n`)
	// watchEnded is what kubectl wait may log when it has seen what it waits for, and ends its watch.
	watchEnded = regexp.MustCompile(`^I\d{4} \S+ +\d+ reflector\.go:\d+\] "Warning: watch ended with error"`)
	inline     = regexp.MustCompile("`((?:kubectl|godwit) [^`]+)`")
)

// parse finds the steps of a guide, and refuses blocks of a form that would
// leave a command out.
func parse(guide string) ([]step, error) {
	var steps []step
	var indent, language, block string
	opened := 0 // the line of the fence; 0 outside a block
	for i, line := range strings.Split(guide, "\n") {
		found := fence.FindStringSubmatch(line)
		switch {
		case found == nil && opened > 0:
			block += strings.TrimPrefix(line, indent) + "\n"
		case found == nil:
		case opened == 0:
			opened, indent, language, block = i+1, found[1], found[2], ""
		default:
			more, err := parseBlock(language, block, opened+1)
			if err != nil {
				return nil, fmt.Errorf("line %d: %w", opened, err)
			}
			steps, opened = append(steps, more...), 0
		}
	}
	if opened > 0 {
		return nil, fmt.Errorf("line %d: the block has no end", opened)
	}
	return steps, nil
}

func parseBlock(language, block string, line int) ([]step, error) {
	switch language {
	case "yaml", "properties":
		name := fileName.FindStringSubmatch(block)
		if name == nil {
			return nil, fmt.Errorf("the first line of a %s block is # and its file name, not %q", language, strings.SplitN(block, "\n", 2)[0])
		}
		return []step{{line: line, file: name[1], text: block}}, nil
	case "go":
		name := goFile.FindStringSubmatch(block)
		if name == nil {
			return nil, fmt.Errorf("the first line of a go block is // and the path of the file it is from, not %q", strings.SplitN(block, "\n", 2)[0])
		}
		return []step{{line: line, source: name[1], text: strings.TrimPrefix(block, name[0])}}, nil
	case "console":
		return parseConsole(block, line)
	}
	return nil, fmt.Errorf("a block is yaml, properties, console or go, not %q", language)
}

// isPartOf compares line by line. A guide may indent less than the file.
func isPartOf(piece, file string) bool {
	lines := func(text string) string {
		var all strings.Builder
		for line := range strings.Lines(text) {
			all.WriteString("\n" + strings.TrimSpace(line))
		}
		return all.String() + "\n"
	}
	return strings.TrimSpace(piece) != "" && strings.Contains(lines(file), lines(piece))
}

func TestIsPartOf(t *testing.T) {
	const file = "func f() {\n\tif x {\n\t\ty()\n\t}\n}\n"
	for piece, want := range map[string]bool{
		"if x {\n\ty()\n}\n": true,
		"y()\n":              true,
		"y(1)\n":             false,
		"if x {\n}\n":        false, // a line is left out
		"":                   false,
		"f\n":                false, // a part of a line
	} {
		if got := isPartOf(piece, file); got != want {
			t.Errorf("%q: %v, want %v", piece, got, want)
		}
	}
}

func parseConsole(block string, line int) ([]step, error) {
	var steps []step
	continued := false
	for i, text := range strings.Split(strings.TrimSuffix(block, "\n"), "\n") {
		command, isCommand := strings.CutPrefix(text, "$ ")
		switch last := len(steps) - 1; {
		case continued:
			steps[last].text += "\n" + text
		case isCommand:
			steps = append(steps, step{line: line + i, text: command})
		case last < 0:
			return nil, fmt.Errorf("a console block begins with a command, not with %q", text)
		default:
			steps[last].want += text + "\n"
			continue
		}
		continued = strings.HasSuffix(text, `\`)
	}
	return steps, nil
}

// checkProse: a command within a sentence is the beginning of one that is run.
func checkProse(guide string, steps []step) error {
	for _, found := range inline.FindAllStringSubmatch(guide, -1) {
		run := false
		for _, s := range steps {
			run = run || s.isCommand() && strings.Contains(s.text, found[1])
		}
		if !run {
			return fmt.Errorf("`%s` is in the prose, and in no console block", found[1])
		}
	}
	return nil
}

// matches compares what was printed with what a guide says. Spaces at the end
// of lines, which no reader sees, don't count, and neither do warnings of kubectl's watches.
func matches(want, printed string) bool {
	var pattern strings.Builder
	for _, line := range strings.SplitAfter(want, "\n") {
		if line == "...\n" {
			pattern.WriteString(`(?s:.*)`)
			continue
		}
		line = strings.TrimRight(line, " \n")
		if line == "" {
			continue
		}
		for i, part := range strings.Split(line, "...") {
			if i > 0 {
				pattern.WriteString(`.*`)
			}
			pattern.WriteString(regexp.QuoteMeta(part))
		}
		pattern.WriteString(`\n`)
	}
	var lines strings.Builder
	for line := range strings.Lines(printed) {
		if line = strings.TrimRight(line, " \n"); line != "" && !watchEnded.MatchString(line) {
			lines.WriteString(line + "\n")
		}
	}
	return regexp.MustCompile(`^` + pattern.String() + `$`).MatchString(lines.String())
}

func TestMatches(t *testing.T) {
	for name, c := range map[string]struct {
		want, printed string
		matches       bool
	}{
		"equal":                     {"a\nb\n", "a\nb\n", true},
		"another line":              {"a\n", "a\nb\n", false},
		"nothing is something":      {"", "a\n", false},
		"nothing":                   {"", "", true},
		"invisible spaces":          {"a\n\nb\n", "a  \nb\n", true},
		"text within a line":        {"took ...s\n", "took 17s\n", true},
		"text is not a line":        {"took ...s\n", "took 1\n7s\n", false},
		"lines":                     {"a\n...\nz\n", "a\nb\nc\nz\n", true},
		"no lines":                  {"a\n...\nz\n", "a\nz\n", true},
		"what follows lines counts": {"...\nz\n", "a\nb\n", false},
		"a watch of kubectl ended":  {"met\n", "I1122 13:08:47.461155   27448 reflector.go:664] \"Warning: watch ended with error\" err=\"canceled\"\nmet\n", true},
		"another error of kubectl":  {"met\n", "E1122 13:08:47.461155   27448 reflector.go:664] \"Failed to watch\" err=\"forbidden\"\nmet\n", false},
		"no regular expressions":    {"a.c\n", "abc\n", false},
	} {
		if got := matches(c.want, c.printed); got != c.matches {
			t.Errorf("%s: %v, want %v", name, got, c.matches)
		}
	}
}

// TestParseInAList finds a block that is a part of a list.
func TestParseInAList(t *testing.T) {
	steps, err := parse("1. Look.\n\n   ```console\n   $ a \\\n     b\n   c\n   ```\n")
	if err != nil || len(steps) != 1 || steps[0].text != "a \\\n  b" || steps[0].want != "c\n" {
		t.Errorf("parsed as %+v, error %v", steps, err)
	}
}

// TestParseRefuses: no form of block may leave a command out unnoticed.
func TestParseRefuses(t *testing.T) {
	for reason, guide := range map[string]string{
		"a block that no test runs":  "```sh\n$ true\n```\n",
		"Go from nowhere":            "```go\nfunc f() {}\n```\n",
		"a block without a language": "```\n$ true\n```\n",
		"output of nothing":          "```console\ntrue\n```\n",
		"a file without a name":      "```yaml\nkind: List\n```\n",
		"a block without an end":     "```console\n$ true\n",
	} {
		if steps, err := parse(guide); err == nil {
			t.Errorf("%s: parsed as %+v, want an error", reason, steps)
		}
	}
	if err := checkProse("Try `kubectl version`.", nil); err == nil {
		t.Error("a command that is only in the prose is accepted, want an error")
	}
}
