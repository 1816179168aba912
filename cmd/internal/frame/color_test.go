package frame

import (
	"bytes"
	"testing"
)

// TestColourOfAPipe: a program that shows the output on a terminal asks for colours, and a user who wants none has none.
func TestColourOfAPipe(t *testing.T) {
	for _, c := range []struct {
		forced, no, term string
		want             bool
	}{
		{"", "", "xterm", false},
		{"0", "", "xterm", false},
		{"1", "", "xterm", true},
		{"1", "", "dumb", true},
		{"1", "1", "xterm", false},
	} {
		t.Setenv("CLICOLOR_FORCE", c.forced)
		t.Setenv("NO_COLOR", c.no)
		t.Setenv("TERM", c.term)
		if got := hasColor(&bytes.Buffer{}); got != c.want {
			t.Errorf("CLICOLOR_FORCE=%s NO_COLOR=%s TERM=%s: colours %v, want %v", c.forced, c.no, c.term, got, c.want)
		}
	}
}
