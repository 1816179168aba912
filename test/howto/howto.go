package howto

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// Guide is a guide, with the values and the environment of its reader.
type Guide struct {
	// File has the text, in Markdown.
	File string
	// Placeholders has the value for each word in capitals that a reader replaces.
	Placeholders map[string]string
	// Dir is the working directory of the shell, and Env its environment.
	Dir string
	Env []string
	// Written, if set, is called with each file that the guide has written, as its reader restarts a server with a new configuration.
	Written func(name string) error
}

var block = regexp.MustCompile("(?ms)^( *)```(yaml|properties|console)\n(.*?)\n *```$")

// Run runs the guide to its end, and returns the number of commands. A line of output that is "..." stands for any lines, and
// "..." within a line for any text; spaces between columns don't count. A command may fail, if it prints what the guide says.
func Run(ctx context.Context, g Guide) (commands int, err error) {
	text, err := os.ReadFile(g.File)
	if err != nil {
		return 0, err
	}
	guide := string(text)
	for word, value := range g.Placeholders {
		guide = regexp.MustCompile(`\b`+word+`\b`).ReplaceAllLiteralString(guide, value)
	}
	s, err := startShell(ctx, g.Dir, g.Env)
	if err != nil {
		return 0, err
	}
	defer s.stop()
	for _, found := range block.FindAllStringSubmatch(guide, -1) {
		body := regexp.MustCompile(`(?m)^`+found[1]).ReplaceAllString(found[3], "")
		if found[2] != "console" {
			name, _, _ := strings.Cut(strings.TrimPrefix(body, "# "), "\n")
			if err := os.WriteFile(filepath.Join(g.Dir, name), []byte(body+"\n"), 0o600); err != nil {
				return commands, err
			}
			if g.Written != nil {
				if err := g.Written(name); err != nil {
					return commands, fmt.Errorf("%s: after %s: %w", filepath.Base(g.File), name, err)
				}
			}
			continue
		}
		for _, step := range strings.Split("\n"+body, "\n$ ")[1:] {
			command, want, _ := strings.Cut(step, "\n")
			got, err := s.run(command)
			if err != nil {
				return commands, err
			}
			if !matches(want, got) {
				return commands, fmt.Errorf("%s: $ %s\nprinted:\n%s\nwant:\n%s", filepath.Base(g.File), command, got, want)
			}
			commands++
		}
	}
	return commands, nil
}

// matches compares the output of a command with a guide.
func matches(want, got string) bool {
	var pattern strings.Builder
	for line := range strings.SplitSeq(strings.TrimSpace(want), "\n") {
		line = strings.Join(strings.Fields(line), " ")
		switch line {
		case "...":
			pattern.WriteString(`(?:.*\n)*?`)
		case "":
		default:
			pattern.WriteString(strings.ReplaceAll(regexp.QuoteMeta(line), `\.\.\.`, `.*`) + `\n`)
		}
	}
	var printed strings.Builder
	for line := range strings.SplitSeq(got, "\n") {
		if line = strings.Join(strings.Fields(line), " "); line != "" {
			printed.WriteString(line + "\n")
		}
	}
	return regexp.MustCompile(`^` + pattern.String() + `$`).MatchString(printed.String())
}
