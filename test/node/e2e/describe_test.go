package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"

	"github.com/google/go-cmp/cmp"
)

// expectDescribed fails unless kubectl describe shows a migration as a file has it.
func (s *stage) expectDescribed(name, file string) {
	s.t.Helper()
	want, err := os.ReadFile(file)
	if err != nil {
		s.t.Fatal(err)
	}
	s.await("kubectl describe to show "+file, func(ctx context.Context) error { // an event comes after the status
		out, err := s.command(ctx, s.kubectlProgram(), "describe", "crdmigration", name)
		if err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		if diff := cmp.Diff(string(want), stable(out)); diff != "" {
			return errors.New("(-want +got)\n" + diff)
		}
		return nil
	})
}

// changing are parts of kubectl describe that another run has otherwise.
var changing = []struct {
	pattern *regexp.Regexp
	with    string
}{
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT[\d:]+Z`), "TIME"},
	{regexp.MustCompile(`[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}`), "UID"},
	{regexp.MustCompile(`(Resource Version: +)\d+`), "${1}NUMBER"},
	{regexp.MustCompile(`apiserver-\w+ \(host [^)]+\)`), "SERVER"},
}

// anEvent is a line of the table of events.
var anEvent = regexp.MustCompile(`^ +(\S+) +(\S+) +(?:[\dmsh]+|----|Age)(?: \(x\d+ over [\dmsh]+\))? +(\S+) +(.*)$`)

// stable is a description without what changes: times, ages and names. It has each event once, and none that depends on when an API server
// renews its lease.
func stable(described string) string {
	for _, c := range changing {
		described = c.pattern.ReplaceAllString(described, c.with)
	}
	var lines []string
	for line := range strings.Lines(described) {
		line = anEvent.ReplaceAllString(strings.TrimRight(line, " \n"), "  $1  $2  AGE  $3  $4")
		if !strings.Contains(line, "AGE") || !strings.Contains(line, "API servers have not shown yet") {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n") + "\n"
}
