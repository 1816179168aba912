package process

import (
	"fmt"
	"os"
	"strings"
)

// tailLines is the number of log lines in an error: the cause, without the start-up messages before it.
const tailLines = 15

// Tail renders the end of a log file as the end of an error. It is empty if there is no log.
func Tail(path string) string {
	content, err := os.ReadFile(path)
	text := strings.TrimSpace(string(content))
	if err != nil || text == "" {
		return ""
	}
	lines := strings.Split(text, "\n")
	return fmt.Sprintf("; %s ends:\n%s", path, strings.Join(lines[max(0, len(lines)-tailLines):], "\n"))
}
